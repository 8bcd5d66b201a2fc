//! Member access: fields, members of enums, methods of headers, stacks, packets, externs and tables.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::Checker;
use super::call::accepts;
use super::infer::Bindings;
use super::scope::{Place, TypeEntity};
use crate::source::Span;
use crate::syntax::ast::{self, DeclarationKind, ExprKind as Syntax, Name, StructKind, TypeKind, TypeRef};
use crate::tree::{Argument, Call, Expr, ExprKind, InstanceRef, Target};
use crate::types::{Ty, Type, Types};
use crate::value::Value;

impl<'a> Checker<'a> {
    pub(super) fn member(&mut self, base: &'a ast::Expr, name: &Name, span: Span) -> Expr {
        if let Some(written) = self.as_type(base) {
            let ty = self.type_of(written);
            return self.type_member(ty, name, span);
        }
        // `t.apply().hit` is one operation: do not evaluate `t.apply()` as a value.
        let base = self.expression(base);
        match self.types.get(base.ty).clone() {
            Type::Unknown => self.unknown(span),
            Type::Struct(number) => {
                let fields = &self.types.structs[number].fields;
                match fields.iter().position(|(field, _)| *field == name.text) {
                    Some(place) => {
                        let ty = fields[place].1;
                        self.folded_field(base, place, ty, span)
                    }
                    None => self.no_member(base.ty, name),
                }
            }
            Type::Record(fields) => match fields.iter().position(|(field, _)| *field == name.text) {
                Some(place) => self.folded_field(base, place, fields[place].1, span),
                None => self.no_member(base.ty, name),
            },
            Type::Stack(element, size) => {
                let in_parser = self.context.place == Place::Parser;
                let bits32 = self.types.bits(32, false);
                let base = Box::new(base);
                let (kind, ty) = match &*name.text {
                    "size" => (ExprKind::Const(Value::Int(size.into())), bits32),
                    "next" if in_parser => (ExprKind::Next(base), element),
                    "last" if in_parser => (ExprKind::Last(base), element),
                    "lastIndex" if in_parser => (ExprKind::LastIndex(base), bits32),
                    "next" | "last" | "lastIndex" => {
                        let message = format!("'{}' can be used only in parsers", name.text);
                        self.error_with_help("place", name.span, message, "select an element by its index");
                        return self.unknown(span);
                    }
                    _ => return self.no_member(base.ty, name),
                };
                Expr { kind, ty, span }
            }
            Type::Applied(_) => {
                let ExprKind::Call(call) = base.kind else { return self.unknown(span) };
                match &*name.text {
                    "hit" => Expr { kind: ExprKind::Hit(call), ty: Types::BOOL, span },
                    "miss" => {
                        let hit = Expr { kind: ExprKind::Hit(call), ty: Types::BOOL, span };
                        let kind = ExprKind::Unary(ast::Unary::Not, Box::new(hit));
                        Expr { kind, ty: Types::BOOL, span }
                    }
                    "action_run" => {
                        self.error("place", name.span, "'action_run' can be used only in 'switch'");
                        self.unknown(span)
                    }
                    _ => self.no_member(base.ty, name),
                }
            }
            _ => self.no_member(base.ty, name),
        }
    }

    fn folded_field(&mut self, base: Expr, place: usize, ty: Ty, span: Span) -> Expr {
        self.folded(Expr { kind: ExprKind::Field(Box::new(base), place), ty, span })
    }

    fn no_member(&mut self, ty: Ty, name: &Name) -> Expr {
        let message = format!("{} has no member '{}'", self.types.show(ty), name.text);
        let help = self.types.structure(ty).map(|info| {
            let names: Vec<&str> = info.fields.iter().take(20).map(|(name, _)| &**name).collect();
            format!("it has: {}", names.join(", "))
        });
        let diagnostic = self.diagnostics.error("member", name.span, message);
        if let Some(help) = help {
            diagnostic.help(help);
        }
        self.unknown(name.span)
    }

    fn type_member(&mut self, ty: Ty, name: &Name, span: Span) -> Expr {
        let place = |list: &[Arc<str>]| list.iter().position(|member| *member == name.text);
        let value = match self.types.get(ty) {
            Type::Unknown => return self.unknown(span),
            Type::Error => place(&self.types.errors).map(|number| Value::Member(number as u32)),
            Type::MatchKind => place(&self.types.match_kinds).map(|number| Value::Member(number as u32)),
            Type::Enum(number) => {
                let info = &self.types.enums[*number];
                place(&info.members).and_then(|member| match &info.representation {
                    Some((_, values)) => values.get(member).cloned(),
                    None => Some(Value::Member(member as u32)),
                })
            }
            _ => None,
        };
        match value {
            Some(value) => self.literal(value, ty, span),
            None => self.no_member(ty, name),
        }
    }

    pub(super) fn method(
        &mut self,
        base: &'a ast::Expr,
        name: &Name,
        types: &'a [TypeRef],
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Expr {
        if let Some(written) = self.as_type(base) {
            match self.type_entity(written) {
                Some(TypeEntity::Parser(_) | TypeEntity::Control(_)) if &*name.text == "apply" => {
                    return self.apply_type(written, arguments, span);
                }
                _ => {}
            }
            let ty = self.type_of(written);
            return self.size_method(ty, name, span);
        }
        if let Syntax::This = base.kind {
            self.error("unsupported", span, "'this' is not supported");
            return self.unknown(span);
        }
        let base = self.expression(base);
        match self.types.get(base.ty).clone() {
            Type::Unknown => {
                self.given(arguments);
                self.unknown(span)
            }
            Type::Table(number) if &*name.text == "apply" => {
                if !arguments.is_empty() {
                    self.error("call", span, "a table is applied without arguments");
                }
                if self.context.place != Place::Control {
                    self.error("place", span, "tables can be applied only in the body of a control");
                }
                let ty = self.types.of(Type::Applied(number));
                let call = Call { target: Target::Table(number), arguments: Vec::new(), span };
                Expr { kind: ExprKind::Call(Box::new(call)), ty, span }
            }
            Type::Extern { declaration, arguments: class } => {
                self.object_method(base, declaration, &class, name, types, arguments, span)
            }
            Type::Parser { .. } | Type::Control { .. } if &*name.text == "apply" => self.apply(base, arguments, span),
            Type::Stack(..) if matches!(&*name.text, "push_front" | "pop_front") => {
                let [ast::Argument { value: Some(count), .. }] = arguments else {
                    self.error("call", span, format!("'{}' takes one constant number", name.text));
                    return self.unknown(span);
                };
                let Some(count) = self.constant_number(count) else { return self.unknown(span) };
                if !self.is_writable(&base) {
                    self.error("direction", base.span, "this cannot be changed");
                }
                let count = count.min(u64::from(u32::MAX)) as u32;
                let target = if &*name.text == "push_front" {
                    Target::PushFront(base, count)
                } else {
                    Target::PopFront(base, count)
                };
                self.void_call(target, span)
            }
            Type::Struct(_) if matches!(&*name.text, "isValid" | "setValid" | "setInvalid") => {
                self.validity(base, name, arguments, span)
            }
            _ => {
                let ty = base.ty;
                self.size_method(ty, name, span)
            }
        }
    }

    fn void_call(&mut self, target: Target, span: Span) -> Expr {
        let call = Call { target, arguments: Vec::new(), span };
        Expr { kind: ExprKind::Call(Box::new(call)), ty: Types::VOID, span }
    }

    fn validity(&mut self, base: Expr, name: &Name, arguments: &[ast::Argument], span: Span) -> Expr {
        if !arguments.is_empty() {
            self.error("call", span, format!("'{}' takes no arguments", name.text));
        }
        let header = self.types.is_kind(base.ty, StructKind::Header);
        let union = self.types.is_kind(base.ty, StructKind::Union);
        if !(header || union && &*name.text == "isValid") {
            return self.no_member(base.ty, name);
        }
        if &*name.text == "isValid" {
            return Expr { kind: ExprKind::IsValid(Box::new(base)), ty: Types::BOOL, span };
        }
        if !self.is_writable(&base) {
            self.error("direction", base.span, "the validity of this header cannot be changed");
        }
        let target = if &*name.text == "setValid" { Target::SetValid(base) } else { Target::SetInvalid(base) };
        self.void_call(target, span)
    }

    /// `minSizeInBits()` and similar methods, which are constants.
    fn size_method(&mut self, ty: Ty, name: &Name, span: Span) -> Expr {
        if ty == Types::UNKNOWN {
            return self.unknown(span);
        }
        let largest = self.types.width(ty);
        let least = self.least_width(ty);
        let (Some(largest), Some(least)) = (largest, least) else { return self.no_member(ty, name) };
        let value = match &*name.text {
            "minSizeInBits" => least,
            "maxSizeInBits" => largest,
            "minSizeInBytes" => least.div_ceil(8),
            "maxSizeInBytes" => largest.div_ceil(8),
            _ => return self.no_member(ty, name),
        };
        self.literal(Value::Int(BigInt::from(value)), Types::INT, span)
    }

    fn least_width(&self, ty: Ty) -> Option<u64> {
        match self.types.get(ty) {
            Type::Varbit(_) => Some(0),
            Type::Stack(element, count) => Some(self.least_width(*element)?.saturating_mul(u64::from(*count))),
            Type::Struct(number) => {
                let info = &self.types.structs[*number];
                let widths: Option<Vec<u64>> = info.fields.iter().map(|(_, ty)| self.least_width(*ty)).collect();
                let widths = widths?;
                Some(match info.kind {
                    StructKind::Union => widths.into_iter().min().unwrap_or(0),
                    _ => widths.into_iter().fold(0, u64::saturating_add),
                })
            }
            _ => self.types.width(ty),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "these are the parts of a method call")]
    fn object_method(
        &mut self,
        object: Expr,
        declaration: usize,
        class: &[Ty],
        name: &Name,
        types: &'a [TypeRef],
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Expr {
        let DeclarationKind::ExternObject { methods, .. } = &self.program[declaration].kind else {
            return self.unknown(span);
        };
        let given = self.given(arguments);
        let named: Vec<&ast::Function> = methods.iter().filter(|method| method.name.text == name.text).collect();
        if named.is_empty() {
            return self.no_member(object.ty, name);
        }
        let Some(method) = named.into_iter().find(|method| accepts(&method.parameters, &given)) else {
            self.no_candidate(name, span, given.len());
            return self.unknown(span);
        };
        let signature = self.signature(declaration, method);
        let mut bindings = Bindings::new();
        if let Some(variables) = self.class_variables.get(&declaration) {
            bindings.extend(variables.iter().copied().zip(class.iter().copied()));
        }
        let explicit = self.explicit(types);
        let Some((arguments, bindings)) = self.bind(&signature, bindings, explicit, given, name, span) else {
            return self.unknown(span);
        };
        let returns = signature.returns.unwrap_or(Types::VOID);
        let ty = self.types.substitute(returns, &bindings);
        self.extern_result(ty, name, span);
        let class = self.types.names.get(&declaration).cloned().unwrap_or_else(|| "".into());
        let in_packet = &*class == "packet_in";
        if in_packet && self.context.place != Place::Parser {
            self.error("place", span, "packets can be read only in parsers");
        }
        if in_packet && &*name.text == "extract" {
            self.extracted(&arguments, span);
        }
        if &*class == "packet_out"
            && let Some(argument) = arguments.first()
        {
            let fine = self.has_header(argument.ty) || argument.ty == Types::UNKNOWN || self.types.is_open(argument.ty);
            if !fine && self.types.components(argument.ty).is_none_or(|list| !list.is_empty()) {
                let message = format!("'emit' takes headers, not {}", self.types.show(argument.ty));
                self.error("type", span, message);
            }
        }
        let target = Target::Method { object, class, name: name.text.clone() };
        Expr { kind: ExprKind::Call(Box::new(Call { target, arguments, span })), ty, span }
    }

    /// Checks the arguments of `extract`: a header, and with a length argument a header with a varbit field.
    fn extracted(&mut self, arguments: &[Argument], span: Span) {
        let Some(ty) = arguments.first().map(|argument| argument.ty) else { return };
        if ty == Types::UNKNOWN || self.types.is_open(ty) {
            return;
        }
        if !self.types.is_kind(ty, StructKind::Header) {
            let message = format!("'extract' reads headers, not {}", self.types.show(ty));
            self.error("type", span, message);
            return;
        }
        let fields = self.types.components(ty).unwrap_or_default();
        let varbits = fields.iter().filter(|ty| matches!(self.types.get(**ty), Type::Varbit(_))).count();
        if varbits != arguments.len() - 1 {
            let help =
                "extract(header) needs a header without varbit fields, extract(header, bits) one with exactly one";
            let message = format!("the header has {varbits} fields of type varbit");
            self.error_with_help("type", span, message, help);
        }
    }

    /// `instance.apply(…)`
    pub(super) fn apply(&mut self, object: Expr, arguments: &'a [ast::Argument], span: Span) -> Expr {
        let (parser, declaration, class) = match self.types.get(object.ty).clone() {
            Type::Parser { declaration, arguments } => (true, declaration, arguments),
            Type::Control { declaration, arguments } => (false, declaration, arguments),
            _ => return self.unknown(span),
        };
        let wanted = if parser { Place::Parser } else { Place::Control };
        if self.context.place != wanted {
            self.error("place", span, "parsers can be applied only in parsers, and controls only in controls");
        }
        let signature = self.apply_signature(declaration);
        let bindings: Bindings = signature.variables.iter().copied().zip(class).collect();
        let given = self.given(arguments);
        let name = Name { text: "apply".into(), span };
        let Some((arguments, _)) = self.bind(&signature, bindings, Vec::new(), given, &name, span) else {
            return self.unknown(span);
        };
        let target = match object.kind {
            ExprKind::Instance(instance) => Target::Apply(instance),
            _ => Target::ApplyArgument(object),
        };
        Expr { kind: ExprKind::Call(Box::new(Call { target, arguments, span })), ty: Types::VOID, span }
    }

    /// `T.apply(…)`: creates an instance for this call.
    fn apply_type(&mut self, written: &'a TypeRef, arguments: &'a [ast::Argument], span: Span) -> Expr {
        let constructed = self.construct(written, &[], span);
        let ExprKind::Construct(mut instance) = constructed.kind else { return self.unknown(span) };
        let Some(shell) = &mut self.context.shell else { return self.unknown(span) };
        let place = shell.instances.len();
        if let TypeKind::Named { name, .. } = &written.kind {
            instance.name = name.text.clone();
        }
        shell.instances.push(*instance);
        let kind = ExprKind::Instance(InstanceRef::Member(place));
        let object = Expr { kind, ty: constructed.ty, span };
        self.apply(object, arguments, span)
    }

    /// The number of a constant argument.
    pub(super) fn argument_number(&mut self, expr: &Expr) -> Option<u64> {
        match self.constant(expr) {
            Some(Value::Int(number)) => number.to_u64(),
            _ => None,
        }
    }
}
