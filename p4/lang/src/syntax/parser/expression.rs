//! Expressions, by precedence.

use super::{MAX_HEIGHT, Parsed, Parser};
use crate::source::Span;
use crate::syntax::ast::{Argument, Binary, Expr, ExprKind, Name, TypeKind, TypeRef, Unary};
use crate::syntax::number;
use crate::syntax::token::TokenKind;

/// Precedence of unary operators, above that of all binary operators.
const UNARY: u8 = 13;

fn binary(sign: &str) -> Option<(u8, Binary)> {
    Some(match sign {
        "||" => (1, Binary::Or),
        "&&" => (2, Binary::And),
        "==" => (3, Binary::Equal),
        "!=" => (3, Binary::NotEqual),
        "<" => (4, Binary::Less),
        ">" => (4, Binary::Greater),
        "<=" => (4, Binary::LessEqual),
        ">=" => (4, Binary::GreaterEqual),
        "|" => (5, Binary::BitOr),
        "^" => (6, Binary::BitXor),
        "&" => (7, Binary::BitAnd),
        "<<" => (8, Binary::Shl),
        ">>" => (8, Binary::Shr),
        "++" => (9, Binary::Concat),
        "+" => (9, Binary::Add),
        "-" => (9, Binary::Sub),
        "|+|" => (9, Binary::SaturatingAdd),
        "|-|" => (9, Binary::SaturatingSub),
        "*" => (10, Binary::Mul),
        "/" => (10, Binary::Div),
        "%" => (10, Binary::Mod),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.level(0)
    }

    /// An element of a set: `a &&& b`, `a .. b`, `default`, `_` or a value.
    pub(super) fn set_element(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        if self.take_word("default") || self.take_word("_") {
            return Ok(Expr { kind: ExprKind::DontCare, span: start, height: 0 });
        }
        let left = self.expression()?;
        let range = self.is_sign("..");
        if range || self.is_sign("&&&") {
            self.advance();
            let right = self.expression()?;
            let height = left.height.max(right.height) + 1;
            let (left, right) = (Box::new(left), Box::new(right));
            let kind = if range { ExprKind::Range(left, right) } else { ExprKind::Mask(left, right) };
            return self.node(kind, start, height);
        }
        Ok(left)
    }

    /// A set of one or several components: `(a, b)`, or one element.
    pub(super) fn set(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        if self.is_sign("(") {
            let tuple = self.attempt(|parser| {
                parser.expect_sign("(")?;
                let mut elements = Vec::new();
                loop {
                    elements.push(parser.set_element()?);
                    if !parser.take_sign(",") {
                        break;
                    }
                }
                parser.take_sign(",");
                parser.expect_sign(")")?;
                // Otherwise it is a cast or a value in parentheses.
                if parser.is_sign(":") { Ok(elements) } else { parser.unexpected("':'") }
            });
            if let Some(mut elements) = tuple {
                if elements.len() == 1 && !matches!(elements[0].kind, ExprKind::DontCare) {
                    return Ok(elements.remove(0));
                }
                let height = elements.iter().map(|element| element.height).max().unwrap_or(0) + 1;
                return self.node(ExprKind::List { elements, rest: false }, start, height);
            }
        }
        self.set_element()
    }

    fn node(&mut self, kind: ExprKind, start: Span, height: u32) -> Parsed<Expr> {
        let span = self.since(start);
        if height > MAX_HEIGHT {
            return self.error(span, format!("the expression has more than {MAX_HEIGHT} levels"), None);
        }
        Ok(Expr { kind, span, height })
    }

    fn level(&mut self, minimum: u8) -> Parsed<Expr> {
        self.enter()?;
        let result = self.level_inner(minimum);
        self.leave();
        result
    }

    fn level_inner(&mut self, minimum: u8) -> Parsed<Expr> {
        let start = self.peek().span;
        let mut left = self.unary()?;
        loop {
            if minimum == 0 && self.is_sign("?") {
                self.advance();
                let yes = self.level(0)?;
                self.expect_sign(":")?;
                let no = self.level(0)?;
                let height = left.height.max(yes.height).max(no.height) + 1;
                left = self.node(ExprKind::Choice(Box::new(left), Box::new(yes), Box::new(no)), start, height)?;
                continue;
            }
            let TokenKind::Sign(mut sign) = self.peek().kind else { return Ok(left) };
            let mut length = 1;
            if sign == ">" && self.peek_at(1).joined && self.peek_at(1).is_sign(">") {
                sign = ">>";
                length = 2;
            }
            // `>>=` is an assignment.
            if sign == ">" && self.peek_at(1).joined && self.peek_at(1).is_sign(">=") {
                return Ok(left);
            }
            let Some((precedence, operator)) = binary(sign) else { return Ok(left) };
            if precedence < minimum.max(1) {
                return Ok(left);
            }
            for _ in 0..length {
                self.advance();
            }
            let right = self.level(precedence + 1)?;
            let height = left.height.max(right.height) + 1;
            left = self.node(ExprKind::Binary(operator, Box::new(left), Box::new(right)), start, height)?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let operator = match self.peek().kind {
            TokenKind::Sign("!") => Some(Unary::Not),
            TokenKind::Sign("~") => Some(Unary::Complement),
            TokenKind::Sign("-") => Some(Unary::Minus),
            TokenKind::Sign("+") => Some(Unary::Plus),
            _ => None,
        };
        if let Some(operator) = operator {
            self.advance();
            let value = self.level(UNARY)?;
            let height = value.height + 1;
            return self.node(ExprKind::Unary(operator, Box::new(value)), start, height);
        }
        if self.is_sign("(") {
            let cast = self.attempt(|parser| {
                parser.advance();
                if !parser.at_type() {
                    return parser.unexpected("a type");
                }
                let ty = parser.type_ref()?;
                parser.expect_sign(")")?;
                Ok(ty)
            });
            if let Some(ty) = cast {
                let value = self.level(UNARY)?;
                let height = value.height + 1;
                return self.node(ExprKind::Cast(Box::new(ty), Box::new(value)), start, height);
            }
        }
        self.postfix()
    }

    /// The width of a type: a number, or an expression in parentheses.
    pub(super) fn primary_for_width(&mut self) -> Parsed<Expr> {
        self.postfix_from(false)
    }

    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        self.postfix_from(true)
    }

    fn postfix_from(&mut self, calls: bool) -> Parsed<Expr> {
        let start = self.peek().span;
        let mut value = self.primary()?;
        loop {
            let height = value.height + 1;
            let kind = if self.take_sign(".") {
                let name = self.member_name()?;
                ExprKind::Member(Box::new(value), name)
            } else if self.is_sign("[") {
                self.advance();
                let first = self.expression()?;
                let kind = if self.take_sign(":") {
                    let second = self.expression()?;
                    ExprKind::Slice(Box::new(value), Box::new(first), Box::new(second))
                } else if self.take_sign("+:") {
                    let second = self.expression()?;
                    ExprKind::SliceFrom(Box::new(value), Box::new(first), Box::new(second))
                } else {
                    ExprKind::Index(Box::new(value), Box::new(first))
                };
                self.expect_sign("]")?;
                kind
            } else if calls && self.is_sign("(") {
                let arguments = self.arguments()?;
                ExprKind::Call { function: Box::new(value), types: Vec::new(), arguments }
            } else if calls && self.is_sign("<") {
                let types = self.attempt(|parser| {
                    let types = parser.type_arguments()?;
                    if parser.is_sign("(") { Ok(types) } else { parser.unexpected("'('") }
                });
                let Some(types) = types else { return Ok(value) };
                let arguments = self.arguments()?;
                ExprKind::Call { function: Box::new(value), types, arguments }
            } else {
                return Ok(value);
            };
            let height = height.max(child_height(&kind) + 1);
            value = self.node(kind, start, height)?;
        }
    }

    /// After a dot, keywords are names too: `apply`, `key`, `error`.
    fn member_name(&mut self) -> Parsed<Name> {
        let token = self.peek().clone();
        match token.identifier() {
            Some(text) => {
                self.advance();
                Ok(Name { text: text.clone(), span: token.span })
            }
            None => self.unexpected("the name of a member"),
        }
    }

    pub(super) fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        self.expect_sign("(")?;
        let mut list = Vec::new();
        while !self.is_sign(")") {
            let start = self.peek().span;
            let name = if self.peek().identifier().is_some() && self.peek_at(1).is_sign("=") {
                let name = self.name()?;
                self.advance();
                Some(name)
            } else {
                None
            };
            let value = if self.take_word("_") { None } else { Some(self.expression()?) };
            list.push(Argument { name, value, span: self.since(start) });
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(list)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let token = self.peek().clone();
        let start = token.span;
        let kind = match &token.kind {
            TokenKind::Number(text) => {
                self.advance();
                match number::parse(text) {
                    Ok(literal) => ExprKind::Int(literal),
                    Err(reason) => return self.error(start, reason, None),
                }
            }
            TokenKind::String(text) => {
                self.advance();
                ExprKind::Str(text.clone())
            }
            TokenKind::Sign("(") => {
                self.advance();
                let inner = self.expression()?;
                // Where sets are allowed, a mask or a range may be in parentheses.
                self.expect_sign(")")?;
                return Ok(Expr { span: self.since(start), ..inner });
            }
            TokenKind::Sign("{") => return self.braces(),
            TokenKind::Identifier(word) => match &**word {
                "true" | "false" => {
                    self.advance();
                    ExprKind::Bool(&**word == "true")
                }
                "this" => {
                    self.advance();
                    ExprKind::This
                }
                "_" => return self.unexpected("an expression"),
                "error" => ExprKind::Type(Box::new(self.type_ref()?)),
                _ if self.at_type() => self.type_or_name()?,
                _ => ExprKind::Name { name: self.name()?, global: false },
            },
            TokenKind::Sign(".") => {
                if self.at_type() {
                    self.type_or_name()?
                } else {
                    self.advance();
                    ExprKind::Name { name: self.name()?, global: true }
                }
            }
            _ => return self.unexpected("an expression"),
        };
        self.node(kind, start, 0)
    }

    /// A type in an expression: `T.member`, `T(arguments)`, `T<A>(arguments)`. Indices belong to the expression.
    fn type_or_name(&mut self) -> Parsed<ExprKind> {
        let start = self.peek().span;
        let global = self.is_sign(".");
        let named = self.peek_at(usize::from(global));
        if named.identifier().is_some_and(|name| self.is_type_name(name)) {
            self.take_sign(".");
            let name = self.name()?;
            let arguments = if self.is_sign("<") { self.type_arguments()? } else { Vec::new() };
            let kind = TypeKind::Named { name, global, arguments };
            let span = self.since(start);
            return Ok(ExprKind::Type(Box::new(TypeRef { kind, span })));
        }
        Ok(ExprKind::Type(Box::new(self.type_ref()?)))
    }

    fn braces(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        self.advance();
        if self.take_sign("#") {
            self.expect_sign("}")?;
            return self.node(ExprKind::Invalid, start, 0);
        }
        let mut elements = Vec::new();
        let mut fields = Vec::new();
        let mut rest = false;
        while !self.is_sign("}") {
            if self.take_sign("...") {
                rest = true;
                break;
            }
            if self.peek().identifier().is_some() && self.peek_at(1).is_sign("=") {
                let name = self.name()?;
                self.advance();
                fields.push((name, self.expression()?));
            } else {
                elements.push(self.set_element()?);
            }
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign("}")?;
        let heights = elements.iter().chain(fields.iter().map(|(_, value)| value)).map(|value| value.height);
        let height = heights.max().unwrap_or(0) + 1;
        if !fields.is_empty() && !elements.is_empty() {
            let span = self.since(start);
            return self.error(span, "some elements have names and some do not", Some("name all of them or none"));
        }
        let kind =
            if fields.is_empty() { ExprKind::List { elements, rest } } else { ExprKind::Record { fields, rest } };
        self.node(kind, start, height)
    }
}

/// The height of the tallest direct child, except the first one.
fn child_height(kind: &ExprKind) -> u32 {
    match kind {
        ExprKind::Index(_, index) => index.height,
        ExprKind::Slice(_, first, second) | ExprKind::SliceFrom(_, first, second) => first.height.max(second.height),
        ExprKind::Call { arguments, .. } => {
            arguments.iter().filter_map(|argument| argument.value.as_ref()).map(|value| value.height).max().unwrap_or(0)
        }
        _ => 0,
    }
}
