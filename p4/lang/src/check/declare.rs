//! Top-level declarations.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::Checker;
use super::scope::{Entity, TypeEntity};
use crate::syntax::ast::{Declaration, DeclarationKind, Expr, Name, TypeRef};
use crate::tree::Naming;
use crate::types::{EnumInfo, Type, Types};
use crate::value::Value;

impl<'a> Checker<'a> {
    pub(super) fn top_level(&mut self, number: usize, declaration: &'a Declaration) {
        let name = &declaration.name;
        match &declaration.kind {
            DeclarationKind::Constant { ty, value } => self.constant_declaration(name, ty, value),
            DeclarationKind::Variable { .. } => {
                let help =
                    "declare variables in parsers, controls, actions and functions; write 'const' for a constant";
                self.error_with_help("place", name.span, "variables cannot be declared at the top level", help);
            }
            DeclarationKind::Instance { ty, arguments, methods } => {
                self.instance_declaration(declaration, ty, arguments, methods);
            }
            DeclarationKind::Typedef { ty } => {
                let ty = self.type_of(ty);
                self.declare(name, Entity::Type(TypeEntity::Plain(ty)));
            }
            DeclarationKind::NewType { ty: written } => {
                let inner = self.type_of(written);
                let fine = matches!(
                    self.types.get(inner),
                    Type::Unknown | Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::New(_) | Type::Varbit(_)
                );
                if !fine {
                    let message = format!("a new type cannot be based on {}", self.types.show(inner));
                    self.error("type", written.span, message);
                }
                self.types.new_types.push((name.text.clone(), inner));
                let ty = self.types.of(Type::New(self.types.new_types.len() - 1));
                let ty = if self.types.is_too_large(ty) {
                    self.error("limit", written.span, "new types are nested too deeply");
                    Types::UNKNOWN
                } else {
                    ty
                };
                self.declare(name, Entity::Type(TypeEntity::Plain(ty)));
            }
            DeclarationKind::Struct { kind, type_parameters, fields } => {
                self.declare_struct(number, *kind, type_parameters, fields);
            }
            DeclarationKind::Enum { members } => {
                let members = self.distinct(members);
                self.types.enums.push(EnumInfo { name: name.text.clone(), members, representation: None });
                let ty = self.types.of(Type::Enum(self.types.enums.len() - 1));
                self.declare(name, Entity::Type(TypeEntity::Plain(ty)));
            }
            DeclarationKind::SerializableEnum { ty, members } => self.serializable_enum(name, ty, members),
            DeclarationKind::Errors { members } => {
                for member in self.distinct(members) {
                    if self.types.errors.contains(&member) {
                        self.error("duplicate", name.span, format!("the error {member} is already declared"));
                    }
                    self.types.errors.push(member);
                }
            }
            DeclarationKind::MatchKinds { members } => {
                let members = self.distinct(members);
                self.types.match_kinds.extend(members);
            }
            DeclarationKind::ExternObject { .. } => {
                self.types.names.insert(number, name.text.clone());
                self.declare(name, Entity::Type(TypeEntity::Extern(number)));
                self.check_extern(number);
            }
            DeclarationKind::ExternFunction(function) => {
                self.declare(name, Entity::Functions(vec![number]));
                self.signature(number, function);
            }
            DeclarationKind::Function(function) => {
                self.signature(number, function);
                if function.type_parameters.is_empty() {
                    self.context.limit = number.saturating_sub(1);
                    self.specific_function(number, function, Vec::new());
                    self.context.limit = number;
                }
                self.declare(name, Entity::Functions(vec![number]));
            }
            DeclarationKind::Action { parameters, body } => {
                let action = self.elsewhere(number, |checker| checker.action(declaration, parameters, body));
                self.actions.push(action);
                self.declare(name, Entity::GlobalAction(self.actions.len() - 1));
            }
            DeclarationKind::Parser(parser) => {
                self.types.names.insert(number, name.text.clone());
                if parser.body.is_some() && parser.type_parameters.is_empty() {
                    self.specific_parser(number, Vec::new());
                }
                self.declare(name, Entity::Type(TypeEntity::Parser(number)));
            }
            DeclarationKind::Control(control) => {
                self.types.names.insert(number, name.text.clone());
                if control.body.is_some() && control.type_parameters.is_empty() {
                    self.specific_control(number, Vec::new());
                }
                self.declare(name, Entity::Type(TypeEntity::Control(number)));
            }
            DeclarationKind::Package { .. } => {
                self.types.names.insert(number, name.text.clone());
                self.declare(name, Entity::Type(TypeEntity::Package(number)));
            }
            DeclarationKind::Table(_) | DeclarationKind::ValueSet { .. } => {
                self.error("place", name.span, "this can be declared only in a parser or control");
            }
        }
    }

    fn distinct(&mut self, names: &[Name]) -> Vec<Arc<str>> {
        let mut list: Vec<Arc<str>> = Vec::new();
        for name in names {
            if list.contains(&name.text) {
                self.error("duplicate", name.span, format!("'{}' is declared twice", name.text));
            } else {
                list.push(name.text.clone());
            }
        }
        list
    }

    pub(super) fn constant_declaration(&mut self, name: &Name, ty: &'a TypeRef, value: &'a Expr) {
        let ty = self.type_of(ty);
        let value = self.expression(value);
        let value = self.coerce(value, ty);
        if value.ty != Types::UNKNOWN && self.constant(&value).is_none() {
            let help = "only literals, other constants and expressions of them are constant";
            self.error_with_help("constant", value.span, "the value is not a compile-time constant", help);
        }
        self.declare(name, Entity::Const(value));
    }

    fn serializable_enum(&mut self, name: &Name, written: &'a TypeRef, members: &'a [(Name, Expr)]) {
        let ty = self.type_of(written);
        let ty = self.types.stripped(ty);
        if self.types.integer(ty).is_none() && ty != Types::UNKNOWN {
            let message = format!("an enum is represented by bit<N> or int<N>, not by {}", self.types.show(ty));
            self.error("type", written.span, message);
            return;
        }
        let names: Vec<Name> = members.iter().map(|(name, _)| name.clone()).collect();
        let names = self.distinct(&names);
        // Declare the type first: members may be computed from earlier ones.
        self.types.enums.push(EnumInfo {
            name: name.text.clone(),
            members: names,
            representation: Some((ty, Vec::new())),
        });
        let number = self.types.enums.len() - 1;
        let this = self.types.of(Type::Enum(number));
        self.declare(name, Entity::Type(TypeEntity::Plain(this)));
        for (_, value) in members {
            let value = self.expression(value);
            let value = self.coerce(value, ty);
            let constant = self.constant(&value);
            if constant.is_none() && value.ty != Types::UNKNOWN {
                self.error("constant", value.span, "the value of an enum member must be a constant");
            }
            if let Some((_, values)) = &mut self.types.enums[number].representation {
                values.push(constant.unwrap_or(Value::Int(0.into())));
            }
        }
    }

    /// Checks generic declarations that are never used, with type parameters as types.
    pub(super) fn unused_generics(&mut self) {
        for (number, declaration) in self.program.iter().enumerate() {
            if self.diagnostics.is_full() {
                return;
            }
            let names = self.type_parameters(number);
            if names.is_empty() {
                continue;
            }
            let names = names.to_vec();
            let arguments = |checker: &mut Self| {
                let variables = checker.elsewhere(number, |checker| checker.declare_type_parameters(&names));
                variables.into_iter().map(|number| checker.types.of(Type::Variable(number))).collect::<Vec<_>>()
            };
            match &declaration.kind {
                DeclarationKind::Function(function)
                    if !self.specific_functions.keys().any(|(other, _)| *other == number) =>
                {
                    let arguments = arguments(self);
                    self.specific_function(number, function, arguments);
                }
                DeclarationKind::Parser(parser)
                    if parser.body.is_some() && !self.specific_parsers.keys().any(|(other, _)| *other == number) =>
                {
                    let arguments = arguments(self);
                    self.specific_parser(number, arguments);
                }
                DeclarationKind::Control(control)
                    if control.body.is_some() && !self.specific_controls.keys().any(|(other, _)| *other == number) =>
                {
                    let arguments = arguments(self);
                    self.specific_control(number, arguments);
                }
                _ => {}
            }
        }
    }

    /// The control plane's name and id of a declaration, from its annotations.
    pub(super) fn naming(&self, declaration: &Declaration) -> Naming {
        let name = declaration.annotations.iter().find(|annotation| &*annotation.name == "name");
        let id = declaration.annotations.iter().find(|annotation| &*annotation.name == "id");
        Naming {
            name: name.and_then(|annotation| annotation.text.clone()),
            // An id that is too large fits no kind of object, so it is rejected later.
            id: id.and_then(|annotation| annotation.numbers.first()).map(|id| u32::try_from(*id).unwrap_or(u32::MAX)),
        }
    }

    /// The value of a constant integer expression.
    pub(super) fn constant_int(&mut self, expr: &'a Expr) -> Option<BigInt> {
        let value = self.expression(expr);
        if value.ty == Types::UNKNOWN {
            return None;
        }
        match self.constant(&value) {
            Some(Value::Int(number)) => Some(number),
            _ => {
                let help = "only literals, other constants and expressions of them are constant";
                self.error_with_help("constant", value.span, "expected a constant integer", help);
                None
            }
        }
    }

    /// The value of a constant integer expression as a machine integer.
    pub(super) fn constant_number(&mut self, expr: &'a Expr) -> Option<u64> {
        let value = self.constant_int(expr)?;
        let number = value.to_u64();
        if number.is_none() {
            self.error("constant", expr.span, format!("{value} is out of range"));
        }
        number
    }
}
