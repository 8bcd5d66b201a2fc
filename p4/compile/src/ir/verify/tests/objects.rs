//! Tables, and the objects that belong to them.

use super::Fixture;
use crate::ir::verify::Fault;
use crate::ir::{
    Action, Counter, CounterId, Id, IndexVec, Meter, MeterId, Profile, ProfileId, Program, Table, TableId,
};

const TABLE: fn(usize) -> TableId = TableId::new;

/// What is wrong with a program after a change.
fn program(change: impl FnOnce(&mut Program)) -> Result<(), Fault> {
    let mut fixture = Fixture::new();
    change(&mut fixture.program);
    fixture.check(Vec::new())
}

fn table(change: impl FnOnce(&mut Table)) -> Result<(), Fault> {
    program(|program| change(&mut program.tables[TABLE(0)]))
}

fn none(kind: &'static str, number: usize) -> Result<(), Fault> {
    Err(Fault::NoObject { kind, number })
}

fn counter(table: Option<usize>) -> Counter {
    Counter { path: "c".into(), object: 0, size: 1, table: table.map(TABLE) }
}

fn meter(table: Option<usize>) -> Meter {
    Meter { path: "m".into(), size: 1, bytes: false, table: table.map(TABLE) }
}

#[test]
fn the_variables_of_a_packet_are_declared() {
    let few = program(|program| program.variables = program.variables.iter().take(2).cloned().collect());
    assert_eq!(few, Err(Fault::NoVariable(crate::ir::Var::STANDARD)));
}

#[test]
fn tables_refer_to_objects_that_exist() {
    assert_eq!(table(|table| table.profile = Some(ProfileId::new(0))), none("action profile", 0));
    assert_eq!(table(|table| table.cells.counter = Some(CounterId::new(0))), none("counter", 0));
    assert_eq!(table(|table| table.cells.meter = Some(MeterId::new(0))), none("meter", 0));
    assert_eq!(table(|table| table.members = Some(TABLE(1))), none("table", 1));
    assert_eq!(table(|table| table.members_of = Some(TABLE(1))), none("table", 1));
    assert_eq!(program(|program| _ = program.counters.push(counter(Some(1)))), none("table", 1));
    assert_eq!(program(|program| _ = program.meters.push(meter(Some(1)))), none("table", 1));
    let existing = program(|program| {
        let profile = Profile { path: "p".into(), object: 0, size: 1, selector: false };
        program.tables[TABLE(0)].profile = Some(program.profiles.push(profile));
    });
    assert_eq!(existing, Ok(()));
}

#[test]
fn direct_objects_belong_to_their_table() {
    let direct = |of: Option<usize>| {
        program(|program| program.tables[TABLE(0)].cells.counter = Some(program.counters.push(counter(of))))
    };
    assert_eq!(direct(Some(0)), Ok(()));
    assert_eq!(direct(None), none("direct counter", 0));
    let direct = |of: Option<usize>| {
        program(|program| program.tables[TABLE(0)].cells.meter = Some(program.meters.push(meter(of))))
    };
    assert_eq!(direct(Some(0)), Ok(()));
    assert_eq!(direct(None), none("direct meter", 0));
}

#[test]
fn tables_of_members_have_the_actions_of_their_table() {
    let with_members = |change: fn(&mut IndexVec<TableId, Table>)| {
        program(|program| {
            let members = Table { members_of: Some(TABLE(0)), ..program.tables[TABLE(0)].clone() };
            let main = &mut program.tables[TABLE(0)];
            main.actions.push(Action { name: "group".into(), arguments: Vec::new() });
            main.members = Some(TABLE(1));
            program.tables.push(members);
            change(&mut program.tables);
        })
    };
    assert_eq!(with_members(|_| {}), Ok(()));
    assert_eq!(with_members(|tables| tables[TABLE(1)].members_of = None), none("table of members", 1));
    let fewer = with_members(|tables| tables[TABLE(1)].actions.clear());
    assert_eq!(fewer, Err(Fault::Count { what: "actions of the table of members", expected: 1, found: 0 }));
}

#[test]
fn tables_have_at_most_255_actions() {
    let many = table(|table| table.actions = vec![table.actions[0].clone(); 256]);
    assert_eq!(many, Err(Fault::Count { what: "actions of the table, at most", expected: 255, found: 256 }));
}
