//! Replaces computations by values that are known at each point of a program: variables with a single value, branches
//! that are always or never taken, and the positions of headers and of the parser.

use std::collections::{HashMap, HashSet};

use namehop_p4_lang::syntax::{Binary, Unary};
use namehop_p4_lang::types::Types;
use namehop_p4_lang::value::Value;

use super::{fold, visit};
use crate::ir::{Emit, Expr, Kind, Label, Program, Resume, Statement, Var};

pub fn settle(program: &mut Program, types: &Types) {
    let mut body = std::mem::take(&mut program.parts[0].body);
    let mut settler = Settler { program, types, jumps: HashMap::new() };
    settler.list(&mut body, Known { position: Some(0), ..Known::default() });
    program.parts[0].body = body;
}

/// What is known at a point of the program.
#[derive(Clone, Default)]
struct Known {
    values: HashMap<Var, Value>,
    /// Variables that are fields of the packet.
    fields: HashMap<Var, Expr>,
    /// Start positions of headers, in bits.
    bases: HashMap<Var, u64>,
    /// The parsed length, in bits.
    position: Option<u64>,
}

impl Known {
    /// Keeps only what is also known in `other`.
    fn join(&mut self, other: &Known) {
        self.values.retain(|variable, value| other.values.get(variable) == Some(value));
        self.bases.retain(|base, place| other.bases.get(base) == Some(place));
        self.fields.retain(|variable, field| other.fields.get(variable).is_some_and(|other| same_field(field, other)));
        if self.position != other.position {
            self.position = None;
        }
    }

    fn forget(&mut self, variable: Var) {
        self.values.remove(&variable);
        self.bases.remove(&variable);
        self.fields.remove(&variable);
        self.fields.retain(|_, field| !matches!(field.kind, Kind::Field(base, _) if base == variable));
    }

    /// Records what a packet that continues here need not have saved.
    fn note(&self, resume: &mut Resume) {
        resume.position = self.position;
        resume.located = self.bases.iter().map(|(base, place)| (*base, *place)).collect();
        resume.located.sort_unstable();
        resume.known = self.values.iter().map(|(variable, value)| (*variable, value.clone())).collect();
        resume.known.sort_unstable_by_key(|(variable, _)| *variable);
        resume.fields = self.fields.iter().map(|(variable, field)| (*variable, field.clone())).collect();
        resume.fields.sort_unstable_by_key(|(variable, _)| *variable);
    }

    /// Adds what follows from a condition being true or false.
    fn assume(&mut self, condition: &Expr, truth: bool) {
        match &condition.kind {
            Kind::Read(place) if place.steps.is_empty() && place.ty == Types::BOOL => {
                self.values.insert(place.root, Value::Bool(truth));
            }
            Kind::Unary(Unary::Not, inner) => self.assume(inner, !truth),
            Kind::Binary(Binary::And, left, right) if truth => {
                self.assume(left, true);
                self.assume(right, true);
            }
            Kind::Binary(Binary::Or, left, right) if !truth => {
                self.assume(left, false);
                self.assume(right, false);
            }
            _ => {}
        }
    }
}

struct Settler<'a> {
    program: &'a Program,
    types: &'a Types,
    /// What is known at jumps to the enclosing blocks.
    jumps: HashMap<Label, Option<Known>>,
}

impl Settler<'_> {
    /// Processes a list. Returns what is known at its end, or `None` if the end is never reached.
    fn list(&mut self, list: &mut Vec<Statement>, known: Known) -> Option<Known> {
        let mut known = Some(known);
        for mut statement in std::mem::take(list) {
            // Statements after a jump are never reached.
            let before = known?;
            self.replace(&mut statement, &before);
            if let Statement::If(condition, then, otherwise) = &mut statement
                && let Kind::Const(value) = &condition.kind
            {
                let mut taken = std::mem::take(if value.truth() { then } else { otherwise });
                known = self.list(&mut taken, before);
                list.append(&mut taken);
                continue;
            }
            known = self.statement(&mut statement, before);
            list.push(statement);
        }
        known
    }

    fn replace(&self, statement: &mut Statement, known: &Known) {
        statement.change(&mut |expr| {
            if let Kind::Read(place) = &expr.kind
                && place.steps.is_empty()
                && let Some(value) = known.values.get(&place.root)
                && self.program.variables[place.root].ty == expr.ty
            {
                expr.kind = Kind::Const(value.clone());
            } else if let Some(kind) = fold::folded(expr, self.types) {
                expr.kind = kind;
            }
        });
    }

    fn statement(&mut self, statement: &mut Statement, mut known: Known) -> Option<Known> {
        match statement {
            Statement::Set(place, value) => {
                known.forget(place.root);
                if place.steps.is_empty()
                    && let Kind::Const(value @ (Value::Bool(_) | Value::Int(_) | Value::Member(_))) = &value.kind
                {
                    known.values.insert(place.root, value.clone());
                }
                if place.steps.is_empty() && value.ty == place.ty && matches!(value.kind, Kind::Field(..)) {
                    known.fields.insert(place.root, value.clone());
                }
            }
            Statement::If(condition, then, otherwise) => {
                let mut other = known.clone();
                known.assume(condition, true);
                other.assume(condition, false);
                let ends = [self.list(then, known), self.list(otherwise, other)];
                return ends.into_iter().flatten().reduce(joined);
            }
            Statement::Block(label, body) => {
                let outer = self.jumps.insert(*label, None);
                let end = self.list(body, known);
                let jumps = self.jumps.remove(label).flatten();
                if let Some(outer) = outer {
                    self.jumps.insert(*label, outer);
                }
                return [end, jumps].into_iter().flatten().reduce(joined);
            }
            Statement::Jump(label) => {
                let before = self.jumps.get_mut(label)?;
                *before = Some(match before.take() {
                    Some(before) => joined(before, known),
                    None => known,
                });
                return None;
            }
            Statement::Loop(_) | Statement::Machine { .. } => {
                self.forget_all_set_in(statement, &mut known);
                for inner in statement.inner_mut() {
                    self.list(inner, known.clone());
                }
                // Only jumps leave a loop.
                return None;
            }
            Statement::Apply(apply) => {
                known.note(&mut apply.resume);
                for variable in [apply.hit, apply.chosen].into_iter().flatten() {
                    known.forget(variable);
                }
                // A key that matches no entry may have no action.
                let ends: Vec<Known> =
                    apply.actions.iter_mut().filter_map(|action| self.list(action, known.clone())).collect();
                known = ends.into_iter().fold(known, joined);
            }
            Statement::Cipher(cipher) => known.note(&mut cipher.resume),
            Statement::Locate(base, here) => {
                known.forget(*base);
                if let (true, Some(position)) = (*here, known.position) {
                    known.bases.insert(*base, position);
                }
            }
            Statement::Advance(bits) => {
                let bits = if let Kind::Const(value) = &bits.kind { Some(value.number()) } else { None };
                known.position = known.position.zip(bits).and_then(|(position, bits)| position.checked_add(bits));
            }
            Statement::ReadVarbit(place, _) => {
                known.forget(place.root);
                known.position = None;
            }
            Statement::Send(_, headers) => {
                let is_false = |valid: &Expr| matches!(&valid.kind, Kind::Const(value) if !value.truth());
                let gone = |header: &Emit| header.valid.as_ref().is_some_and(is_false);
                let sure = |header: &Emit| matches!(&header.valid, Some(Expr { kind: Kind::Const(_), .. }));
                for headers in headers.iter_mut() {
                    headers.retain(|header| !gone(header));
                    for header in headers.iter_mut().filter(|header| sure(header)) {
                        header.valid = None;
                    }
                }
                return None;
            }
            Statement::Goto { .. } | Statement::Lose | Statement::Drop => return None,
            _ => {}
        }
        Some(known)
    }

    /// Forgets variables that are set in a loop, which may already have run.
    fn forget_all_set_in(&self, statement: &Statement, known: &mut Known) {
        let mut set = HashSet::new();
        visit::statements(std::slice::from_ref(statement), &mut |statement| {
            visit::variables(statement, &mut |variable, reads| {
                if !reads {
                    set.insert(variable);
                }
            });
            if matches!(statement, Statement::Advance(_) | Statement::ReadVarbit(..)) {
                known.position = None;
            }
        });
        set.into_iter().for_each(|variable| known.forget(variable));
    }
}

fn same_field(one: &Expr, other: &Expr) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Field(base, offset), Kind::Field(other, place)) => (base, offset) == (other, place),
        _ => false,
    }
}

fn joined(mut one: Known, other: Known) -> Known {
    one.join(&other);
    one
}
