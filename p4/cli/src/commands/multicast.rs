//! `namehop p4 multicast`: sets the members of a multicast group of a running program.

use clap::Args;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::packet_replication_engine_entry::Type as ReplicationKind;
use namehop_p4runtime::message::replica::PortKind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{MulticastGroupEntry, PacketReplicationEngineEntry, Replica};
use serde_json::Value;

use crate::control::{Outcome, Remote, To, answer};

#[derive(Args)]
pub(crate) struct MulticastArgs {
    /// The group, 1 to 65535
    group: u32,
    /// Its members, each PORT or REPLICATION:PORT; without members, the group is deleted
    #[arg(value_name = "MEMBER", value_parser = member)]
    members: Vec<(u32, u32)>,
    #[command(flatten)]
    to: To,
}

fn member(text: &str) -> Result<(u32, u32), String> {
    let (replica, port) = text.split_once(':').unwrap_or(("0", text));
    match (replica.parse(), port.parse()) {
        (Ok(replica), Ok(port)) => Ok((replica, port)),
        _ => Err("a member must be PORT or REPLICATION:PORT".to_owned()),
    }
}

fn entity(group: MulticastGroupEntry) -> Kind {
    let kind = Some(ReplicationKind::MulticastGroupEntry(group));
    Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: kind })
}

/// Runs the command.
pub(crate) fn run(args: &MulticastArgs) -> Outcome<()> {
    let mut remote = Remote::connect(&args.to)?;
    let group = MulticastGroupEntry { multicast_group_id: args.group, ..MulticastGroupEntry::default() };
    let known = remote.read(entity(group.clone()))?.into_iter().find_map(|kind| match kind {
        Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(ReplicationKind::MulticastGroupEntry(known)),
        }) if known.multicast_group_id == args.group => Some(known),
        _ => None,
    });
    let replica = |(instance, port): &(u32, u32)| Replica {
        instance: *instance,
        port_kind: Some(PortKind::EgressPort(*port)),
        backup_replicas: Vec::new(),
    };
    let replicas: Vec<Replica> = args.members.iter().map(replica).collect();
    let change = match (replicas.is_empty(), known) {
        (true, None) => None,
        (true, Some(_)) => Some((UpdateType::Delete, group)),
        (false, None) => Some((UpdateType::Insert, MulticastGroupEntry { replicas, ..group })),
        // Its metadata, which a controller has set, stay.
        (false, Some(known)) => Some((UpdateType::Modify, MulticastGroupEntry { replicas, ..known })),
    };
    if let Some((kind, group)) = change {
        remote.change(kind, entity(group))?;
    }
    Ok(answer::print(&args.to, &Value::Null)?)
}
