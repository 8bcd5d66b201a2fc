//! Entry points of fuzz targets: each function takes any bytes, and panics only if there is a bug.
//!
//! A program with one object of each kind runs in this process; changes made by an input are undone before the next
//! one.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::load;
use namehop_p4_runtime::workshop::{Build, Speed, Workshop};
use namehop_p4runtime::Message as _;
use namehop_p4runtime::device::Device;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{
    ActionProfileGroup, ActionProfileMember, CounterEntry, DigestEntry, DirectCounterEntry, DirectMeterEntry, Entity,
    MeterEntry, PacketOut, PacketReplicationEngineEntry, ReadRequest, RegisterEntry,
    SetForwardingPipelineConfigRequest, TableEntry, ValueSetEntry, WriteRequest,
};
use namehop_p4runtime::server::{Listeners, Server};

use crate::Running;
use crate::Switch;
use crate::ports::PortSpec;
use crate::program::Program;

const PROGRAM: &str = include_str!("../../runtime/programs/everything.p4");
const CPU_PORT: u32 = 510;
/// The connection preface of HTTP/2.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long the server may keep a connection after the client has sent everything.
const PATIENCE: Duration = Duration::from_secs(15);

/// A running program and its P4Runtime server.
struct Rig {
    running: Running,
    server: Server,
    /// Serializes inputs.
    turn: Mutex<()>,
}

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

fn rig() -> &'static Rig {
    static RIG: OnceLock<Rig> = OnceLock::new();
    RIG.get_or_init(|| {
        // Also detect panics of the server's threads.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            HAS_FAILED.store(true, Ordering::Relaxed);
            before(info);
        }));
        let workshop = Workshop::new(Build { speed: Speed::Some, ..Build::default() }).expect("a folder");
        let file = workshop.folder().join("everything.so");
        let emitted = load::on_deep_stack(|| {
            let mut loaded = load::text_of(Path::new("everything.p4"), PROGRAM.into(), &[]);
            let program = loaded.program.as_mut().expect("the program is correct");
            compile(program, "everything", &Options::default()).map(|compiled| compiled.emitted)
        });
        let emitted = emitted.expect("the compiler's thread starts").unwrap_or_else(|failure| panic!("{failure}"));
        workshop.loadable(&emitted, &file).expect("a C compiler");
        let bytes = std::fs::read(&file).expect("the compiled program exists");
        let program = Program::load(&file, 1).expect("the program can be loaded");
        let switch = Switch::start(program, &[PortSpec::controller(CPU_PORT)], 1, 0).expect("the switch starts");
        let running = || Running::new(1, &switch, bytes.clone()).expect("the program has a valid description");
        let listeners = Listeners { controllers: Some(([127, 0, 0, 1], 0).into()), operator: None };
        let server = Server::start(listeners, running()).expect("a port");
        let running = running();
        // It runs until the process ends.
        std::mem::forget(switch);
        Rig { running, server, turn: Mutex::new(()) }
    })
}

fn check_failures() {
    assert!(!HAS_FAILED.load(Ordering::Relaxed), "a thread panicked");
}

fn everything() -> Vec<Kind> {
    let table = TableEntry {
        counter_data: Some(Default::default()),
        meter_config: Some(Default::default()),
        time_since_last_hit: Some(Default::default()),
        ..TableEntry::default()
    };
    vec![
        Kind::TableEntry(TableEntry { is_default_action: true, ..TableEntry::default() }),
        Kind::ActionProfileMember(ActionProfileMember::default()),
        Kind::ActionProfileGroup(ActionProfileGroup::default()),
        Kind::TableEntry(table),
        Kind::DirectCounterEntry(DirectCounterEntry::default()),
        Kind::DirectMeterEntry(DirectMeterEntry::default()),
        Kind::CounterEntry(CounterEntry::default()),
        Kind::MeterEntry(MeterEntry::default()),
        Kind::RegisterEntry(RegisterEntry::default()),
        Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry::default()),
        Kind::ValueSetEntry(ValueSetEntry::default()),
        Kind::DigestEntry(DigestEntry::default()),
    ]
}

fn read_all(rig: &Rig) -> Vec<Entity> {
    let mut all = Vec::new();
    for kind in everything() {
        let parts = rig.running.read(&Entity { entity: Some(kind) }).expect("all entities of a kind can be read");
        parts.for_each(|part| all.extend(part.expect("a part")));
    }
    all
}

/// P4Runtime messages: each has one byte for its type, two for its length, and its content.
pub fn messages(bytes: &[u8]) {
    let rig = rig();
    let _turn = rig.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let mut rest = bytes;
    while let Some(([kind, high, low], behind)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (message, next) = behind.split_at(length);
        rest = next;
        let update = [UpdateType::Insert, UpdateType::Modify, UpdateType::Delete].get(usize::from(kind % 8)).copied();
        // Invalid messages are rejected, with any status.
        match (update, kind % 8) {
            (Some(update), _) => {
                if let Ok(entity) = Entity::decode(message) {
                    drop(rig.running.change(update, &entity));
                }
            }
            (_, 3) => {
                for entity in ReadRequest::decode(message).unwrap_or_default().entities {
                    if let Ok(parts) = rig.running.read(&entity) {
                        parts.for_each(drop);
                    }
                }
            }
            (_, 4) => drop(PacketOut::decode(message).map(|packet| rig.running.send(&packet))),
            (_, 5) => drop(SetForwardingPipelineConfigRequest::decode(message)),
            _ => {
                for update in WriteRequest::decode(message).unwrap_or_default().updates {
                    if let Some(entity) = &update.entity {
                        drop(rig.running.change(update.r#type(), entity));
                    }
                }
            }
        }
    }
    while rig.running.receive().is_some() {}
    drop(rig.running.idle());
    // Entities that were read can be written again, and are then the same.
    let all = read_all(rig);
    for entity in &all {
        let is_constant = matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_const);
        let is_time = matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action);
        if is_constant || is_time {
            continue;
        }
        let done = rig.running.change(UpdateType::Modify, entity);
        assert!(done.is_ok(), "{entity:?}: {done:?}");
    }
    let count = |all: &[Entity]| all.len();
    assert_eq!(count(&read_all(rig)), count(&all));
    rig.running.reset().expect("the program can be reset");
    let tables = read_all(rig).into_iter().filter(|entity| {
        matches!(&entity.entity, Some(Kind::TableEntry(entry)) if !entry.is_default_action)
            || matches!(&entity.entity, Some(Kind::ActionProfileMember(_) | Kind::ActionProfileGroup(_)))
    });
    assert_eq!(tables.count(), 1, "only the constant entry is left");
    check_failures();
}

/// Data that arrives at the P4Runtime port behind the HTTP/2 preface.
pub fn port(bytes: &[u8]) {
    let rig = rig();
    let _turn = rig.turn.lock().unwrap_or_else(PoisonError::into_inner);
    let mut client = TcpStream::connect(rig.server.address.expect("an address")).expect("the server listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a time");
    // The server may close the connection early.
    let _ = client.write_all(HELLO).and_then(|()| client.write_all(bytes));
    let _ = client.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = client.read_to_end(&mut answer) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the connection stays");
    }
    check_failures();
}
