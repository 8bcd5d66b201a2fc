//! Verifier: checks that a program keeps the contract of the intermediate representation (see `ir`).
//!
//! The passes are run with it in debug builds and in tests. A violation is a bug of the compiler, which the verifier
//! reports where it arises instead of where the emitter stumbles over it.

mod expression;
mod fault;
mod flow;
mod objects;
mod statement;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use super::{Fused, Label, MachineId, Program, Statement, TableId, Var};

pub use fault::Fault;
use namehop_p4_lang::types::Types;
use storage::Storage;

/// A program that breaks the contract: a bug of the compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "internal error: the pass '{pass}' made an invalid program; please report this. In {place}{}: {fault}",
    at(.statement)
)]
pub struct Invalid {
    /// The pass that ran last.
    pub pass: &'static str,
    /// The part of the pipeline, and the blocks, states and actions in it, from outside to inside; or the table or
    /// other object.
    pub place: String,
    /// The first line of the statement; empty if the fault is not in one statement.
    pub statement: String,
    pub fault: Fault,
}

fn at(statement: &str) -> String {
    if statement.is_empty() { String::new() } else { format!(", at '{statement}'") }
}

/// Checks a program of six parts after a pass.
///
/// # Errors
/// Fails at the first violation.
pub fn verify(program: &Program, types: &Types, pass: &'static str) -> Result<(), Box<Invalid>> {
    Verifier::new(program, types, pass, None).program()
}

/// Checks a program of one part after a pass.
///
/// # Errors
/// Fails at the first violation.
pub fn verify_fused(fused: &Fused, types: &Types, pass: &'static str) -> Result<(), Box<Invalid>> {
    Verifier::new(&fused.program, types, pass, Some(&fused.bases)).program()
}

/// A step on the way from a part of the pipeline to a statement.
enum Enclosing {
    Block(Label),
    Loop,
    Branch(&'static str),
    State(String),
    Timeout(MachineId),
    Action(String),
}

impl fmt::Display for Enclosing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Enclosing::Block(label) => write!(f, "block {label}"),
            Enclosing::Loop => write!(f, "loop"),
            Enclosing::Branch(branch) => write!(f, "{branch}"),
            Enclosing::State(name) => write!(f, "state {name}"),
            Enclosing::Timeout(machine) => write!(f, "time-out of machine {machine}"),
            Enclosing::Action(name) => write!(f, "action {name}"),
        }
    }
}

type Check = Result<(), Fault>;

struct Verifier<'a> {
    program: &'a Program,
    types: &'a Types,
    pass: &'static str,
    /// In a program of one part: the variables that are positions in the packet.
    bases: Option<&'a HashSet<Var>>,
    /// Labels and machines of the blocks so far.
    labels: HashSet<Label>,
    machines: HashSet<MachineId>,
    /// Labels of the enclosing blocks, the number of states of the enclosing machines, and the table and the index of
    /// the enclosing action.
    open: Vec<Label>,
    states: Vec<(MachineId, usize)>,
    action: Option<(TableId, usize)>,
    /// Labels that a jump so far leads to.
    jumps: HashSet<Label>,
    path: Vec<Enclosing>,
}

impl<'a> Verifier<'a> {
    fn new(program: &'a Program, types: &'a Types, pass: &'static str, bases: Option<&'a HashSet<Var>>) -> Self {
        Verifier {
            program,
            types,
            pass,
            bases,
            labels: HashSet::new(),
            machines: HashSet::new(),
            open: Vec::new(),
            states: Vec::new(),
            action: None,
            jumps: HashSet::new(),
            path: Vec::new(),
        }
    }

    fn program(mut self) -> Result<(), Box<Invalid>> {
        self.objects()?;
        let program = self.program;
        for part in &program.parts {
            let ends = self.list(&part.body).map_err(|(fault, statement)| {
                let place: Vec<String> = self.path.iter().map(ToString::to_string).collect();
                let place = [&[format!("{} {}", part.name, part.title)], &place[..]].concat().join(", ");
                let statement = statement.map_or(String::new(), |statement| {
                    let text = self.program.show_statement(self.types, statement);
                    text.lines().next().unwrap_or_default().to_owned()
                });
                Box::new(Invalid { pass: self.pass, place, statement, fault })
            })?;
            if self.bases.is_some() && ends.continues {
                return Err(self.invalid(format!("{} {}", part.name, part.title), Fault::NoEnd));
            }
        }
        Ok(())
    }

    /// A fault that is not in a statement.
    fn invalid(&self, place: String, fault: Fault) -> Box<Invalid> {
        Box::new(Invalid { pass: self.pass, place, statement: String::new(), fault })
    }

    /// Returns the way in which values of a type are stored.
    fn storage(&self, ty: namehop_p4_lang::types::Ty) -> Storage {
        Storage::of(self.types, ty)
    }

    fn is_fused(&self) -> bool {
        self.bases.is_some()
    }
}

/// A fault, and the statement that has it.
type At<'s> = (Fault, Option<&'s Statement>);
