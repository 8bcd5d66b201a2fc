//! `namehop p4 mirror`: sets the destination of the copies of a mirroring session of a running program.

use clap::Args;
use namehop_p4runtime::operator::SetMirrorRequest;
use namehop_p4runtime::operator::set_mirror_request::Target;
use serde_json::Value;

use crate::control::{Outcome, Remote, To, answer};

#[derive(Args)]
pub(crate) struct MirrorArgs {
    /// The mirroring session
    session: u32,
    /// The port that copies go to; without a port or group, there are no copies
    #[arg(long)]
    port: Option<u32>,
    /// The multicast group that copies go to
    #[arg(long, conflicts_with = "port")]
    group: Option<u32>,
    /// Maximum length of a copy, in bytes; 0 means no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    length: u32,
    #[command(flatten)]
    to: To,
}

/// Runs the command.
pub(crate) fn run(args: &MirrorArgs) -> Outcome<()> {
    let target = args.port.map(Target::Port).or(args.group.map(Target::Group));
    let request = SetMirrorRequest { session: args.session, target, longest_bytes: args.length };
    Remote::connect(&args.to)?.client().set_mirror(request)?;
    Ok(answer::print(&args.to, &Value::Null)?)
}
