//! Implicit and explicit casts, and constant evaluation.

use num_bigint::BigInt;

use super::Checker;
use crate::source::Span;
use crate::syntax::ast::{Binary, StructKind, Unary};
use crate::tree::{Expr, ExprKind};
use crate::types::{Ty, Type, Types};
use crate::value::{self, Value};

impl Checker<'_> {
    /// Casts an expression implicitly to a type.
    pub(super) fn coerce(&mut self, expr: Expr, to: Ty) -> Expr {
        let span = expr.span;
        if expr.ty == to || expr.ty == Types::UNKNOWN || to == Types::UNKNOWN || to == Types::DONT_CARE {
            return expr;
        }
        let target = self.types.get(to).clone();
        let kind = match (self.types.get(expr.ty).clone(), &target) {
            (Type::Int, Type::Bits { width, signed }) => {
                if let Some(Value::Int(number)) = self.constant(&expr) {
                    return self.sized(&number, *width, *signed, to, span);
                }
                ExprKind::Cast(Box::new(expr))
            }
            (Type::Enum(number), _)
                if self.types.enums[number].representation.as_ref().is_some_and(|(ty, _)| *ty == to) =>
            {
                let cast = Expr { kind: ExprKind::Cast(Box::new(expr)), ty: to, span };
                return self.folded(cast);
            }
            (Type::Invalid, Type::Struct(_)) if !self.types.is_kind(to, StructKind::Struct) => {
                ExprKind::Const(self.types.zero(to))
            }
            (Type::DontCare, _) if matches!(expr.kind, ExprKind::DontCare) => ExprKind::DontCare,
            (Type::Tuple(_) | Type::Record(_) | Type::Partial(_), _) if matches!(expr.kind, ExprKind::Parts(_)) => {
                return self.parts_as(expr, to);
            }
            _ => {
                let message = format!("expected {}, found {}", self.types.show(to), self.types.show(expr.ty));
                let help = self.cast_help(expr.ty, to);
                let diagnostic = self.diagnostics.error("type", span, message);
                if let Some(help) = help {
                    diagnostic.help(help);
                }
                return self.unknown(span);
            }
        };
        Expr { kind, ty: to, span }
    }

    fn cast_help(&mut self, from: Ty, to: Ty) -> Option<String> {
        let from_bits = self.types.representation(from).is_some();
        let to_bits = self.types.representation(to).is_some();
        if from_bits && to_bits { Some(format!("cast it: ({})(…)", self.types.show(to))) } else { None }
    }

    /// Converts a constant to a fixed width. A value that does not fit loses its upper bits, with a warning.
    fn sized(&mut self, number: &BigInt, width: u32, signed: bool, ty: Ty, span: Span) -> Expr {
        let (low, high) = value::limits(width, signed);
        let wrapped = value::wrap(number, width, signed);
        if *number < low || *number > high {
            let message = format!("{number} does not fit into {}; it becomes {wrapped}", self.types.show(ty));
            self.diagnostics.warning("overflow", span, message);
        }
        self.literal(Value::Int(wrapped), ty, span)
    }

    /// Converts `{ … }` to a struct, header, tuple, stack or list.
    fn parts_as(&mut self, expr: Expr, to: Ty) -> Expr {
        let span = expr.span;
        let (inner, partial) = match self.types.get(expr.ty) {
            Type::Partial(inner) => (*inner, true),
            _ => (expr.ty, false),
        };
        let ExprKind::Parts(parts) = expr.kind else { return self.unknown(span) };
        if self.types.is_kind(to, StructKind::Union) {
            self.error(
                "type",
                span,
                "a header union cannot be assigned from a list of values; assign one of its headers",
            );
            return self.unknown(span);
        }
        let wanted: Vec<Ty> = match self.types.get(to).clone() {
            Type::Stack(element, size) => vec![element; size as usize],
            Type::List(element) => vec![element; parts.len()],
            _ => match self.types.components(to) {
                Some(components) => components,
                None => {
                    let message = format!("{} cannot be assigned from a list of values", self.types.show(to));
                    self.error("type", span, message);
                    return self.unknown(span);
                }
            },
        };
        let mut given: Vec<Option<Expr>> = Vec::new();
        if let Type::Record(names) = self.types.get(inner).clone() {
            let fields = match (self.types.structure(to), self.types.get(to)) {
                (Some(info), _) => info.fields.clone(),
                (None, Type::Record(fields)) => fields.clone(),
                _ => Vec::new(),
            };
            for (name, _) in &names {
                if !fields.iter().any(|(field, _)| field == name) {
                    let message = format!("{} has no field '{name}'", self.types.show(to));
                    self.error("field", span, message);
                }
            }
            let mut parts: Vec<Option<Expr>> = parts.into_iter().map(Some).collect();
            for (field, _) in &fields {
                let place = names.iter().position(|(name, _)| name == field);
                given.push(place.and_then(|place| parts[place].take()));
            }
        } else {
            if parts.len() > wanted.len() {
                let message = format!("{} takes {} values, not {}", self.types.show(to), wanted.len(), parts.len());
                self.error("type", span, message);
                return self.unknown(span);
            }
            given = parts.into_iter().map(Some).collect();
            given.resize_with(wanted.len(), || None);
        }
        let missing = given.iter().filter(|part| part.is_none()).count();
        let stack = matches!(self.types.get(to), Type::Stack(..));
        if missing > 0 && !partial && !(stack && missing < wanted.len()) && given.len() == wanted.len() {
            let message = format!("{missing} values of {} are missing", self.types.show(to));
            self.error_with_help("type", span, message, "'...' at the end fills in defaults");
            return self.unknown(span);
        }
        let parts = given
            .into_iter()
            .zip(wanted)
            .map(|(part, ty)| match part {
                Some(part) => self.coerce(part, ty),
                None => self.literal(self.types.zero(ty), ty, span),
            })
            .collect();
        Expr { kind: ExprKind::Parts(parts), ty: to, span }
    }

    /// Casts an expression explicitly.
    pub(super) fn cast(&mut self, expr: Expr, to: Ty, span: Span) -> Expr {
        if expr.ty == to || expr.ty == Types::UNKNOWN || to == Types::UNKNOWN {
            return Expr { span, ..expr };
        }
        let (from, target) = (self.types.get(expr.ty).clone(), self.types.get(to).clone());
        let open = matches!(from, Type::Variable(_)) || matches!(target, Type::Variable(_));
        let fine = match (&from, &target) {
            _ if open => true,
            (Type::Int, Type::Bits { width, signed }) => {
                if let Some(Value::Int(number)) = self.constant(&expr) {
                    let wrapped = value::wrap(&number, *width, *signed);
                    return self.literal(Value::Int(wrapped), to, span);
                }
                true
            }
            (Type::Bits { width, signed }, Type::Bits { width: other, signed: target }) => {
                signed == target || width == other
            }
            (Type::Bits { width: 1, signed: false }, Type::Bool)
            | (Type::Bool, Type::Bits { width: 1, signed: false }) => true,
            (Type::Int, Type::Bool) => true,
            (Type::Bits { .. }, Type::Int) => self.constant(&expr).is_some(),
            (Type::New(number), _) if !matches!(target, Type::New(_)) || self.types.new_types[*number].1 == to => {
                let inner = self.types.new_types[*number].1;
                let unwrapped = Expr { kind: ExprKind::Cast(Box::new(expr)), ty: inner, span };
                let unwrapped = self.folded(unwrapped);
                return self.cast(unwrapped, to, span);
            }
            (_, Type::New(number)) => {
                let inner = self.types.new_types[*number].1;
                let inside = self.cast(expr, inner, span);
                if inside.ty == Types::UNKNOWN {
                    return inside;
                }
                return self.folded(Expr { kind: ExprKind::Cast(Box::new(inside)), ty: to, span });
            }
            (Type::Enum(number), _) if self.types.enums[*number].representation.is_some() => {
                let ty = self.types.enums[*number].representation.as_ref().map_or(Types::UNKNOWN, |(ty, _)| *ty);
                let inside = self.coerce(expr, ty);
                return self.cast(inside, to, span);
            }
            (_, Type::Enum(number)) if self.types.enums[*number].representation.is_some() => {
                let ty = self.types.enums[*number].representation.as_ref().map_or(Types::UNKNOWN, |(ty, _)| *ty);
                let inside = self.cast(expr, ty, span);
                return self.folded(Expr { kind: ExprKind::Cast(Box::new(inside)), ty: to, span });
            }
            _ => {
                let cast = self.coerce(expr, to);
                return Expr { span, ..cast };
            }
        };
        if !fine {
            let message = format!("{} cannot be cast to {}", self.types.show(expr.ty), self.types.show(to));
            let help = "change the width and the sign in two casts, as in (bit<8>)(int<8>)x";
            self.error_with_help("cast", span, message, help);
            return self.unknown(span);
        }
        self.folded(Expr { kind: ExprKind::Cast(Box::new(expr)), ty: to, span })
    }

    /// Replaces a scalar expression by its value, if it is constant.
    pub(super) fn folded(&mut self, expr: Expr) -> Expr {
        match self.constant(&expr) {
            Some(value) => Expr { kind: ExprKind::Const(value), ..expr },
            None => expr,
        }
    }

    /// The value of an expression, if it is constant.
    pub(super) fn constant(&self, expr: &Expr) -> Option<Value> {
        let int = |expr: &Expr| match self.constant(expr) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        };
        Some(match &expr.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Parts(parts) => {
                let fields: Option<Vec<Value>> = parts.iter().map(|part| self.constant(part)).collect();
                let fields = fields?;
                if self.types.is_kind(expr.ty, StructKind::Header) {
                    Value::Header { valid: true, fields }
                } else if matches!(self.types.get(expr.ty), Type::Stack(..)) {
                    Value::Stack { next: 0, elements: fields }
                } else {
                    Value::Struct(fields)
                }
            }
            ExprKind::Field(base, index) => match self.constant(base)? {
                Value::Struct(fields) | Value::Header { fields, .. } => fields.get(*index)?.clone(),
                _ => return None,
            },
            ExprKind::Cast(inner) => cast_value(&self.types, &self.constant(inner)?, expr.ty),
            ExprKind::Slice(inner, high, low) => Value::Int(value::slice(&int(inner)?, *high, *low)),
            ExprKind::Unary(operator, inner) => unary_value(&self.types, *operator, &self.constant(inner)?, expr.ty),
            ExprKind::Binary(operator, left, right) => {
                let (left_ty, left) = (left.ty, self.constant(left)?);
                // The right operand of `false && x` and `true || x` does not matter.
                match (operator, &left) {
                    (Binary::And, Value::Bool(false)) => return Some(Value::Bool(false)),
                    (Binary::Or, Value::Bool(true)) => return Some(Value::Bool(true)),
                    _ => {}
                }
                let width = self.types.representation(right.ty).map_or(0, |(width, _)| width);
                binary_value(&self.types, *operator, &left, &self.constant(right)?, left_ty, width).ok()?
            }
            ExprKind::Choice(condition, yes, no) => {
                if self.constant(condition)?.truth() {
                    self.constant(yes)?
                } else {
                    self.constant(no)?
                }
            }
            _ => return None,
        })
    }
}

/// Casts a value to another type.
pub fn cast_value(types: &Types, value: &Value, to: Ty) -> Value {
    match types.get(types.stripped(to)) {
        Type::Bits { width, signed } => Value::Int(value::wrap(&value.int(), *width, *signed)),
        Type::Enum(_) => match types.representation(to) {
            Some((width, signed)) => Value::Int(value::wrap(&value.int(), width, signed)),
            None => value.clone(),
        },
        Type::Int => Value::Int(value.int()),
        Type::Bool => match value {
            Value::Int(number) => Value::Bool(*number != BigInt::from(0)),
            other => other.clone(),
        },
        _ => value.clone(),
    }
}

/// Applies a unary operator; `ty` is the type of both operand and result.
pub fn unary_value(types: &Types, operator: Unary, value: &Value, ty: Ty) -> Value {
    if operator == Unary::Not {
        return Value::Bool(!value.truth());
    }
    let number = match operator {
        Unary::Complement => -value.int() - 1,
        Unary::Minus => -value.int(),
        Unary::Plus | Unary::Not => value.int(),
    };
    match types.integer(ty) {
        Some((width, signed)) => Value::Int(value::wrap(&number, width, signed)),
        None => Value::Int(number),
    }
}

/// Applies a binary operator. `ty` is the type of the left operand, `right_width` the width of the right one.
pub fn binary_value(
    types: &Types,
    operator: Binary,
    left: &Value,
    right: &Value,
    ty: Ty,
    right_width: u32,
) -> Result<Value, &'static str> {
    Ok(match operator {
        Binary::And => Value::Bool(left.truth() && right.truth()),
        Binary::Or => Value::Bool(left.truth() || right.truth()),
        Binary::Equal => Value::Bool(equal(left, right)),
        Binary::NotEqual => Value::Bool(!equal(left, right)),
        Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => {
            Value::Bool(value::compare(operator, &left.int(), &right.int()))
        }
        Binary::Concat => match (left, right) {
            (Value::Text(left), Value::Text(right)) => Value::Text(format!("{left}{right}").into()),
            _ => {
                let (width, signed) = types.representation(ty).unwrap_or((0, false));
                let low = value::wrap(&right.int(), right_width, false);
                Value::Int(value::wrap(&((left.int() << right_width) | low), width + right_width, signed))
            }
        },
        _ => Value::Int(value::arithmetic(operator, &left.int(), &right.int(), types.representation(ty))?),
    })
}

/// Compares two values. Headers are equal if both are invalid, or both are valid with equal fields.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Header { valid: false, .. }, Value::Header { valid: false, .. }) => true,
        (Value::Header { valid, fields }, Value::Header { valid: other, fields: others }) => {
            valid == other && all_equal(fields, others)
        }
        (Value::Struct(fields), Value::Struct(others)) => all_equal(fields, others),
        (Value::Stack { elements, .. }, Value::Stack { elements: others, .. }) => all_equal(elements, others),
        _ => left == right,
    }
}

fn all_equal(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
}
