//! Where the end of a list of statements can be reached.

use super::{At, Enclosing, Fault, Verifier};
use crate::ir::{Apply, Id, IndexVec, Label, MachineId, State, StateId, Statement};

/// How lists of statements end.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    /// The statement behind the list can be reached.
    pub continues: bool,
    /// The packet may have been sent.
    pub sent: bool,
}

impl Ends {
    const NEVER: Ends = Ends { continues: false, sent: false };
    const CONTINUES: Ends = Ends { continues: true, sent: false };

    fn or(self, other: Ends) -> Ends {
        Ends { continues: self.continues || other.continues, sent: self.sent || other.sent }
    }
}

impl<'a> Verifier<'a> {
    /// Checks a list of statements.
    pub(super) fn list(&mut self, list: &'a [Statement]) -> Result<Ends, At<'a>> {
        let mut ends = Ends::CONTINUES;
        for statement in list {
            if ends.sent {
                return Err((Fault::AfterSend, Some(statement)));
            }
            self.statement(statement).map_err(|fault| (fault, Some(statement)))?;
            let after = self.nested(statement)?;
            ends = Ends { continues: ends.continues && after.continues, sent: after.sent };
        }
        Ok(ends)
    }

    /// Checks the lists in a statement.
    fn nested(&mut self, statement: &'a Statement) -> Result<Ends, At<'a>> {
        let here = |fault| (fault, Some(statement));
        match statement {
            Statement::If(_, then, otherwise) => {
                let one = self.inside(Enclosing::Branch("then"), then)?;
                Ok(one.or(self.inside(Enclosing::Branch("else"), otherwise)?))
            }
            Statement::Block(label, body) => self.block(*label, body, statement),
            Statement::Loop(body) => {
                let ends = self.inside(Enclosing::Loop, body)?;
                if ends.sent { Err(here(Fault::AfterSend)) } else { Ok(Ends::NEVER) }
            }
            Statement::Machine { number, states, start, timeout } => {
                if !self.machines.insert(*number) {
                    return Err(here(Fault::MachineTwice(*number)));
                }
                self.states.push((*number, states.len()));
                self.transition(*number, *start).map_err(here)?;
                let ends = self.machine(*number, states, timeout, statement);
                self.states.pop();
                ends.map(|()| Ends::NEVER)
            }
            Statement::Apply(apply) => self.actions(apply),
            Statement::Jump(label) => {
                if !self.open.contains(label) {
                    return Err(here(Fault::NoBlock(*label)));
                }
                self.jumps.insert(*label);
                Ok(Ends::NEVER)
            }
            Statement::Goto { machine, state } => {
                self.transition(*machine, *state).map_err(here)?;
                Ok(Ends::NEVER)
            }
            Statement::Lose | Statement::Drop => Ok(Ends::NEVER),
            Statement::Send(..) => Ok(Ends { continues: false, sent: true }),
            _ => Ok(Ends::CONTINUES),
        }
    }

    fn inside(&mut self, enclosing: Enclosing, list: &'a [Statement]) -> Result<Ends, At<'a>> {
        self.path.push(enclosing);
        let ends = self.list(list)?;
        // Only after success: an error is reported with the path to its statement.
        self.path.pop();
        Ok(ends)
    }

    fn block(&mut self, label: Label, body: &'a [Statement], statement: &'a Statement) -> Result<Ends, At<'a>> {
        if !self.labels.insert(label) {
            return Err((Fault::LabelTwice(label), Some(statement)));
        }
        self.open.push(label);
        let mut ends = self.inside(Enclosing::Block(label), body)?;
        self.open.pop();
        ends.continues |= self.jumps.remove(&label);
        Ok(ends)
    }

    fn machine(
        &mut self,
        number: MachineId,
        states: &'a IndexVec<StateId, State>,
        timeout: &'a [Statement],
        statement: &'a Statement,
    ) -> Result<(), At<'a>> {
        for state in states {
            let ends = self.inside(Enclosing::State(state.name.to_string()), &state.body)?;
            if ends.continues || ends.sent {
                self.path.push(Enclosing::State(state.name.to_string()));
                return Err((Fault::FallsThrough("a state"), Some(statement)));
            }
        }
        let ends = self.inside(Enclosing::Timeout(number), timeout)?;
        if ends.continues || ends.sent {
            return Err((Fault::FallsThrough("the time-out of a machine"), Some(statement)));
        }
        Ok(())
    }

    /// Checks that a machine around here has a state.
    fn transition(&self, machine: MachineId, state: StateId) -> super::Check {
        let has = |(number, states): &(MachineId, usize)| *number == machine && state.index() < *states;
        if self.states.iter().any(has) { Ok(()) } else { Err(Fault::NoState(machine, state)) }
    }

    fn actions(&mut self, apply: &'a Apply) -> Result<Ends, At<'a>> {
        let mut ends = Ends::CONTINUES;
        let table = &self.program.tables[apply.table];
        for (number, body) in apply.actions.iter().enumerate() {
            let around = self.action.replace((apply.table, number));
            let name = format!("{} of table {}", table.actions[number].name, table.path);
            ends = ends.or(self.inside(Enclosing::Action(name), body)?);
            self.action = around;
        }
        Ok(ends)
    }
}
