//! Statements, and the bodies of functions and actions.

use super::Checker;
use super::scope::{Entity, Place};
use crate::source::Span;
use crate::syntax::ast::{
    self, Binary, Block, Declaration, DeclarationKind, Direction, ForCollection, Name, StatementKind as Syntax,
    SwitchCase,
};
use crate::tree::{Expr, ExprKind, Function, Naming, Parameter, Statement, Variable};
use crate::types::{Ty, Type, Types};
use crate::value::Value;

impl<'a> Checker<'a> {
    /// Checks a function or an action with known parameters.
    pub(super) fn callable(
        &mut self,
        name: &Name,
        written: &'a [ast::Parameter],
        parameters: Vec<Parameter>,
        returns: Ty,
        body: Option<&'a Block>,
    ) -> Function {
        self.context.locals = Vec::new();
        self.context.returns = Some(returns);
        let body = self.scoped(|checker| {
            for (written, parameter) in written.iter().zip(&parameters) {
                let variable = checker.new_variable(parameter.ty);
                checker.declare_parameter(&written.name, parameter, variable);
            }
            let Some(body) = body else { return Vec::new() };
            if returns != Types::VOID && !always_returns(&body.statements) {
                let message = format!("'{}' does not return a value on every path", name.text);
                checker.error_with_help("return", name.span, message, "end it with 'return VALUE;'");
            }
            checker.block(body)
        });
        let locals = std::mem::take(&mut self.context.locals);
        Function { name: name.text.clone(), parameters, locals, body, annotations: Naming::default() }
    }

    pub(super) fn declare_parameter(&mut self, name: &Name, parameter: &Parameter, variable: Variable) {
        let object = matches!(self.types.get(parameter.ty), Type::Extern { .. });
        let writable = matches!(parameter.direction, Direction::Out | Direction::InOut) && !object;
        self.declare(name, Entity::Variable { variable, ty: parameter.ty, writable });
    }

    pub(super) fn action(
        &mut self,
        declaration: &'a Declaration,
        written: &'a [ast::Parameter],
        body: &'a Block,
    ) -> Function {
        let place = std::mem::replace(&mut self.context.place, Place::Action);
        let parameters = self.parameters(written);
        let mut runtime = false;
        for (written, parameter) in written.iter().zip(&parameters) {
            if runtime && parameter.direction != Direction::None {
                let help = "parameters set by the control plane must come last";
                self.error_with_help(
                    "direction",
                    written.name.span,
                    "a parameter with a direction follows one set by the control plane",
                    help,
                );
            }
            runtime |= parameter.direction == Direction::None;
        }
        let mut made = self.callable(&declaration.name, written, parameters, Types::VOID, Some(body));
        made.annotations = self.naming(declaration);
        self.context.place = place;
        self.context.returns = None;
        made
    }

    pub(super) fn block(&mut self, block: &'a Block) -> Vec<Statement> {
        self.scoped(|checker| {
            let mut list = Vec::new();
            for statement in &block.statements {
                checker.statement(statement, &mut list);
            }
            list
        })
    }

    fn single(&mut self, statement: &'a ast::Statement) -> Vec<Statement> {
        self.scoped(|checker| {
            let mut list = Vec::new();
            checker.statement(statement, &mut list);
            list
        })
    }

    pub(super) fn statement(&mut self, statement: &'a ast::Statement, list: &mut Vec<Statement>) {
        let span = statement.span;
        match &statement.kind {
            Syntax::Empty => {}
            Syntax::Assign { target, operator, value } => {
                let target = self.expression(target);
                let value = self.expression(value);
                self.assign(target, *operator, value, span, list);
            }
            Syntax::Call(call) => {
                let call = self.expression(call);
                if matches!(call.kind, ExprKind::Call(_) | ExprKind::IsValid(_)) {
                    list.push(Statement::Call(call));
                } else if call.ty != Types::UNKNOWN && matches!(call.kind, ExprKind::Construct(_)) {
                    self.error("statement", span, "this instance needs a name");
                }
            }
            Syntax::If { condition, then, otherwise } => {
                let condition = self.expression(condition);
                let condition = self.coerce(condition, Types::BOOL);
                let then = self.single(then);
                let otherwise = otherwise.as_ref().map_or_else(Vec::new, |statement| self.single(statement));
                list.push(Statement::If { condition, then, otherwise });
            }
            Syntax::Block(block) => {
                let inner = self.block(block);
                list.push(Statement::Block(inner));
            }
            Syntax::Return(value) => self.returns(value.as_ref(), span, list),
            Syntax::Exit => {
                if matches!(self.context.place, Place::Function | Place::Parser) {
                    self.error("place", span, "'exit' can be used only in controls and actions");
                }
                list.push(Statement::Exit);
            }
            Syntax::Break | Syntax::Continue => {
                if self.context.loops == 0 {
                    self.error("place", span, "this statement is outside of a loop");
                }
                let leave = matches!(statement.kind, Syntax::Break);
                list.push(if leave { Statement::Break } else { Statement::Continue });
            }
            Syntax::Switch { value, cases } => self.switch(value, cases, span, list),
            Syntax::For { init, condition, update, body } => self.scoped(|checker| {
                let mut first = Vec::new();
                for statement in init {
                    checker.statement(statement, &mut first);
                }
                let condition = checker.expression(condition);
                let condition = checker.coerce(condition, Types::BOOL);
                let mut next = Vec::new();
                for statement in update {
                    checker.statement(statement, &mut next);
                }
                let body = checker.looped(body);
                list.push(Statement::For { init: first, condition, update: next, body });
            }),
            Syntax::ForIn { ty, name, collection, body } => self.scoped(|checker| {
                checker.for_in(ty, name, collection, body, span, list);
            }),
            Syntax::Declare(declaration) => self.local(declaration, list),
        }
    }

    fn looped(&mut self, body: &'a ast::Statement) -> Vec<Statement> {
        self.context.loops += 1;
        let body = self.single(body);
        self.context.loops -= 1;
        body
    }

    fn for_in(
        &mut self,
        ty: &'a ast::TypeRef,
        name: &Name,
        collection: &'a ForCollection,
        body: &'a ast::Statement,
        span: Span,
        list: &mut Vec<Statement>,
    ) {
        let ty = self.type_of(ty);
        let variable = self.new_variable(ty);
        self.declare(name, Entity::Variable { variable, ty, writable: true });
        let target = Expr { kind: ExprKind::Variable(variable), ty, span: name.span };
        match collection {
            ForCollection::Range(first, last) => {
                let first = self.expression(first);
                let first = self.coerce(first, target.ty);
                let last = self.expression(last);
                let last = self.coerce(last, target.ty);
                let body = self.looped(body);
                list.push(Statement::ForRange { target, first, last, body });
            }
            ForCollection::Value(value) => {
                let collection = self.expression(value);
                let element = match self.types.get(collection.ty).clone() {
                    Type::Stack(element, _) | Type::List(element) => element,
                    Type::Tuple(elements) if !elements.is_empty() => target.ty,
                    Type::Unknown => Types::UNKNOWN,
                    _ => {
                        let message = format!("{} cannot be iterated", self.types.show(collection.ty));
                        self.error("type", span, message);
                        return;
                    }
                };
                if element != target.ty && element != Types::UNKNOWN {
                    let message = format!("the elements have the type {}", self.types.show(element));
                    self.error("type", name.span, message);
                }
                let body = self.looped(body);
                list.push(Statement::ForEach { target, collection, body });
            }
        }
    }

    fn assign(&mut self, target: Expr, operator: Option<Binary>, value: Expr, span: Span, list: &mut Vec<Statement>) {
        if target.ty == Types::UNKNOWN {
            return;
        }
        if !self.is_writable(&target) {
            let help = "constants, 'in' parameters, parameters without direction and results cannot be assigned to";
            self.error_with_help("assign", target.span, "this cannot be assigned to", help);
            return;
        }
        if matches!(self.types.get(target.ty), Type::Extern { .. } | Type::Parser { .. } | Type::Control { .. }) {
            self.error("assign", target.span, "instances cannot be assigned");
            return;
        }
        let Some(operator) = operator else {
            let value = self.coerce(value, target.ty);
            list.push(Statement::Assign { target, operator: None, value });
            return;
        };
        // Check it as the expression that it abbreviates.
        let whole = self.binary(operator, target.clone(), value, span);
        let ty = target.ty;
        let whole = self.coerce(whole, ty);
        if let ExprKind::Binary(operator, _, value) = whole.kind {
            list.push(Statement::Assign { target, operator: Some(operator), value: *value });
        }
    }

    fn returns(&mut self, value: Option<&'a ast::Expr>, span: Span, list: &mut Vec<Statement>) {
        let returns = self.context.returns.unwrap_or(Types::VOID);
        if self.context.place == Place::Parser {
            self.error_with_help("place", span, "'return' cannot be used in parsers", "use 'transition accept;'");
        }
        let value = match value {
            None if returns != Types::VOID => {
                let message = format!("this must return a value of type {}", self.types.show(returns));
                self.error("return", span, message);
                None
            }
            None => None,
            Some(value) => {
                let value = self.expression(value);
                if returns == Types::VOID {
                    self.error("return", span, "this function returns no value");
                    return;
                }
                Some(self.coerce(value, returns))
            }
        };
        list.push(Statement::Return(value));
    }

    pub(super) fn local(&mut self, declaration: &'a Declaration, list: &mut Vec<Statement>) {
        let name = &declaration.name;
        match &declaration.kind {
            DeclarationKind::Constant { ty, value } => self.constant_declaration(name, ty, value),
            DeclarationKind::Variable { ty: written, value } => {
                let ty = self.type_of(written);
                let fine = !matches!(
                    self.types.get(ty),
                    Type::Void
                        | Type::Int
                        | Type::String
                        | Type::DontCare
                        | Type::Extern { .. }
                        | Type::Parser { .. }
                        | Type::Control { .. }
                        | Type::Package { .. }
                        | Type::MatchKind
                );
                if !fine {
                    let message = format!("a variable cannot have the type {}", self.types.show(ty));
                    let help = match self.types.get(ty) {
                        Type::Int => "give it a width, as in bit<32>",
                        _ => "declare an instance with '(…)' after its type",
                    };
                    self.error_with_help("type", written.span, message, help);
                }
                let value = value.as_ref().map(|value| {
                    let value = self.expression(value);
                    self.coerce(value, ty)
                });
                let ty = if fine { ty } else { Types::UNKNOWN };
                let variable = self.new_variable(ty);
                match value {
                    Some(value) => {
                        let target = Expr { kind: ExprKind::Variable(variable), ty, span: name.span };
                        list.push(Statement::Reset(variable, ty));
                        list.push(Statement::Assign { target, operator: None, value });
                    }
                    None => list.push(Statement::Reset(variable, ty)),
                }
                self.declare(name, Entity::Variable { variable, ty, writable: true });
            }
            DeclarationKind::Instance { ty, arguments, methods } => {
                if matches!(self.context.place, Place::Function | Place::Action) {
                    self.error("place", name.span, "functions and actions cannot contain instances");
                    return;
                }
                self.instance_declaration(declaration, ty, arguments, methods);
            }
            _ => self.error("place", name.span, "this cannot be declared here"),
        }
    }

    fn switch(&mut self, value: &'a ast::Expr, cases: &'a [SwitchCase], span: Span, list: &mut Vec<Statement>) {
        if let ast::ExprKind::Member(base, name) = &value.kind
            && &*name.text == "action_run"
        {
            let applied = self.expression(base);
            if let (ExprKind::Call(call), Type::Applied(table)) = (applied.kind, self.types.get(applied.ty)) {
                let actions: Vec<_> =
                    self.context.tables[*table].actions.iter().map(|action| action.name.clone()).collect();
                let mut grouped = Vec::new();
                let mut labels = Vec::new();
                for case in cases {
                    labels.push(match &case.label {
                        None => None,
                        Some(ast::Expr { kind: ast::ExprKind::Name { name, .. }, .. }) => {
                            let place = actions.iter().position(|action| *action == name.text);
                            if place.is_none() {
                                let message = format!("'{}' is not an action of this table", name.text);
                                self.error("switch", name.span, message);
                            }
                            Some(place.unwrap_or(0))
                        }
                        Some(label) => {
                            self.error("switch", label.span, "expected the name of an action");
                            continue;
                        }
                    });
                    if let Some(body) = &case.body {
                        let body = self.block(body);
                        grouped.push((std::mem::take(&mut labels), body));
                    }
                }
                self.distinct_labels(grouped.iter().flat_map(|(labels, _)| labels), span);
                list.push(Statement::SwitchAction { call, cases: grouped });
            }
            return;
        }
        let value = self.expression(value);
        if value.ty == Types::INT {
            self.error_with_help("switch", span, "the value has no width", "cast it, as in (bit<8>)(…)");
            return;
        }
        let mut grouped = Vec::new();
        let mut labels = Vec::new();
        for case in cases {
            labels.push(match &case.label {
                None => None,
                Some(label) => {
                    let label = self.expression(label);
                    let label = self.coerce(label, value.ty);
                    let constant = self.constant(&label);
                    if constant.is_none() && label.ty != Types::UNKNOWN {
                        self.error("constant", label.span, "a label must be a constant");
                    }
                    Some(constant.unwrap_or(Value::None))
                }
            });
            if let Some(body) = &case.body {
                let body = self.block(body);
                grouped.push((std::mem::take(&mut labels), body));
            }
        }
        self.distinct_labels(grouped.iter().flat_map(|(labels, _)| labels), span);
        list.push(Statement::SwitchValue { value, cases: grouped });
    }

    fn distinct_labels<'l, T: PartialEq + 'l>(&mut self, labels: impl Iterator<Item = &'l Option<T>>, span: Span) {
        let labels: Vec<&Option<T>> = labels.collect();
        let twice = labels.iter().enumerate().any(|(place, label)| labels[..place].contains(label));
        if twice {
            self.error("duplicate", span, "duplicate label of a 'switch'");
        } else if let Some(place) = labels.iter().position(|label| label.is_none())
            && place + 1 != labels.len()
        {
            self.error("switch", span, "'default' must be the last label of a 'switch'");
        }
    }
}

/// True if no path reaches the end of the statements.
fn always_returns(statements: &[ast::Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        Syntax::Return(_) | Syntax::Exit => true,
        Syntax::Block(block) => always_returns(&block.statements),
        Syntax::If { then, otherwise: Some(otherwise), .. } => {
            always_returns(std::slice::from_ref(then)) && always_returns(std::slice::from_ref(otherwise))
        }
        Syntax::Switch { cases, .. } => {
            cases.iter().any(|case| case.label.is_none())
                && cases.iter().filter_map(|case| case.body.as_ref()).all(|body| always_returns(&body.statements))
        }
        _ => false,
    })
}
