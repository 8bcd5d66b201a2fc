//! Parsers: their states become a machine.

use super::expression::has_effects;
use super::{Lower, Lowerer};
use crate::ir::{Expr, State, Statement};
use crate::syntax::ast::Binary;
use crate::tree::{self, ExprKind, Next, Parser, Transition};
use crate::types::Types;

impl<'p> Lowerer<'p> {
    pub(super) fn machine(&mut self, parser: &'p Parser) -> Lower<()> {
        let start = match parser.start {
            Next::State(start) => start,
            next => return self.go(next),
        };
        self.machines += 1;
        let number = self.machines;
        self.scope.machine = number;
        let mut states = Vec::new();
        for state in &parser.states {
            let body = self.list(|lowerer| {
                lowerer.statements(&state.body)?;
                lowerer.transition(&state.next)
            })?;
            states.push(State { name: state.name.clone(), body });
        }
        let timeout = self.list(|lowerer| lowerer.reject("ParserTimeout"))?;
        self.push(Statement::Machine { number, states, start, timeout })
    }

    fn go(&mut self, next: Next) -> Lower<()> {
        match next {
            Next::Accept => {
                let returns = self.scope.returns;
                self.push(Statement::Jump(returns))
            }
            Next::Reject => self.reject("NoError"),
            Next::State(state) => {
                let machine = self.scope.machine;
                self.push(Statement::Goto { machine, state })
            }
        }
    }

    fn transition(&mut self, transition: &'p Transition) -> Lower<()> {
        let (keys, cases) = match transition {
            Transition::To(next) => return self.go(*next),
            Transition::Select { keys, cases } => (keys, cases),
        };
        let mut values = Vec::with_capacity(keys.len());
        for (place, key) in keys.iter().enumerate() {
            let value = self.expression(key)?;
            let later = keys[place + 1..].iter().any(has_effects);
            values.push(if later { self.keep(value)? } else { value });
        }
        for (sets, next) in cases {
            // Value sets are empty.
            if sets.iter().any(|set| matches!(set.kind, ExprKind::ValueSet(_))) {
                continue;
            }
            let mut fits = self.truth(true);
            for (value, set) in values.iter().zip(sets) {
                let one = self.is_in(value.clone(), set)?;
                fits = self.binary(Binary::And, fits, one, Types::BOOL);
            }
            let then = self.list(|lowerer| lowerer.go(*next))?;
            self.push(Statement::If(fits, then, Vec::new()))?;
        }
        self.reject("NoMatch")
    }

    fn is_in(&mut self, value: Expr, set: &'p tree::Expr) -> Lower<Expr> {
        Ok(match &set.kind {
            ExprKind::DontCare => self.truth(true),
            ExprKind::Mask(left, mask) => {
                let (left, mask) = (self.expression(left)?, self.expression(mask)?);
                let ty = mask.ty;
                let value = self.cast(value, ty)?;
                let value = self.binary(Binary::BitAnd, value, mask.clone(), ty);
                let left = self.binary(Binary::BitAnd, left, mask, ty);
                self.binary(Binary::Equal, value, left, Types::BOOL)
            }
            ExprKind::Range(first, last) => {
                let (first, last) = (self.expression(first)?, self.expression(last)?);
                let from = self.binary(Binary::GreaterEqual, value.clone(), first, Types::BOOL);
                let to = self.binary(Binary::LessEqual, value, last, Types::BOOL);
                self.binary(Binary::And, from, to, Types::BOOL)
            }
            _ => {
                let set = self.expression(set)?;
                self.binary(Binary::Equal, value, set, Types::BOOL)
            }
        })
    }
}
