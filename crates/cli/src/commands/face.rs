//! `namehop face`: connections of the forwarder to others.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use namehop_face::uri::FaceUri;
use namehop_manage::nfd::numbers::face_flags;
use namehop_manage::nfd::{ControlParameters, FacePersistency, FaceStatus, names::module};
use serde::Serialize;

use super::signing::CommandSigningArgs;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::{FaceArg, Manager};
use crate::output::{self, Align, Table, or_dash, properties};
use crate::units::{parse_duration, parse_switch, show_duration};

/// List, create, change and destroy faces
#[derive(Args, Debug)]
pub struct FaceArgs {
    #[command(subcommand)]
    command: FaceCommand,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

#[derive(Subcommand, Debug)]
enum FaceCommand {
    List(ListArgs),
    Show(ShowArgs),
    Create(CreateArgs),
    Update(UpdateArgs),
    Destroy(DestroyArgs),
}

/// List faces with their packet counts
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop face list\n  namehop face list --scheme udp4 --json")]
struct ListArgs {
    /// Only faces to this address
    #[arg(long, value_name = "URI")]
    remote: Option<String>,
    /// Only faces from this address
    #[arg(long, value_name = "URI")]
    local: Option<String>,
    /// Only faces whose remote or local address has this scheme
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show all properties of one face
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop face show 300\n  namehop face show udp4://192.0.2.1:6363 --json")]
struct ShowArgs {
    /// Number or remote address
    face: FaceArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// When a face goes away. TCP and WebSocket faces of the last two kinds reconnect when their connection fails.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PersistencyArg {
    /// After some time without traffic, or when the connection fails
    OnDemand,
    /// When it is destroyed, or the forwarder ends
    Persistent,
    /// When it is destroyed: it is there again after a restart
    Permanent,
}

/// Properties that can be set.
#[derive(Args, Debug)]
struct PropertyArgs {
    /// When the face goes away
    #[arg(long, value_enum)]
    persistency: Option<PersistencyArg>,
    /// Exchange face numbers with the application at the other end: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    local_fields: Option<bool>,
    /// Repeat lost packets (NDNLPv2 reliability): on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    reliability: Option<bool>,
    /// Mark packets when the send queue is long: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    congestion_marking: Option<bool>,
    /// Time above the threshold before the first mark
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    congestion_interval: Option<Duration>,
    /// Send queue length that counts as congested
    #[arg(long, value_name = "BYTES")]
    congestion_threshold: Option<u64>,
    /// Largest packet sent without fragmentation
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u64>,
}

impl PropertyArgs {
    fn parameters(&self) -> ControlParameters {
        let switches = [
            (face_flags::LOCAL_FIELDS, self.local_fields),
            (face_flags::RELIABILITY, self.reliability),
            (face_flags::CONGESTION_MARKING, self.congestion_marking),
        ];
        let (mut flags, mut mask) = (0, 0);
        for (bit, switch) in switches {
            if let Some(on) = switch {
                mask |= bit;
                flags |= if on { bit } else { 0 };
            }
        }
        let persistency = self.persistency.map(|persistency| match persistency {
            PersistencyArg::OnDemand => FacePersistency::OnDemand,
            PersistencyArg::Persistent => FacePersistency::Persistent,
            PersistencyArg::Permanent => FacePersistency::Permanent,
        });
        let interval_ns = |interval: Duration| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        ControlParameters {
            flags: (mask != 0).then_some(flags),
            mask: (mask != 0).then_some(mask),
            face_persistency: persistency.map(FacePersistency::code),
            base_congestion_marking_interval_ns: self.congestion_interval.map(interval_ns),
            default_congestion_threshold_bytes: self.congestion_threshold,
            mtu_bytes: self.mtu,
            ..ControlParameters::default()
        }
    }
}

/// Create a face, or find the one that exists
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop face create udp4://router.example:6363
  namehop face create tcp://192.0.2.1 --persistency permanent
  namehop face create 'ether://[08:00:27:01:01:01]' --local dev://eth0
  namehop face create tcp://192.0.2.1 --signing-key operator.key --certificate operator.ndncert")]
struct CreateArgs {
    /// Remote address; host names are resolved first
    uri: FaceUri,
    /// Local address, for links that need one
    #[arg(long, value_name = "URI")]
    local: Option<FaceUri>,
    #[command(flatten)]
    properties: PropertyArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Change properties of a face
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop face update 300 --reliability on --mtu 1400")]
struct UpdateArgs {
    /// Number or remote address
    face: FaceArg,
    #[command(flatten)]
    properties: PropertyArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Destroy a face and the routes through it
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop face destroy udp4://192.0.2.1:6363")]
struct DestroyArgs {
    /// Number or remote address
    face: FaceArg,
}

#[derive(Serialize)]
struct FaceView<'a> {
    face_id: u64,
    remote_uri: &'a str,
    local_uri: &'a str,
    scope: String,
    persistency: String,
    link_type: String,
    expiration_ms: Option<u64>,
    mtu_bytes: Option<u64>,
    local_fields: bool,
    reliability: bool,
    congestion_marking: bool,
    congestion_interval_ns: Option<u64>,
    congestion_threshold_bytes: Option<u64>,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    in_bytes: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    out_bytes: u64,
}

impl<'a> From<&'a FaceStatus> for FaceView<'a> {
    fn from(face: &'a FaceStatus) -> Self {
        let flag = |bit| face.flags & bit != 0;
        Self {
            face_id: face.face_id,
            remote_uri: &face.uri,
            local_uri: &face.local_uri,
            scope: face.scope.to_string(),
            persistency: face.persistency.to_string(),
            link_type: face.link_type.to_string(),
            expiration_ms: face.expiration_period_ms,
            mtu_bytes: face.mtu_bytes,
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
            congestion_interval_ns: face.base_congestion_marking_interval_ns,
            congestion_threshold_bytes: face.default_congestion_threshold_bytes,
            in_interests: face.in_interests,
            in_data: face.in_data,
            in_nacks: face.in_nacks,
            in_bytes: face.in_bytes,
            out_interests: face.out_interests,
            out_data: face.out_data,
            out_nacks: face.out_nacks,
            out_bytes: face.out_bytes,
        }
    }
}

/// What a command did to a face.
#[derive(Serialize)]
struct ChangedFace {
    face_id: Option<u64>,
    remote_uri: Option<String>,
    local_uri: Option<String>,
    created: Option<bool>,
    persistency: Option<String>,
    local_fields: Option<bool>,
    reliability: Option<bool>,
    congestion_marking: Option<bool>,
    mtu_bytes: Option<u64>,
}

impl ChangedFace {
    fn new(parameters: ControlParameters, created: Option<bool>) -> Self {
        let flag = |bit| parameters.flags.map(|flags| flags & bit != 0);
        let persistency = parameters.face_persistency;
        let persistency = persistency.and_then(|code| FacePersistency::try_from(code).ok());
        Self {
            created,
            persistency: persistency.map(|persistency| persistency.to_string()),
            local_fields: flag(face_flags::LOCAL_FIELDS),
            reliability: flag(face_flags::RELIABILITY),
            congestion_marking: flag(face_flags::CONGESTION_MARKING),
            face_id: parameters.face_id,
            remote_uri: parameters.uri,
            local_uri: parameters.local_uri,
            mtu_bytes: parameters.mtu_bytes,
        }
    }

    fn print(&self, json: bool, what: &str) -> Result<(), Failure> {
        if json {
            return output::json(self);
        }
        let remote = self.remote_uri.as_ref().map(|uri| format!(" to {uri}")).unwrap_or_default();
        output::line(format!("face {}{remote} {what}", or_dash(self.face_id)))
    }
}

impl FaceArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            let manager = match &self.command {
                FaceCommand::List(_) | FaceCommand::Show(_) => Manager::connect(connection).await?,
                _ => Manager::connect_with_signer(connection, self.signing.signer()?).await?,
            };
            match self.command {
                FaceCommand::List(args) => args.run(&manager).await,
                FaceCommand::Show(args) => args.run(&manager).await,
                FaceCommand::Create(args) => args.run(&manager).await,
                FaceCommand::Update(args) => args.run(&manager).await,
                FaceCommand::Destroy(args) => args.run(&manager).await,
            }
        })
    }
}

impl ListArgs {
    fn wants(&self, face: &FaceStatus) -> bool {
        let scheme_of = |uri: &str, scheme: &str| uri.split_once("://").is_some_and(|(found, _)| found == scheme);
        self.remote.as_ref().is_none_or(|uri| face.uri == *uri)
            && self.local.as_ref().is_none_or(|uri| face.local_uri == *uri)
            && self
                .scheme
                .as_ref()
                .is_none_or(|scheme| scheme_of(&face.uri, scheme) || scheme_of(&face.local_uri, scheme))
    }

    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let mut faces = manager.faces().await?;
        faces.retain(|face| self.wants(face));
        faces.sort_by_key(|face| face.face_id);
        if self.json {
            return output::json(&faces.iter().map(FaceView::from).collect::<Vec<_>>());
        }
        let mut table = Table::new(&[
            ("FACE", Align::Right),
            ("REMOTE", Align::Left),
            ("LOCAL", Align::Left),
            ("SCOPE", Align::Left),
            ("PERSISTENCY", Align::Left),
            ("IN-INTERESTS", Align::Right),
            ("IN-DATA", Align::Right),
            ("IN-BYTES", Align::Right),
            ("OUT-INTERESTS", Align::Right),
            ("OUT-DATA", Align::Right),
            ("OUT-BYTES", Align::Right),
        ]);
        for face in &faces {
            table.row([
                face.face_id.to_string(),
                face.uri.clone(),
                face.local_uri.clone(),
                face.scope.to_string(),
                face.persistency.to_string(),
                face.in_interests.to_string(),
                face.in_data.to_string(),
                face.in_bytes.to_string(),
                face.out_interests.to_string(),
                face.out_data.to_string(),
                face.out_bytes.to_string(),
            ]);
        }
        table.print()
    }
}

impl ShowArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let id = manager.find_face(&self.face).await?;
        let faces = manager.faces().await?;
        let face = faces.iter().find(|face| face.face_id == id);
        let face = face.ok_or_else(|| Failure::failed(format!("there is no face {id}")))?;
        let view = FaceView::from(face);
        if self.json {
            return output::json(&view);
        }
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let expires = view.expiration_ms.map(|ms| show_duration(Duration::from_millis(ms)));
        let interval = view.congestion_interval_ns.map(|ns| show_duration(Duration::from_nanos(ns)));
        output::print(&properties(&[
            ("Face", view.face_id.to_string()),
            ("Remote address", view.remote_uri.to_owned()),
            ("Local address", view.local_uri.to_owned()),
            ("Scope", view.scope),
            ("Link type", view.link_type),
            ("Persistency", view.persistency),
            ("Expires in", or_dash(expires)),
            ("MTU (bytes)", or_dash(view.mtu_bytes)),
            ("Local fields", switch(view.local_fields)),
            ("Reliability", switch(view.reliability)),
            ("Congestion marking", switch(view.congestion_marking)),
            ("Congestion interval", or_dash(interval)),
            ("Congestion threshold (bytes)", or_dash(view.congestion_threshold_bytes)),
            ("Interests", format!("{} in, {} out", view.in_interests, view.out_interests)),
            ("Data", format!("{} in, {} out", view.in_data, view.out_data)),
            ("Nacks", format!("{} in, {} out", view.in_nacks, view.out_nacks)),
            ("Bytes", format!("{} in, {} out", view.in_bytes, view.out_bytes)),
        ]))
    }
}

impl CreateArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let local_uri = self.local.map(|uri| uri.to_string());
        let options = ControlParameters { local_uri, ..self.properties.parameters() };
        let (face, created) = manager.create_face(&self.uri, options).await?;
        ChangedFace::new(face, Some(created)).print(self.json, if created { "created" } else { "exists" })
    }
}

impl UpdateArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let parameters = self.properties.parameters();
        if parameters == ControlParameters::default() {
            return Err(Failure::usage("nothing to change: give at least one property"));
        }
        let face_id = Some(manager.find_face(&self.face).await?);
        let done = manager.command(module::FACES, "update", &ControlParameters { face_id, ..parameters }).await?;
        ChangedFace::new(done, None).print(self.json, "updated")
    }
}

impl DestroyArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let face_id = Some(manager.find_face(&self.face).await?);
        let parameters = ControlParameters { face_id, ..ControlParameters::default() };
        let done = manager.command(module::FACES, "destroy", &parameters).await?;
        output::line(format!("face {} destroyed", or_dash(done.face_id)))
    }
}
