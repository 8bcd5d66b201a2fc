//! Resolves written types.

use std::collections::HashMap;
use std::sync::Arc;

use num_traits::ToPrimitive;

use super::Checker;
use super::scope::{Entity, TypeEntity};
use crate::syntax::ast::{self, DeclarationKind, Name, StructKind, TypeKind, TypeRef};
use crate::syntax::number::MAX_WIDTH;
use crate::types::{MAX_LEAVES, StructInfo, Ty, Type, Types};

impl<'a> Checker<'a> {
    pub(super) fn type_of(&mut self, written: &'a TypeRef) -> Ty {
        let ty = self.type_inner(written);
        if self.types.is_too_large(ty) {
            self.error(
                "limit",
                written.span,
                format!("a value of this type has more than {MAX_LEAVES} parts, or is nested too deeply"),
            );
            return Types::UNKNOWN;
        }
        ty
    }

    fn type_inner(&mut self, written: &'a TypeRef) -> Ty {
        match &written.kind {
            TypeKind::Bool => Types::BOOL,
            TypeKind::Error => Types::ERROR,
            TypeKind::String => Types::STRING,
            TypeKind::Int => Types::INT,
            TypeKind::Void => Types::VOID,
            TypeKind::MatchKind => Types::MATCH_KIND,
            TypeKind::DontCare => Types::DONT_CARE,
            TypeKind::Bit(width) => self.width(width, 0).map_or(Types::UNKNOWN, |width| self.types.bits(width, false)),
            TypeKind::SignedInt(width) => {
                self.width(width, 1).map_or(Types::UNKNOWN, |width| self.types.bits(width, true))
            }
            TypeKind::Varbit(width) => {
                self.width(width, 0).map_or(Types::UNKNOWN, |width| self.types.of(Type::Varbit(width)))
            }
            TypeKind::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.type_of(element)).collect();
                self.types.of(Type::Tuple(elements))
            }
            TypeKind::List(element) => {
                let element = self.type_of(element);
                self.types.of(Type::List(element))
            }
            TypeKind::Stack(element, size) => {
                let ty = self.type_of(element);
                let Some(count) = self.constant_int(size) else { return Types::UNKNOWN };
                let count = count.to_u64().unwrap_or(u64::MAX);
                if count.saturating_mul(self.types.leaves(ty)) > MAX_LEAVES {
                    self.error("limit", size.span, format!("an array must have at most {MAX_LEAVES} parts"));
                    return Types::UNKNOWN;
                }
                if matches!(self.types.get(ty), Type::Void | Type::Int | Type::String | Type::Extern { .. }) {
                    let message = format!("{} cannot be the element type of an array", self.types.show(ty));
                    self.error("type", element.span, message);
                    return Types::UNKNOWN;
                }
                self.types.of(Type::Stack(ty, count as u32))
            }
            TypeKind::Named { name, global, arguments } => {
                let arguments: Vec<Ty> = arguments.iter().map(|argument| self.type_of(argument)).collect();
                self.named_type(name, *global, arguments)
            }
        }
    }

    fn width(&mut self, expr: &'a ast::Expr, least: u32) -> Option<u32> {
        let value = self.constant_int(expr)?;
        match value.to_u32().filter(|width| (least..=MAX_WIDTH).contains(width)) {
            Some(width) => Some(width),
            None => {
                self.error("width", expr.span, format!("a width must be from {least} to {MAX_WIDTH}, not {value}"));
                None
            }
        }
    }

    fn named_type(&mut self, name: &Name, global: bool, arguments: Vec<Ty>) -> Ty {
        let entity = match self.lookup(name, global) {
            Some(Entity::Type(entity)) => entity,
            Some(_) => {
                self.error("type", name.span, format!("'{}' is not a type", name.text));
                return Types::UNKNOWN;
            }
            None => {
                let message = format!("there is no type '{}' in this scope", name.text);
                self.error_with_help("unknown", name.span, message, "types must be declared before they are used");
                return Types::UNKNOWN;
            }
        };
        self.applied_type(entity, arguments, name)
    }

    /// A type with its arguments; without arguments, they are still to be inferred.
    pub(super) fn applied_type(&mut self, entity: TypeEntity, arguments: Vec<Ty>, name: &Name) -> Ty {
        if matches!(entity, TypeEntity::Plain(_)) && !arguments.is_empty() {
            self.error("type", name.span, format!("'{}' takes no type arguments", name.text));
        }
        let declaration = match entity {
            TypeEntity::Plain(ty) => return ty,
            TypeEntity::Struct(number)
            | TypeEntity::Extern(number)
            | TypeEntity::Parser(number)
            | TypeEntity::Control(number)
            | TypeEntity::Package(number) => number,
        };
        let wanted = self.type_parameters(declaration).len();
        if !arguments.is_empty() && arguments.len() != wanted {
            let given = arguments.len();
            self.error("type", name.span, format!("'{}' takes {wanted} type arguments, not {given}", name.text));
            return Types::UNKNOWN;
        }
        match entity {
            TypeEntity::Plain(ty) => ty,
            TypeEntity::Struct(declaration) => self.struct_with(declaration, arguments),
            TypeEntity::Extern(declaration) => self.types.of(Type::Extern { declaration, arguments }),
            TypeEntity::Parser(declaration) => self.types.of(Type::Parser { declaration, arguments }),
            TypeEntity::Control(declaration) => self.types.of(Type::Control { declaration, arguments }),
            TypeEntity::Package(declaration) => self.types.of(Type::Package { declaration, arguments }),
        }
    }

    /// The names of the type parameters of a declaration.
    pub(super) fn type_parameters(&self, declaration: usize) -> &[Name] {
        match &self.program[declaration].kind {
            DeclarationKind::Struct { type_parameters, .. }
            | DeclarationKind::ExternObject { type_parameters, .. }
            | DeclarationKind::Package { type_parameters, .. } => type_parameters,
            DeclarationKind::Parser(parser) => &parser.type_parameters,
            DeclarationKind::Control(control) => &control.type_parameters,
            DeclarationKind::ExternFunction(function) | DeclarationKind::Function(function) => {
                &function.type_parameters
            }
            _ => &[],
        }
    }

    /// Creates type parameters for a list of names and declares them in the innermost scope.
    pub(super) fn declare_type_parameters(&mut self, names: &[Name]) -> Vec<u32> {
        let mut numbers = Vec::new();
        for name in names {
            self.types.variables.push(name.text.clone());
            let number = self.types.variables.len() as u32 - 1;
            numbers.push(number);
            let ty = self.types.of(Type::Variable(number));
            self.declare(name, Entity::Type(TypeEntity::Plain(ty)));
        }
        numbers
    }

    /// Substitutes arguments in a generic struct. The struct was made when it was declared, with its own type
    /// parameters as arguments.
    fn struct_with(&mut self, declaration: usize, arguments: Vec<Ty>) -> Ty {
        let Some(generic) = self.generic_struct(declaration) else { return Types::UNKNOWN };
        let Some(info) = self.types.structure(generic).cloned() else { return Types::UNKNOWN };
        if arguments.is_empty() {
            return generic;
        }
        let mut map = HashMap::new();
        for (variable, argument) in info.arguments.iter().zip(&arguments) {
            if let Type::Variable(number) = self.types.get(*variable) {
                map.insert(*number, *argument);
            }
        }
        let ty = self.types.substitute(generic, &map);
        self.check_fields(declaration, ty);
        ty
    }

    fn generic_struct(&self, declaration: usize) -> Option<Ty> {
        let found = self.types.structs.iter().find(|info| info.declaration == declaration)?;
        self.types.struct_numbers.get(&(declaration, found.arguments.clone())).copied()
    }

    /// Declares a struct, header or header union.
    pub(super) fn declare_struct(&mut self, number: usize, kind: StructKind, names: &[Name], fields: &'a [ast::Field]) {
        let (arguments, list) = self.scoped(|checker| {
            let variables = checker.declare_type_parameters(names);
            let arguments: Vec<Ty> =
                variables.into_iter().map(|number| checker.types.of(Type::Variable(number))).collect();
            let mut list: Vec<(Arc<str>, Ty)> = Vec::new();
            for field in fields {
                let ty = checker.type_of(&field.ty);
                if list.iter().any(|(name, _)| *name == field.name.text) {
                    checker.error(
                        "duplicate",
                        field.name.span,
                        format!("two fields have the name '{}'", field.name.text),
                    );
                }
                list.push((field.name.text.clone(), ty));
            }
            (arguments, list)
        });
        let declaration = &self.program[number];
        let name = declaration.name.text.clone();
        let field_lists = fields
            .iter()
            .map(|field| {
                let lists = field.annotations.iter().filter(|annotation| &*annotation.name == "field_list");
                lists
                    .flat_map(|annotation| &annotation.values)
                    .filter_map(|value| self.constant_number(value))
                    .collect()
            })
            .collect();
        let matches = fields
            .iter()
            .map(|field| {
                let found = field.annotations.iter().find(|annotation| &*annotation.name == "match");
                found.and_then(|annotation| annotation.word.clone())
            })
            .collect();
        let controller = declaration.annotations.iter().find(|annotation| &*annotation.name == "controller_header");
        let controller = controller.and_then(|annotation| annotation.text.clone());
        let info =
            StructInfo { name, kind, declaration: number, arguments, fields: list, field_lists, matches, controller };
        let ty = self.types.struct_type(info);
        if self.types.is_too_large(ty) {
            self.error(
                "limit",
                declaration.name.span,
                format!("a value of this type has more than {MAX_LEAVES} parts, or is nested too deeply"),
            );
        }
        self.check_fields(number, ty);
        let ty = if self.types.is_too_large(ty) { Types::UNKNOWN } else { ty };
        let entity = if names.is_empty() { TypeEntity::Plain(ty) } else { TypeEntity::Struct(number) };
        self.declare(&declaration.name, Entity::Type(entity));
    }

    /// Checks that the fields of a struct, header or union have types that it may contain.
    fn check_fields(&mut self, declaration: usize, ty: Ty) {
        let DeclarationKind::Struct { fields: written, .. } = &self.program[declaration].kind else { return };
        let Some(info) = self.types.structure(ty).cloned() else { return };
        for (field, (_, ty)) in written.iter().zip(&info.fields) {
            let fine = match (info.kind, self.types.get(*ty)) {
                (_, Type::Unknown | Type::Variable(_)) => true,
                (StructKind::Union, _) => self.types.is_kind(*ty, StructKind::Header),
                (StructKind::Header, Type::Bits { .. } | Type::Bool | Type::Varbit(_)) => true,
                (StructKind::Header, Type::Enum(_) | Type::New(_)) => self.types.width(*ty).is_some(),
                (StructKind::Header, Type::Struct(_) | Type::Stack(..)) => {
                    self.types.width(*ty).is_some() && !self.has_header(*ty)
                }
                (StructKind::Header, _) => false,
                (StructKind::Struct, other) => !matches!(
                    other,
                    Type::Void
                        | Type::Int
                        | Type::Extern { .. }
                        | Type::Parser { .. }
                        | Type::Control { .. }
                        | Type::Package { .. }
                        | Type::MatchKind
                        | Type::DontCare
                ),
            };
            if !fine {
                let of = match info.kind {
                    StructKind::Header => "a header",
                    StructKind::Union => "a header union",
                    StructKind::Struct => "a struct",
                };
                let message = format!("{of} cannot have fields of type {}", self.types.show(*ty));
                self.error("field", field.ty.span, message);
            }
        }
    }

    pub(super) fn has_header(&self, ty: Ty) -> bool {
        match self.types.get(ty) {
            Type::Stack(element, _) => self.has_header(*element),
            Type::Struct(number) => {
                let info = &self.types.structs[*number];
                info.kind != StructKind::Struct || info.fields.iter().any(|(_, ty)| self.has_header(*ty))
            }
            _ => false,
        }
    }
}
