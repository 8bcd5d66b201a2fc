//! What can be wrong with a program.

use crate::ir::{Label, MachineId, StateId, Var};

/// A violation of the contract of the intermediate representation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("there is no variable {0}")]
    NoVariable(Var),
    /// A number that no object of this kind has.
    #[error("there is no {kind} {number}")]
    NoObject { kind: &'static str, number: usize },
    #[error("a value of type {0} has no such part")]
    NoPart(String),
    #[error("a place of type {declared} is used as {used}")]
    PlaceType { declared: String, used: String },
    /// A value with a storage other than that of its use.
    #[error("{what} is {found}, where {expected} is expected")]
    Storage { what: &'static str, expected: String, found: String },
    #[error("the constant does not fit into {0}")]
    Constant(String),
    #[error("bits {high} to {low} are not in a value of {width} bits")]
    NoBits { high: u32, low: u32, width: u32 },
    #[error("{what}: {found}, where {expected} are expected")]
    Count { what: &'static str, expected: usize, found: usize },
    #[error("a variable that is no position in the packet is used as one: {0}")]
    NoBase(Var),
    #[error("a position in the packet is used as a value: {0}")]
    BaseAsValue(Var),
    #[error("action data is read outside of an action")]
    NoAction,
    #[error("action data is read up to bit {end}, but the action has {bits} bits")]
    ActionData { end: u64, bits: u32 },
    #[error("two blocks have the label {0}")]
    LabelTwice(Label),
    #[error("a jump to block {0}, which is not around it")]
    NoBlock(Label),
    #[error("two machines have the number {0}")]
    MachineTwice(MachineId),
    #[error("a transition to state {1} of machine {0}, which is not around it or has no such state")]
    NoState(MachineId, StateId),
    #[error("{0} ends without a jump")]
    FallsThrough(&'static str),
    #[error("the program continues after the packet was sent")]
    AfterSend,
    #[error("the program ends before the packet is sent, dropped or lost")]
    NoEnd,
    #[error("this is used only in programs of {0}")]
    WrongForm(&'static str),
}
