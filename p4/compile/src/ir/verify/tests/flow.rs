//! Labels, machines, and how parts end.

use super::{Fixture, expr, truth};
use crate::ir::verify::Fault;
use crate::ir::{Id, IndexVec, Kind, Label, MachineId, State, StateId, Statement};

const LABEL: fn(usize) -> Label = Label::new;

fn block(label: usize, body: Vec<Statement>) -> Statement {
    Statement::Block(LABEL(label), body)
}

fn check(body: Vec<Statement>) -> Result<(), Fault> {
    Fixture::new().check(body)
}

#[test]
fn labels_belong_to_one_block() {
    assert_eq!(check(vec![block(1, Vec::new()), block(1, Vec::new())]), Err(Fault::LabelTwice(LABEL(1))));
}

#[test]
fn jumps_lead_to_blocks_around_them() {
    assert_eq!(check(vec![block(1, vec![Statement::Jump(LABEL(1))])]), Ok(()));
    assert_eq!(check(vec![Statement::Jump(LABEL(1))]), Err(Fault::NoBlock(LABEL(1))));
    let behind = vec![block(1, Vec::new()), Statement::Jump(LABEL(1))];
    assert_eq!(check(behind), Err(Fault::NoBlock(LABEL(1))));
}

/// A machine with one state, in a block with the label 1.
fn machine(number: usize, start: usize, state: Vec<Statement>, timeout: Vec<Statement>) -> Statement {
    let states: IndexVec<StateId, State> = [State { name: "s".into(), body: state }].into_iter().collect();
    Statement::Machine { number: MachineId::new(number), states, start: StateId::new(start), timeout }
}

fn leave() -> Vec<Statement> {
    vec![Statement::Jump(LABEL(1))]
}

fn in_block(statements: Vec<Statement>) -> Result<(), Fault> {
    check(vec![block(1, statements)])
}

#[test]
fn machines_have_numbers_of_their_own() {
    assert_eq!(in_block(vec![machine(1, 0, leave(), leave())]), Ok(()));
    let both = vec![machine(1, 0, leave(), leave()), machine(1, 0, leave(), leave())];
    assert_eq!(in_block(both), Err(Fault::MachineTwice(MachineId::new(1))));
}

#[test]
fn transitions_lead_to_states_of_machines_around_them() {
    let go = |machine: usize, state: usize| {
        vec![Statement::Goto { machine: MachineId::new(machine), state: StateId::new(state) }]
    };
    let none = |machine: usize, state: usize| Err(Fault::NoState(MachineId::new(machine), StateId::new(state)));
    assert_eq!(in_block(vec![machine(1, 0, go(1, 0), leave())]), Ok(()));
    assert_eq!(in_block(vec![machine(1, 1, leave(), leave())]), none(1, 1));
    assert_eq!(in_block(vec![machine(1, 0, go(1, 1), leave())]), none(1, 1));
    assert_eq!(in_block(vec![machine(1, 0, go(2, 0), leave())]), none(2, 0));
    assert_eq!(check(go(1, 0)), none(1, 0));
}

#[test]
fn states_do_not_fall_through() {
    assert_eq!(in_block(vec![machine(1, 0, Vec::new(), leave())]), Err(Fault::FallsThrough("a state")));
    let one = vec![Statement::If(truth(), leave(), Vec::new())];
    assert_eq!(in_block(vec![machine(1, 0, one, leave())]), Err(Fault::FallsThrough("a state")));
    let timeout = Err(Fault::FallsThrough("the time-out of a machine"));
    assert_eq!(in_block(vec![machine(1, 0, leave(), Vec::new())]), timeout);
}

fn send() -> Statement {
    let fixture = Fixture::new();
    Statement::Send(expr(Kind::Port, fixture.short), None)
}

#[test]
fn programs_of_one_part_end_with_the_packet() {
    let check = |body| Fixture::new().check_fused(body);
    assert_eq!(check(vec![send()]), Ok(()));
    assert_eq!(check(vec![Statement::If(truth(), vec![send()], vec![Statement::Lose])]), Ok(()));
    assert_eq!(check(Vec::new()), Err(Fault::NoEnd));
    assert_eq!(check(vec![Statement::If(truth(), vec![Statement::Drop], Vec::new())]), Err(Fault::NoEnd));
    let jump = vec![block(1, vec![Statement::Jump(LABEL(1))])];
    assert_eq!(check(jump), Err(Fault::NoEnd));
}

#[test]
fn nothing_follows_sending() {
    let check = |body| Fixture::new().check_fused(body);
    assert_eq!(check(vec![send(), Statement::Drop]), Err(Fault::AfterSend));
    let one = Statement::If(truth(), vec![send()], Vec::new());
    assert_eq!(check(vec![one, Statement::Drop]), Err(Fault::AfterSend));
    assert_eq!(check(vec![Statement::Loop(vec![send()])]), Err(Fault::AfterSend));
}
