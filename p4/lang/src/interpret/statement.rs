//! Execution of statements.

use super::{Frame, Run, Stop, Switch};
use crate::check::binary_value;
use crate::tree::{Expr, Statement, Variable};
use crate::value::Value;

/// How a statement ends.
pub enum Flow {
    Next,
    Return(Option<Value>),
    Break,
    Continue,
}

impl<'p> Switch<'p> {
    pub(super) fn run(&mut self, frame: &mut Frame, statements: &'p [Statement]) -> Run<Flow> {
        for statement in statements {
            match self.statement(frame, statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, frame: &mut Frame, statement: &'p Statement) -> Run<Flow> {
        self.step()?;
        match statement {
            Statement::Reset(variable, ty) => {
                self.spend(self.program.types.leaves(*ty) / 16)?;
                let zero = self.program.types.zero(*ty);
                let slot = match variable {
                    Variable::Frame(number) => frame.variables.get_mut(*number),
                    Variable::Local(number) => frame.locals.get_mut(*number),
                };
                if let Some(slot) = slot {
                    *slot = zero;
                }
            }
            Statement::Assign { target, operator, value } => {
                self.spend(self.program.types.leaves(target.ty) / 16)?;
                let place = self.place(frame, target)?;
                let value = match operator {
                    None => self.evaluate(frame, value)?,
                    Some(operator) => {
                        let before = self.read(frame, &place);
                        let width = self.program.types.representation(value.ty).map_or(0, |(width, _)| width);
                        let value = self.evaluate(frame, value)?;
                        binary_value(&self.program.types, *operator, &before, &value, target.ty, width)
                            .unwrap_or_else(|_| self.program.types.zero(target.ty))
                    }
                };
                self.write(frame, &place, value);
            }
            Statement::Call(call) => drop(self.evaluate(frame, call)?),
            Statement::If { condition, then, otherwise } => {
                let choice = self.evaluate(frame, condition)?.truth();
                return self.run(frame, if choice { then } else { otherwise });
            }
            Statement::Block(inner) => return self.run(frame, inner),
            Statement::Return(value) => {
                let value = value.as_ref().map(|value| self.evaluate(frame, value)).transpose()?;
                return Ok(Flow::Return(value));
            }
            Statement::Exit => return Err(Stop::Exit),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::SwitchAction { call, cases } => {
                let (_, action) = self.apply_table(frame, call)?;
                let found = cases
                    .iter()
                    .find(|(labels, _)| labels.iter().any(|label| label.is_none_or(|label| Some(label) == action)));
                if let Some((_, body)) = found {
                    return self.run(frame, body);
                }
            }
            Statement::SwitchValue { value, cases } => {
                let value = self.evaluate(frame, value)?;
                let found = cases
                    .iter()
                    .find(|(labels, _)| labels.iter().any(|label| label.as_ref().is_none_or(|label| *label == value)));
                if let Some((_, body)) = found {
                    return self.run(frame, body);
                }
            }
            Statement::For { init, condition, update, body } => {
                self.run(frame, init)?;
                while self.evaluate(frame, condition)?.truth() {
                    self.step()?;
                    match self.run(frame, body)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        flow @ Flow::Return(_) => return Ok(flow),
                    }
                    self.run(frame, update)?;
                }
            }
            Statement::ForRange { target, first, last, body } => {
                let mut next = self.evaluate(frame, first)?.int();
                let last = self.evaluate(frame, last)?.int();
                while next <= last {
                    if let Some(flow) = self.round(frame, target, Value::Int(next.clone()), body)? {
                        return Ok(flow);
                    }
                    next += 1;
                }
            }
            Statement::ForEach { target, collection, body } => {
                let elements = match self.evaluate(frame, collection)? {
                    Value::Stack { elements, .. } | Value::Struct(elements) => elements,
                    _ => Vec::new(),
                };
                for element in elements {
                    if let Some(flow) = self.round(frame, target, element, body)? {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    /// One iteration of a `for … in` loop. `Some` ends the loop.
    fn round(&mut self, frame: &mut Frame, target: &'p Expr, value: Value, body: &'p [Statement]) -> Run<Option<Flow>> {
        self.step()?;
        let place = self.place(frame, target)?;
        self.write(frame, &place, value);
        Ok(match self.run(frame, body)? {
            Flow::Break => Some(Flow::Next),
            Flow::Next | Flow::Continue => None,
            flow @ Flow::Return(_) => Some(flow),
        })
    }
}
