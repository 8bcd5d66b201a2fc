//! Signatures of functions and methods: parameters and result, with unresolved type parameters.

use std::collections::HashMap;
use std::rc::Rc;

use super::Checker;
use super::scope::{Entity, Place, TypeEntity};
use crate::syntax::ast::{self, DeclarationKind, Direction};
use crate::tree::Parameter;
use crate::types::{Ty, Type, Types};

/// The signature of a function.
#[derive(Clone, Default)]
pub struct Signature {
    /// The type parameters, in order.
    pub variables: Vec<u32>,
    pub parameters: Vec<Parameter>,
    pub returns: Option<Ty>,
}

impl<'a> Checker<'a> {
    pub(super) fn parameters(&mut self, written: &'a [ast::Parameter]) -> Vec<Parameter> {
        let mut list: Vec<Parameter> = Vec::new();
        for parameter in written {
            let ty = self.type_of(&parameter.ty);
            let span = parameter.name.span;
            if list.iter().any(|other| other.name == parameter.name.text) {
                self.error("duplicate", span, format!("two parameters have the name '{}'", parameter.name.text));
            }
            let object = matches!(self.types.get(ty), Type::Extern { .. } | Type::Parser { .. } | Type::Control { .. });
            if parameter.direction != Direction::None && (object || ty == Types::STRING) {
                let message = format!("a parameter of type {} cannot have a direction", self.types.show(ty));
                self.error_with_help("direction", span, message, "remove 'in', 'out' or 'inout'");
            }
            if ty == Types::INT && parameter.direction != Direction::None || ty == Types::VOID || ty == Types::DONT_CARE
            {
                let message = format!("a parameter cannot have the type {}", self.types.show(ty));
                self.error("type", parameter.ty.span, message);
            }
            let default = parameter.default.as_ref().map(|value| {
                let value = self.expression(value);
                self.coerce(value, ty)
            });
            if default.is_some() && matches!(parameter.direction, Direction::Out | Direction::InOut) {
                self.error(
                    "direction",
                    span,
                    "only 'in' parameters and parameters without direction can have defaults",
                );
            }
            list.push(Parameter {
                name: parameter.name.text.clone(),
                direction: parameter.direction,
                ty,
                default,
                optional: parameter.optional,
            });
        }
        list
    }

    /// The signature of a function or method of the declaration with this number.
    pub(super) fn signature(&mut self, number: usize, function: &'a ast::Function) -> Rc<Signature> {
        let key: *const ast::Function = function;
        if let Some(signature) = self.signatures.get(&key) {
            return signature.clone();
        }
        let in_object = matches!(self.program[number].kind, DeclarationKind::ExternObject { .. });
        let signature = self.elsewhere(number, |checker| {
            if in_object {
                checker.class_variables(number);
                checker.context.scopes.push(HashMap::new());
            }
            let variables = checker.declare_type_parameters(&function.type_parameters);
            let parameters = checker.parameters(&function.parameters);
            let returns = Some(checker.type_of(&function.returns));
            Signature { variables, parameters, returns }
        });
        let signature = Rc::new(signature);
        self.signatures.insert(key, signature.clone());
        signature
    }

    /// Declares the type parameters of an extern object, parser, control or package in the innermost scope. They are
    /// the same every time, so that types with them can be compared.
    pub(super) fn class_variables(&mut self, number: usize) -> Vec<u32> {
        let names = self.type_parameters(number).to_vec();
        if let Some(known) = self.class_variables.get(&number).cloned() {
            for (name, variable) in names.iter().zip(&known) {
                let ty = self.types.of(Type::Variable(*variable));
                self.declare(name, Entity::Type(TypeEntity::Plain(ty)));
            }
            return known;
        }
        let variables = self.declare_type_parameters(&names);
        self.class_variables.insert(number, variables.clone());
        variables
    }

    /// The signature of `apply`, or of a package's constructor, with type parameters.
    pub(super) fn apply_signature(&mut self, number: usize) -> Signature {
        let declaration = &self.program[number];
        let written = match &declaration.kind {
            DeclarationKind::Parser(parser) => &parser.parameters,
            DeclarationKind::Control(control) => &control.parameters,
            DeclarationKind::Package { parameters, .. } => parameters,
            _ => return Signature::default(),
        };
        self.elsewhere(number, |checker| {
            let variables = checker.class_variables(number);
            let parameters = checker.parameters(written);
            Signature { variables, parameters, returns: Some(Types::VOID) }
        })
    }

    /// The signatures of the constructors.
    pub(super) fn constructor_signatures(&mut self, number: usize) -> Vec<Signature> {
        let declaration = &self.program[number];
        let written: Vec<&'a [ast::Parameter]> = match &declaration.kind {
            DeclarationKind::Parser(parser) => vec![&parser.constructor],
            DeclarationKind::Control(control) => vec![&control.constructor],
            DeclarationKind::Package { parameters, .. } => vec![parameters],
            DeclarationKind::ExternObject { constructors, .. } => constructors.iter().map(|list| &**list).collect(),
            _ => Vec::new(),
        };
        written
            .into_iter()
            .map(|written| {
                self.elsewhere(number, |checker| {
                    let variables = checker.class_variables(number);
                    let parameters = checker.parameters(written);
                    Signature { variables, parameters, returns: None }
                })
            })
            .collect()
    }

    /// Checks the signatures of all methods of an extern.
    pub(super) fn check_extern(&mut self, number: usize) {
        self.constructor_signatures(number);
        if let DeclarationKind::ExternObject { methods, .. } = &self.program[number].kind {
            for method in methods {
                self.signature(number, method);
            }
        }
    }

    /// Checks a function for these type arguments, once per set of arguments.
    pub(super) fn specific_function(
        &mut self,
        number: usize,
        function: &'a ast::Function,
        arguments: Vec<Ty>,
    ) -> usize {
        let key = (number, arguments);
        if let Some(known) = self.specific_functions.get(&key) {
            return *known;
        }
        if !self.may_specialise(function.name.span) {
            return 0;
        }
        let arguments = key.1.clone();
        let made = self.elsewhere(number.saturating_sub(1), |checker| {
            for (name, ty) in function.type_parameters.iter().zip(arguments) {
                checker.declare(name, Entity::Type(TypeEntity::Plain(ty)));
            }
            checker.context.place = Place::Function;
            let returns = checker.type_of(&function.returns);
            let parameters = checker.parameters(&function.parameters);
            checker.callable(&function.name, &function.parameters, parameters, returns, function.body.as_ref())
        });
        self.functions.push(made);
        self.specific_functions.insert(key, self.functions.len() - 1);
        self.functions.len() - 1
    }
}
