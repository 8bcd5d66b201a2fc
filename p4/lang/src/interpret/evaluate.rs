//! Evaluation of expressions, from left to right.

use super::place::Step;
use super::{Frame, Run, Stop, Switch};
use crate::check::{binary_value, cast_value, unary_value};
use crate::syntax::ast::{Binary, StructKind};
use crate::tree::{Expr, ExprKind, Variable};
use crate::types::Type;
use crate::value::{self, Value};

impl<'p> Switch<'p> {
    pub(super) fn evaluate(&mut self, frame: &mut Frame, expr: &'p Expr) -> Run<Value> {
        let types = &self.program.types;
        Ok(match &expr.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Variable(Variable::Frame(number)) => frame.variables.get(*number).cloned().unwrap_or(Value::None),
            ExprKind::Variable(Variable::Local(number)) => frame.locals.get(*number).cloned().unwrap_or(Value::None),
            ExprKind::Constructed(number) => {
                self.unit_of(frame).and_then(|unit| unit.constructed.get(*number).cloned()).unwrap_or(Value::None)
            }
            ExprKind::Instance(instance) => Value::Object(self.object_of(frame, *instance)?),
            ExprKind::Construct(_) | ExprKind::DontCare | ExprKind::ValueSet(_) => Value::None,
            ExprKind::Field(base, field) => match self.part_of(frame, base, *field)? {
                Some(value) => value,
                None => types.zero(expr.ty),
            },
            ExprKind::Index(base, index) => {
                let base = self.evaluate(frame, base)?;
                let index = usize::try_from(self.evaluate(frame, index)?.number()).unwrap_or(usize::MAX);
                match base {
                    Value::Stack { mut elements, .. } if index < elements.len() => elements.swap_remove(index),
                    _ => self.program.types.zero(expr.ty),
                }
            }
            ExprKind::Slice(base, high, low) => {
                let base = self.evaluate(frame, base)?;
                Value::Int(value::slice(&base.int(), *high, *low))
            }
            ExprKind::Next(_) | ExprKind::Last(_) => {
                let place = self.place(frame, expr)?;
                self.read(frame, &place)
            }
            ExprKind::LastIndex(base) => match self.evaluate(frame, base)? {
                Value::Stack { next, .. } => Value::Int(value::wrap(&((next as i64) - 1).into(), 32, false)),
                _ => Value::Int(0.into()),
            },
            ExprKind::Unary(operator, inner) => {
                let value = self.evaluate(frame, inner)?;
                unary_value(&self.program.types, *operator, &value, expr.ty)
            }
            ExprKind::Binary(operator, left, right) => {
                let (left_ty, left) = (left.ty, self.evaluate(frame, left)?);
                match (operator, left.truth()) {
                    (Binary::And, false) => return Ok(Value::Bool(false)),
                    (Binary::Or, true) => return Ok(Value::Bool(true)),
                    _ => {}
                }
                let width = types.representation(right.ty).map_or(0, |(width, _)| width);
                let right = self.evaluate(frame, right)?;
                // An operation without a result, such as a division by zero, gives zero.
                binary_value(&self.program.types, *operator, &left, &right, left_ty, width)
                    .unwrap_or_else(|_| self.program.types.zero(expr.ty))
            }
            ExprKind::Choice(condition, yes, no) => {
                let choice = self.evaluate(frame, condition)?.truth();
                return self.evaluate(frame, if choice { yes } else { no });
            }
            ExprKind::Cast(inner) => {
                let value = self.evaluate(frame, inner)?;
                cast_value(&self.program.types, &value, expr.ty)
            }
            ExprKind::Parts(parts) => {
                let mut fields = Vec::with_capacity(parts.len());
                for part in parts {
                    fields.push(self.evaluate(frame, part)?);
                }
                let types = &self.program.types;
                if types.is_kind(expr.ty, StructKind::Header) {
                    Value::Header { valid: true, fields }
                } else if matches!(types.get(expr.ty), Type::Stack(..)) {
                    Value::Stack { next: 0, elements: fields }
                } else {
                    Value::Struct(fields)
                }
            }
            ExprKind::IsValid(base) => {
                let value = self.evaluate(frame, base)?;
                Value::Bool(is_valid(&value))
            }
            ExprKind::Call(call) => self.call(frame, call, expr.ty)?,
            ExprKind::Hit(call) => Value::Bool(self.apply_table(frame, call)?.0),
            ExprKind::Mask(left, right) | ExprKind::Range(left, right) => {
                let left = self.evaluate(frame, left)?;
                Value::Struct(vec![left, self.evaluate(frame, right)?])
            }
        })
    }

    /// A field; if the base is a variable, without copying the whole of it.
    fn part_of(&mut self, frame: &mut Frame, base: &'p Expr, field: usize) -> Run<Option<Value>> {
        if is_path(base) {
            let mut place = self.place(frame, base)?;
            place.steps.push(Step::Field(field));
            let fields = self.program.types.components(base.ty).unwrap_or_default();
            place.ty = fields.get(field).copied().unwrap_or(base.ty);
            return Ok(Some(self.read(frame, &place)));
        }
        Ok(match self.evaluate(frame, base)? {
            Value::Struct(mut fields) | Value::Header { mut fields, .. } if field < fields.len() => {
                Some(fields.swap_remove(field))
            }
            _ => None,
        })
    }

    /// The parser error of this name.
    pub(super) fn parser_error(&self, name: &str) -> Stop {
        let place = self.program.types.errors.iter().position(|error| &**error == name);
        Stop::Reject(place.unwrap_or(0) as u32)
    }
}

/// True for variables, their fields, nested fields, and elements with constant indices.
fn is_path(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Field(base, _) => is_path(base),
        ExprKind::Index(base, index) => is_path(base) && matches!(index.kind, ExprKind::Const(_)),
        _ => false,
    }
}

/// True if a header, or one of a union's headers, is valid.
pub fn is_valid(value: &Value) -> bool {
    match value {
        Value::Header { valid, .. } => *valid,
        Value::Struct(headers) => headers.iter().any(is_valid),
        _ => false,
    }
}
