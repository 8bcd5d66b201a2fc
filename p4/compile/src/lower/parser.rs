//! Parsers: the states become a machine.

use namehop_p4_lang::syntax::Binary;
use namehop_p4_lang::tree::{self, Class, ExprKind, Next, Parser, Transition, has_effects};
use namehop_p4_lang::types::Types;

use super::table::MAX_RANGE;
use super::{Lower, Lowerer};
use crate::ir::{self, Expr, Id, IndexVec, Kind, MachineId, State, StateId, Statement};

impl<'p> Lowerer<'p> {
    pub(super) fn machine(&mut self, parser: &'p Parser) -> Lower<()> {
        let start = match parser.start {
            Next::State(start) => StateId::new(start),
            next => return self.go(next),
        };
        self.machines += 1;
        let number = MachineId::new(self.machines);
        self.scope.machine = Some(number);
        let mut states = IndexVec::new();
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
                let Some(machine) = self.scope.machine else { return self.refuse("a state is missing") };
                self.push(Statement::Goto { machine, state: StateId::new(state) })
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
            let fits = match &sets[..] {
                // One value set for all values.
                [tree::Expr { kind: ExprKind::ValueSet(set), .. }] => self.in_value_set(*set, values.clone())?,
                _ => {
                    let mut fits = self.truth(true);
                    for (value, set) in values.iter().zip(sets) {
                        let one = self.is_in(value.clone(), set)?;
                        fits = self.binary(Binary::And, fits, one, Types::BOOL);
                    }
                    fits
                }
            };
            let then = self.list(|lowerer| lowerer.go(*next))?;
            self.push(Statement::If(fits, then, Vec::new()))?;
        }
        self.reject("NoMatch")
    }

    fn in_value_set(&mut self, place: usize, values: Vec<Expr>) -> Lower<Expr> {
        let owner = (self.scope.unit, place);
        let number = match self.value_sets.find(|set| set.owner == owner) {
            Some(number) => number,
            None => {
                let set = self.value_set(owner)?;
                self.value_sets.push(set)
            }
        };
        Ok(Expr { kind: Kind::InSet(number, values), ty: Types::BOOL })
    }

    fn value_set(&mut self, owner: (usize, usize)) -> Lower<ir::ValueSet> {
        let Some(unit) = self.switch.unit(owner.0) else { return self.refuse("a value set is missing") };
        let Class::Parser(parser) = unit.class() else { return self.refuse("value sets can be used only in parsers") };
        let set = &self.program.parsers[*parser].value_sets[owner.1];
        let mut fields = Vec::new();
        for (name, ty, kind) in &set.fields {
            let (width, signed) = self.packed_width(*ty)?;
            let kind = match &**kind {
                "exact" => ir::Match::Exact,
                "lpm" => ir::Match::Lpm,
                "range" if width > MAX_RANGE || signed => {
                    return self.refuse(format!(
                        "value sets with ranges that are signed or have more than {MAX_RANGE} bits cannot be compiled"
                    ));
                }
                "range" => ir::Match::Range,
                _ => ir::Match::Ternary,
            };
            fields.push(ir::Key { name: name.clone(), kind, width, signed });
        }
        let path = match &set.naming.name {
            Some(name) if name.starts_with('.') => name[1..].to_owned(),
            Some(name) => format!("{}.{name}", unit.path),
            None => format!("{}.{}", unit.path, set.name),
        };
        Ok(ir::ValueSet { path, owner, size: set.size, fields })
    }

    fn is_in(&mut self, value: Expr, set: &'p tree::Expr) -> Lower<Expr> {
        Ok(match &set.kind {
            ExprKind::DontCare => self.truth(true),
            ExprKind::ValueSet(set) => self.in_value_set(*set, vec![value])?,
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
