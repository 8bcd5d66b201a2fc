//! Instances of externs, parsers, controls and packages.

use super::Checker;
use super::infer::Bindings;
use super::scope::{Entity, Place, TypeEntity};
use super::signature::Signature;
use crate::source::Span;
use crate::syntax::ast::{self, Declaration, DeclarationKind, Name, TypeKind, TypeRef};
use crate::tree::{Class, Expr, ExprKind, Instance, InstanceRef, Naming};
use crate::types::{Ty, Type, Types};

impl<'a> Checker<'a> {
    pub(super) fn instance_declaration(
        &mut self,
        declaration: &'a Declaration,
        ty: &'a TypeRef,
        arguments: &'a [ast::Argument],
        methods: &'a [Declaration],
    ) {
        let name = &declaration.name;
        if !methods.is_empty() {
            self.error("unsupported", name.span, "abstract methods are not supported");
        }
        let made = self.construct(ty, arguments, declaration.span);
        let ExprKind::Construct(mut instance) = made.kind else { return };
        instance.name = name.text.clone();
        instance.naming = self.naming(declaration);
        if self.context.place == Place::Top {
            if matches!(instance.class, Class::Parser(_) | Class::Control(_)) {
                let help = "declare it inside the parser or control that applies it";
                self.error_with_help(
                    "place",
                    name.span,
                    "parsers and controls cannot be instantiated at the top level",
                    help,
                );
            }
            self.instances.push(*instance);
            let place = InstanceRef::Global(self.instances.len() - 1);
            self.declare(name, Entity::Instance(place, made.ty));
        } else {
            let shell = self.context.shell.get_or_insert_default();
            shell.instances.push(*instance);
            let place = InstanceRef::Member(shell.instances.len() - 1);
            self.declare(name, Entity::Instance(place, made.ty));
        }
    }

    /// `T(arguments)` or `T<A>(arguments)`
    pub(super) fn construct(&mut self, written: &'a TypeRef, arguments: &'a [ast::Argument], span: Span) -> Expr {
        let TypeKind::Named { name, arguments: types, .. } = &written.kind else {
            self.error("type", written.span, "this type cannot be instantiated");
            return self.unknown(span);
        };
        let (number, explicit) = match self.type_entity(written) {
            None => {
                self.type_of(written);
                return self.unknown(span);
            }
            Some(TypeEntity::Plain(ty)) => match self.types.get(ty).clone() {
                Type::Extern { declaration, arguments }
                | Type::Parser { declaration, arguments }
                | Type::Control { declaration, arguments }
                | Type::Package { declaration, arguments } => (declaration, arguments),
                Type::Unknown => return self.unknown(span),
                _ => {
                    let message = format!("{} cannot be instantiated", self.types.show(ty));
                    self.error_with_help("type", span, message, "write a cast as (TYPE)(…)");
                    return self.unknown(span);
                }
            },
            Some(TypeEntity::Struct(_)) => {
                self.error_with_help("type", span, "structs cannot be instantiated", "write a list: {…}");
                return self.unknown(span);
            }
            Some(
                TypeEntity::Extern(number)
                | TypeEntity::Parser(number)
                | TypeEntity::Control(number)
                | TypeEntity::Package(number),
            ) => (number, self.explicit(types)),
        };
        let given = self.given(arguments);
        let candidates = self.constructor_signatures(number);
        let fits = |signature: &Signature| {
            let least = signature.parameters.iter().filter(|p| p.default.is_none() && !p.optional).count();
            (least..=signature.parameters.len()).contains(&given.len())
        };
        let Some(signature) = candidates.into_iter().find(fits) else {
            self.no_candidate(name, span, given.len());
            return self.unknown(span);
        };
        let Some((arguments, bindings)) = self.bind(&signature, Bindings::new(), explicit, given, name, span) else {
            return self.unknown(span);
        };
        let types: Vec<Ty> = signature
            .variables
            .iter()
            .map(|number| match bindings.get(number) {
                Some(ty) => *ty,
                None => self.types.of(Type::Variable(*number)),
            })
            .collect();
        self.constructed(number, name, types, arguments.into_iter().map(|argument| argument.value).collect(), span)
    }

    fn constructed(
        &mut self,
        number: usize,
        name: &Name,
        types: Vec<Ty>,
        arguments: Vec<Option<Expr>>,
        span: Span,
    ) -> Expr {
        for argument in arguments.iter().flatten() {
            let fixed =
                matches!(argument.kind, ExprKind::Construct(_) | ExprKind::Instance(_) | ExprKind::Constructed(_))
                    || self.constant(argument).is_some()
                    || argument.ty == Types::UNKNOWN;
            if !fixed && !self.depends_on_constructor(argument) {
                self.error("constant", argument.span, "constructor arguments must be constants");
            }
        }
        let declaration = &self.program[number];
        if let DeclarationKind::ExternObject { methods, .. } = &declaration.kind
            && methods.iter().any(|method| method.is_abstract)
        {
            self.error("unsupported", span, "abstract methods are not supported");
            return self.unknown(span);
        }
        let (class, ty) = match &declaration.kind {
            DeclarationKind::ExternObject { .. } => {
                (Class::Extern(declaration.name.text.clone()), Type::Extern { declaration: number, arguments: types })
            }
            DeclarationKind::Package { .. } => {
                (Class::Package(declaration.name.text.clone()), Type::Package { declaration: number, arguments: types })
            }
            DeclarationKind::Parser(_) => match self.specific_parser(number, types.clone()) {
                Some(parser) => (Class::Parser(parser), Type::Parser { declaration: number, arguments: types }),
                None => return self.no_body(name, span),
            },
            DeclarationKind::Control(_) => match self.specific_control(number, types.clone()) {
                Some(control) => (Class::Control(control), Type::Control { declaration: number, arguments: types }),
                None => return self.no_body(name, span),
            },
            _ => return self.unknown(span),
        };
        let ty = self.types.of(ty);
        let instance =
            Instance { name: declaration.name.text.clone(), naming: Naming::default(), class, arguments, ty };
        Expr { kind: ExprKind::Construct(Box::new(instance)), ty, span }
    }

    fn no_body(&mut self, name: &Name, span: Span) -> Expr {
        let message = format!("'{}' has no body and cannot be instantiated", name.text);
        self.error("type", span, message);
        self.unknown(span)
    }

    /// True if an expression is computed only from constants and constructor arguments.
    pub(super) fn depends_on_constructor(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Constructed(_) | ExprKind::Const(_) => true,
            ExprKind::Cast(inner)
            | ExprKind::Unary(_, inner)
            | ExprKind::Slice(inner, ..)
            | ExprKind::Field(inner, _) => self.depends_on_constructor(inner),
            ExprKind::Binary(_, left, right) => self.depends_on_constructor(left) && self.depends_on_constructor(right),
            ExprKind::Parts(parts) => parts.iter().all(|part| self.depends_on_constructor(part)),
            _ => false,
        }
    }
}
