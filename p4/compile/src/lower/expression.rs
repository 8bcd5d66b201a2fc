//! Expressions: side effects become statements before the expression, and values that these may change are saved first.

use namehop_p4_lang::syntax::{Binary, StructKind};
use namehop_p4_lang::tree::{self, ExprKind, has_effects};
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;
use num_bigint::BigInt;
use num_traits::Signed;

use super::{Lower, Lowerer};
use crate::ir::{Expr, Kind, Place, Statement, Step};

impl<'p> Lowerer<'p> {
    pub(super) fn expression(&mut self, expr: &'p tree::Expr) -> Lower<Expr> {
        self.span = expr.span;
        Ok(match &expr.kind {
            ExprKind::Const(value) => self.constant(value, expr.ty),
            ExprKind::Variable(variable) => Expr::read(self.variable_place(*variable)?),
            ExprKind::Constructed(number) => {
                let value = self.switch.unit(self.scope.unit).and_then(|unit| unit.constructed(*number));
                match value.cloned() {
                    Some(value) => self.constant(&value, expr.ty),
                    None => return self.refuse("an argument of a constructor is missing"),
                }
            }
            ExprKind::Instance(_) | ExprKind::Construct(_) | ExprKind::DontCare | ExprKind::ValueSet(_) => {
                return self.refuse("this expression has no value");
            }
            ExprKind::Field(base, field) => {
                let base = self.expression(base)?;
                self.component(base, *field, expr.ty)?
            }
            ExprKind::Index(base, index) => {
                let value = self.expression(base)?;
                let value = if has_effects(index) { self.keep(value)? } else { value };
                let index = self.expression(index)?;
                self.element(value, index, expr.ty)?
            }
            ExprKind::Slice(base, high, low) => {
                let base = self.expression(base)?;
                Expr { kind: Kind::Slice(Box::new(base), *high, *low), ty: expr.ty }
            }
            ExprKind::Next(_) | ExprKind::Last(_) => {
                let target = self.target(expr, false)?;
                self.load(&target)
            }
            ExprKind::LastIndex(base) => {
                let base = self.expression(base)?;
                let place = self.as_place(base)?;
                let next = Expr::read(place.step(Step::Next, self.common.index));
                let last = self.binary(Binary::Sub, next, self.index(1), self.common.index);
                Expr { kind: Kind::Cast(Box::new(last)), ty: expr.ty }
            }
            ExprKind::Unary(operator, inner) => {
                let inner = self.expression(inner)?;
                Expr { kind: Kind::Unary(*operator, Box::new(inner)), ty: expr.ty }
            }
            ExprKind::Binary(operator @ (Binary::And | Binary::Or), left, right) if has_effects(right) => {
                let result = self.temporary("both", Types::BOOL);
                let left = self.expression(left)?;
                self.set(result.clone(), left)?;
                let place = result.clone();
                let rest = self.list(|lowerer| {
                    let right = lowerer.expression(right)?;
                    lowerer.set(place, right)
                })?;
                let (then, otherwise) = if *operator == Binary::And { (rest, Vec::new()) } else { (Vec::new(), rest) };
                self.push(Statement::If(Expr::read(result.clone()), then, otherwise))?;
                Expr::read(result)
            }
            ExprKind::Binary(operator, left, right) => {
                let first = self.expression(left)?;
                let first = if has_effects(right) { self.keep(first)? } else { first };
                let second = self.expression(right)?;
                self.binary(*operator, first, second, expr.ty)
            }
            ExprKind::Choice(condition, yes, no) => {
                let condition = self.expression(condition)?;
                if !has_effects(yes) && !has_effects(no) {
                    let (yes, no) = (self.expression(yes)?, self.expression(no)?);
                    return Ok(Expr {
                        kind: Kind::Choice(Box::new(condition), Box::new(yes), Box::new(no)),
                        ty: expr.ty,
                    });
                }
                let result = self.temporary("choice", expr.ty);
                let mut branch = |value: &'p tree::Expr| {
                    let place = result.clone();
                    self.list(|lowerer| {
                        let value = lowerer.expression(value)?;
                        lowerer.set(place, value)
                    })
                };
                let (then, otherwise) = (branch(yes)?, branch(no)?);
                self.push(Statement::If(condition, then, otherwise))?;
                Expr::read(result)
            }
            ExprKind::Cast(inner) => {
                let inner = self.expression(inner)?;
                self.cast(inner, expr.ty)?
            }
            ExprKind::Parts(parts) => {
                let mut list = Vec::with_capacity(parts.len());
                for (place, part) in parts.iter().enumerate() {
                    let value = self.expression(part)?;
                    let later = parts[place + 1..].iter().any(has_effects);
                    list.push(if later { self.keep(value)? } else { value });
                }
                Expr { kind: Kind::Parts(list), ty: expr.ty }
            }
            ExprKind::IsValid(base) => {
                let base = self.expression(base)?;
                let place = self.as_place(base)?;
                self.validity(&place)
            }
            ExprKind::Call(call) => match self.call(call, expr.ty)? {
                Some(value) => value,
                None => self.zero(expr.ty),
            },
            ExprKind::Hit(call) => self.apply_table(call)?.0,
            ExprKind::Mask(..) | ExprKind::Range(..) => return self.refuse("a set is not a value"),
        })
    }

    /// A constant. Numbers without a width get one.
    fn constant(&self, value: &Value, ty: Ty) -> Expr {
        match (value, self.types().get(ty)) {
            (Value::Int(number), Type::Int) if number.is_negative() => {
                self.number(number.clone().max(i64::MIN.into()), self.common.negative)
            }
            (Value::Int(number), Type::Int) => self.number(number.clone().min(u64::MAX.into()), self.common.word),
            _ => Expr::constant(value.clone(), ty),
        }
    }

    /// The validity of a header, or of any header of a union.
    pub(super) fn validity(&self, place: &Place) -> Expr {
        let valid = |place: &Place| Expr::read(place.step(Step::Valid, Types::BOOL));
        if !self.types().is_kind(place.ty, StructKind::Union) {
            return valid(place);
        }
        let components = self.types().components(place.ty).unwrap_or_default();
        let mut any = self.truth(false);
        for (number, ty) in components.into_iter().enumerate() {
            any = self.binary(Binary::Or, any, valid(&place.step(Step::Field(number), ty)), Types::BOOL);
        }
        any
    }

    /// The place of a value; a value without one is stored in a new variable.
    pub(super) fn as_place(&mut self, value: Expr) -> Lower<Place> {
        if let Kind::Read(place) = value.kind {
            return Ok(place);
        }
        let place = self.temporary("value", value.ty);
        self.set(place.clone(), value)?;
        Ok(place)
    }

    pub(super) fn component(&mut self, base: Expr, field: usize, ty: Ty) -> Lower<Expr> {
        match base.kind {
            Kind::Read(place) => Ok(Expr::read(place.step(Step::Field(field), ty))),
            Kind::Parts(mut parts) if field < parts.len() => Ok(parts.swap_remove(field)),
            _ => {
                let place = self.as_place(base)?;
                Ok(Expr::read(place.step(Step::Field(field), ty)))
            }
        }
    }

    pub(super) fn element(&mut self, base: Expr, index: Expr, ty: Ty) -> Lower<Expr> {
        if let (Some(_), Kind::Const(index)) = (self.types().components(base.ty), &index.kind) {
            let index = usize::try_from(index.number()).unwrap_or(usize::MAX);
            return self.component(base, index, ty);
        }
        let place = self.as_place(base)?;
        let index = self.keep_index(index)?;
        Ok(Expr::read(place.step(Step::Index(Box::new(index)), ty)))
    }

    /// A cast; structs and similar types are cast part by part.
    pub(super) fn cast(&mut self, inner: Expr, to: Ty) -> Lower<Expr> {
        if inner.ty == to {
            return Ok(inner);
        }
        if let Kind::Const(Value::Text(_) | Value::None) = inner.kind {
            return Ok(Expr { ty: to, ..inner });
        }
        let types = self.types();
        let (from, target) = (types.stripped(inner.ty), types.stripped(to));
        let (Some(from), Some(target)) = (types.components(from), types.components(target)) else {
            return Ok(Expr { kind: Kind::Cast(Box::new(inner)), ty: to });
        };
        let value = if matches!(inner.kind, Kind::Parts(_)) { inner } else { Expr::read(self.as_place(inner)?) };
        let mut parts = Vec::new();
        for (number, (from, to)) in from.into_iter().zip(target).enumerate() {
            let part = self.component(value.clone(), number, from)?;
            parts.push(self.cast(part, to)?);
        }
        Ok(Expr { kind: Kind::Parts(parts), ty: to })
    }

    /// An integer constant of a type.
    pub(super) fn number(&self, value: impl Into<BigInt>, ty: Ty) -> Expr {
        Expr::constant(Value::Int(value.into()), ty)
    }
}
