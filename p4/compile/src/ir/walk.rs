//! Constructors and traversals of expressions and statements.

use namehop_p4_lang::types::Ty;
use namehop_p4_lang::value::Value;

use super::{Expr, Kind, Place, Statement, Step, Var};

impl Expr {
    pub fn read(place: Place) -> Self {
        Expr { ty: place.ty, kind: Kind::Read(place) }
    }

    pub fn constant(value: Value, ty: Ty) -> Self {
        Expr { kind: Kind::Const(value), ty }
    }

    /// Calls a function with the direct parts of this expression.
    pub fn parts(&self, each: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            Kind::Const(_)
            | Kind::Packet(_)
            | Kind::Left
            | Kind::Length
            | Kind::Random
            | Kind::Argument(_)
            | Kind::Field(..)
            | Kind::Port => {}
            Kind::Read(place) => place.indices(each),
            Kind::Unary(_, inner)
            | Kind::Cast(inner)
            | Kind::Slice(inner, ..)
            | Kind::Hash(inner)
            | Kind::Register(_, inner)
            | Kind::Meter(_, inner) => each(inner),
            Kind::Binary(_, left, right) | Kind::Insert(left, _, _, right) => {
                each(left);
                each(right);
            }
            Kind::Choice(condition, yes, no) => {
                each(condition);
                each(yes);
                each(no);
            }
            Kind::Parts(parts) | Kind::Sum(parts) | Kind::InSet(_, parts) => parts.iter().for_each(each),
        }
    }

    /// Calls a function with all parts of this expression, and then with the expression.
    pub fn change(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            Kind::Const(_)
            | Kind::Packet(_)
            | Kind::Left
            | Kind::Length
            | Kind::Random
            | Kind::Argument(_)
            | Kind::Field(..)
            | Kind::Port => {}
            Kind::Read(place) => place.change_indices(each),
            Kind::Unary(_, inner)
            | Kind::Cast(inner)
            | Kind::Slice(inner, ..)
            | Kind::Hash(inner)
            | Kind::Register(_, inner)
            | Kind::Meter(_, inner) => inner.change(each),
            Kind::Binary(_, left, right) | Kind::Insert(left, _, _, right) => {
                left.change(each);
                right.change(each);
            }
            Kind::Choice(condition, yes, no) => {
                condition.change(each);
                yes.change(each);
                no.change(each);
            }
            Kind::Parts(parts) | Kind::Sum(parts) | Kind::InSet(_, parts) => {
                parts.iter_mut().for_each(|part| part.change(each));
            }
        }
        each(self);
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

    /// True if two places are known to have no part in common.
    pub fn disjoint(&self, other: &Place) -> bool {
        if self.root != other.root {
            return true;
        }
        for (one, other) in self.steps.iter().zip(&other.steps) {
            match (one, other) {
                (Step::Field(one), Step::Field(other)) if one != other => return true,
                (Step::Index(one), Step::Index(other)) => match (&one.kind, &other.kind) {
                    (Kind::Const(one), Kind::Const(other)) if one != other => return true,
                    (Kind::Const(_), Kind::Const(_)) => {}
                    _ => return false,
                },
                (one, other) if one == other => {}
                _ => return false,
            }
        }
        false
    }

    pub fn change_indices(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        for step in &mut self.steps {
            if let Step::Index(index) = step {
                index.change(each);
            }
        }
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
    /// Calls a function with the expressions of this statement, but not of nested statements.
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
            Statement::Cipher(cipher) => [&cipher.offset, &cipher.key, &cipher.iv].into_iter().for_each(each),
            Statement::Send(port, headers) => {
                each(port);
                for header in headers.iter().flatten() {
                    header.valid.iter().for_each(&mut *each);
                    header.fields.iter().for_each(|field| each(&field.value));
                }
            }
            Statement::Block(..)
            | Statement::Loop(_)
            | Statement::Jump(_)
            | Statement::Machine { .. }
            | Statement::Goto { .. }
            | Statement::Lose
            | Statement::BeginData
            | Statement::Digest(_)
            | Statement::AppendPayload
            | Statement::ChecksumError
            | Statement::Locate(..)
            | Statement::Barrier(_)
            | Statement::Drop => {}
        }
    }

    /// Calls a function with all expressions of this statement and their parts, but not of nested statements.
    pub fn change(&mut self, each: &mut dyn FnMut(&mut Expr)) {
        match self {
            Statement::Set(place, value) | Statement::ReadVarbit(place, value) => {
                place.change_indices(each);
                value.change(each);
            }
            Statement::If(value, ..)
            | Statement::Error(value)
            | Statement::Advance(value)
            | Statement::Append(_, value)
            | Statement::Count(_, value) => value.change(each),
            Statement::WriteRegister(_, index, value) => {
                index.change(each);
                value.change(each);
            }
            Statement::Request { value, list, .. } => {
                value.change(each);
                if let Some(list) = list {
                    list.change(each);
                }
            }
            Statement::Apply(apply) => apply.keys.iter_mut().for_each(|key| key.change(each)),
            Statement::Cipher(cipher) => {
                [&mut cipher.offset, &mut cipher.key, &mut cipher.iv].into_iter().for_each(|expr| expr.change(each));
            }
            Statement::Send(port, headers) => {
                port.change(each);
                for header in headers.iter_mut().flatten() {
                    header.valid.iter_mut().for_each(|valid| valid.change(each));
                    header.fields.iter_mut().for_each(|field| field.value.change(each));
                }
            }
            _ => {}
        }
    }

    /// True if a stage ends here: the next statement runs after all other packets have arrived here.
    pub fn ends_stage(&self) -> bool {
        matches!(self, Statement::Apply(_) | Statement::Cipher(_))
    }

    /// The lists of nested statements.
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
