//! `namehop route`: the routing information base.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use namehop_client::nfd::numbers::{origin, route_flags};
use namehop_client::nfd::{ControlParameters, Route, names::module};
use namehop_manage::route_file::FaceSelector;
use namehop_manage::views::RouteView;
use namehop_wire::Name;

use super::prefixes::PrefixArgs;
use super::route_file;
use crate::connection::{ConnectionArgs, block_on};
use crate::failure::Failure;
use crate::manager::Manager;
use crate::output::{self, Align, Table, or_dash};
use crate::signing::CommandSigningArgs;
use crate::units::{milliseconds, parse_duration, show_expiry};

/// List, add and remove routes
#[derive(Args, Debug)]
pub struct RouteArgs {
    #[command(subcommand)]
    command: RouteCommand,
    #[command(flatten)]
    signing: CommandSigningArgs,
}

#[derive(Subcommand, Debug)]
enum RouteCommand {
    List(ListArgs),
    Add(AddArgs),
    Remove(RemoveArgs),
}

fn parse_origin(text: &str) -> Result<u64, String> {
    origin::from_name(text).ok_or_else(|| format!("unknown origin '{text}' (app, client, static, nlsr, … or a number)"))
}

fn parse_flags(text: &str) -> Result<u64, String> {
    route_flags::from_words(text).map_err(|word| format!("unknown route flag '{word}' (child-inherit, capture, none)"))
}

/// List routes
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  namehop route list\n  namehop route list --prefix /example --json")]
struct ListArgs {
    #[command(flatten)]
    prefixes: PrefixArgs,
    /// Only routes to this face (number or address)
    #[arg(long, value_name = "FACE")]
    face: Option<FaceSelector>,
    /// Only routes with this origin
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    origin: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of a new route.
#[derive(Args, Clone, Copy, Debug)]
pub struct RouteOptionArgs {
    /// Cost; lower is better
    #[arg(short = 'c', long, default_value_t = 0)]
    pub cost: u64,
    /// Origin of the route: app, client, static, nlsr, … or a number
    #[arg(short = 'o', long, default_value = "static", value_parser = parse_origin)]
    pub origin: u64,
    /// child-inherit (applies also to longer names with routes of their own), capture (routes of shorter names do not
    /// apply here), none
    #[arg(short = 'f', long, default_value = "child-inherit", value_parser = parse_flags)]
    pub flags: u64,
    /// Time until the route expires [default: never]
    #[arg(short = 'e', long, value_name = "DURATION", value_parser = parse_duration)]
    pub expires: Option<Duration>,
}

/// Add a route, or many from a file
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  namehop route add /example udp4://router.example:6363 --cost 10
  namehop route add /example 300 --expires 1h --origin client
  namehop route add --file routes.txt
  namehop route add /example 300 --signing-key operator.key --certificate operator.ndncert

A file has one route per line: PREFIX NEXTHOP [COST]. Empty lines and lines that begin with # are
skipped. A NEXTHOP address without a face gets one.")]
struct AddArgs {
    /// Prefix of the route
    #[arg(required_unless_present = "file", requires = "nexthop")]
    prefix: Option<Name>,
    /// Face number, or address of a face, which is created if it does not exist
    nexthop: Option<FaceSelector>,
    /// Read routes from this file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prefix", "nexthop"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    options: RouteOptionArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Remove a route
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop route remove /example udp4://192.0.2.1:6363")]
struct RemoveArgs {
    /// Prefix of the route
    prefix: Name,
    /// Face number or address
    nexthop: FaceSelector,
    /// Origin of the route: app, client, static, nlsr, … or a number
    #[arg(short = 'o', long, default_value = "static", value_parser = parse_origin)]
    origin: u64,
}

impl RouteArgs {
    pub fn run(self, connection: &ConnectionArgs) -> Result<(), Failure> {
        block_on(async {
            let manager = match &self.command {
                RouteCommand::List(_) => Manager::connect(connection).await?,
                _ => Manager::connect_with_signer(connection, self.signing.signer()?).await?,
            };
            match self.command {
                RouteCommand::List(args) => args.run(&manager).await,
                RouteCommand::Add(args) => args.run(&manager).await,
                RouteCommand::Remove(args) => args.run(&manager).await,
            }
        })
    }
}

impl ListArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let face = match &self.face {
            Some(face) => Some(manager.find_face(face).await?),
            None => None,
        };
        let entries = self.prefixes.select(manager.datasets().rib().await?, |entry| &entry.name);
        let faces = manager.remote_uris().await?;
        let routes = entries.iter().flat_map(|entry| entry.routes.iter().map(move |route| (&entry.name, route)));
        let views: Vec<RouteView> = routes
            .filter(|(_, route)| face.is_none_or(|face| route.face_id == face))
            .filter(|(_, route)| self.origin.is_none_or(|origin| route.origin == origin))
            .map(|(name, route)| RouteView {
                remote_uri: faces.get(&route.face_id).cloned(),
                ..RouteView::new(name, route)
            })
            .collect();
        if self.json {
            return output::json(&views);
        }
        let mut table = Table::new(&[
            ("PREFIX", Align::Left),
            ("FACE", Align::Right),
            ("ORIGIN", Align::Left),
            ("COST", Align::Right),
            ("FLAGS", Align::Left),
            ("EXPIRES-IN", Align::Right),
            ("REMOTE", Align::Left),
        ]);
        for view in views {
            let expires = view.expires_ms.map(show_expiry);
            table.row([
                view.prefix,
                view.face_id.to_string(),
                view.origin,
                view.cost.to_string(),
                view.flags,
                or_dash(expires),
                view.remote_uri.unwrap_or_default(),
            ]);
        }
        table.print()
    }
}

impl AddArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        if let Some(path) = &self.file {
            return route_file::add(manager, path, &self.options, self.json).await;
        }
        // The command line requires both without --file.
        let (Some(prefix), Some(nexthop)) = (self.prefix, self.nexthop) else {
            return Err(Failure::usage("PREFIX and NEXTHOP are missing; give both, or --file"));
        };
        let face_id = manager.find_or_create_face(&nexthop).await?;
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            face_id: Some(face_id),
            origin: Some(self.options.origin),
            cost: Some(self.options.cost),
            flags: Some(self.options.flags),
            expiration_period_ms: self.options.expires.map(milliseconds),
            ..ControlParameters::default()
        };
        let done = manager.command(module::RIB, "register", &parameters).await?;
        let route = Route {
            face_id: done.face_id.unwrap_or(face_id),
            origin: done.origin.unwrap_or(self.options.origin),
            cost: done.cost.unwrap_or(self.options.cost),
            flags: done.flags.unwrap_or(self.options.flags),
            expiration_period_ms: done.expiration_period_ms,
        };
        let view = RouteView::new(done.name.as_ref().unwrap_or(&prefix), &route);
        if self.json {
            return output::json(&view);
        }
        output::line(format!(
            "route {} to face {} added: origin {}, cost {}, flags {}",
            view.prefix, view.face_id, view.origin, view.cost, view.flags
        ))
    }
}

impl RemoveArgs {
    async fn run(self, manager: &Manager) -> Result<(), Failure> {
        let face_id = manager.find_face(&self.nexthop).await?;
        let parameters = ControlParameters {
            name: Some(self.prefix.clone()),
            face_id: Some(face_id),
            origin: Some(self.origin),
            ..ControlParameters::default()
        };
        manager.command(module::RIB, "unregister", &parameters).await?;
        output::line(format!("route {} to face {face_id} removed: origin {}", self.prefix, origin::name(self.origin)))
    }
}
