//! Compares random tables, with members and groups of their action profiles, with a simple list as a model: rejected
//! and undone changes, read and reported entries, and the entry that a packet matches.

use std::path::Path;
use std::thread;
use std::time::Duration;

use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::load;
use namehop_p4_runtime::workshop::{Build, Speed, Workshop};
use namehop_p4runtime::device::{Device, Undo};
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{ActionProfileGroup, ActionProfileMember, Entity, TableEntry};
use namehop_packet::BufferPool;

use super::entry_changes::What;
use super::entry_forms::Ids;
use super::entry_model::{SHORT_NS, Table};
use super::entry_profile::Profile;
use crate::Switch;
use crate::program::{Change, Engine, Program};
use crate::service::Running;

/// Number of changes of one table.
const CHANGES: usize = 60;

/// Longer than the interval between two polls for idle entries.
const LOOK: Duration = Duration::from_millis(110);

/// A running program with its single table.
struct Rig {
    ids: Ids,
    switch: Switch,
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
            compile(program, name, &Options::default()).map(|compiled| compiled.emitted)
        });
        let emitted =
            emitted.expect("the compiler's thread starts").unwrap_or_else(|failure| panic!("{text}\n{failure}"));
        let file = workshop.folder().join(format!("{name}.so"));
        workshop.loadable(&emitted, &file).expect("a C compiler");
        let program = Program::load(&file, 1).expect("the program can be loaded");
        let switch = Switch::start(program, &[], 1, 0).expect("the switch starts");
        let running = Running::new(1, &switch, Vec::new()).expect("the program has a valid description");
        let pool = BufferPool::new(1024, 16);
        let engine = switch.program.engine(0, &pool).expect("a worker");
        Rig { ids: Ids::of(running.p4info()), switch, running, engine, pool }
    }

    /// Results of packets with these keys.
    fn look(&mut self, table: &Table, packets: &[Vec<u128>]) -> Vec<u16> {
        let frame = |values: &Vec<u128>| {
            let mut bits = Vec::new();
            for (value, key) in values.iter().zip(&table.keys) {
                bits.extend((0..key.width).rev().map(|bit| value >> bit & 1 == 1));
            }
            bits.resize(bits.len().next_multiple_of(8), false);
            let mut frame: Vec<u8> =
                bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect();
            // The selector key, and room for the result.
            frame.extend([bits.len() as u8, values[0] as u8, 0, 0]);
            (0, self.pool.copy_of(&frame).expect("memory"))
        };
        let (mut frames, mut leaving) = (packets.iter().map(frame).collect(), Vec::new());
        self.engine.process(&mut frames, &mut leaving);
        let result = |frame: &[u8]| u16::from_be_bytes(frame[frame.len() - 2..].try_into().expect("two bytes"));
        leaving.iter().map(|(_, frame)| result(frame.bytes())).collect()
    }

    fn read(&self, kind: Kind) -> Vec<Kind> {
        let parts = self.running.read(&Entity { entity: Some(kind) }).expect("the entities can be read");
        parts.flat_map(|part| part.expect("entities")).filter_map(|entity| entity.entity).collect()
    }

    fn read_entries(&self, entry: TableEntry) -> Vec<TableEntry> {
        let entries = self.read(Kind::TableEntry(entry)).into_iter();
        entries.filter_map(|kind| if let Kind::TableEntry(entry) = kind { Some(entry) } else { None }).collect()
    }

    fn entity(&self, table: &Table, what: &What) -> Entity {
        let kind = match what {
            What::Entry(entry) => Kind::TableEntry(TableEntry { is_const: false, ..table.message(entry, self.ids) }),
            What::Member(id, values) => Kind::ActionProfileMember(self.ids.member(*id, *values)),
            What::Group(id, group) => Kind::ActionProfileGroup(self.ids.group(*id, group)),
        };
        Entity { entity: Some(kind) }
    }

    /// Makes a change by P4Runtime.
    fn write(&self, table: &Table, change: Change, what: &What) -> Result<(), String> {
        self.running.change(update(change), &self.entity(table, what)).map_err(|status| format!("{status:?}"))
    }

    /// Makes an undoable change.
    fn keep(&self, table: &Table, change: Change, what: &What) -> Option<Undo<'_>> {
        self.running.change_undoably(update(change), &self.entity(table, what)).ok()
    }
}

fn update(change: Change) -> UpdateType {
    match change {
        Change::Insert => UpdateType::Insert,
        Change::Modify => UpdateType::Modify,
        Change::Delete => UpdateType::Delete,
    }
}

/// Entries in a form that can be compared.
fn sorted(list: impl IntoIterator<Item = TableEntry>) -> Vec<String> {
    let mut list: Vec<String> = list.into_iter().map(|entry| format!("{entry:?}")).collect();
    list.sort();
    list
}

/// A table, its running program, and the program's source for failure messages.
struct Case {
    seed: u64,
    table: Table,
    rig: Rig,
    text: String,
}

impl Case {
    fn what(&self, doing: &str) -> String {
        format!("seed {}, {doing}\n{}", self.seed, self.text)
    }

    fn messages(&self) -> Vec<TableEntry> {
        self.table.entries.iter().map(|entry| self.table.message(entry, self.rig.ids)).collect()
    }

    /// Makes a random change.
    fn change(&mut self, step: usize) {
        let (change, what) = self.table.some_change();
        let done = self.rig.write(&self.table, change, &what);
        let fits = self.table.fits(change, &what);
        assert_eq!(done.is_ok(), fits, "{}", self.what(&format!("step {step}, {change:?} {what:?}: {done:?}")));
        if fits {
            self.table.make(change, what);
        }
    }

    /// Makes some changes and undoes all of them.
    fn take_back(&mut self, step: usize) {
        let before = (self.table.entries.clone(), self.table.profile.clone());
        let mut made = Vec::new();
        for _ in 0..1 + self.table.below(4) {
            let (change, what) = self.table.some_change();
            let undo = self.rig.keep(&self.table, change, &what);
            let fits = self.table.fits(change, &what);
            assert_eq!(undo.is_some(), fits, "{}", self.what(&format!("step {step}, {change:?} {what:?}")));
            if let Some(undo) = undo {
                self.table.make(change, what.clone());
                made.push((change, what, undo));
            }
        }
        (self.table.entries, self.table.profile) = before;
        let mut gone = Vec::new();
        for (change, what, undo) in made.into_iter().rev() {
            undo().unwrap_or_else(|status| panic!("seed {}, step {step}, {change:?} {what:?}: {status:?}", self.seed));
            if let (Change::Delete, What::Entry(entry)) = (change, what) {
                gone.push(entry);
            }
        }
        gone.iter().for_each(|entry| self.table.renew(entry));
        self.check_read(&format!("step {step}, after undoing all changes"));
    }

    fn check_packets(&mut self, doing: &str) {
        let packets: Vec<_> = (0..64).map(|_| self.table.packet()).collect();
        let found = self.rig.look(&self.table, &packets);
        for (packet, found) in packets.iter().zip(found) {
            let wanted = self.table.look(packet);
            let what = || self.what(&format!("{doing}, {packet:x?} in {:x?}", self.table.entries));
            assert!(wanted.contains(&found), "{found} is none of {wanted:?}: {}", what());
        }
    }

    /// Checks that everything is read, including what only P4Runtime stores.
    fn check_read(&self, doing: &str) {
        let rig = &self.rig;
        let all = TableEntry { table_id: rig.ids.table, ..TableEntry::default() };
        assert_eq!(sorted(rig.read_entries(all)), sorted(self.messages()), "{}", self.what(doing));
        let Some(Profile { members, groups, .. }) = &self.table.profile else { return };
        let (action_profile_id, none) =
            (rig.ids.profile, (ActionProfileMember::default(), ActionProfileGroup::default()));
        let read = rig.read(Kind::ActionProfileMember(ActionProfileMember { action_profile_id, ..none.0 }));
        let wanted: Vec<Kind> =
            members.iter().map(|(id, values)| Kind::ActionProfileMember(rig.ids.member(*id, *values))).collect();
        assert_eq!(read, wanted, "{}", self.what(doing));
        let read = rig.read(Kind::ActionProfileGroup(ActionProfileGroup { action_profile_id, ..none.1 }));
        let wanted: Vec<Kind> =
            groups.iter().map(|(id, group)| Kind::ActionProfileGroup(rig.ids.group(*id, group))).collect();
        assert_eq!(read, wanted, "{}", self.what(doing));
    }

    /// Checks reading one entry by its key, and entries of any priority by the key alone.
    fn check_read_by_key(&self) {
        for message in self.messages().into_iter().filter(|message| !message.r#match.is_empty()) {
            let TableEntry { table_id, r#match: matches, priority, .. } = message.clone();
            let asked = TableEntry { table_id, r#match: matches.clone(), priority, ..TableEntry::default() };
            assert_eq!(
                sorted(self.rig.read_entries(asked.clone())),
                sorted([message]),
                "{}",
                self.what("reading one entry")
            );
            let same = self.messages().into_iter().filter(|other| other.r#match == matches);
            let asked = TableEntry { priority: 0, ..asked };
            assert_eq!(sorted(self.rig.read_entries(asked)), sorted(same), "{}", self.what("of any priority"));
        }
    }

    /// Checks that idle entries are reported once each.
    fn check_idle(&mut self) {
        let running = &self.rig.running;
        let told = || std::iter::from_fn(|| running.idle()).flat_map(|told| told.table_entry).collect::<Vec<_>>();
        let mut all = told();
        if !self.table.times_out {
            assert!(all.is_empty(), "{}", self.what("no entry may time out"));
            return;
        }
        for _ in 0..2 {
            thread::sleep(LOOK);
            all.extend(told());
        }
        let short = self.messages().into_iter().filter(|message| message.idle_timeout_ns == SHORT_NS);
        let short = short.map(|message| TableEntry { action: None, is_const: false, ..message });
        assert_eq!(sorted(all), sorted(short), "{}", self.what("each entry must be reported once when it times out"));
        let again = self.table.entries.iter().find(|entry| entry.timeout_ns == SHORT_NS).cloned();
        let Some(entry) = again else { return };
        for change in [Change::Delete, Change::Insert] {
            self.rig.write(&self.table, change, &What::Entry(entry.clone())).expect("the entry is valid");
        }
        let mut count = 0;
        for _ in 0..3 {
            thread::sleep(LOOK);
            count += told().len();
        }
        assert_eq!(count, 1, "{}", self.what("an entry that was deleted and inserted again must be reported again"));
        self.table.renew(&entry);
    }

    /// Checks that a reset restores the initial state.
    fn check_reset(&mut self) {
        self.rig.running.reset().expect("the program can be reset");
        self.table.entries = self.table.own.iter().map(|(entry, _)| entry.clone()).collect();
        self.table.default = super::entry_model::DEFAULT;
        if let Some(profile) = &mut self.table.profile {
            *profile = Profile::new(profile.is_selector);
        }
        self.check_read("a reset must restore the initial state");
        self.check_packets("a reset must restore the initial state");
    }
}

/// Makes random changes, and checks the results.
fn check(workshop: &Workshop, seed: u64) {
    let table = Table::new(seed);
    let text = table.program();
    let rig = Rig::new(workshop, &format!("entries{seed}"), text.clone());
    let mut case = Case { seed, table, rig, text };
    case.check_read("at first");
    for step in 0..CHANGES {
        if case.table.below(8) == 0 {
            case.take_back(step);
        } else {
            case.change(step);
        }
        if step % 20 == 7 {
            case.table.default = case.table.below(0xE000) as u16;
            let default = Entity { entity: Some(Kind::TableEntry(case.rig.ids.default(case.table.default))) };
            case.rig.running.change(UpdateType::Modify, &default).expect("a default action");
        }
        case.check_packets(&format!("step {step}"));
    }
    case.check_read("all entries must be read");
    case.check_read_by_key();
    case.check_idle();
    case.check_reset();
    case.rig.switch.stop();
}

/// Checks random tables, from the seed in `NAMEHOP_P4_FIRST` on. Programs stay loaded in the process, which has room
/// for a few dozen.
#[test]
#[ignore = "slow"]
fn entries_are_what_a_list_of_them_is() {
    let first = std::env::var("NAMEHOP_P4_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let workshop = Workshop::new(Build { speed: Speed::None, ..Build::default() }).expect("a folder");
    for seed in first..first + 24 {
        check(&workshop, seed);
    }
}
