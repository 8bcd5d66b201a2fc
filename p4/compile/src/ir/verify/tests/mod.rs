//! For each rule of the verifier, a smallest program that breaks it.

mod expression;
mod flow;
mod objects;
mod statement;

use std::collections::HashSet;

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::{StructInfo, Ty, Type, Types};
use namehop_p4_lang::value::Value;

use super::{Fault, Invalid, verify, verify_fused};
use crate::ir::{
    Action, Cells, Expr, Fused, Id, IndexVec, Key, Kind, Label, Match, Part, Place, Program, Register, Statement,
    Table, Var, Variable,
};

/// A valid program of one part without statements, and the types that it uses.
struct Fixture {
    types: Types,
    byte: Ty,
    short: Ty,
    word: Ty,
    header: Ty,
    stack: Ty,
    program: Program,
}

impl Fixture {
    /// Headers are a stack of two headers with a byte and a short number, metadata is a byte, and standard metadata is
    /// a truth value. There is a table with a key of 8 bits and an action with 8 bits, and a register of bytes.
    fn new() -> Self {
        let mut types = Types::new();
        let [byte, short, word] = [8, 16, 64].map(|width| types.bits(width, false));
        let header = types.struct_type(StructInfo {
            name: "h".into(),
            kind: StructKind::Header,
            declaration: 0,
            arguments: Vec::new(),
            fields: vec![("a".into(), byte), ("b".into(), short)],
            field_lists: Vec::new(),
            matches: Vec::new(),
            controller: None,
        });
        let stack = types.of(Type::Stack(header, 2));
        let mut variables = IndexVec::new();
        for (name, ty) in [("headers", stack), ("metadata", byte), ("standard", Types::BOOL)] {
            variables.push(Variable { name: name.into(), ty });
        }
        let table = Table {
            path: "t".into(),
            owner: (0, 0),
            keys: vec![Key { name: "k".into(), kind: Match::Exact, width: 8, signed: false }],
            actions: vec![Action { name: "act".into(), arguments: vec![8] }],
            size: 1,
            cells: Cells::default(),
            profile: None,
            members: None,
            members_of: None,
        };
        let register = Register { path: "r".into(), object: 0, ty: byte, size: 1 };
        let program = Program {
            variables,
            parts: vec![Part { name: "ingress", title: "I".into(), body: Vec::new() }],
            tables: [table].into_iter().collect(),
            registers: [register].into_iter().collect(),
            counters: IndexVec::new(),
            meters: IndexVec::new(),
            profiles: IndexVec::new(),
            value_sets: IndexVec::new(),
            digests: IndexVec::new(),
            notes: Vec::new(),
        };
        Fixture { types, byte, short, word, header, stack, program }
    }

    /// What is wrong with the program with these statements.
    fn check(mut self, body: Vec<Statement>) -> Result<(), Fault> {
        self.program.parts[0].body = body;
        verify(&self.program, &self.types, "test").map_err(|invalid| invalid.fault)
    }

    /// What is wrong with the program with these statements as a program of one part. The last variable is a position.
    fn check_fused(mut self, body: Vec<Statement>) -> Result<(), Fault> {
        self.program.parts[0].body = body;
        let base = Var::new(self.program.variables.len() - 1);
        let bases = HashSet::from([base]);
        let kept = HashSet::new();
        let fused = Fused { program: self.program, ordered: false, headers: Vec::new(), kept, bases };
        verify_fused(&fused, &self.types, "test").map_err(|invalid| invalid.fault)
    }

    fn number(&self, value: u64, ty: Ty) -> Expr {
        Expr::constant(Value::Int(value.into()), ty)
    }

    fn byte(&self) -> Expr {
        self.number(1, self.byte)
    }

    fn metadata(&self) -> Place {
        Place::variable(Var::METADATA, self.byte)
    }

    /// Assigns a value to the metadata.
    fn set(&self, value: Expr) -> Vec<Statement> {
        vec![Statement::Set(self.metadata(), value)]
    }
}

fn expr(kind: Kind, ty: Ty) -> Expr {
    Expr { kind, ty }
}

fn truth() -> Expr {
    Expr::constant(Value::Bool(true), Types::BOOL)
}

fn storage(what: &'static str, expected: &str, found: &str) -> Result<(), Fault> {
    Err(Fault::Storage { what, expected: expected.into(), found: found.into() })
}

#[test]
fn a_valid_program_passes() {
    let fixture = Fixture::new();
    let body = fixture.set(fixture.byte());
    assert_eq!(fixture.check(body), Ok(()));
}

#[test]
fn the_error_names_the_pass_the_block_and_the_statement() {
    let mut fixture = Fixture::new();
    let wrong = fixture.set(fixture.number(1, fixture.short));
    let label = Label::new(7);
    fixture.program.parts[0].body = vec![Statement::Block(label, vec![Statement::If(truth(), wrong, Vec::new())])];
    let invalid: Invalid = *verify(&fixture.program, &fixture.types, "fold").expect_err("the types differ");
    assert_eq!(
        (invalid.pass, &*invalid.place, &*invalid.statement),
        ("fold", "ingress I, block 7, then", "metadata.1 = 1")
    );
    let text = invalid.to_string();
    assert!(text.contains("'fold'") && text.contains("block 7") && text.contains("bit<16>"), "{text}");
}
