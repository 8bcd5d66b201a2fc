//! Statements.

use namehop_p4_lang::syntax::Binary;
use namehop_p4_lang::tree::{self, Statement as Tree, has_effects};
use namehop_p4_lang::types::{Type, Types};
use namehop_p4_lang::value::Value;

use super::{Lower, Lowerer};
use crate::ir::{Expr, Kind, Label, Place, Statement, Step};

impl<'p> Lowerer<'p> {
    pub(super) fn statements(&mut self, list: &'p [Tree]) -> Lower<()> {
        for statement in list {
            self.statement(statement)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'p Tree) -> Lower<()> {
        match statement {
            Tree::Reset(variable, ty) => {
                let place = self.variable_place(*variable)?;
                self.set(place, self.zero(*ty))
            }
            Tree::Assign { target, operator, value } => {
                let place = self.target(target, has_effects(value))?;
                let value = match operator {
                    None => self.expression(value)?,
                    Some(operator) => {
                        let before = self.load(&place);
                        let before = if has_effects(value) { self.keep(before)? } else { before };
                        let value = self.expression(value)?;
                        self.binary(*operator, before, value, target.ty)
                    }
                };
                self.store(&place, value)
            }
            Tree::Call(call) => self.expression(call).map(drop),
            Tree::If { condition, then, otherwise } => {
                let condition = self.expression(condition)?;
                let then = self.list(|lowerer| lowerer.statements(then))?;
                let otherwise = self.list(|lowerer| lowerer.statements(otherwise))?;
                self.push(Statement::If(condition, then, otherwise))
            }
            Tree::Block(inner) => self.statements(inner),
            Tree::Return(value) => {
                if let Some(value) = value {
                    let value = self.expression(value)?;
                    if let Some(result) = self.scope.result.clone() {
                        self.set(result, value)?;
                    }
                }
                let returns = self.scope.returns;
                self.push(Statement::Jump(returns))
            }
            Tree::Exit => self.stop(),
            Tree::Break | Tree::Continue => {
                let Some((leave, next)) = self.scope.loops.last().copied() else {
                    return self.refuse("this statement is outside of a loop");
                };
                self.push(Statement::Jump(if matches!(statement, Tree::Break) { leave } else { next }))
            }
            Tree::SwitchAction { call, cases } => {
                let (_, chosen) = self.apply_table(call)?;
                let labels = cases.iter().map(|(labels, body)| {
                    let labels = labels.iter().map(|label| label.map(|label| Value::Int(label.into()))).collect();
                    (labels, &**body)
                });
                self.cases(&chosen, labels.collect())
            }
            Tree::SwitchValue { value, cases } => {
                let value = self.expression(value)?;
                let value = self.keep(value)?;
                self.cases(&value, cases.iter().map(|(labels, body)| (labels.clone(), &**body)).collect())
            }
            Tree::For { init, condition, update, body } => {
                self.statements(init)?;
                self.repeat(|lowerer, leave| {
                    let condition = lowerer.expression(condition)?;
                    lowerer.push(Statement::If(condition, Vec::new(), vec![Statement::Jump(leave)]))?;
                    lowerer.round(body, leave)?;
                    lowerer.statements(update)
                })
            }
            Tree::ForRange { target, first, last, body } => self.range(target, first, last, body),
            Tree::ForEach { target, collection, body } => self.each(target, collection, body),
        }
    }

    /// Runs the first case with an equal label, or without labels.
    fn cases(&mut self, value: &Expr, cases: Vec<(Vec<Option<Value>>, &'p [Tree])>) -> Lower<()> {
        let end = self.label();
        let list = self.list(|lowerer| {
            for (labels, body) in cases {
                let mut condition = lowerer.truth(false);
                for label in labels {
                    let fits = match label {
                        None => lowerer.truth(true),
                        Some(label) => {
                            let label = Expr::constant(label, value.ty);
                            lowerer.binary(Binary::Equal, value.clone(), label, Types::BOOL)
                        }
                    };
                    condition = lowerer.binary(Binary::Or, condition, fits, Types::BOOL);
                }
                let then = lowerer.list(|lowerer| {
                    lowerer.statements(body)?;
                    lowerer.push(Statement::Jump(end))
                })?;
                lowerer.push(Statement::If(condition, then, Vec::new()))?;
            }
            Ok(())
        })?;
        self.push(Statement::Block(end, list))
    }

    /// A loop; its body leaves it by a jump to the end.
    fn repeat(&mut self, body: impl FnOnce(&mut Self, Label) -> Lower<()>) -> Lower<()> {
        let leave = self.label();
        let list = self.list(|lowerer| body(lowerer, leave))?;
        self.push(Statement::Block(leave, vec![Statement::Loop(list)]))
    }

    /// The body of a loop; `continue` jumps to its end.
    fn round(&mut self, body: &'p [Tree], leave: Label) -> Lower<()> {
        let next = self.label();
        self.scope.loops.push((leave, next));
        let list = self.list(|lowerer| lowerer.statements(body));
        self.scope.loops.pop();
        self.push(Statement::Block(next, list?))
    }

    fn range(
        &mut self,
        target: &'p tree::Expr,
        first: &'p tree::Expr,
        last: &'p tree::Expr,
        body: &'p [Tree],
    ) -> Lower<()> {
        let first = self.expression(first)?;
        let next = self.temporary("next", target.ty);
        self.set(next.clone(), first)?;
        let last = self.expression(last)?;
        let last = self.keep(last)?;
        let next = Expr::read(next);
        let some = self.binary(Binary::LessEqual, next.clone(), last.clone(), Types::BOOL);
        let rounds = self.list(|lowerer| {
            lowerer.repeat(|lowerer, leave| {
                let place = lowerer.target(target, false)?;
                lowerer.store(&place, next.clone())?;
                lowerer.round(body, leave)?;
                // Compare before incrementing, because the last value may be the largest of its type.
                let done = lowerer.binary(Binary::Equal, next.clone(), last, Types::BOOL);
                lowerer.push(Statement::If(done, vec![Statement::Jump(leave)], Vec::new()))?;
                let one = lowerer.number(1, target.ty);
                let more = lowerer.binary(Binary::Add, next.clone(), one, target.ty);
                let Kind::Read(place) = next.kind else { return Ok(()) };
                lowerer.set(place, more)
            })
        })?;
        self.push(Statement::If(some, rounds, Vec::new()))
    }

    fn each(&mut self, target: &'p tree::Expr, collection: &'p tree::Expr, body: &'p [Tree]) -> Lower<()> {
        let ty = collection.ty;
        let value = self.expression(collection)?;
        if let Type::Stack(element, size) = self.types().get(ty) {
            let (element, size) = (*element, u64::from(*size));
            let elements = self.temporary("elements", ty);
            self.set(elements.clone(), value)?;
            let number = self.temporary("number", self.common.index);
            self.set(number.clone(), self.index(0))?;
            let read = Expr::read(number.clone());
            return self.repeat(|lowerer, leave| {
                let inside = lowerer.binary(Binary::Less, read.clone(), lowerer.index(size), Types::BOOL);
                lowerer.push(Statement::If(inside, Vec::new(), vec![Statement::Jump(leave)]))?;
                let place = lowerer.target(target, false)?;
                let step = Step::Index(Box::new(read.clone()));
                lowerer.store(&place, Expr::read(elements.step(step, element)))?;
                lowerer.round(body, leave)?;
                let more = lowerer.binary(Binary::Add, read, lowerer.index(1), lowerer.common.index);
                lowerer.set(number, more)
            });
        }
        let elements = match (value.kind, self.types().components(ty)) {
            (Kind::Parts(parts), _) => parts,
            (Kind::Const(Value::Struct(values)), Some(types)) => {
                values.into_iter().zip(types).map(|(value, ty)| Expr::constant(value, ty)).collect()
            }
            (Kind::Const(Value::Struct(values)), None) => {
                values.into_iter().map(|value| Expr::constant(value, target.ty)).collect()
            }
            (Kind::Read(place), Some(types)) => {
                let step = |(number, ty)| Expr::read(place.step(Step::Field(number), ty));
                types.into_iter().enumerate().map(step).collect()
            }
            _ => return self.refuse("the elements of this expression are unknown"),
        };
        let mut kept = Vec::new();
        for element in elements {
            kept.push(self.keep(element)?);
        }
        let leave = self.label();
        let list = self.list(|lowerer| {
            for element in kept {
                let place = lowerer.target(target, false)?;
                lowerer.store(&place, element)?;
                lowerer.round(body, leave)?;
            }
            Ok(())
        })?;
        self.push(Statement::Block(leave, list))
    }

    /// `push_front` and `pop_front`
    pub(super) fn shift(&mut self, stack: &'p tree::Expr, count: u32, push: bool) -> Lower<()> {
        let target = self.target(stack, true)?;
        let Type::Stack(element, size) = self.types().get(stack.ty) else { return self.refuse("not a header stack") };
        let (element, size) = (*element, u64::from(*size));
        let count = u64::from(count).min(size);
        let place = |lowerer: &Self, number: u64| -> Place {
            target.place.step(Step::Index(Box::new(lowerer.index(number))), element)
        };
        let kept = size - count;
        for number in 0..kept {
            let (from, to) = if push { (kept - 1 - number, size - 1 - number) } else { (number + count, number) };
            let value = Expr::read(place(self, from));
            self.set(place(self, to), value)?;
        }
        for number in 0..count {
            let to = place(self, if push { number } else { kept + number });
            self.set(to, self.zero(element))?;
        }
        let next = target.place.step(Step::Next, self.common.index);
        let before = Expr::read(next.clone());
        let (limit, operator) = if push { (kept, Binary::Add) } else { (count, Binary::Sub) };
        let inside = if push {
            self.binary(Binary::Less, before.clone(), self.index(limit), Types::BOOL)
        } else {
            self.binary(Binary::Greater, before.clone(), self.index(limit), Types::BOOL)
        };
        let moved = self.binary(operator, before, self.index(count), self.common.index);
        let otherwise = self.index(if push { size } else { 0 });
        let kind = Kind::Choice(Box::new(inside), Box::new(moved), Box::new(otherwise));
        self.set(next, Expr { kind, ty: self.common.index })
    }
}
