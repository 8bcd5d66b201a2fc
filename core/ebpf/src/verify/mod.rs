//! The verifier: decides which programs may run.
//!
//! It follows all paths through a program at once and keeps, for every register and stack slot, a range of numbers or
//! a range of offsets in a region. Where paths meet, it keeps what holds on both. So the work grows with the length
//! of the program and not with the number of its paths. It refuses what it cannot prove: some harmless programs, and
//! every harmful one.
//!
//! A program that passes has these properties:
//! * it has no loops, so it ends after at most [`MAX_INSTRUCTIONS`] instructions;
//! * every access lies inside its context, its stack, or memory that a helper returned, and it writes only where it
//!   may;
//! * it reads no register and no stack byte that it has not written;
//! * it calls only helpers, with the arguments that they expect.

mod fault;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod value;

use crate::instruction::{Instruction, Operation, decode};
use crate::program::Interface;
use crate::refusal::Refusal;
use fault::Fault;
pub use state::STACK_BYTES;
use state::State;

/// Maximum number of instructions of a program.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// A program that the verifier has accepted.
#[derive(Debug, Clone)]
pub struct Verified {
    operations: Vec<Option<Operation>>,
    interface: &'static Interface,
    stack_bytes: u16,
}

impl Verified {
    /// The decoded instructions. An entry is `None` for the second half of a [`Operation::LoadConstant`], and for an
    /// unreachable instruction. The verifier did not check the latter: a program that reaches it ends.
    pub fn operations(&self) -> &[Option<Operation>] {
        &self.operations
    }

    /// Bytes of stack that the program uses, a multiple of 8, counted down from the end of the stack.
    pub fn stack_bytes(&self) -> u16 {
        self.stack_bytes
    }

    /// The interface for which the program was verified.
    pub fn interface(&self) -> &'static Interface {
        self.interface
    }

    /// Takes a program as verified without a check.
    ///
    /// # Safety
    /// The caller is responsible for everything that the program does.
    #[cfg(any(test, feature = "testing"))]
    #[expect(unsafe_code, reason = "the contract is the caller's; nothing here checks it")]
    pub unsafe fn unchecked(
        instructions: &[Instruction],
        interface: &'static Interface,
        stack_bytes: u16,
    ) -> Result<Self, Refusal> {
        Ok(Verified { operations: decode(instructions)?, interface, stack_bytes })
    }
}

/// Decides whether a program may run.
///
/// # Errors
/// Returns the first fault found.
pub fn verify(instructions: &[Instruction], interface: &'static Interface) -> Result<Verified, Refusal> {
    if instructions.is_empty() {
        return Err(Refusal::whole("the program has no instructions"));
    }
    if instructions.len() > MAX_INSTRUCTIONS {
        return Err(Refusal::whole(format!(
            "the program has {} instructions, at most {MAX_INSTRUCTIONS} are allowed",
            instructions.len()
        )));
    }
    let mut operations = decode(instructions)?;
    let order = order(&operations)?;
    let mut is_reached = vec![false; operations.len()];
    let stack_bytes = follow(&operations, &order, interface, |at, _| is_reached[at] = true)?;
    for (operation, is_reached) in operations.iter_mut().zip(is_reached) {
        operation.take_if(|_| !is_reached);
    }
    Ok(Verified { operations, interface, stack_bytes })
}

/// Returns the instructions that can run after this one, the following one last.
fn successors(operations: &[Option<Operation>], at: usize) -> impl Iterator<Item = usize> + use<> {
    let (first, second) = match operations[at] {
        Some(Operation::Exit) | None => (None, None),
        Some(Operation::Jump { target }) => (Some(target), None),
        Some(Operation::Branch { target, .. }) => (Some(target), Some(at + 1)),
        Some(operation) => (None, Some(at + operation.slots())),
    };
    first.into_iter().chain(second)
}

/// Sorts the instructions so that each precedes all that follow it on any path.
fn order(operations: &[Option<Operation>]) -> Result<Vec<usize>, Refusal> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; operations.len()];
    let mut done = Vec::with_capacity(operations.len());
    // The path to the current instruction, with the successors that remain to be visited.
    let mut path = vec![(0, successors(operations, 0))];
    marks[0] = Mark::Open;
    while let Some((at, rest)) = path.last_mut() {
        let at = *at;
        let Some(next) = rest.next() else {
            marks[at] = Mark::Done;
            done.push(at);
            path.pop();
            continue;
        };
        match operations.get(next) {
            None => return Err(Refusal::at(at, "the program runs past its end")),
            Some(None) => return Err(Refusal::at(at, "jump into the middle of an instruction")),
            Some(Some(_)) => {}
        }
        match marks[next] {
            Mark::New => {
                marks[next] = Mark::Open;
                path.push((next, successors(operations, next)));
            }
            Mark::Open => {
                return Err(Refusal::at(
                    at,
                    format!(
                        "loop back to instruction {next}: unroll it with `#pragma unroll` and a constant number of \
                         iterations"
                    ),
                ));
            }
            Mark::Done => {}
        }
    }
    if let Some(at) =
        marks.iter().zip(operations).position(|(mark, operation)| *mark == Mark::New && operation.is_some())
    {
        return Err(Refusal::at(at, "unreachable instruction"));
    }
    done.reverse();
    Ok(done)
}

/// Follows all paths, and returns the bytes of stack that they use. Calls `before` with the state before each
/// reachable instruction.
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
        // Without a state, the ranges of numbers prove that the instruction is unreachable.
        let (Some(mut state), Some(operation)) = (states[at].take(), &operations[at]) else { continue };
        before(at, &state);
        let refuse = |fault: Fault| Refusal::at(at, fault.to_string());
        step::step(&mut state, operation, interface).map_err(refuse)?;
        stack_bytes = stack_bytes.max(state.stack_bytes());
        match *operation {
            Operation::Exit => step::exit(&state).map_err(refuse)?,
            Operation::Branch { condition, is_wide, left, right, target } => {
                let (taken, not_taken) = step::branch(&state, condition, is_wide, left, right).map_err(refuse)?;
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

/// Records that an instruction is reached with `state` as well.
fn reach(known: &mut Option<Box<State>>, state: Option<Box<State>>) {
    match (known, state) {
        (_, None) => {}
        (Some(known), Some(state)) => known.merge(&state),
        (known @ None, state) => *known = state,
    }
}
