//! The verifier: which programs may run.
//!
//! It follows all ways through a program at once, with what is known of every register and of the stack: ranges of numbers, and
//! distances of addresses from the start of their memory. Where ways meet, only what holds on both is kept, so the work
//! grows with the length of the program and not with the number of its ways. Whatever is not known to be right is refused; so
//! some harmless programs are, and no harmful one passes.
//!
//! What holds for every program that passes:
//! * it has no loops, so it ends after at most [`MAX_INSTRUCTIONS`];
//! * every access is inside its context, its stack, or what a helper gave it, and it writes only what it may change;
//! * it reads nothing that it has not written, except what the router shows it;
//! * it calls only helpers, with the arguments that they expect;
//! * DPDK's own verifier, which tries ways one by one, is done in a moment ([`MAX_STEPS`]).

mod state;
mod step;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;

use crate::Interface;
use crate::instruction::{Instruction, Operation, decode};
use state::State;

/// Most instructions of a program.
pub const MAX_INSTRUCTIONS: usize = 4096;
/// Most steps that all ways through a program have together.
pub const MAX_STEPS: u64 = 1 << 22;

/// Why a program is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The instruction, counted from 0; `None` for the program as a whole.
    pub instruction: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn at(instruction: usize, reason: impl Into<String>) -> Self {
        Refusal { instruction: Some(instruction), reason: reason.into() }
    }

    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Refusal { instruction: None, reason: reason.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            Some(instruction) => write!(f, "instruction {instruction}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

/// A program that may run.
#[derive(Debug, Clone)]
pub struct Verified {
    instructions: Vec<Instruction>,
    interface: &'static Interface,
    stack_bytes: u16,
}

impl Verified {
    /// The program.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// How far below the end of its stack it goes at most.
    pub fn stack_bytes(&self) -> u16 {
        self.stack_bytes
    }

    /// What it was verified for.
    pub fn interface(&self) -> &'static Interface {
        self.interface
    }
}

/// Decides whether a program may run.
///
/// # Errors
/// The first fault found.
pub fn verify(instructions: Vec<Instruction>, interface: &'static Interface) -> Result<Verified, Refusal> {
    if instructions.is_empty() {
        return Err(Refusal::whole("the program has no instructions"));
    }
    if instructions.len() > MAX_INSTRUCTIONS {
        return Err(Refusal::whole(format!(
            "the program has {} instructions, {MAX_INSTRUCTIONS} are allowed",
            instructions.len()
        )));
    }
    let operations = decode(&instructions)?;
    let order = order(&operations)?;
    limit_steps(&operations, &order)?;
    let stack_bytes = follow(&operations, &order, interface, |_, _| {})?;
    Ok(Verified { instructions, interface, stack_bytes })
}

/// Where an instruction may go on, the next one last.
fn successors(operations: &[Option<Operation>], at: usize) -> impl Iterator<Item = usize> + use<> {
    let (first, second) = match operations[at] {
        Some(Operation::Exit) | None => (None, None),
        Some(Operation::Jump { target }) => (Some(target), None),
        Some(Operation::Branch { target, .. }) => (Some(target), Some(at + 1)),
        Some(Operation::LoadConstant { .. }) => (None, Some(at + 2)),
        Some(_) => (None, Some(at + 1)),
    };
    first.into_iter().chain(second)
}

/// The instructions in an order in which each stands before all that follow it on some way.
fn order(operations: &[Option<Operation>]) -> Result<Vec<usize>, Refusal> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; operations.len()];
    let mut done = Vec::with_capacity(operations.len());
    // Instructions on the way to the one at hand, with the successors that are still to be looked at.
    let mut way = vec![(0, successors(operations, 0))];
    marks[0] = Mark::Open;
    while let Some((at, rest)) = way.last_mut() {
        let at = *at;
        let Some(next) = rest.next() else {
            marks[at] = Mark::Done;
            done.push(at);
            way.pop();
            continue;
        };
        match operations.get(next) {
            None => return Err(Refusal::at(at, "the program goes on behind its end")),
            Some(None) => return Err(Refusal::at(at, "jump into the middle of an instruction")),
            Some(Some(_)) => {}
        }
        match marks[next] {
            Mark::New => {
                marks[next] = Mark::Open;
                way.push((next, successors(operations, next)));
            }
            Mark::Open => {
                return Err(Refusal::at(
                    at,
                    format!(
                        "loop back to instruction {next}: unroll it, with `#pragma unroll` and a constant number of rounds"
                    ),
                ));
            }
            Mark::Done => {}
        }
    }
    if let Some(at) =
        marks.iter().zip(operations).position(|(mark, operation)| *mark == Mark::New && operation.is_some())
    {
        return Err(Refusal::at(at, "no way leads here"));
    }
    done.reverse();
    Ok(done)
}

/// Refuses programs with too many ways.
fn limit_steps(operations: &[Option<Operation>], order: &[usize]) -> Result<(), Refusal> {
    let mut steps = vec![0_u64; operations.len()];
    for &at in order.iter().rev() {
        steps[at] = successors(operations, at).fold(1, |sum, next| sum.saturating_add(steps[next]));
    }
    if steps[0] > MAX_STEPS {
        return Err(Refusal::whole(format!(
            "all ways through the program have more than {MAX_STEPS} steps together: use fewer branches one after the other"
        )));
    }
    Ok(())
}

/// Follows all ways; returns how much of the stack they use. `before` is told what is known before each instruction.
fn follow(
    operations: &[Option<Operation>],
    order: &[usize],
    interface: &Interface,
    mut before: impl FnMut(usize, &State),
) -> Result<u16, Refusal> {
    let mut stack_bytes = 0;
    let mut states: Vec<Option<Box<State>>> = vec![None; operations.len()];
    states[0] = Some(Box::new(State::at_start()));
    for &at in order {
        // Without a state, what is known of numbers says that no way leads here.
        let (Some(mut state), Some(operation)) = (states[at].take(), &operations[at]) else { continue };
        before(at, &state);
        let refuse = |reason| Refusal::at(at, reason);
        step::step(&mut state, operation, interface).map_err(refuse)?;
        stack_bytes = stack_bytes.max(state.stack_bytes());
        match *operation {
            Operation::Exit => step::exit(&state).map_err(refuse)?,
            Operation::Branch { condition, left, right, target } => {
                let (taken, not_taken) = step::branch(&state, condition, left, right).map_err(refuse)?;
                reach(&mut states[target], taken.map(Box::new));
                reach(&mut states[at + 1], not_taken.map(Box::new));
            }
            _ => {
                if let Some(next) = successors(operations, at).next() {
                    reach(&mut states[next], Some(state));
                }
            }
        }
    }
    Ok(stack_bytes)
}

/// An instruction is reached with this state as well.
fn reach(place: &mut Option<Box<State>>, state: Option<Box<State>>) {
    match (place, state) {
        (_, None) => {}
        (Some(known), Some(state)) => known.merge(&state),
        (place @ None, state) => *place = state,
    }
}
