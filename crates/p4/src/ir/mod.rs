//! The intermediate representation: a program for one `main`, with everything that is called put in place of its call.
//!
//! Expressions have no effects; what has effects is a statement, in the order of the language. `return`, `exit` and
//! errors of parsers are jumps to the end of a block. Validity of headers and the position in header stacks are parts of
//! places like others.

mod show;
mod table;

use std::sync::Arc;

use crate::syntax::ast::{Binary, Unary};
use crate::types::Ty;
use crate::value::Value;

pub use table::{Action, Key, Match, Table, TableKind};

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
    /// A value of the entry that a table has found: its place in bits.
    Argument(u64),
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
    /// Set to whether there was an entry.
    pub hit: Option<Var>,
    /// Set to the place of the action in the table's list; 255 is none.
    pub chosen: Option<Var>,
    /// What the actions of the list do.
    pub actions: Vec<Vec<Statement>>,
}

#[derive(Clone, Debug)]
pub struct Register {
    pub path: String,
    pub object: usize,
    pub ty: Ty,
    pub size: usize,
}

#[derive(Clone, Debug)]
pub struct Counter {
    pub path: String,
    pub object: usize,
    pub size: usize,
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
    /// Calls that have no effect in compiled code.
    pub notes: Vec<String>,
}

impl Expr {
    pub fn read(place: Place) -> Self {
        Expr { ty: place.ty, kind: Kind::Read(place) }
    }

    pub fn constant(value: Value, ty: Ty) -> Self {
        Expr { kind: Kind::Const(value), ty }
    }

    /// Calls a function with the parts of this expression.
    pub fn parts(&self, each: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            Kind::Const(_) | Kind::Packet(_) | Kind::Left | Kind::Length | Kind::Random | Kind::Argument(_) => {}
            Kind::Read(place) => place.indices(each),
            Kind::Unary(_, inner)
            | Kind::Cast(inner)
            | Kind::Slice(inner, ..)
            | Kind::Hash(inner)
            | Kind::Register(_, inner) => each(inner),
            Kind::Binary(_, left, right) | Kind::Insert(left, _, _, right) => {
                each(left);
                each(right);
            }
            Kind::Choice(condition, yes, no) => {
                each(condition);
                each(yes);
                each(no);
            }
            Kind::Parts(parts) => parts.iter().for_each(each),
        }
    }
}

impl Place {
    pub fn variable(root: Var, ty: Ty) -> Self {
        Place { root, steps: Vec::new(), ty }
    }

    pub fn step(&self, step: Step, ty: Ty) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Place { root: self.root, steps, ty }
    }

    pub fn indices(&self, each: &mut dyn FnMut(&Expr)) {
        for step in &self.steps {
            if let Step::Index(index) = step {
                each(index);
            }
        }
    }
}

impl Statement {
    /// Calls a function with the expressions of this statement, not with those of statements in it.
    pub fn expressions(&self, each: &mut dyn FnMut(&Expr)) {
        match self {
            Statement::Set(place, value) | Statement::ReadVarbit(place, value) => {
                place.indices(each);
                each(value);
            }
            Statement::If(value, ..)
            | Statement::Error(value)
            | Statement::Advance(value)
            | Statement::Append(_, value)
            | Statement::Count(_, value) => each(value),
            Statement::WriteRegister(_, index, value) => {
                each(index);
                each(value);
            }
            Statement::Request { value, list, .. } => {
                each(value);
                if let Some(list) = list {
                    each(list);
                }
            }
            Statement::Apply(apply) => apply.keys.iter().for_each(each),
            Statement::Block(..)
            | Statement::Loop(_)
            | Statement::Jump(_)
            | Statement::Machine { .. }
            | Statement::Goto { .. }
            | Statement::Lose
            | Statement::BeginData
            | Statement::AppendPayload
            | Statement::ChecksumError => {}
        }
    }

    /// The lists of statements in this one.
    pub fn inner(&self) -> Vec<&[Statement]> {
        match self {
            Statement::If(_, then, otherwise) => vec![then, otherwise],
            Statement::Block(_, body) | Statement::Loop(body) => vec![body],
            Statement::Machine { states, timeout, .. } => {
                states.iter().map(|state| &*state.body).chain([&**timeout]).collect()
            }
            Statement::Apply(apply) => apply.actions.iter().map(|body| &**body).collect(),
            _ => Vec::new(),
        }
    }

    pub fn inner_mut(&mut self) -> Vec<&mut Vec<Statement>> {
        match self {
            Statement::If(_, then, otherwise) => vec![then, otherwise],
            Statement::Block(_, body) | Statement::Loop(body) => vec![body],
            Statement::Machine { states, timeout, .. } => {
                states.iter_mut().map(|state| &mut state.body).chain([timeout]).collect()
            }
            Statement::Apply(apply) => apply.actions.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}
