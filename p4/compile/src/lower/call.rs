//! Inlines calls: arguments are copied in before the call and copied out after it, even if the callee ends with `exit`
//! or an error.

use namehop_p4_lang::syntax::{Direction, StructKind};
use namehop_p4_lang::tree::{self, Argument, Call, Class, ExprKind, Function, InstanceRef, has_effects};
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::Value;

use super::place::Target;
use super::scope::Scope;
use super::{Lower, Lowerer, MAX_DEPTH, NO_PLACE};
use crate::ir::{Expr, Kind, Label, Place, Statement, Step, Var};

/// An argument: where its value is, and where it is copied out to.
pub(super) struct Passed {
    pub place: Place,
    pub back: Option<Target>,
}

impl<'p> Lowerer<'p> {
    /// Evaluates arguments from left to right. With `shared`, a parameter may be the argument itself if the program
    /// cannot observe the difference.
    pub(super) fn pass(&mut self, arguments: &'p [Argument], names: &[&str], shared: bool) -> Lower<Vec<Passed>> {
        let mut list: Vec<Passed> = Vec::with_capacity(arguments.len());
        let mut fresh = Vec::new();
        let mut used: Vec<Place> = Vec::new();
        for (number, argument) in arguments.iter().enumerate() {
            let name = names.get(number).copied().unwrap_or("argument");
            if matches!(self.types().get(argument.ty), Type::Extern { .. }) {
                list.push(Passed { place: NO_PLACE, back: None });
                continue;
            }
            let Some(value) = &argument.value else {
                let place = self.temporary(name, argument.ty);
                self.set(place.clone(), self.zero(argument.ty))?;
                list.push(Passed { place, back: None });
                continue;
            };
            if matches!(argument.direction, Direction::None | Direction::In) {
                let value = self.expression(value)?;
                let place = self.temporary(name, argument.ty);
                self.set(place.clone(), value)?;
                list.push(Passed { place, back: None });
                continue;
            }
            let target = self.target(value, true)?;
            let out = argument.direction == Direction::Out;
            let alone = used.iter().all(|other| other.disjoint(&target.place));
            used.push(target.place.clone());
            let later = arguments[number + 1..].iter().any(|other| other.value.as_ref().is_some_and(has_effects));
            if shared && alone && !later && self.is_simple(&target) && self.only_one(arguments, number) {
                if out {
                    fresh.push(target.place.clone());
                }
                list.push(Passed { place: target.place, back: None });
                continue;
            }
            let place = self.temporary(name, argument.ty);
            let start = if out { self.zero(argument.ty) } else { self.load(&target) };
            self.set(place.clone(), start)?;
            list.push(Passed { place, back: Some(target) });
        }
        for place in fresh {
            let zero = self.zero(place.ty);
            self.set(place, zero)?;
        }
        Ok(list)
    }

    /// True if no later argument that is written to is in the same variable.
    fn only_one(&self, arguments: &[Argument], number: usize) -> bool {
        let root = |argument: &Argument| argument.value.as_ref().and_then(variable_of);
        let own = root(&arguments[number]);
        arguments
            .iter()
            .enumerate()
            .filter(|(other, argument)| {
                *other != number && matches!(argument.direction, Direction::Out | Direction::InOut)
            })
            .all(|(_, argument)| root(argument) != own)
    }

    /// True if a place is fixed, whole, and not part of a header union.
    fn is_simple(&self, target: &Target) -> bool {
        if target.bits.is_some() || target.union.is_some() || target.next_of.is_some() {
            return false;
        }
        let mut ty = self.variables[target.place.root].ty;
        for step in &target.place.steps {
            if self.types().is_kind(ty, StructKind::Union) {
                return false;
            }
            if let (Step::Index(index), Type::Stack(_, size)) = (step, self.types().get(ty)) {
                match &index.kind {
                    Kind::Const(value) if value.number() < u64::from(*size) => {}
                    _ => return false,
                }
            }
            ty = self.part_type(ty, step);
        }
        true
    }

    fn copy_out(&mut self, passed: Vec<Passed>) -> Lower<()> {
        for argument in passed {
            if let Some(target) = &argument.back {
                self.store(target, Expr::read(argument.place))?;
            }
        }
        Ok(())
    }

    /// Inlines a body with its own scope, which `scope` makes from the label of its end. Returns the variable that
    /// says whether it ended with `exit`.
    fn inlined(
        &mut self,
        scope: impl FnOnce(Label) -> Scope,
        body: impl FnOnce(&mut Self) -> Lower<()>,
    ) -> Lower<Option<Var>> {
        if self.depth >= MAX_DEPTH {
            return self.refuse(format!("calls nest more than {MAX_DEPTH} deep"));
        }
        let end = self.label();
        let exiting = self.variable("exiting", Types::BOOL);
        let scope = Scope { exiting: Some(exiting), ..scope(end) };
        let before = std::mem::replace(&mut self.scope, scope);
        self.depth += 1;
        let list = self.list(body);
        self.depth -= 1;
        let scope = std::mem::replace(&mut self.scope, before);
        let list = list?;
        if scope.exits {
            let place = Place::variable(exiting, Types::BOOL);
            self.set(place, self.truth(false))?;
        }
        self.push(Statement::Block(end, list))?;
        Ok(scope.exits.then_some(exiting))
    }

    /// Continues with `exit` if the callee ended with it.
    fn pass_on(&mut self, exiting: Option<Var>) -> Lower<()> {
        let Some(exiting) = exiting else { return Ok(()) };
        let stop = self.list(Self::stop)?;
        self.push(Statement::If(Expr::read(Place::variable(exiting, Types::BOOL)), stop, Vec::new()))
    }

    /// `exit`
    pub(super) fn stop(&mut self) -> Lower<()> {
        if let Some(exiting) = self.scope.exiting {
            let place = Place::variable(exiting, Types::BOOL);
            self.set(place, self.truth(true))?;
        }
        self.scope.exits = true;
        let exit = self.scope.exit;
        self.push(Statement::Jump(exit))
    }

    /// Ends the parser with an error.
    pub(super) fn reject(&mut self, error: &str) -> Lower<()> {
        let number = self.types().errors.iter().position(|known| &**known == error).unwrap_or(0);
        let error = Expr::constant(Value::Member(number as u32), Types::ERROR);
        self.reject_with(error)
    }

    pub(super) fn reject_with(&mut self, error: Expr) -> Lower<()> {
        self.push(Statement::Error(error))?;
        self.stop()
    }

    pub(super) fn call_function(
        &mut self,
        function: &'p Function,
        mut passed: Vec<Passed>,
        returns: Ty,
    ) -> Lower<Option<Expr>> {
        let mut locals: Vec<Place> = passed.iter().map(|argument| argument.place.clone()).collect();
        for ty in function.locals.iter().skip(locals.len()) {
            locals.push(self.temporary("local", *ty));
        }
        let has_value = !matches!(self.types().get(returns), Type::Void | Type::Unknown);
        let result = has_value.then(|| self.temporary("result", returns));
        if let Some(result) = &result {
            self.set(result.clone(), self.zero(returns))?;
        }
        let (unit, frame, machine) = (self.scope.unit, self.scope.frame.clone(), self.scope.machine);
        let own = result.clone();
        let scope = |end| Scope { unit, frame, locals, result: own, machine, ..Scope::new(end) };
        let exiting = self.inlined(scope, |lowerer| lowerer.statements(&function.body))?;
        passed.truncate(function.parameters.len());
        self.copy_out(passed)?;
        self.pass_on(exiting)?;
        Ok(result.map(Expr::read))
    }

    fn apply(&mut self, object: usize, arguments: &'p [Argument]) -> Lower<()> {
        let names = self.parameter_names(object);
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let passed = self.pass(arguments, &names, true)?;
        let places = passed.iter().map(|argument| argument.place.clone()).collect();
        let exiting = self.inlined(Scope::new, |lowerer| lowerer.unit_body(object, places))?;
        self.copy_out(passed)?;
        self.pass_on(exiting)
    }

    fn parameter_names(&self, object: usize) -> Vec<std::sync::Arc<str>> {
        let shell = match self.switch.unit(object).map(|unit| unit.class()) {
            Some(Class::Parser(number)) => &self.program.parsers[*number].shell,
            Some(Class::Control(number)) => &self.program.controls[*number].shell,
            _ => return Vec::new(),
        };
        shell.parameters.iter().map(|parameter| parameter.name.clone()).collect()
    }

    /// Inlines a parser or control; its parameters are at these places.
    pub(super) fn unit_body(&mut self, object: usize, places: Vec<Place>) -> Lower<()> {
        let program = self.program;
        let class = match self.switch.unit(object) {
            Some(unit) => unit.class().clone(),
            None => return self.refuse("the object is not a parser or control"),
        };
        let shell = match class {
            Class::Parser(number) => &program.parsers[number].shell,
            Class::Control(number) => &program.controls[number].shell,
            _ => return self.refuse("the object is not a parser or control"),
        };
        if places.len() != shell.parameters.len() {
            return self
                .refuse(format!("{} does not have the number of parameters of its part of V1Switch", shell.name));
        }
        self.scope.unit = object;
        for (parameter, place) in shell.parameters.iter().zip(&places) {
            if parameter.direction == Direction::Out {
                self.set(place.clone(), self.zero(parameter.ty))?;
            }
        }
        self.scope.frame = places;
        for ty in shell.frame.iter().skip(shell.parameters.len()) {
            let place = self.temporary("variable", *ty);
            self.scope.frame.push(place);
        }
        self.statements(&shell.init)?;
        match class {
            Class::Parser(number) => self.machine(&program.parsers[number]),
            Class::Control(number) => self.statements(&program.controls[number].body),
            _ => Ok(()),
        }
    }

    pub(super) fn instance(&self, instance: InstanceRef) -> Lower<usize> {
        match self.switch.instance(self.scope.unit, instance) {
            Some(object) => Ok(object),
            None => self.refuse("an instance is missing"),
        }
    }

    /// The instance that an expression refers to.
    pub(super) fn object(&self, expr: &tree::Expr) -> Lower<usize> {
        match &expr.kind {
            ExprKind::Instance(instance) => self.instance(*instance),
            ExprKind::Constructed(number) => {
                match self.switch.unit(self.scope.unit).and_then(|unit| unit.constructed(*number)) {
                    Some(Value::Object(object)) => Ok(*object),
                    _ => self.refuse("an instance is missing"),
                }
            }
            _ => self.refuse("an instance is missing"),
        }
    }

    pub(super) fn action(&self, target: &tree::Target) -> Lower<&'p Function> {
        let found = match target {
            tree::Target::GlobalAction(number) => self.program.actions.get(*number),
            tree::Target::Action(number) => match self.switch.unit(self.scope.unit).map(|unit| unit.class()) {
                Some(Class::Control(control)) => self.program.controls[*control].actions.get(*number),
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(function) => Ok(function),
            None => self.refuse("an action is missing"),
        }
    }

    pub(super) fn call(&mut self, call: &'p Call, ty: Ty) -> Lower<Option<Expr>> {
        self.span = call.span;
        let names =
            |function: &'p Function| function.parameters.iter().map(|parameter| &*parameter.name).collect::<Vec<_>>();
        match &call.target {
            tree::Target::Function(number) => {
                let function = &self.program.functions[*number];
                let passed = self.pass(&call.arguments, &names(function), true)?;
                return self.call_function(function, passed, ty);
            }
            target @ (tree::Target::Action(_) | tree::Target::GlobalAction(_)) => {
                let function = self.action(target)?;
                let passed = self.pass(&call.arguments, &names(function), false)?;
                self.call_function(function, passed, Types::VOID)?;
            }
            tree::Target::ExternFunction(name) => return self.extern_function(name, &call.arguments, ty),
            tree::Target::Method { object, class, name } => {
                return self.method(object, class, name, &call.arguments, ty);
            }
            tree::Target::Apply(instance) => {
                let object = self.instance(*instance)?;
                self.apply(object, &call.arguments)?;
            }
            tree::Target::ApplyArgument(object) => {
                let object = self.object(object)?;
                self.apply(object, &call.arguments)?;
            }
            tree::Target::Table(_) => drop(self.apply_table(call)?),
            tree::Target::SetValid(header) | tree::Target::SetInvalid(header) => {
                let target = self.target(header, false)?;
                let valid = matches!(call.target, tree::Target::SetValid(_));
                self.set(target.place.step(Step::Valid, Types::BOOL), self.truth(valid))?;
                if valid {
                    self.only_valid(&target)?;
                }
            }
            tree::Target::PushFront(stack, count) => self.shift(stack, *count, true)?,
            tree::Target::PopFront(stack, count) => self.shift(stack, *count, false)?,
        }
        Ok(None)
    }
}

/// The variable and the fields that a place consists of.
fn variable_of(expr: &tree::Expr) -> Option<(tree::Variable, Vec<usize>)> {
    match &expr.kind {
        ExprKind::Variable(variable) => Some((*variable, Vec::new())),
        ExprKind::Field(base, field) => {
            let (variable, mut fields) = variable_of(base)?;
            fields.push(*field);
            Some((variable, fields))
        }
        ExprKind::Index(base, _) | ExprKind::Slice(base, ..) | ExprKind::Next(base) | ExprKind::Last(base) => {
            variable_of(base)
        }
        _ => None,
    }
}
