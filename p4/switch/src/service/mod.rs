//! P4Runtime access to a running program: entries of tables (`tables`) and reading them (`reading`), members and groups
//! of action profiles (`profiles`), members of value sets (`value_sets`), counters, meters and registers (`cells`),
//! direct counters and meters (`direct`), idle entries (`idle`), multicast groups and clone sessions (`copies`),
//! packets (`packets`), digests (`reports`), and undoing changes (`undo`).

mod bits;
mod cells;
mod copies;
mod direct;
mod idle;
mod keys;
mod packets;
mod profiles;
mod reading;
mod reports;
mod tables;
#[cfg(test)]
mod tests;
mod undo;
mod value_sets;

use std::sync::{Arc, Mutex, PoisonError};

use namehop_p4runtime::Status;
use namehop_p4runtime::device::{Device, Parts, Undo};
use namehop_p4runtime::info::{Object, P4Info};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{DigestList, Entity, IdleTimeoutNotification, PacketIn, PacketOut};
use namehop_p4runtime::operator::{SetMirrorRequest, TakeReportsResponse};

use crate::Switch;
use crate::controller::Controller;
use crate::objects::{DescriptionError, Objects};
use idle::Idle;
use packets::Headers;
use reports::Reports;

/// Maximum number of entities in one part of a response.
const PART: usize = 512;

/// A running program as a P4Runtime device.
pub struct Running {
    id: u64,
    objects: Objects,
    info: P4Info,
    program: Vec<u8>,
    port: Option<Arc<Controller>>,
    headers: Headers,
    reports: Mutex<Reports>,
    idle: Mutex<Idle>,
}

impl Running {
    /// Makes the device of a running program. `file` holds the bytes that the program was loaded from.
    ///
    /// # Errors
    /// Fails if the program's description is damaged, or of another version.
    pub fn new(id: u64, switch: &Switch, file: Vec<u8>) -> Result<Running, DescriptionError> {
        let objects = Objects::new(&switch.program, switch.control())?;
        let info = objects.state().description.p4info()?;
        let headers = Headers::of(&info);
        Ok(Running {
            id,
            objects,
            info,
            program: file,
            port: switch.controller.clone(),
            headers,
            reports: Mutex::default(),
            idle: Mutex::default(),
        })
    }
}

/// The index of an object, by its id.
fn place<T: Object>(list: &[T], kind: &str, id: u32) -> Result<usize, Status> {
    list.iter()
        .position(|object| object.preamble().id == id)
        .ok_or_else(|| Status::not_found(format!("the program has no {kind} with id {id:#010x}")))
}

/// The indices of the objects of a request: one, or all if the id is 0.
fn places<T: Object>(list: &[T], kind: &str, id: u32) -> Result<Vec<usize>, Status> {
    if id == 0 { Ok((0..list.len()).collect()) } else { place(list, kind, id).map(|place| vec![place]) }
}

/// Splits entities into parts of a response.
fn parts<'d>(all: impl Iterator<Item = Result<Entity, Status>> + Send + 'd) -> Parts<'d> {
    let mut all = all.fuse();
    Box::new(std::iter::from_fn(move || {
        let part: Result<Vec<Entity>, Status> = all.by_ref().take(PART).collect();
        Some(part).filter(|part| !part.as_ref().is_ok_and(Vec::is_empty))
    }))
}

impl Device for Running {
    fn id(&self) -> u64 {
        self.id
    }

    fn p4info(&self) -> &P4Info {
        &self.info
    }

    fn program(&self) -> &[u8] {
        &self.program
    }

    fn reset(&self) -> Result<(), Status> {
        *self.reports.lock().unwrap_or_else(PoisonError::into_inner) = Reports::default();
        self.objects.reset().map_err(profiles::internal)
    }

    fn change(&self, update: UpdateType, entity: &Entity) -> Result<(), Status> {
        match &entity.entity {
            Some(Kind::TableEntry(entry)) => self.change_table(update, entry),
            Some(Kind::CounterEntry(entry)) => self.change_counter(update, entry),
            Some(Kind::MeterEntry(entry)) => self.change_meter(update, entry),
            Some(Kind::RegisterEntry(entry)) => self.change_register(update, entry),
            Some(Kind::PacketReplicationEngineEntry(entry)) => self.change_copies(update, entry),
            Some(Kind::DigestEntry(entry)) => self.change_digest(update, entry),
            Some(Kind::ActionProfileMember(member)) => self.change_member(update, member),
            Some(Kind::ActionProfileGroup(group)) => self.change_group(update, group),
            Some(Kind::ValueSetEntry(entry)) => self.change_value_set(update, entry),
            Some(Kind::DirectCounterEntry(entry)) => self.change_direct_counter(update, entry),
            Some(Kind::DirectMeterEntry(entry)) => self.change_direct_meter(update, entry),
            other => Err(other_kind(other.as_ref())),
        }
    }

    fn change_undoably(&self, update: UpdateType, entity: &Entity) -> Result<Undo<'_>, Status> {
        self.change_and_keep(update, entity)
    }

    fn hold<R>(&self, work: impl FnOnce() -> R) -> R {
        let _hold = self.objects.live.switch.hold();
        work()
    }

    fn read(&self, entity: &Entity) -> Result<Parts<'_>, Status> {
        match &entity.entity {
            Some(Kind::TableEntry(entry)) => self.read_tables(entry),
            Some(Kind::CounterEntry(entry)) => self.read_counters(entry),
            Some(Kind::MeterEntry(entry)) => self.read_meters(entry),
            Some(Kind::RegisterEntry(entry)) => self.read_registers(entry),
            Some(Kind::PacketReplicationEngineEntry(entry)) => self.read_copies(entry),
            Some(Kind::DigestEntry(entry)) => self.read_digests(entry),
            Some(Kind::ActionProfileMember(member)) => self.read_members(member),
            Some(Kind::ActionProfileGroup(group)) => self.read_groups(group),
            Some(Kind::ValueSetEntry(entry)) => self.read_value_sets(entry),
            Some(Kind::DirectCounterEntry(entry)) => self.read_direct_counters(entry),
            Some(Kind::DirectMeterEntry(entry)) => self.read_direct_meters(entry),
            other => Err(other_kind(other.as_ref())),
        }
    }

    fn send(&self, packet: &PacketOut) -> Result<(), Status> {
        let port = self.port.as_ref().ok_or_else(|| {
            Status::failed_precondition("the switch has no CPU port: start it with 'namehop p4 run --cpu-port NUMBER'")
        })?;
        let bytes = self.headers.packet(packet)?;
        if port.send(&bytes) {
            return Ok(());
        }
        Err(Status::resource_exhausted("the queue to the program is full, or the packet is too long"))
    }

    fn receive(&self) -> Option<PacketIn> {
        let port = self.port.as_ref()?;
        loop {
            match self.headers.message(&port.receive()?) {
                Some(packet) => return Some(packet),
                None => port.count_malformed(),
            }
        }
    }

    fn digests(&self) -> Option<DigestList> {
        self.due_reports()
    }

    fn idle(&self) -> Option<IdleTimeoutNotification> {
        self.idle_entries()
    }

    fn set_mirror(&self, request: &SetMirrorRequest) -> Result<(), Status> {
        self.change_mirror(request)
    }

    fn take_reports(&self, most: u32) -> TakeReportsResponse {
        self.waiting_reports(most)
    }
}

fn other_kind(kind: Option<&Kind>) -> Status {
    match kind {
        Some(Kind::ExternEntry(_)) => {
            Status::unimplemented("v1model has no externs except those with their own entity")
        }
        _ => Status::invalid_argument("the entity is empty"),
    }
}
