//! Entries of random tables, changed as text and by P4Runtime, are what a list of them is: what is refused, what is listed and read, and which
//! one a packet meets.

use std::path::Path;
use std::sync::Arc;

use namehop_p4runtime::device::Device;
use namehop_p4runtime::entity::{Entity, Kind, TableEntry};
use namehop_p4runtime::message::UpdateType;
use namehop_packet::BufferPool;
use namehop_switch::Switch;
use namehop_switch::program::{Change, Engine, Program};

use super::entry_model::{SIZE, Table};
use crate::compile::{self, Build, Speed, Workshop};
use crate::control::server::Control;
use crate::controller::Running;
use crate::emit::Options;
use crate::load;

/// Of one table.
const CHANGES: usize = 60;

/// What runs a program, and its one table.
struct Rig {
    switch: Switch,
    control: Arc<Control>,
    running: Running,
    engine: Engine,
    pool: BufferPool,
}

impl Rig {
    fn new(workshop: &Workshop, name: &str, text: String) -> Rig {
        let emitted = load::on_deep_stack(|| {
            let mut loaded = load::text_of(Path::new("program.p4"), text.as_str().into(), &[]);
            let Some(program) = loaded.program.as_mut() else {
                panic!("{text}\n{}", loaded.diagnostics.render(&loaded.sources))
            };
            compile::compile(program, name, &Options::default()).map(|compiled| compiled.emitted)
        });
        let emitted = emitted.expect("a stack").unwrap_or_else(|refusal| panic!("{text}\n{}", refusal.message));
        let file = workshop.folder().join(format!("{name}.so"));
        workshop.loadable(&emitted, &file).expect("a C compiler");
        let program = Program::load(&file, 1).expect("it can be loaded");
        let switch = Switch::start(program, &[], 1, 0).expect("it starts");
        let control = Arc::new(Control::new(&switch.program, switch.control()).expect("it is described"));
        let running = Running::new(1, Arc::clone(&control), Vec::new(), None).expect("it has p4info");
        let pool = BufferPool::new(1024, 16);
        let engine = switch.program.engine(0, &pool).expect("a worker");
        Rig { switch, control, running, engine, pool }
    }

    /// What packets with these keys get.
    fn look(&mut self, table: &Table, packets: &[Vec<u128>]) -> Vec<u16> {
        let frame = |values: &Vec<u128>| {
            let mut bits = Vec::new();
            for (value, key) in values.iter().zip(&table.keys) {
                bits.extend((0..key.width).rev().map(|bit| value >> bit & 1 == 1));
            }
            bits.resize(bits.len().next_multiple_of(8), false);
            let mut frame: Vec<u8> =
                bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect();
            frame.extend([0; 2]);
            (0, self.pool.copy_of(&frame).expect("memory"))
        };
        let (mut frames, mut leaving) = (packets.iter().map(frame).collect(), Vec::new());
        self.engine.process(&mut frames, &mut leaving);
        let result = |frame: &[u8]| u16::from_be_bytes(frame[frame.len() - 2..].try_into().expect("two bytes"));
        leaving.iter().map(|(_, frame)| result(frame.bytes())).collect()
    }

    fn read(&self, entry: TableEntry) -> Vec<TableEntry> {
        let parts = self.running.read(&Entity { kind: Some(Kind::Table(entry)) }).expect("it can be read");
        let entries = parts.flat_map(|part| part.expect("entities"));
        entries
            .filter_map(|entity| if let Some(Kind::Table(entry)) = entity.kind { Some(entry) } else { None })
            .collect()
    }
}

/// The entries of a message in a form that can be compared: values of one byte at least, and no zeros before them.
fn sorted(mut list: Vec<TableEntry>) -> Vec<String> {
    list.iter_mut().for_each(|entry| entry.is_const = false);
    let mut list: Vec<String> = list.iter().map(|entry| format!("{entry:?}")).collect();
    list.sort();
    list
}

/// Changes entries at random, in both ways.
fn check(workshop: &Workshop, seed: u64) {
    let mut table = Table::new(seed);
    let mut own = Vec::new();
    for _ in 0..table.below(3) * 3 {
        let entry = table.entry();
        if table.place(&entry).is_none() {
            table.entries.push(entry.clone());
            own.push(entry);
        }
    }
    let text = table.program(&own);
    let mut rig = Rig::new(workshop, &format!("entries{seed}"), text.clone());
    let info = rig.running.p4info().clone();
    let (table_id, action_id) = (info.tables[0].preamble.id, info.actions[0].preamble.id);
    for step in 0..CHANGES {
        let what = |doing: &str| format!("seed {seed}, step {step}, {doing}\n{text}");
        let entry = table.some_entry();
        let change = table.one_of(&[Change::Insert, Change::Insert, Change::Modify, Change::Delete]);
        let known = table.place(&entry);
        let fits = match change {
            Change::Insert => known.is_none() && table.entries.len() < SIZE,
            Change::Modify | Change::Delete => known.is_some(),
        };
        let done = if table.below(2) == 0 {
            let words = table.text(&entry, change != Change::Delete);
            (rig.control.state().change(change, &words), words)
        } else {
            let update = match change {
                Change::Insert => UpdateType::Insert,
                Change::Modify => UpdateType::Modify,
                Change::Delete => UpdateType::Delete,
            };
            let message = table.message(&entry, table_id, action_id);
            let words = format!("{message:?}");
            let entity = Entity { kind: Some(Kind::Table(message)) };
            (rig.running.change(update, &entity).map_err(|status| format!("{status:?}")), words)
        };
        assert_eq!(done.0.is_ok(), fits, "{}", what(&format!("{change:?} {}: {:?}", done.1, done.0)));
        match (fits, change, known) {
            (true, Change::Insert, _) => table.entries.push(entry),
            (true, Change::Modify, Some(place)) => table.entries[place] = entry,
            (true, Change::Delete, Some(place)) => drop(table.entries.remove(place)),
            _ => {}
        }
        if step % 20 == 7 {
            table.default = table.below(0xE000) as u16;
            let words = format!("t hit(id:{}, more:0)", table.default);
            rig.control.state().set_default(&words).expect("a default action");
        }
        let packets: Vec<_> = (0..64).map(|_| table.packet()).collect();
        let found = rig.look(&table, &packets);
        for (packet, found) in packets.iter().zip(found) {
            let wanted = table.look(packet);
            assert_eq!(found, wanted, "{}", what(&format!("{packet:x?} in {:x?}", table.entries)));
        }
    }
    let what = |doing: &str| format!("seed {seed}, {doing}\n{text}");
    let messages = |table: &Table| -> Vec<TableEntry> {
        table.entries.iter().map(|entry| table.message(entry, table_id, action_id)).collect()
    };
    let all = TableEntry { table_id, ..TableEntry::default() };
    assert_eq!(sorted(rig.read(all.clone())), sorted(messages(&table)), "{}", what("all are read"));
    for message in messages(&table).into_iter().filter(|message| !message.matches.is_empty()) {
        let asked = TableEntry { action: None, ..message.clone() };
        assert_eq!(sorted(rig.read(asked)), sorted(vec![message]), "{}", what("one is read"));
    }
    // What is listed is loaded again, whole or not at all.
    let listed = rig.control.state().list(Some("t")).expect("a list");
    assert_eq!(listed.len(), table.entries.len());
    for line in &listed {
        let keys = line.rsplit_once(" I.hit").expect("an action").0;
        rig.control.state().change(Change::Delete, keys).unwrap_or_else(|reason| panic!("{}", what(&reason)));
    }
    assert!(rig.read(all.clone()).is_empty());
    let mut lines = listed.join("\n");
    if let Some(first) = listed.first() {
        let refusal = rig.control.state().load(&format!("{lines}\n\n{first}\n")).expect_err("it is there twice");
        let line = listed.len() + 2;
        assert!(refusal.contains(&format!("line {line}: ")), "{}", what(&refusal));
        assert!(rig.read(all.clone()).is_empty(), "{}", what("nothing is half done"));
    }
    lines.push('\n');
    assert_eq!(rig.control.state().load(&lines), Ok(listed.len()), "{}", what("it is loaded"));
    assert_eq!(rig.control.state().list(Some("t")), Ok(listed), "{}", what("it is listed as before"));
    assert_eq!(sorted(rig.read(all)), sorted(messages(&table)), "{}", what("all are read again"));
    rig.switch.stop();
}

/// Some random tables, from the number in `NAMEHOP_P4_FIRST` on. Programs stay in the process, which has room for a few dozen of them.
#[test]
fn entries_are_what_a_list_of_them_is() {
    let first = std::env::var("NAMEHOP_P4_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let workshop = Workshop::new(Build { speed: Speed::None, ..Build::default() }).expect("a folder");
    for seed in first..first + 24 {
        check(&workshop, seed);
    }
}
