//! Calls: arguments are copied in before the call and copied out after it, even if the callee ends with `exit` or a
//! parser error.

use super::place::{Place, Step};
use super::statement::Flow;
use super::{Frame, MAX_CALLS, Object, Run, Stop, Switch};
use crate::syntax::ast::Direction;
use crate::tree::{Argument, Call, Class, Expr, Function, Parameter, Program, Shell, Target};
use crate::types::{Ty, Type};
use crate::value::Value;

/// An argument value, and the place that it is copied out to.
pub(super) struct Passed {
    pub value: Value,
    pub back: Option<Place>,
}

impl<'p> Switch<'p> {
    /// Evaluates arguments from left to right.
    pub(super) fn pass(&mut self, frame: &mut Frame, arguments: &'p [Argument]) -> Run<Vec<Passed>> {
        let mut list = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let Some(value) = &argument.value else {
                list.push(Passed { value: self.program.types.zero(argument.ty), back: None });
                continue;
            };
            list.push(match argument.direction {
                Direction::None | Direction::In => Passed { value: self.evaluate(frame, value)?, back: None },
                Direction::Out => {
                    let place = self.place(frame, value)?;
                    Passed { value: self.program.types.zero(argument.ty), back: Some(place) }
                }
                Direction::InOut => {
                    let place = self.place(frame, value)?;
                    Passed { value: self.read(frame, &place), back: Some(place) }
                }
            });
        }
        Ok(list)
    }

    fn copy_out(&mut self, frame: &mut Frame, passed: &[Passed], values: &[Value]) {
        for (argument, value) in passed.iter().zip(values) {
            if let Some(place) = &argument.back {
                self.write(frame, place, value.clone());
            }
        }
    }

    pub(super) fn call(&mut self, frame: &mut Frame, call: &'p Call, ty: Ty) -> Run<Value> {
        self.step()?;
        self.calls += 1;
        let result = if self.calls > MAX_CALLS {
            Err(Stop::Failure(format!("calls nest more than {MAX_CALLS} deep")))
        } else {
            self.call_inner(frame, call, ty)
        };
        self.calls -= 1;
        result
    }

    fn call_inner(&mut self, frame: &mut Frame, call: &'p Call, ty: Ty) -> Run<Value> {
        let program = self.program;
        match &call.target {
            Target::Function(number) => {
                let passed = self.pass(frame, &call.arguments)?;
                self.call_function(frame, &program.functions[*number], passed)
            }
            Target::Action(_) | Target::GlobalAction(_) => {
                let function = self.action(frame, &call.target)?;
                let passed = self.pass(frame, &call.arguments)?;
                self.call_function(frame, function, passed)
            }
            Target::ExternFunction(name) => self.extern_function(frame, name, call),
            Target::Method { object, class, name } => {
                let object = self.evaluate(frame, object)?;
                self.method(frame, &object, (class, name), call, ty)
            }
            Target::Apply(instance) => {
                let object = self.object_of(frame, *instance)?;
                self.apply(frame, object, &call.arguments)
            }
            Target::ApplyArgument(object) => match self.evaluate(frame, object)? {
                Value::Object(object) => self.apply(frame, object, &call.arguments),
                _ => Err(Stop::Failure("the object is not a parser or control".into())),
            },
            Target::Table(_) => {
                self.apply_table(frame, call)?;
                Ok(Value::None)
            }
            Target::SetValid(header) => {
                self.set_validity(frame, header, true)?;
                Ok(Value::None)
            }
            Target::SetInvalid(header) => {
                self.set_validity(frame, header, false)?;
                Ok(Value::None)
            }
            Target::PushFront(stack, count) | Target::PopFront(stack, count) => {
                let place = self.place(frame, stack)?;
                let Value::Stack { next, mut elements } = self.read(frame, &place) else { return Ok(Value::None) };
                let size = elements.len();
                let count = (*count as usize).min(size);
                let invalid = |ty| self.program.types.zero(ty);
                let element = match self.program.types.get(stack.ty) {
                    Type::Stack(element, _) => *element,
                    _ => stack.ty,
                };
                let next = if matches!(call.target, Target::PushFront(..)) {
                    elements.rotate_right(count);
                    for slot in &mut elements[..count] {
                        *slot = invalid(element);
                    }
                    (next + count).min(size)
                } else {
                    elements.rotate_left(count);
                    for slot in &mut elements[size - count..] {
                        *slot = invalid(element);
                    }
                    next.saturating_sub(count)
                };
                self.write(frame, &place, Value::Stack { next, elements });
                Ok(Value::None)
            }
        }
    }

    fn set_validity(&mut self, frame: &mut Frame, header: &'p Expr, valid: bool) -> Run<()> {
        let place = self.place(frame, header)?;
        let mut value = self.read(frame, &place);
        // If the index is outside of its array, nothing happens.
        if let Value::Header { valid: flag, .. } = &mut value {
            *flag = valid;
        }
        debug_assert!(!matches!(place.steps.last(), Some(Step::Slice(..))));
        self.write(frame, &place, value);
        Ok(())
    }

    /// The function of an action of the running control, or of the top level.
    pub(super) fn action(&self, frame: &Frame, target: &Target) -> Run<&'p Function> {
        let program = self.program;
        match target {
            Target::GlobalAction(number) => program.actions.get(*number),
            Target::Action(number) => match self.unit_of(frame).map(|unit| &unit.class) {
                Some(Class::Control(control)) => program.controls[*control].actions.get(*number),
                _ => None,
            },
            _ => None,
        }
        .ok_or_else(|| Stop::Failure("an action is missing".into()))
    }

    /// Runs a function or action in its own frame, with access to the variables of the enclosing control.
    pub(super) fn call_function(
        &mut self,
        frame: &mut Frame,
        function: &'p Function,
        passed: Vec<Passed>,
    ) -> Run<Value> {
        let mut locals: Vec<Value> = passed.iter().map(|argument| argument.value.clone()).collect();
        for ty in function.locals.iter().skip(locals.len()) {
            locals.push(self.program.types.zero(*ty));
        }
        let outer = std::mem::replace(&mut frame.locals, locals);
        let result = self.run(frame, &function.body);
        let inner = std::mem::replace(&mut frame.locals, outer);
        if !matches!(result, Err(Stop::Failure(_))) {
            self.copy_out(frame, &passed, &inner);
        }
        Ok(match result? {
            Flow::Return(Some(value)) => value,
            _ => Value::None,
        })
    }

    fn apply(&mut self, frame: &mut Frame, object: usize, arguments: &'p [Argument]) -> Run<Value> {
        let passed = self.pass(frame, arguments)?;
        let values = passed.iter().map(|argument| argument.value.clone()).collect();
        let (values, result) = self.run_unit(object, values);
        if !matches!(result, Err(Stop::Failure(_))) {
            self.copy_out(frame, &passed, &values);
        }
        result?;
        Ok(Value::None)
    }

    /// Runs a parser or control. Returns its parameters' final values.
    pub(super) fn run_unit(&mut self, object: usize, values: Vec<Value>) -> (Vec<Value>, Run<()>) {
        let program = self.program;
        let class = match self.objects.get(object) {
            Some(Object::Unit(unit)) => unit.class.clone(),
            _ => return (values, Err(Stop::Failure("the object is not a parser or control".into()))),
        };
        let shell: &'p Shell = match class {
            Class::Parser(number) => &program.parsers[number].shell,
            Class::Control(number) => &program.controls[number].shell,
            _ => return (values, Err(Stop::Failure("the object is not a parser or control".into()))),
        };
        let mut variables: Vec<Value> =
            shell.parameters.iter().zip(values).map(|(parameter, value)| fresh(program, parameter, value)).collect();
        let count = variables.len();
        for ty in shell.frame.iter().skip(count) {
            variables.push(program.types.zero(*ty));
        }
        let mut frame = Frame { unit: object, variables, locals: Vec::new() };
        let result = match class {
            Class::Parser(number) => {
                self.run(&mut frame, &shell.init).and_then(|_| self.parse(&mut frame, &program.parsers[number]))
            }
            Class::Control(number) => {
                let body = &program.controls[number].body;
                self.run(&mut frame, &shell.init).and_then(|_| self.run(&mut frame, body)).map(|_| ())
            }
            _ => Ok(()),
        };
        frame.variables.truncate(count);
        (frame.variables, result)
    }
}

/// The initial value of a parameter: `out` parameters start with the zero value.
fn fresh(program: &Program, parameter: &Parameter, value: Value) -> Value {
    if parameter.direction == Direction::Out { program.types.zero(parameter.ty) } else { value }
}
