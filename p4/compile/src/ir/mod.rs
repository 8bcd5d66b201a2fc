//! The intermediate representation: a program for one `main`, with everything that is called put in place of its call.
//!
//! Expressions have no effects; what has effects is a statement, in the order of the language. `return`, `exit` and
//! errors of parsers are jumps to the end of a block. Validity of headers and the position in header stacks are parts of
//! places like others.

mod shape;
mod show;
mod table;
mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use crate::syntax::ast::{Binary, Unary};
use crate::types::Ty;
use crate::value::Value;

pub use shape::{Leaf, Shape};
pub use table::{Action, Cells, Key, Match, Table, TableKind};

/// Number of a variable in `Program::variables`.
pub type Var = usize;
/// Number of a block; jumps name it.
pub type Label = usize;

/// Headers, user metadata and standard metadata: the first variables, which live as long as a packet.
pub const HEADERS: Var = 0;
pub const METADATA: Var = 1;
pub const STANDARD: Var = 2;

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    pub ty: Ty,
}

/// A step from a place to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Field(usize),
    /// An element; outside of the stack reads give zero, and writes do nothing.
    Index(Box<Expr>),
    /// Whether a header is valid.
    Valid,
    /// How many elements of a stack are parsed.
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
    /// Of an integer, a bool or an enum, to the type of this expression.
    Cast(Box<Expr>),
    /// Bits from the highest to the lowest.
    Slice(Box<Expr>, u32, u32),
    /// The first with these bits replaced by the second.
    Insert(Box<Expr>, u32, u32, Box<Expr>),
    /// All parts of a struct, header (valid), tuple or stack.
    Parts(Vec<Expr>),
    /// Bits of the packet, so many behind the position of the parser.
    Packet(u64),
    /// Bits of the packet that are not parsed yet.
    Left,
    /// Bytes of the whole packet.
    Length,
    /// A hash of the data that were put together last, by its number in `HashAlgorithm`.
    Hash(Box<Expr>),
    /// The next random number of 64 bits.
    Random,
    /// An element of a register, zero outside of it.
    Register(usize, Box<Expr>),
    /// The colour that a cell of a meter gives the packet; the packet is metered by that. Green outside of it.
    Meter(usize, Box<Expr>),
    /// A value of the entry that a table has found: its place in bits.
    Argument(u64),
    /// Bits of the packet, so many behind the beginning of a header there: of zeros when it was not parsed.
    Field(Var, u64),
    /// The sum of values that follow each other, as checksums of the Internet have it (RFC 1071).
    Sum(Vec<Expr>),
    /// Where the packet came in.
    Port,
    /// Whether a value set has a member that fits these values.
    InSet(usize, Vec<Expr>),
}

/// What a program asks of the traffic manager.
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
    /// Jumps to its label go behind it.
    Block(Label, Vec<Statement>),
    /// Runs until something jumps out.
    Loop(Vec<Statement>),
    Jump(Label),
    /// States of a parser, from the first one on.
    Machine {
        number: usize,
        states: Vec<State>,
        start: usize,
        /// What happens when it passes too many states.
        timeout: Vec<Statement>,
    },
    /// To a state of a machine.
    Goto {
        machine: usize,
        state: usize,
    },
    /// The error that the parser ends with.
    Error(Expr),
    /// The packet cannot be processed; the part ends at once.
    Lose,
    Advance(Expr),
    /// A field of variable length is read from the packet: so many bits.
    ReadVarbit(Place, Expr),
    Append(Sink, Expr),
    /// Data to be hashed begin.
    BeginData,
    /// The data are reported to the control plane.
    Digest(usize),
    /// What follows the parsed headers becomes part of the data.
    AppendPayload,
    ChecksumError,
    Request {
        request: Request,
        value: Expr,
        list: Option<Expr>,
    },
    WriteRegister(usize, Expr, Expr),
    Count(usize, Expr),
    Apply(Apply),
    Cipher(Cipher),
    /// A header begins at the position of the parser, or is nowhere in the packet.
    Locate(Var, bool),
    /// No packet goes on before all others have come here. What is needed afterwards.
    Barrier(Vec<Var>),
    /// The packet ends here.
    Drop,
    /// The packet leaves by a port. Headers that are not listed were appended before.
    Send(Expr, Option<Vec<Emit>>),
}

/// A header that a packet leaves with.
#[derive(Clone, Debug)]
pub struct Emit {
    /// Without one it is always there.
    pub valid: Option<Expr>,
    /// Where it was parsed.
    pub base: Option<Var>,
    pub fields: Vec<EmitField>,
}

#[derive(Clone, Debug)]
pub struct EmitField {
    pub value: Expr,
    pub width: u32,
    /// It may differ from what was parsed.
    pub changed: bool,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: Arc<str>,
    pub body: Vec<Statement>,
}

/// A lookup and what follows it.
#[derive(Clone, Debug)]
pub struct Apply {
    pub table: usize,
    pub keys: Vec<Expr>,
    /// So many words of the key, the first ones, were hashed by the lookup before, which began with the same.
    pub hashed: u32,
    /// Set to whether there was an entry.
    pub hit: Option<Var>,
    /// Set to the place of the action in the table's list; 255 is none.
    pub chosen: Option<Var>,
    /// What the actions of the list do.
    pub actions: Vec<Vec<Statement>>,
    pub resume: Resume,
}

/// The payload of the packet, from a byte of it on, is encrypted or decrypted, together with those of other packets.
#[derive(Clone, Debug)]
pub struct Cipher {
    pub encrypts: bool,
    /// In bytes, as a word; key and initialization vector, of 128 bits.
    pub offset: Expr,
    pub key: Expr,
    pub iv: Expr,
    pub resume: Resume,
}

/// How a packet goes on where a stage ends, in a program of one part.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// What is needed afterwards.
    pub kept: Vec<Var>,
    /// How much is parsed, where that is known, and the headers that begin at known places; in bits. Variables with known values.
    pub position: Option<u64>,
    pub located: Vec<(Var, u64)>,
    pub known: Vec<(Var, Value)>,
    /// And variables that are fields of the packet, whose headers stay as they are until it leaves.
    pub fields: Vec<(Var, Expr)>,
}

#[derive(Clone, Debug)]
pub struct Register {
    pub path: String,
    pub object: usize,
    pub ty: Ty,
    pub size: usize,
}

/// Those of entries stand behind all others.
#[derive(Clone, Debug)]
pub struct Counter {
    pub path: String,
    pub object: usize,
    pub size: usize,
    /// It counts for the entries of this table.
    pub table: Option<usize>,
}

/// Those of entries stand behind all others.
#[derive(Clone, Debug)]
pub struct Meter {
    pub path: String,
    pub size: usize,
    /// Bytes are metered, and not packets.
    pub bytes: bool,
    /// It meters for the entries of this table.
    pub table: Option<usize>,
}

/// A set of values that the control plane fills, which a parser looks at.
#[derive(Clone, Debug)]
pub struct ValueSet {
    pub path: String,
    /// The instance of the parser, and its place there.
    pub owner: (usize, usize),
    pub size: u64,
    pub fields: Vec<Key>,
}

/// An action profile, or a selector, which has groups besides.
#[derive(Clone, Debug)]
pub struct Profile {
    pub path: String,
    pub object: usize,
    /// Members, and of a selector places in all groups, at most.
    pub size: u64,
    pub selector: bool,
}

/// What programs report to the control plane.
#[derive(Clone, Debug)]
pub struct Digest {
    pub name: String,
    pub ty: Ty,
    /// What the data consist of, one part behind the other.
    pub shape: Shape,
}

/// One of the six parts of the pipeline.
#[derive(Clone, Debug)]
pub struct Part {
    pub name: &'static str,
    /// As the program calls it.
    pub title: Arc<str>,
    pub body: Vec<Statement>,
}

/// A whole program.
pub struct Program {
    pub variables: Vec<Variable>,
    pub parts: Vec<Part>,
    pub tables: Vec<Table>,
    pub registers: Vec<Register>,
    pub counters: Vec<Counter>,
    pub meters: Vec<Meter>,
    pub profiles: Vec<Profile>,
    pub value_sets: Vec<ValueSet>,
    pub digests: Vec<Digest>,
    /// Calls that have no effect in compiled code.
    pub notes: Vec<String>,
}

/// A program as one part, for packets that go straight through it: see `optimise::fuse`.
pub struct Fused {
    pub program: Program,
    /// Packets pass each lookup in their order, since something sees it.
    pub ordered: bool,
    /// Variables that are needed after a lookup.
    pub kept: HashSet<Var>,
    /// Variables that are places in the packet.
    pub bases: HashSet<Var>,
}
