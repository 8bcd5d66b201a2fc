//! Calls: selects the function, infers type arguments, and binds arguments.

use std::sync::Arc;

use super::Checker;
use super::infer::Bindings;
use super::scope::{Entity, Place, TypeEntity};
use super::signature::Signature;
use crate::source::Span;
use crate::syntax::ast::{self, DeclarationKind, Direction, ExprKind as Syntax, Name, TypeRef};
use crate::tree::{Argument, Call, Expr, ExprKind, Parameter, Target};
use crate::types::{Ty, Type, Types};

/// An argument as written, with its checked value.
pub struct Given {
    pub name: Option<Name>,
    pub value: Option<Expr>,
    pub span: Span,
}

impl<'a> Checker<'a> {
    pub(super) fn call(
        &mut self,
        function: &'a ast::Expr,
        types: &'a [TypeRef],
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Expr {
        match &function.kind {
            Syntax::Name { name, global } => match self.lookup(name, *global) {
                Some(Entity::Functions(candidates)) => self.call_function(name, &candidates, types, arguments, span),
                Some(Entity::Action(number)) => {
                    let parameters = self.context.actions[number].parameters.clone();
                    self.call_action(Target::Action(number), parameters, arguments, span)
                }
                Some(Entity::GlobalAction(number)) => {
                    let parameters = self.actions[number].parameters.clone();
                    self.call_action(Target::GlobalAction(number), parameters, arguments, span)
                }
                Some(_) => {
                    self.error("call", name.span, format!("'{}' cannot be called", name.text));
                    self.unknown(span)
                }
                None => {
                    let callee = self.expression(function);
                    self.unknown(callee.span)
                }
            },
            Syntax::Member(base, name) => self.method(base, name, types, arguments, span),
            Syntax::Type(ty) => self.construct(ty, arguments, span),
            _ => {
                self.error("call", span, "this cannot be called");
                self.unknown(span)
            }
        }
    }

    pub(super) fn given(&mut self, arguments: &'a [ast::Argument]) -> Vec<Given> {
        arguments
            .iter()
            .map(|argument| Given {
                name: argument.name.clone(),
                value: argument.value.as_ref().map(|value| self.expression(value)),
                span: argument.span,
            })
            .collect()
    }

    fn call_function(
        &mut self,
        name: &Name,
        candidates: &[usize],
        types: &'a [TypeRef],
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Expr {
        let given = self.given(arguments);
        let mut found = None;
        for number in candidates {
            let (DeclarationKind::Function(function) | DeclarationKind::ExternFunction(function)) =
                &self.program[*number].kind
            else {
                continue;
            };
            if accepts(&function.parameters, &given) {
                found = Some((*number, function));
            }
        }
        let Some((number, function)) = found else {
            self.no_candidate(name, span, given.len());
            return self.unknown(span);
        };
        let signature = self.signature(number, function);
        let explicit = self.explicit(types);
        let Some((arguments, bindings)) = self.bind(&signature, Bindings::new(), explicit, given, name, span) else {
            return self.unknown(span);
        };
        let returns = signature.returns.unwrap_or(Types::VOID);
        let ty = self.types.substitute(returns, &bindings);
        let target = if function.body.is_some() {
            let types =
                signature.variables.iter().map(|number| bindings.get(number).copied().unwrap_or(Types::UNKNOWN));
            let types: Vec<Ty> = types.collect();
            Target::Function(self.specific_function(number, function, types))
        } else {
            if &*name.text == "static_assert" {
                self.static_assert(&arguments, span);
            }
            if &*name.text == "verify" && self.context.place != Place::Parser {
                self.error("place", span, "'verify' can be called only in parsers");
            }
            if matches!(&*name.text, "aes_cbc_encrypt" | "aes_cbc_decrypt") {
                self.cipher_place(name, span);
            }
            Target::ExternFunction(name.text.clone())
        };
        self.extern_result(ty, name, span);
        Expr { kind: ExprKind::Call(Box::new(Call { target, arguments, span })), ty, span }
    }

    /// Checks that a cipher function is called after the parser, where the payload begins, and before the deparser,
    /// which needs the result.
    fn cipher_place(&mut self, name: &Name, span: Span) {
        let parameters = self.context.shell.as_ref().map_or(&[][..], |shell| &shell.parameters);
        let emits = parameters.iter().any(|parameter| {
            matches!(self.types.get(parameter.ty), Type::Extern { .. }) && self.types.show(parameter.ty) == "packet_out"
        });
        if self.context.place == Place::Parser || emits {
            let message = format!("'{}' can be called only in controls before the deparser", name.text);
            self.error_with_help("place", span, message, "call it in the ingress or egress control");
        }
    }

    /// Reports a result type that cannot be inferred.
    pub(super) fn extern_result(&mut self, ty: Ty, name: &Name, span: Span) {
        if matches!(self.types.get(ty), Type::Variable(number) if !self.is_own_variable(*number)) {
            let message = format!("the result type of '{}' cannot be inferred", name.text);
            self.error_with_help("type", span, message, format!("give it: {}<TYPE>(…)", name.text));
        }
    }

    /// True if a type parameter belongs to the generic code that is being checked.
    fn is_own_variable(&self, number: u32) -> bool {
        self.context.scopes.iter().flat_map(|scope| scope.values()).any(|entity| match entity {
            Entity::Type(TypeEntity::Plain(ty)) => *self.types.get(*ty) == Type::Variable(number),
            _ => false,
        })
    }

    pub(super) fn no_candidate(&mut self, name: &Name, span: Span, count: usize) {
        let message = format!("no declaration of '{}' accepts these {count} arguments", name.text);
        self.error("call", span, message);
    }

    pub(super) fn explicit(&mut self, types: &'a [TypeRef]) -> Vec<Ty> {
        types.iter().map(|ty| self.type_of(ty)).collect()
    }

    fn static_assert(&mut self, arguments: &[Argument], span: Span) {
        let value = arguments.first().and_then(|argument| argument.value.as_ref());
        match value.and_then(|value| self.constant(value)) {
            Some(value) if value.truth() => {}
            Some(_) => self.error("static_assert", span, "the assertion does not hold"),
            None => self.error("constant", span, "the asserted condition is not a compile-time constant"),
        }
    }

    fn call_action(
        &mut self,
        target: Target,
        parameters: Vec<Parameter>,
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Expr {
        if matches!(self.context.place, Place::Function | Place::Parser) {
            self.error("place", span, "actions can be called only in controls and in other actions");
        }
        let given = self.given(arguments);
        let name = Name { text: "the action".into(), span };
        let signature = Signature { variables: Vec::new(), parameters, returns: Some(Types::VOID) };
        match self.bind(&signature, Bindings::new(), Vec::new(), given, &name, span) {
            Some((arguments, _)) => {
                Expr { kind: ExprKind::Call(Box::new(Call { target, arguments, span })), ty: Types::VOID, span }
            }
            None => self.unknown(span),
        }
    }

    /// Orders arguments by parameter, infers types, and checks directions.
    pub(super) fn bind(
        &mut self,
        signature: &Signature,
        mut bindings: Bindings,
        explicit: Vec<Ty>,
        given: Vec<Given>,
        name: &Name,
        span: Span,
    ) -> Option<(Vec<Argument>, Bindings)> {
        if !explicit.is_empty() && explicit.len() != signature.variables.len() {
            let (wanted, given) = (signature.variables.len(), explicit.len());
            self.error("type", span, format!("'{}' takes {wanted} type arguments, not {given}", name.text));
            return None;
        }
        for (variable, ty) in signature.variables.iter().zip(explicit) {
            if ty != Types::DONT_CARE {
                bindings.insert(*variable, ty);
            }
        }
        let mut ordered: Vec<Option<Given>> = signature.parameters.iter().map(|_| None).collect();
        for (place, argument) in given.into_iter().enumerate() {
            let place = match &argument.name {
                Some(name) => signature.parameters.iter().position(|parameter| parameter.name == name.text),
                None => Some(place),
            };
            let Some(slot) = place.and_then(|place| ordered.get_mut(place)) else {
                let text =
                    argument.name.as_ref().map_or("too many arguments".into(), |name| format!("'{}'", name.text));
                self.error(
                    "call",
                    argument.span,
                    format!("'{}' has no parameter for this argument: {text}", name.text),
                );
                return None;
            };
            if slot.is_some() {
                self.error("call", argument.span, "this parameter already has an argument");
                return None;
            }
            *slot = Some(argument);
        }
        for (parameter, argument) in signature.parameters.iter().zip(&ordered) {
            if let Some(Given { value: Some(value), .. }) = argument {
                self.infer(parameter.ty, value, &signature.variables, &mut bindings);
            }
        }
        let open = signature.variables.iter().position(|variable| !bindings.contains_key(variable));
        let nothing = ordered.iter().flatten().any(|argument| argument.value.is_none());
        if let Some(place) = open
            && nothing
            && signature.returns.is_some()
        {
            let variable = self.types.variables[signature.variables[place] as usize].clone();
            let message = format!("the type {variable} of '{}' cannot be inferred", name.text);
            self.error_with_help("type", span, message, "give it between '<' and '>'");
            return None;
        }
        let mut list = Vec::new();
        for (parameter, argument) in signature.parameters.iter().zip(ordered) {
            let ty = self.types.substitute(parameter.ty, &bindings);
            let value = match argument {
                Some(Given { value: Some(value), .. }) => {
                    if ty == Types::INT && parameter.ty != Types::INT && parameter.direction != Direction::None {
                        let help = "cast it, as in (bit<16>)(…), or write a width, as in 16w1";
                        self.error_with_help("type", value.span, "the width of this number is unknown", help);
                        return None;
                    }
                    Some(self.argument(parameter, ty, value))
                }
                Some(Given { value: None, span, .. }) => {
                    let object = !matches!(parameter.direction, Direction::Out);
                    if object && !self.is_package(signature) {
                        self.error_with_help(
                            "call",
                            span,
                            "'_' is not a value",
                            "it can stand only for an 'out' argument",
                        );
                    }
                    None
                }
                None if parameter.default.is_some() => parameter.default.clone(),
                None if parameter.optional => None,
                None => {
                    let message = format!("'{}' needs a value for its parameter '{}'", name.text, parameter.name);
                    self.error("call", span, message);
                    return None;
                }
            };
            list.push(Argument { direction: parameter.direction, value, ty });
        }
        Some((list, bindings))
    }

    fn is_package(&self, signature: &Signature) -> bool {
        signature.returns.is_none()
    }

    fn argument(&mut self, parameter: &Parameter, ty: Ty, value: Expr) -> Expr {
        let span = value.span;
        if matches!(parameter.direction, Direction::Out | Direction::InOut) {
            if value.ty != ty && value.ty != Types::UNKNOWN && ty != Types::UNKNOWN {
                let message = format!(
                    "the parameter '{}' has the type {}, the argument {}",
                    parameter.name,
                    self.types.show(ty),
                    self.types.show(value.ty)
                );
                self.error_with_help(
                    "type",
                    span,
                    message,
                    "an argument that is written to must have exactly the type of the parameter",
                );
                return self.unknown(span);
            }
            if value.ty != Types::UNKNOWN && !self.is_writable(&value) {
                let message =
                    format!("the parameter '{}' is written to, but this argument is not assignable", parameter.name);
                self.error("direction", span, message);
            }
            return value;
        }
        let fits = match (self.types.get(ty), self.types.get(value.ty)) {
            (Type::Parser { .. }, Type::Parser { .. }) | (Type::Control { .. }, Type::Control { .. }) => {
                self.same_shape(ty, value.ty)
            }
            _ => false,
        };
        if fits { value } else { self.coerce(value, ty) }
    }

    /// True if a parser or control has the parameters that a parser or control type requires.
    fn same_shape(&mut self, wanted: Ty, given: Ty) -> bool {
        let parts = |checker: &Self, ty| match checker.types.get(ty) {
            Type::Parser { declaration, arguments } | Type::Control { declaration, arguments } => {
                Some((*declaration, arguments.clone()))
            }
            _ => None,
        };
        let (Some(wanted), Some(given)) = (parts(self, wanted), parts(self, given)) else { return false };
        let directions = |checker: &mut Self, number| {
            let signature = checker.apply_signature(number);
            signature.parameters.into_iter().map(|parameter| parameter.direction).collect::<Vec<_>>()
        };
        directions(self, wanted.0) == directions(self, given.0)
            && self.apply_types(wanted.0, &wanted.1) == self.apply_types(given.0, &given.1)
    }

    /// True if an expression can be assigned to.
    pub(super) fn is_writable(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Variable(variable) => {
                let known = self.context.scopes.iter().flat_map(|scope| scope.values()).any(|entity| match entity {
                    Entity::Variable { variable: other, writable, .. } => other == variable && !*writable,
                    _ => false,
                });
                !known
            }
            ExprKind::Field(base, _) | ExprKind::Slice(base, ..) => self.is_writable(base),
            ExprKind::Index(base, _) | ExprKind::Next(base) | ExprKind::Last(base) => self.is_writable(base),
            _ => false,
        }
    }
}

/// True if parameters can take these arguments, by number and name.
pub fn accepts(parameters: &[ast::Parameter], given: &[Given]) -> bool {
    let can_miss = |parameter: &ast::Parameter| parameter.optional || parameter.default.is_some();
    if given.len() > parameters.len() {
        return false;
    }
    let named = |name: &Arc<str>| parameters.iter().any(|parameter| parameter.name.text == *name);
    if given.iter().filter_map(|argument| argument.name.as_ref()).any(|name| !named(&name.text)) {
        return false;
    }
    parameters.iter().enumerate().all(|(place, parameter)| {
        let by_name =
            given.iter().any(|argument| argument.name.as_ref().is_some_and(|n| n.text == parameter.name.text));
        let by_place = given.get(place).is_some_and(|argument| argument.name.is_none());
        by_name || by_place || can_miss(parameter)
    })
}
