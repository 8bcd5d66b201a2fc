//! Batches of updates on a device that has only multicast groups: which updates are applied, and the result of each.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use prost::Message as _;
use tokio::sync::{mpsc, oneshot};
use tonic::{Code, Status};

use super::{Caller, MOST_AT_ONCE, Service};
use crate::device::{Device, Parts, Undo};
use crate::generated::google::rpc;
use crate::info::P4Info;
use crate::message::entity::Entity as Kind;
use crate::message::packet_replication_engine_entry::Type as ReplicationKind;
use crate::message::update::Type as UpdateType;
use crate::message::write_request::Atomicity;
use crate::message::{
    self, DigestList, Entity, Error, IdleTimeoutNotification, MasterArbitrationUpdate, MulticastGroupEntry, PacketIn,
    PacketOut, PacketReplicationEngineEntry, Uint128, Update, WriteRequest,
};
use crate::operator::{SetMirrorRequest, TakeReportsResponse};

/// A group with changes that cannot be undone.
const STUCK: u32 = 99;

#[derive(Default)]
struct Groups {
    known: Mutex<BTreeSet<u32>>,
    /// Number of batches for which packets had to wait.
    held: Mutex<usize>,
    info: P4Info,
}

impl Groups {
    fn known(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.known.lock().expect("no thread holding the lock has panicked")
    }
}

fn group_of(entity: &Entity) -> u32 {
    match &entity.entity {
        Some(Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(ReplicationKind::MulticastGroupEntry(group)),
        })) => group.multicast_group_id,
        other => panic!("expected a multicast group, got {other:?}"),
    }
}

impl Device for Groups {
    fn id(&self) -> u64 {
        1
    }

    fn p4info(&self) -> &P4Info {
        &self.info
    }

    fn program(&self) -> &[u8] {
        &[]
    }

    fn reset(&self) -> Result<(), Status> {
        Ok(())
    }

    fn change(&self, update: UpdateType, entity: &Entity) -> Result<(), Status> {
        let group = group_of(entity);
        let done = match update {
            UpdateType::Insert => self.known().insert(group),
            _ => self.known().remove(&group),
        };
        if done { Ok(()) } else { Err(Status::already_exists("as it was")) }
    }

    fn change_undoably(&self, update: UpdateType, entity: &Entity) -> Result<Undo<'_>, Status> {
        let before = self.known().clone();
        self.change(update, entity)?;
        let is_stuck = group_of(entity) == STUCK;
        Ok(Box::new(move || {
            if is_stuck {
                return Err(Status::internal("stuck"));
            }
            *self.known() = before;
            Ok(())
        }))
    }

    fn hold<R>(&self, work: impl FnOnce() -> R) -> R {
        *self.held.lock().expect("no thread holding the lock has panicked") += 1;
        work()
    }

    fn read(&self, _: &Entity) -> Result<Parts<'_>, Status> {
        Err(Status::unimplemented("no test reads"))
    }

    fn send(&self, _: &PacketOut) -> Result<(), Status> {
        Ok(())
    }

    fn receive(&self) -> Option<PacketIn> {
        None
    }

    fn digests(&self) -> Option<DigestList> {
        None
    }

    fn idle(&self) -> Option<IdleTimeoutNotification> {
        None
    }

    fn set_mirror(&self, _: &SetMirrorRequest) -> Result<(), Status> {
        Ok(())
    }

    fn take_reports(&self, _: u32) -> TakeReportsResponse {
        TakeReportsResponse::default()
    }
}

fn insert(group: u32) -> Update {
    let group = MulticastGroupEntry { multicast_group_id: group, ..MulticastGroupEntry::default() };
    let entry = PacketReplicationEngineEntry { r#type: Some(ReplicationKind::MulticastGroupEntry(group)) };
    let entity = Entity { entity: Some(Kind::PacketReplicationEngineEntry(entry)) };
    Update { r#type: UpdateType::Insert as i32, entity: Some(entity) }
}

fn request(atomicity: i32, groups: impl IntoIterator<Item = u32>) -> WriteRequest {
    WriteRequest {
        device_id: 1,
        role: "tests".to_owned(),
        election_id: Some(Uint128 { high: 0, low: 1 }),
        updates: groups.into_iter().map(insert).collect(),
        atomicity,
        ..WriteRequest::default()
    }
}

/// The result code of each update.
fn codes(status: &Status) -> Vec<Code> {
    let details = rpc::Status::decode(status.details()).expect("details").details;
    let code = |any: &prost_types::Any| Error::decode(&*any.value).expect("an error").canonical_code;
    details.iter().map(|any| Code::from_i32(code(any))).collect()
}

#[test]
fn batches_are_made_as_far_as_can_be_or_as_a_whole() {
    let service = Service::new(Groups::default());
    let (sender, _receiver) = mpsc::channel(4);
    let client = service.arbiter.join(sender, oneshot::channel().0).expect("a stream is free");
    let role = Some(message::Role { id: 0, config: None, name: "tests".to_owned() });
    let update =
        MasterArbitrationUpdate { device_id: 1, role, election_id: Some(Uint128 { high: 0, low: 1 }), status: None };
    service.arbiter.arbitrate(client, &update).expect("primary");
    let known = || service.device.known().iter().copied().collect::<Vec<_>>();
    let held = || *service.device.held.lock().expect("no thread holding the lock has panicked");
    let write = |request: &WriteRequest| service.write(request, Caller::Controller);

    let refused = write(&request(Atomicity::ContinueOnError as i32, [1, 1, 2])).expect_err("twice");
    assert_eq!((refused.code(), codes(&refused)), (Code::Unknown, vec![Code::Ok, Code::AlreadyExists, Code::Ok]));
    assert_eq!((known(), held()), (vec![1, 2], 0));
    for (atomicity, count) in [(Atomicity::RollbackOnError, 0), (Atomicity::DataplaneAtomic, 1)] {
        let refused = write(&request(atomicity as i32, [3, 4, 1, 5])).expect_err("entry 1 already exists");
        let aborted = Code::Aborted;
        assert_eq!(codes(&refused), [aborted, aborted, Code::AlreadyExists, aborted]);
        assert_eq!((known(), held()), (vec![1, 2], count));
    }
    write(&request(Atomicity::DataplaneAtomic as i32, [3, 4])).expect("both");
    assert_eq!(known(), [1, 2, 3, 4]);
    // An undo that fails is reported.
    let stuck = write(&request(Atomicity::RollbackOnError as i32, [5, STUCK, 1])).expect_err("entry 1 already exists");
    assert_eq!(stuck.code(), Code::Internal);
    assert!(stuck.message().contains("1 earlier updates could not be undone"), "{}", stuck.message());
    let count = held();
    let many = 1000..1000 + MOST_AT_ONCE as u32;
    let refused = write(&request(Atomicity::DataplaneAtomic as i32, many.clone().chain([5000])));
    assert_eq!(refused.expect_err("too many").code(), Code::Unimplemented);
    assert_eq!(write(&request(7, [6])).expect_err("no atomicity").code(), Code::InvalidArgument);
    assert_eq!(held(), count);
    write(&request(Atomicity::DataplaneAtomic as i32, many)).expect("the batch has the maximum number of updates");
}

#[test]
fn writers_are_the_primary_controllers_of_their_roles() {
    let service = Service::new(Groups::default());
    let write = |request: &WriteRequest| service.write(request, Caller::Controller).map_err(|status| status.code());
    assert_eq!(write(&request(0, [1])), Err(Code::NotFound), "an unknown role must be refused");
    let default = WriteRequest { role: String::new(), ..request(0, [1]) };
    assert_eq!(write(&default), Err(Code::PermissionDenied), "the default role has no primary controller");
    let (sender, _receiver) = mpsc::channel(4);
    let client = service.arbiter.join(sender, oneshot::channel().0).expect("a stream is free");
    let role = Some(message::Role { id: 8, config: None, name: String::new() });
    let update =
        MasterArbitrationUpdate { device_id: 1, role, election_id: Some(Uint128 { high: 0, low: 1 }), status: None };
    service.arbiter.arbitrate(client, &update).expect("primary");
    assert_eq!(write(&default), Err(Code::PermissionDenied), "an election id is valid only in its role");
    let numbered = WriteRequest { role_id: 8, ..default };
    assert!(write(&numbered).is_ok());
    let other = WriteRequest { election_id: Some(Uint128 { high: 0, low: 2 }), ..numbered };
    assert_eq!(write(&other), Err(Code::PermissionDenied));
}

#[test]
fn the_operator_writes_without_ousting_a_controller() {
    let service = Service::new(Groups::default());
    let (sender, _receiver) = mpsc::channel(4);
    let client = service.arbiter.join(sender, oneshot::channel().0).expect("a stream is free");
    let one = Some(Uint128 { high: 0, low: 1 });
    let update = MasterArbitrationUpdate { device_id: 1, role: None, election_id: one, status: None };
    service.arbiter.arbitrate(client, &update).expect("primary");
    let write = |request: &WriteRequest, caller| service.write(request, caller).map_err(|status| status.code());
    let own = WriteRequest { device_id: 0, role: String::new(), election_id: None, ..request(0, [1]) };
    assert_eq!(write(&own, Caller::Controller), Err(Code::NotFound), "id 0 is no device for a controller");
    let own = WriteRequest { device_id: 1, ..own };
    assert_eq!(write(&own, Caller::Controller), Err(Code::PermissionDenied));
    assert!(write(&WriteRequest { device_id: 0, ..own.clone() }, Caller::Operator).is_ok());
    let controllers = WriteRequest { election_id: one, ..WriteRequest { updates: vec![insert(2)], ..own.clone() } };
    assert!(write(&controllers, Caller::Controller).is_ok(), "the controller is still primary");
    // A controller at the operator's socket takes part in the arbitration.
    let other = WriteRequest { election_id: Some(Uint128 { high: 0, low: 9 }), ..own };
    assert_eq!(write(&other, Caller::Operator), Err(Code::PermissionDenied));
}
