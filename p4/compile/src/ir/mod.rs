//! The intermediate representation (IR): a program for one `main`, with all calls inlined.
//!
//! Expressions have no side effects; everything with side effects is a statement, in the language's order of
//! evaluation. `return`, `exit` and parser errors are jumps to the end of a block. Header validity and header stack
//! positions are parts of places like fields.
//!
//! A program has one of two forms. Lowering makes a program of six parts, one for each part of the pipeline. From it,
//! `optimise::fuse` makes a program of one part for packets that go straight through.
//!
//! # Contract
//!
//! Lowering and every pass keep these rules, and the passes behind them and the emitter rely on them. `verify` checks
//! them after each pass, in debug builds and in tests.
//!
//! * **Variables.** Every variable is declared in `Program::variables`; the first three belong to a packet. A
//!   place starts with the declared type of its variable. Each step leads to a part of the type before it, and the
//!   place has the type of the last part.
//! * **Types.** Assigned values, operands, results, parts and indices are stored as their use requires: integers with
//!   the same width and sign, structs and stacks with the same type. Everything else takes a `Kind::Cast`. Constants
//!   fit into their type, and bits that are read or replaced are inside their value.
//! * **Jumps.** A label belongs to one block of the program, and a jump leads to a block around it. A machine has its
//!   own number, and a transition leads to a state of a machine around it. The states and the time-out of a machine
//!   end with a jump, a transition or the loss of the packet.
//! * **Objects.** Tables, registers, counters, meters, profiles, value sets and digests that are used exist. A lookup
//!   has a value of the right width for each key of its table, and statements for each action. Action data is read
//!   only in the actions of a lookup, within the bits of the action. Direct counters and meters, and tables of group
//!   members, belong to the table that refers to them.
//! * **Form.** Parser errors, checksum errors and requests to the traffic manager occur only in programs of six
//!   parts. Positions in the packet, barriers, `Statement::Drop` and `Statement::Send` occur only in programs of one
//!   part. Each path through such a program ends by sending, dropping or losing the packet, and nothing follows the
//!   sending. A variable that is a position in the packet has no other use.

mod id;
mod shape;
mod show;
mod table;
mod verify;
mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use namehop_p4_lang::syntax::{Binary, Unary};
use namehop_p4_lang::types::Ty;
use namehop_p4_lang::value::Value;

pub use id::{
    CounterId, DigestId, Id, IndexVec, Label, MachineId, MeterId, ProfileId, RegisterId, StateId, TableId, ValueSetId,
    Var,
};
pub use shape::{Leaf, Shape};
pub use table::{Action, Cells, Key, Match, Table, TableKind};
pub use verify::{Invalid, verify, verify_fused};

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    pub ty: Ty,
}

/// A step from a place to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Field(usize),
    /// An element; outside of the stack, reads give zero and writes do nothing.
    Index(Box<Expr>),
    /// The validity of a header.
    Valid,
    /// The number of parsed elements of a stack.
    Next,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub root: Var,
    pub steps: Vec<Step>,
    pub ty: Ty,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: Kind,
    pub ty: Ty,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Const(Value),
    Read(Place),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Casts an integer, a bool or an enum to the type of this expression.
    Cast(Box<Expr>),
    /// Bits from the highest to the lowest.
    Slice(Box<Expr>, u32, u32),
    /// The first value with these bits replaced by the second.
    Insert(Box<Expr>, u32, u32, Box<Expr>),
    /// All parts of a struct, valid header, tuple or stack.
    Parts(Vec<Expr>),
    /// Bits of the packet, at this offset in bits from the parser position.
    Packet(u64),
    /// Number of bits of the packet that are not parsed yet.
    Left,
    /// Length of the whole packet in bytes.
    Length,
    /// A hash of the last data list, by its number in `HashAlgorithm`.
    Hash(Box<Expr>),
    /// The next 64-bit random number.
    Random,
    /// A cell of a register; zero outside of it.
    Register(RegisterId, Box<Expr>),
    /// Meters the packet in a cell of a meter, and gives its colour; green outside of the meter.
    Meter(MeterId, Box<Expr>),
    /// Action data of the entry that a table has found, at this offset in bits.
    Argument(u64),
    /// Bits of the packet, at this offset in bits from the start of a header; zeros if the header was not parsed.
    Field(Var, u64),
    /// The Internet checksum's sum of consecutive values (RFC 1071).
    Sum(Vec<Expr>),
    /// The ingress port.
    Port,
    /// True if a member of a value set matches these values.
    InSet(ValueSetId, Vec<Expr>),
}

/// A request of a program to the traffic manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Clone,
    Resubmit,
    Recirculate,
    Truncate,
}

/// Where bits are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    Packet,
    /// Data to be hashed.
    Data,
}

#[derive(Clone, Debug)]
pub enum Statement {
    Set(Place, Expr),
    If(Expr, Vec<Statement>, Vec<Statement>),
    /// Jumps to its label continue behind it.
    Block(Label, Vec<Statement>),
    /// Runs until a jump leaves it.
    Loop(Vec<Statement>),
    Jump(Label),
    /// The states of a parser, beginning with `start`.
    Machine {
        number: MachineId,
        states: IndexVec<StateId, State>,
        start: StateId,
        /// Runs if too many states were passed.
        timeout: Vec<Statement>,
    },
    /// Goes to a state of a machine.
    Goto {
        machine: MachineId,
        state: StateId,
    },
    /// Sets the parser error.
    Error(Expr),
    /// The packet cannot be processed; the part ends at once.
    Lose,
    Advance(Expr),
    /// Reads a field of variable length from the packet, of this many bits.
    ReadVarbit(Place, Expr),
    Append(Sink, Expr),
    /// Begins a new list of data to be hashed.
    BeginData,
    /// Reports the data list to the control plane.
    Digest(DigestId),
    /// Appends the packet's content behind the parsed headers to the data list.
    AppendPayload,
    ChecksumError,
    Request {
        request: Request,
        value: Expr,
        list: Option<Expr>,
    },
    WriteRegister(RegisterId, Expr, Expr),
    Count(CounterId, Expr),
    Apply(Apply),
    Cipher(Cipher),
    /// A header begins at the parser position; or, if false, is not in the packet.
    Locate(Var, bool),
    /// No packet continues before all others have arrived here. Holds the variables needed afterwards.
    Barrier(Vec<Var>),
    /// Drops the packet.
    Drop,
    /// Sends the packet to a port. Without a list of headers, the headers were appended before.
    Send(Expr, Option<Vec<Emit>>),
}

/// A header of a packet that is sent.
#[derive(Clone, Debug)]
pub struct Emit {
    /// Condition for the header to be sent; `None` if it always is.
    pub valid: Option<Expr>,
    /// Where it was parsed.
    pub base: Option<Var>,
    pub fields: Vec<EmitField>,
}

#[derive(Clone, Debug)]
pub struct EmitField {
    pub value: Expr,
    pub width: u32,
    /// True if it may differ from what was parsed.
    pub changed: bool,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: Arc<str>,
    pub body: Vec<Statement>,
}

/// A lookup and the actions that follow it.
#[derive(Clone, Debug)]
pub struct Apply {
    pub table: TableId,
    pub keys: Vec<Expr>,
    /// Number of leading key words that the previous lookup has hashed; its key begins with the same words.
    pub hashed: u32,
    /// Set to whether an entry matched.
    pub hit: Option<Var>,
    /// Set to the index of the action in the table's list; 255 stands for no action.
    pub chosen: Option<Var>,
    /// The statements of each action of the list.
    pub actions: Vec<Vec<Statement>>,
    pub resume: Resume,
}

/// Encrypts or decrypts the payload of the packet from a byte on, together with other packets.
#[derive(Clone, Debug)]
pub struct Cipher {
    pub encrypts: bool,
    /// Offset in bytes, as a word; key and initialization vector, of 128 bits each.
    pub offset: Expr,
    pub key: Expr,
    pub iv: Expr,
    pub resume: Resume,
}

/// How a packet continues after the end of a stage, in a program of one part.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// Variables needed afterwards.
    pub kept: Vec<Var>,
    /// The parsed length, if it is known; the headers that begin at known positions (both in bits); and the variables
    /// with known values.
    pub position: Option<u64>,
    pub located: Vec<(Var, u64)>,
    pub known: Vec<(Var, Value)>,
    /// Variables that are fields of the packet, in headers that do not change until it leaves.
    pub fields: Vec<(Var, Expr)>,
}

#[derive(Clone, Debug)]
pub struct Register {
    pub path: String,
    pub object: usize,
    pub ty: Ty,
    pub size: usize,
}

/// A counter. Direct counters follow all others.
#[derive(Clone, Debug)]
pub struct Counter {
    pub path: String,
    pub object: usize,
    pub size: usize,
    /// The table, if it is a direct counter.
    pub table: Option<TableId>,
}

/// A meter. Direct meters follow all others.
#[derive(Clone, Debug)]
pub struct Meter {
    pub path: String,
    pub size: usize,
    /// True if it meters bytes instead of packets.
    pub bytes: bool,
    /// The table, if it is a direct meter.
    pub table: Option<TableId>,
}

/// A value set of a parser, filled by the control plane.
#[derive(Clone, Debug)]
pub struct ValueSet {
    pub path: String,
    /// The instance of the parser, and the index in it.
    pub owner: (usize, usize),
    pub size: u64,
    pub fields: Vec<Key>,
}

/// An action profile, or a selector, which also has groups.
#[derive(Clone, Debug)]
pub struct Profile {
    pub path: String,
    pub object: usize,
    /// Maximum number of members; for a selector, also of slots in all groups.
    pub size: u64,
    pub selector: bool,
}

/// A type of data that programs report to the control plane.
#[derive(Clone, Debug)]
pub struct Digest {
    pub name: String,
    pub ty: Ty,
    /// The fields of the data, one behind the other.
    pub shape: Shape,
}

/// One of the six parts of the pipeline.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: &'static str,
    /// Its name in the program.
    pub title: Arc<str>,
    pub body: Vec<Statement>,
}

/// A whole program.
#[derive(Default)]
pub struct Program {
    pub variables: IndexVec<Var, Variable>,
    pub parts: Vec<Part>,
    pub tables: IndexVec<TableId, Table>,
    pub registers: IndexVec<RegisterId, Register>,
    pub counters: IndexVec<CounterId, Counter>,
    pub meters: IndexVec<MeterId, Meter>,
    pub profiles: IndexVec<ProfileId, Profile>,
    pub value_sets: IndexVec<ValueSetId, ValueSet>,
    pub digests: IndexVec<DigestId, Digest>,
    /// Calls that have no effect in compiled code.
    pub notes: Vec<String>,
}

/// A program as one part, for packets that go straight through it: see `optimise::fuse`.
pub struct Fused {
    pub program: Program,
    /// Packets must pass each lookup in order, because the program can observe it.
    pub ordered: bool,
    /// The headers that were split.
    pub headers: Vec<HeaderParts>,
    /// Variables that are needed after a lookup.
    pub kept: HashSet<Var>,
    /// Variables that are positions in the packet.
    pub bases: HashSet<Var>,
}

/// The variables of a header that was split.
pub struct HeaderParts {
    pub name: String,
    pub valid: Var,
    /// All fields with their offsets and widths in bits; empty if widths are not fixed.
    pub fields: Vec<(Var, u64, u32)>,
}
