//! Places that can be written to: a variable and a path into it. Indices are evaluated once, when the place is made.

use super::{Frame, Run, Stop, Switch};
use crate::syntax::ast::StructKind;
use crate::tree::{Expr, ExprKind, Variable};
use crate::types::Ty;
use crate::value::{self, Value};

/// A step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum Step {
    Field(usize),
    /// A header of a header union; at most one is valid.
    Alternative(usize),
    Index(usize),
    /// Bits from the highest to the lowest, of an integer of this width and sign.
    Slice(u32, u32, (u32, bool)),
}

#[derive(Clone, Debug)]
pub struct Place {
    pub root: Variable,
    pub steps: Vec<Step>,
    pub ty: Ty,
    /// The stack, if this is its next element.
    pub next_of: Option<Box<Place>>,
}

impl<'p> Switch<'p> {
    pub(super) fn place(&mut self, frame: &mut Frame, expr: &'p Expr) -> Run<Place> {
        let step = |place: Place, step: Step| {
            let mut steps = place.steps;
            steps.push(step);
            Ok(Place { steps, ty: expr.ty, root: place.root, next_of: place.next_of })
        };
        match &expr.kind {
            ExprKind::Variable(variable) => {
                Ok(Place { root: *variable, steps: Vec::new(), ty: expr.ty, next_of: None })
            }
            ExprKind::Field(base, field) => {
                let place = self.place(frame, base)?;
                let union = self.program.types.is_kind(base.ty, StructKind::Union);
                step(place, if union { Step::Alternative(*field) } else { Step::Field(*field) })
            }
            ExprKind::Index(base, index) => {
                let place = self.place(frame, base)?;
                let index = self.evaluate(frame, index)?;
                step(place, Step::Index(usize::try_from(index.number()).unwrap_or(usize::MAX)))
            }
            ExprKind::Slice(base, high, low) => {
                let place = self.place(frame, base)?;
                let ty = self.program.types.integer(base.ty).unwrap_or((*high + 1, false));
                step(place, Step::Slice(*high, *low, ty))
            }
            ExprKind::Next(base) | ExprKind::Last(base) => {
                let place = self.place(frame, base)?;
                let next = matches!(expr.kind, ExprKind::Next(_));
                let Value::Stack { next: count, elements } = self.read(frame, &place) else {
                    return Err(Stop::Failure("not a header stack".into()));
                };
                let index = if next { Some(count) } else { count.checked_sub(1) };
                let Some(index) = index.filter(|index| *index < elements.len()) else {
                    return Err(self.parser_error("StackOutOfBounds"));
                };
                let stack = place.clone();
                let place = step(place, Step::Index(index))?;
                Ok(Place { next_of: next.then(|| Box::new(stack)), ..place })
            }
            _ => Err(Stop::Failure("this is not assignable".into())),
        }
    }

    pub(super) fn read(&self, frame: &Frame, place: &Place) -> Value {
        let zero = || self.program.types.zero(place.ty);
        let mut value = match place.root {
            Variable::Frame(number) => frame.variables.get(number),
            Variable::Local(number) => frame.locals.get(number),
        };
        for step in &place.steps {
            value = match (step, value) {
                (
                    Step::Field(field) | Step::Alternative(field),
                    Some(Value::Struct(fields) | Value::Header { fields, .. }),
                ) => fields.get(*field),
                (Step::Index(index), Some(Value::Stack { elements, .. })) => elements.get(*index),
                (Step::Slice(..), Some(_)) => return self.read_slice(frame, place),
                _ => None,
            };
        }
        value.cloned().unwrap_or_else(zero)
    }

    /// Reads a slice, or a slice of a slice.
    fn read_slice(&self, frame: &Frame, place: &Place) -> Value {
        let whole = place.steps.iter().position(|step| matches!(step, Step::Slice(..))).unwrap_or(0);
        let base = Place { steps: place.steps[..whole].to_vec(), ..place.clone() };
        let mut number = self.read(frame, &base).int();
        for step in &place.steps[whole..] {
            if let Step::Slice(high, low, _) = step {
                number = value::slice(&number, *high, *low);
            }
        }
        Value::Int(number)
    }

    /// Writes a value. Writes outside of an array are ignored.
    pub(super) fn write(&mut self, frame: &mut Frame, place: &Place, value: Value) {
        let root = match place.root {
            Variable::Frame(number) => frame.variables.get_mut(number),
            Variable::Local(number) => frame.locals.get_mut(number),
        };
        if let Some(root) = root {
            write_into(root, &place.steps, value);
        }
    }
}

fn write_into(target: &mut Value, steps: &[Step], value: Value) {
    let Some((step, rest)) = steps.split_first() else {
        *target = value;
        return;
    };
    match (step, target) {
        (Step::Field(field), Value::Struct(fields) | Value::Header { fields, .. }) => {
            if let Some(field) = fields.get_mut(*field) {
                write_into(field, rest, value);
            }
        }
        (Step::Alternative(field), Value::Struct(fields)) => {
            if rest.is_empty() && matches!(value, Value::Header { valid: true, .. }) {
                for other in fields.iter_mut() {
                    if let Value::Header { valid, .. } = other {
                        *valid = false;
                    }
                }
            }
            if let Some(field) = fields.get_mut(*field) {
                write_into(field, rest, value);
            }
        }
        (Step::Index(index), Value::Stack { elements, .. }) => {
            if let Some(element) = elements.get_mut(*index) {
                write_into(element, rest, value);
            }
        }
        (Step::Slice(high, low, (width, signed)), Value::Int(number)) => {
            let mut part = Value::Int(value::slice(number, *high, *low));
            write_into(&mut part, rest, value);
            let mask = value::mask(high - low + 1) << *low;
            let new = (&*number & !mask.clone()) | ((part.int() << *low) & mask);
            *number = value::wrap(&new, *width, *signed);
        }
        _ => {}
    }
}
