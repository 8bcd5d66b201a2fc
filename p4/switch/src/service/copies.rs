//! P4Runtime access to multicast groups and clone sessions.

use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::packet_replication_engine_entry::Type as ReplicationKind;
use namehop_p4runtime::message::replica::PortKind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{
    CloneSessionEntry, Entity, MulticastGroupEntry, PacketReplicationEngineEntry, Replica,
};
use namehop_p4runtime::operator::SetMirrorRequest;
use namehop_p4runtime::operator::set_mirror_request::Target;

use super::{Running, bits, parts};
use crate::objects::replication::{Group, Mirror, Session};

/// Maximum number of copies of one packet.
const MOST_REPLICAS: usize = 1024;
/// Width of a port number in bits, and the highest replication number.
const PORT_BITS: u32 = 9;
const MOST_INSTANCE: u32 = 0xFFFF;
/// Highest session number.
const MOST_SESSION: u32 = 0x7FFF;

/// Converts a list of replicas to the switch's form, and checks that they are distinct.
fn members(replicas: &[Replica]) -> Result<Vec<(u64, u64)>, Status> {
    if replicas.len() > MOST_REPLICAS {
        return Err(Status::resource_exhausted(format!("more than {MOST_REPLICAS} replicas")));
    }
    let mut all = Vec::new();
    for replica in replicas {
        if !replica.backup_replicas.is_empty() {
            return Err(Status::unimplemented("backup replicas are not supported"));
        }
        let bytes = match &replica.port_kind {
            Some(PortKind::Port(bytes)) => bytes.clone(),
            Some(PortKind::EgressPort(number)) => number.to_be_bytes().to_vec(),
            None => return Err(Status::invalid_argument("a replica has no port")),
        };
        let port = bits::read(&|| "the port of a replica".to_owned(), &bytes, PORT_BITS)?;
        if replica.instance > MOST_INSTANCE {
            return Err(Status::out_of_range(format!("the instance of a replica must be at most {MOST_INSTANCE}")));
        }
        let member = (u64::from(replica.instance), u64::try_from(port).unwrap_or_default());
        if all.contains(&member) {
            return Err(Status::invalid_argument("two replicas have the same port and instance"));
        }
        all.push(member);
    }
    Ok(all)
}

fn replicas(members: &[(u64, u64)]) -> Vec<Replica> {
    let replica = |(instance, port): &(u64, u64)| Replica {
        instance: *instance as u32,
        // All controllers understand this form, although later versions of the specification replace it.
        port_kind: Some(PortKind::EgressPort(*port as u32)),
        backup_replicas: Vec::new(),
    };
    members.iter().map(replica).collect()
}

fn entity(kind: ReplicationKind) -> Entity {
    Entity { entity: Some(Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })) }
}

impl Running {
    pub(super) fn change_copies(&self, update: UpdateType, given: &PacketReplicationEngineEntry) -> Result<(), Status> {
        let (is_group, id, replicas, longest_bytes, metadata) = match &given.r#type {
            Some(ReplicationKind::MulticastGroupEntry(group)) => {
                (true, group.multicast_group_id, &group.replicas, 0, group.metadata.clone())
            }
            Some(ReplicationKind::CloneSessionEntry(session)) => {
                if session.class_of_service != 0 {
                    return Err(Status::unimplemented("a class of service is not supported: each port has one queue"));
                }
                let longest_bytes = u32::try_from(session.packet_length_bytes)
                    .map_err(|_| Status::invalid_argument("the length of copies must not be below 0"))?;
                (false, session.session_id, &session.replicas, longest_bytes, Vec::new())
            }
            None => return Err(Status::invalid_argument("the replication entry is empty")),
        };
        if !is_group && !(1..=MOST_SESSION).contains(&id) {
            return Err(Status::invalid_argument(format!("{id} is not a clone session: use 1 to {MOST_SESSION}")));
        }
        let what = if is_group { format!("multicast group {id}") } else { format!("clone session {id}") };
        let mut known = self.objects.replication();
        let key = u64::from(id);
        let is_there = if is_group { known.groups.contains_key(&key) } else { known.sessions.contains_key(&key) };
        match (update, is_there) {
            (UpdateType::Insert, true) => return Err(Status::already_exists(format!("{what} already exists"))),
            (UpdateType::Modify | UpdateType::Delete, false) => {
                return Err(Status::not_found(format!("there is no {what}")));
            }
            _ => {}
        }
        let list = if update == UpdateType::Delete { Vec::new() } else { members(replicas)? };
        if update != UpdateType::Delete && list.is_empty() {
            return Err(Status::invalid_argument(format!("{what} has no replicas: delete it instead")));
        }
        let switch = &self.objects.live.switch;
        let done = if is_group {
            known.group(switch, key, Group { members: list, metadata })
        } else {
            known.session(switch, key, Session { members: list, longest_bytes })
        };
        done.map_err(|error| Status::invalid_argument(error.to_string()))
    }

    /// Sets the destination of the copies of a session to a port or a group, which a clone session of P4Runtime cannot
    /// express.
    pub(super) fn change_mirror(&self, given: &SetMirrorRequest) -> Result<(), Status> {
        let to =
            |target: u32, is_group| Mirror { target: u64::from(target), is_group, longest_bytes: given.longest_bytes };
        let mirror = given.target.map(|target| match target {
            Target::Port(port) => to(port, false),
            Target::Group(group) => to(group, true),
        });
        let done = self.objects.replication().mirror(&self.objects.live.switch, u64::from(given.session), mirror);
        done.map_err(|error| Status::invalid_argument(error.to_string()))
    }

    pub(super) fn read_copies(&self, given: &PacketReplicationEngineEntry) -> Result<Parts<'_>, Status> {
        let wanted = |asked: u32, known: u64| asked == 0 || u64::from(asked) == known;
        let known = self.objects.replication();
        let group = |(id, group): (&u64, &Group)| {
            entity(ReplicationKind::MulticastGroupEntry(MulticastGroupEntry {
                multicast_group_id: *id as u32,
                replicas: replicas(&group.members),
                metadata: group.metadata.clone(),
            }))
        };
        let session = |(id, session): (&u64, &Session)| {
            entity(ReplicationKind::CloneSessionEntry(CloneSessionEntry {
                session_id: *id as u32,
                replicas: replicas(&session.members),
                class_of_service: 0,
                packet_length_bytes: session.longest_bytes as i32,
            }))
        };
        let mut found: Vec<Entity> = Vec::new();
        if let Some(ReplicationKind::MulticastGroupEntry(_)) | None = &given.r#type {
            let asked = match &given.r#type {
                Some(ReplicationKind::MulticastGroupEntry(asked)) => asked.multicast_group_id,
                _ => 0,
            };
            found.extend(known.groups.iter().filter(|(id, _)| wanted(asked, **id)).map(group));
        }
        if let Some(ReplicationKind::CloneSessionEntry(_)) | None = &given.r#type {
            let asked = match &given.r#type {
                Some(ReplicationKind::CloneSessionEntry(asked)) => asked.session_id,
                _ => 0,
            };
            found.extend(known.sessions.iter().filter(|(id, _)| wanted(asked, **id)).map(session));
        }
        Ok(parts(found.into_iter().map(Ok)))
    }
}
