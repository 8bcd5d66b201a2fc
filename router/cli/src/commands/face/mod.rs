//! `namehop face`: faces of the forwarder.

mod view;

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use namehop_client::nfd::{Code, ControlParameters, FaceStatus, names::module};
use namehop_face::uri::FaceUri;
use namehop_manage::requests::{FaceProperties, Persistency, PitTokens};
use namehop_manage::route_file::FaceSelector;
use namehop_manage::views::{ChangedFaceView, FaceView};
use namehop_port::drivers;

use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table};
use crate::printable;
use crate::signing::CommandSigningArgs;
use crate::units::{parse_bytes, parse_duration, parse_switch};
use view::{describe, print_changed};

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
    /// Only faces with this scheme in their remote or local address
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
    face: FaceSelector,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// When a face is closed. TCP and WebSocket faces of the last two kinds reconnect when their connection fails.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PersistencyArg {
    /// Closed after some time without traffic, or when the connection fails
    OnDemand,
    /// Closed when it is destroyed, or the forwarder ends
    Persistent,
    /// Closed when it is destroyed; it is restored after a restart of the forwarder
    Permanent,
}

/// When Interests on a face carry the router's PIT token
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PitTokensArg {
    /// Once the peer has shown that it knows PIT tokens
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// Properties that can be set.
#[derive(Args, Debug)]
struct PropertyArgs {
    /// When the face is closed
    #[arg(long, value_enum)]
    persistency: Option<PersistencyArg>,
    /// Exchange face ids with the application at the other end: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    local_fields: Option<bool>,
    /// Retransmit lost packets (NDNLPv2 reliability): on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    reliability: Option<bool>,
    /// Mark packets when the send queue is long: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    congestion_marking: Option<bool>,
    /// Send IDLE packets over UDP, so that gateways and firewalls keep the path open: on, off
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    keep_alive: Option<bool>,
    /// When Interests carry the router's PIT token, which libraries from before 2020 do not know
    #[arg(long, value_enum, value_name = "MODE")]
    pit_tokens: Option<PitTokensArg>,
    /// Time above the threshold before the first congestion mark
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    congestion_interval: Option<Duration>,
    /// Send queue length from which packets are marked
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    congestion_threshold: Option<u64>,
    /// Maximum size of a packet sent without fragmentation
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    mtu: Option<u64>,
}

impl PropertyArgs {
    fn parameters(&self) -> ControlParameters {
        let persistency = self.persistency.map(|persistency| match persistency {
            PersistencyArg::OnDemand => Persistency::OnDemand,
            PersistencyArg::Persistent => Persistency::Persistent,
            PersistencyArg::Permanent => Persistency::Permanent,
        });
        let interval_ns = |interval: Duration| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let properties = FaceProperties {
            persistency,
            local_fields: self.local_fields,
            reliability: self.reliability,
            congestion_marking: self.congestion_marking,
            keep_alive: self.keep_alive,
            pit_tokens: self.pit_tokens.map(|tokens| match tokens {
                PitTokensArg::Auto => PitTokens::Auto,
                PitTokensArg::On => PitTokens::On,
                PitTokensArg::Off => PitTokens::Off,
            }),
            congestion_interval_ns: self.congestion_interval.map(interval_ns),
            congestion_threshold_bytes: self.congestion_threshold,
            mtu_bytes: self.mtu,
        };
        properties.parameters()
    }
}

/// Create a face, or find the existing one
///
/// For Ethernet and memif, the router allows the network interfaces and folders listed in section [ports] of its
/// configuration, and any others if the command is signed with a key from its configuration.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop face create udp4://router.example:6363
  namehop face create tcp://192.0.2.1 --persistency permanent
  namehop face create 'ether://[08:00:27:01:01:01]' --local dev://eth0
  namehop face create 'ether://[01:00:5e:00:17:aa]' --local dev://eth0
  namehop face create 'ether://[08:00:27:01:01:01]' --local 'dev://eth0?vlan=7'
  namehop face create udp4://192.0.2.7:6363 --local 'dev://eth0?vlan=7'
  namehop face create 'memif:///run/ndn/app.sock?id=0'
  namehop face create tcp://192.0.2.1 --signing-key operator.key --certificate operator.ndncert")]
struct CreateArgs {
    /// Remote address; host names are resolved first
    #[arg(value_parser = drivers::parse_uri)]
    uri: FaceUri,
    #[arg(long, value_name = "URI", value_parser = drivers::parse_uri, help = local_help())]
    local: Option<FaceUri>,
    #[command(flatten)]
    properties: PropertyArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn local_help() -> String {
    let (with_options, others) = (
        drivers::forms(|driver| driver.scheme.separator.is_some()),
        drivers::forms(|driver| driver.scheme.separator.is_none()),
    );
    format!(
        "Local address, for Ethernet, VXLAN, and UDP without the kernel: {with_options}, also for a VLAN: \
         dev://INTERFACE?vlan=NUMBER. For Ethernet also {others}"
    )
}

/// Change properties of a face
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop face update 300 --reliability on --mtu 1400")]
struct UpdateArgs {
    /// Number or remote address
    face: FaceSelector,
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
    face: FaceSelector,
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
            return output::json(&faces.into_iter().map(FaceView::from).collect::<Vec<_>>());
        }
        let mut table = Table::new(&[
            ("FACE", Align::Right),
            ("REMOTE", Align::Left),
            ("LOCAL", Align::Left),
            ("SCOPE", Align::Left),
            ("PERSISTENCY", Align::Left),
            ("LINK", Align::Left),
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
                face.scope.name().to_owned(),
                face.persistency.name().to_owned(),
                view::show_link(face.is_up).to_owned(),
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
        let face = manager.existing_face(&self.face).await?;
        let view = FaceView::from(face);
        if self.json { output::json(&view) } else { output::print(&describe(&view)) }
    }
}

impl CreateArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let local_uri = self.local.map(|uri| uri.to_string());
        let properties = self.properties.parameters();
        let wants_properties = properties != ControlParameters::default();
        let (face, created) = manager.create_face(&self.uri, ControlParameters { local_uri, ..properties }).await?;
        let what = match (created, wants_properties) {
            (true, _) => "created",
            (false, false) => "exists",
            (false, true) => "exists; its properties were not changed: use 'namehop face update'",
        };
        print_changed(&ChangedFaceView::new(face, Some(created)), self.json, what)
    }
}

impl UpdateArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let parameters = self.properties.parameters();
        if parameters == ControlParameters::default() {
            return Err(Failure::usage("nothing to change: give at least one property"));
        }
        let face_id = Some(manager.find_face(&self.face).await?);
        let done = manager.update_face(&ControlParameters { face_id, ..parameters }).await?;
        print_changed(&ChangedFaceView::new(done, None), self.json, "updated")
    }
}

impl DestroyArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        // A forwarder answers 200 even if there was nothing to destroy.
        let face = manager.existing_face(&self.face).await?;
        let parameters = ControlParameters { face_id: Some(face.face_id), ..ControlParameters::default() };
        manager.command(module::FACES, "destroy", &parameters).await?;
        output::line(format!("face {} to {} destroyed", face.face_id, printable::in_line(&face.uri)))
    }
}
