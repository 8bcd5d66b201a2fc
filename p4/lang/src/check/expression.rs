//! Expressions.

use std::cmp::Ordering;
use std::sync::Arc;

use num_traits::ToPrimitive;

use super::Checker;
use super::scope::{Entity, TypeEntity};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind as Syntax, Name, TypeKind, TypeRef};
use crate::tree::{Expr, ExprKind};
use crate::types::{MAX_LEAVES, Ty, Type, Types};
use crate::value::Value;

impl<'a> Checker<'a> {
    pub(super) fn expression(&mut self, expr: &'a ast::Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            Syntax::Bool(value) => self.literal(Value::Bool(*value), Types::BOOL, span),
            Syntax::Int(literal) => {
                let ty = literal.width.map_or(Types::INT, |(width, signed)| self.types.bits(width, signed));
                let constant = self.literal(Value::Int(literal.value.clone()), Types::INT, span);
                if ty == Types::INT { constant } else { self.coerce(constant, ty) }
            }
            Syntax::Str(text) => self.literal(Value::Text(text.clone()), Types::STRING, span),
            Syntax::Name { name, global } => self.name_expression(name, *global),
            Syntax::This => {
                self.error("unsupported", span, "'this' is not supported");
                self.unknown(span)
            }
            Syntax::Type(ty) => {
                let ty = self.type_of(ty);
                if ty != Types::UNKNOWN {
                    let message = format!("expected a value, found the type {}", self.types.show(ty));
                    self.error("type", span, message);
                }
                self.unknown(span)
            }
            Syntax::Member(base, name) => self.member(base, name, span),
            Syntax::Index(base, index) => self.index(base, index, span),
            Syntax::Slice(base, high, low) => {
                let base = self.expression(base);
                let (high, low) = (self.constant_number(high), self.constant_number(low));
                match (high, low) {
                    (Some(high), Some(low)) => self.slice(base, high, low, span),
                    _ => self.unknown(span),
                }
            }
            Syntax::SliceFrom(base, low, width) => {
                let base = self.expression(base);
                let (low, width) = (self.constant_number(low), self.constant_number(width));
                match (low, width) {
                    (Some(low), Some(width)) if width > 0 => self.slice(base, low.saturating_add(width - 1), low, span),
                    (Some(_), Some(_)) => {
                        self.error("slice", span, "a slice must have at least one bit");
                        self.unknown(span)
                    }
                    _ => self.unknown(span),
                }
            }
            Syntax::Unary(operator, value) => {
                let value = self.expression(value);
                self.unary(*operator, value, span)
            }
            Syntax::Binary(operator, left, right) => {
                let left = self.expression(left);
                let right = self.expression(right);
                self.binary(*operator, left, right, span)
            }
            Syntax::Choice(condition, yes, no) => {
                let condition = self.expression(condition);
                let condition = self.coerce(condition, Types::BOOL);
                let yes = self.expression(yes);
                let no = self.expression(no);
                let (yes, no) = self.same_type(yes, no, span);
                if yes.ty == Types::INT {
                    let Some(Value::Bool(choice)) = self.constant(&condition) else {
                        let help = "give one of the two numbers a width, as in 8w1";
                        self.error_with_help("type", span, "the width of this number is unknown", help);
                        return self.unknown(span);
                    };
                    return if choice { yes } else { no };
                }
                let ty = yes.ty;
                Expr { kind: ExprKind::Choice(Box::new(condition), Box::new(yes), Box::new(no)), ty, span }
            }
            Syntax::Cast(ty, value) => {
                let ty = self.type_of(ty);
                let value = self.expression(value);
                self.cast(value, ty, span)
            }
            Syntax::Mask(left, right) | Syntax::Range(left, right) => {
                let left = self.expression(left);
                let right = self.expression(right);
                let (left, right) = self.same_type(left, right, span);
                let ty = left.ty;
                let (left, right) = (Box::new(left), Box::new(right));
                let kind = if matches!(expr.kind, Syntax::Mask(..)) {
                    ExprKind::Mask(left, right)
                } else {
                    ExprKind::Range(left, right)
                };
                Expr { kind, ty, span }
            }
            Syntax::Call { function, types, arguments } => self.call(function, types, arguments, span),
            Syntax::List { elements, rest } => {
                let parts: Vec<Expr> = elements.iter().map(|element| self.expression(element)).collect();
                let types = parts.iter().map(|part| part.ty).collect();
                let ty = self.types.of(Type::Tuple(types));
                self.parts(parts, ty, *rest, span)
            }
            Syntax::Record { fields, rest } => {
                let mut names: Vec<(Arc<str>, Ty)> = Vec::new();
                let mut parts = Vec::new();
                for (name, value) in fields {
                    if names.iter().any(|(other, _)| *other == name.text) {
                        self.error("duplicate", name.span, format!("'{}' is set twice", name.text));
                        continue;
                    }
                    let value = self.expression(value);
                    names.push((name.text.clone(), value.ty));
                    parts.push(value);
                }
                let ty = self.types.of(Type::Record(names));
                self.parts(parts, ty, *rest, span)
            }
            Syntax::Invalid => Expr { kind: ExprKind::Parts(Vec::new()), ty: Types::INVALID, span },
            Syntax::DontCare => Expr { kind: ExprKind::DontCare, ty: Types::DONT_CARE, span },
        }
    }

    pub(super) fn literal(&self, value: Value, ty: Ty, span: Span) -> Expr {
        Expr { kind: ExprKind::Const(value), ty, span }
    }

    fn parts(&mut self, parts: Vec<Expr>, ty: Ty, rest: bool, span: Span) -> Expr {
        if self.types.is_too_large(ty) {
            self.error("limit", span, format!("a list must have at most {MAX_LEAVES} parts"));
            return self.unknown(span);
        }
        let ty = if rest { self.types.of(Type::Partial(ty)) } else { ty };
        Expr { kind: ExprKind::Parts(parts), ty, span }
    }

    fn name_expression(&mut self, name: &Name, global: bool) -> Expr {
        let span = name.span;
        let (kind, ty) = match self.lookup(name, global) {
            Some(Entity::Const(value)) => return Expr { span, ..value },
            Some(Entity::Variable { variable, ty, .. }) => (ExprKind::Variable(variable), ty),
            Some(Entity::Constructed { index, ty }) => (ExprKind::Constructed(index), ty),
            Some(Entity::Instance(instance, ty)) => (ExprKind::Instance(instance), ty),
            Some(Entity::ValueSet(number, ty)) => (ExprKind::ValueSet(number), ty),
            Some(Entity::Table(number)) => {
                let ty = self.types.of(Type::Table(number));
                (ExprKind::DontCare, ty)
            }
            Some(Entity::Type(_)) => {
                self.error("type", span, format!("expected a value, found the type '{}'", name.text));
                return self.unknown(span);
            }
            Some(Entity::Functions(_) | Entity::Action(_) | Entity::GlobalAction(_)) => {
                let message = format!("'{}' is not a value; call it with '(…)'", name.text);
                self.error("type", span, message);
                return self.unknown(span);
            }
            None => {
                let message = format!("there is no '{}' in this scope", name.text);
                let help = match self.similar(&name.text) {
                    Some(similar) => format!("did you mean '{similar}'?"),
                    None => "names must be declared before they are used".into(),
                };
                self.error_with_help("unknown", span, message, help);
                return self.unknown(span);
            }
        };
        Expr { kind, ty, span }
    }

    /// A visible name that is similar to an unknown one.
    fn similar(&self, name: &str) -> Option<String> {
        let visible = self.context.scopes.iter().flat_map(|scope| scope.keys()).chain(self.globals.keys());
        let lower = name.to_ascii_lowercase();
        let mut found: Vec<&str> = visible
            .map(|other| &**other)
            .filter(|other| {
                let other = other.to_ascii_lowercase();
                other == lower
                    || (lower.len() > 3
                        && other.len().abs_diff(lower.len()) <= 1
                        && one_edit(other.as_bytes(), lower.as_bytes()))
            })
            .collect();
        found.sort_unstable();
        found.first().map(|name| (*name).to_owned())
    }

    fn index(&mut self, base: &'a ast::Expr, index: &'a ast::Expr, span: Span) -> Expr {
        let base = self.expression(base);
        let index = self.expression(index);
        match self.types.get(base.ty).clone() {
            Type::Unknown => self.unknown(span),
            Type::Stack(element, size) => {
                let index = self.index_value(index);
                if let Some(Value::Int(number)) = self.constant(&index)
                    && (number < 0.into() || number >= size.into())
                {
                    let message = format!("index {number} is out of range for an array of {size}");
                    self.error("index", index.span, message);
                    return self.unknown(span);
                }
                Expr { kind: ExprKind::Index(Box::new(base), Box::new(index)), ty: element, span }
            }
            Type::Tuple(elements) => {
                let Some(Value::Int(number)) = self.constant(&index) else {
                    self.error("constant", index.span, "the index of a tuple must be a constant");
                    return self.unknown(span);
                };
                let number = number.to_usize().unwrap_or(usize::MAX);
                match elements.get(number) {
                    Some(ty) => Expr { kind: ExprKind::Field(Box::new(base), number), ty: *ty, span },
                    None => {
                        let message = format!("the tuple has {} elements", elements.len());
                        self.error("index", index.span, message);
                        self.unknown(span)
                    }
                }
            }
            _ => {
                let message = format!("{} has no elements", self.types.show(base.ty));
                self.error("type", base.span, message);
                self.unknown(span)
            }
        }
    }

    /// Checks that an index is an integer, of any type.
    fn index_value(&mut self, index: Expr) -> Expr {
        let stripped = self.types.stripped(index.ty);
        if stripped == Types::UNKNOWN || stripped == Types::INT || self.types.representation(stripped).is_some() {
            return index;
        }
        let message = format!("an index must be an integer, not {}", self.types.show(index.ty));
        self.error("type", index.span, message);
        self.unknown(index.span)
    }

    fn slice(&mut self, base: Expr, high: u64, low: u64, span: Span) -> Expr {
        if base.ty == Types::UNKNOWN {
            return self.unknown(span);
        }
        let Some((width, _)) = self.types.integer(base.ty) else {
            let message = format!("{} cannot be sliced", self.types.show(base.ty));
            self.error_with_help("slice", base.span, message, "only values of type bit<N> and int<N> have slices");
            return self.unknown(span);
        };
        if low > high || high >= u64::from(width) {
            let message = format!("bits {high} to {low} are not a slice of a value of {width} bits");
            self.error_with_help("slice", span, message, "write [HIGHEST:LOWEST], counted from 0");
            return self.unknown(span);
        }
        let ty = self.types.bits((high - low + 1) as u32, false);
        let expr = Expr { kind: ExprKind::Slice(Box::new(base), high as u32, low as u32), ty, span };
        self.folded(expr)
    }

    /// The type that an expression names, if it names one: for `T.member` and `T(…)`.
    pub(super) fn as_type(&mut self, expr: &'a ast::Expr) -> Option<&'a TypeRef> {
        match &expr.kind {
            Syntax::Type(ty) => Some(ty),
            _ => None,
        }
    }

    /// The parser, control, extern or package that a written type names, without resolving its arguments.
    pub(super) fn type_entity(&self, ty: &TypeRef) -> Option<TypeEntity> {
        match &ty.kind {
            TypeKind::Named { name, global, .. } => match self.lookup(name, *global) {
                Some(Entity::Type(entity)) => Some(entity),
                _ => None,
            },
            _ => None,
        }
    }
}

/// True if two words differ by one letter, or by two swapped letters.
fn one_edit(left: &[u8], right: &[u8]) -> bool {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[same..], &right[same..]);
    match left.len().cmp(&right.len()) {
        Ordering::Equal => {
            let swapped = left.len() > 1 && left[0] == right[1] && left[1] == right[0] && left[2..] == right[2..];
            swapped || left.get(1..) == right.get(1..)
        }
        Ordering::Less => right.get(1..) == Some(left),
        Ordering::Greater => left.get(1..) == Some(right),
    }
}
