//! Places: where values are read and written.

use namehop_p4_lang::syntax::{Binary, StructKind};
use namehop_p4_lang::tree::{self, ExprKind, Variable};
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;

use super::{Lower, Lowerer};
use crate::ir::{Expr, Kind, Place, Statement, Step};

/// A place that is written to, or some bits of it.
#[derive(Clone, Debug)]
pub struct Target {
    pub place: Place,
    /// The highest and the lowest bit.
    pub bits: Option<(u32, u32)>,
    /// The type of the written value.
    pub ty: Ty,
    /// The header union, if the place is a header of one.
    pub union: Option<Place>,
    /// The stack, if this is its next element.
    pub next_of: Option<Place>,
}

impl<'p> Lowerer<'p> {
    pub(super) fn variable_place(&self, variable: Variable) -> Lower<Place> {
        let found = match variable {
            Variable::Frame(number) => self.scope.frame.get(number),
            Variable::Local(number) => self.scope.locals.get(number),
        };
        match found {
            Some(place) => Ok(place.clone()),
            None => self.refuse("a variable is missing"),
        }
    }

    /// The place of an expression. With `fixed`, indices are evaluated now.
    pub(super) fn target(&mut self, expr: &'p tree::Expr, fixed: bool) -> Lower<Target> {
        self.span = expr.span;
        Ok(match &expr.kind {
            ExprKind::Variable(variable) => {
                let place = self.variable_place(*variable)?;
                let union = self.union_around(&place);
                Target { place, bits: None, ty: expr.ty, union, next_of: None }
            }
            ExprKind::Field(base, field) => {
                let target = self.target(base, fixed)?;
                let union = self.types().is_kind(base.ty, StructKind::Union).then(|| target.place.clone());
                Target { place: target.place.step(Step::Field(*field), expr.ty), union, ty: expr.ty, ..target }
            }
            ExprKind::Index(base, index) => {
                let target = self.target(base, fixed)?;
                let index = self.expression(index)?;
                let index = if fixed { self.keep(index)? } else { self.keep_index(index)? };
                let place = target.place.step(Step::Index(Box::new(index)), expr.ty);
                Target { place, union: None, ty: expr.ty, ..target }
            }
            ExprKind::Slice(base, high, low) => {
                let target = self.target(base, fixed)?;
                let offset = target.bits.map_or(0, |(_, low)| low);
                Target { bits: Some((high + offset, low + offset)), ty: expr.ty, union: None, ..target }
            }
            ExprKind::Next(base) | ExprKind::Last(base) => {
                let target = self.target(base, fixed)?;
                let stack = target.place.clone();
                let next = Expr::read(stack.step(Step::Next, self.common.index));
                let Type::Stack(_, size) = self.types().get(base.ty) else { return self.refuse("not a header stack") };
                let is_next = matches!(expr.kind, ExprKind::Next(_));
                let outside = if is_next {
                    self.binary(Binary::GreaterEqual, next.clone(), self.index(u64::from(*size)), Types::BOOL)
                } else {
                    self.binary(Binary::Equal, next.clone(), self.index(0), Types::BOOL)
                };
                let reject = self.list(|lowerer| lowerer.reject("StackOutOfBounds"))?;
                self.push(Statement::If(outside, reject, Vec::new()))?;
                let index =
                    if is_next { next } else { self.binary(Binary::Sub, next, self.index(1), self.common.index) };
                let index = if fixed { self.keep(index)? } else { self.keep_index(index)? };
                let place = stack.step(Step::Index(Box::new(index)), expr.ty);
                Target { place, union: None, ty: expr.ty, next_of: is_next.then_some(stack), bits: None }
            }
            _ => return self.refuse("this is not assignable"),
        })
    }

    /// The header union around a place. Parameters may stand for a header of a union.
    fn union_around(&self, place: &Place) -> Option<Place> {
        let (last, before) = place.steps.split_last()?;
        let Step::Field(_) = last else { return None };
        let mut ty = self.variables[place.root].ty;
        for step in before {
            ty = self.part_type(ty, step);
        }
        let union = Place { root: place.root, steps: before.to_vec(), ty };
        self.types().is_kind(ty, StructKind::Union).then_some(union)
    }

    pub(super) fn part_type(&self, ty: Ty, step: &Step) -> Ty {
        match (step, self.types().get(ty)) {
            (Step::Field(field), _) => {
                self.types().components(ty).and_then(|list| list.get(*field).copied()).unwrap_or(ty)
            }
            (Step::Index(_), Type::Stack(element, _)) => *element,
            (Step::Valid, _) => Types::BOOL,
            (Step::Next, _) => self.common.index,
            _ => ty,
        }
    }

    pub(super) fn index(&self, value: u64) -> Expr {
        Expr::constant(Value::Int(value.into()), self.common.index)
    }

    pub(super) fn binary(&self, operator: Binary, left: Expr, right: Expr, ty: Ty) -> Expr {
        Expr { kind: Kind::Binary(operator, Box::new(left), Box::new(right)), ty }
    }

    /// The value of a place.
    pub(super) fn load(&self, target: &Target) -> Expr {
        let whole = Expr::read(target.place.clone());
        match target.bits {
            Some((high, low)) => Expr { kind: Kind::Slice(Box::new(whole), high, low), ty: target.ty },
            None => whole,
        }
    }

    /// Writes a value. Making a header of a union valid makes the others invalid.
    pub(super) fn store(&mut self, target: &Target, value: Expr) -> Lower<()> {
        if let Some((high, low)) = target.bits {
            let before = Expr::read(target.place.clone());
            let ty = before.ty;
            let kind = Kind::Insert(Box::new(before), high, low, Box::new(value));
            return self.set(target.place.clone(), Expr { kind, ty });
        }
        self.set(target.place.clone(), value)?;
        self.only_valid(target)
    }

    /// Makes the other headers of a union invalid if this one is valid.
    pub(super) fn only_valid(&mut self, target: &Target) -> Lower<()> {
        let (Some(union), Some(Step::Field(own))) = (&target.union, target.place.steps.last()) else { return Ok(()) };
        let own = *own;
        let components = self.types().components(union.ty).unwrap_or_default();
        let (union, this) = (union.clone(), target.place.clone());
        let others = self.list(|lowerer| {
            for (place, ty) in components.iter().enumerate().filter(|(place, _)| *place != own) {
                let valid = union.step(Step::Field(place), *ty).step(Step::Valid, Types::BOOL);
                lowerer.set(valid, lowerer.truth(false))?;
            }
            Ok(())
        })?;
        self.push(Statement::If(Expr::read(this.step(Step::Valid, Types::BOOL)), others, Vec::new()))
    }
}
