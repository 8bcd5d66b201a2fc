//! Types.

use super::{Parsed, Parser};
use crate::syntax::ast::{Expr, ExprKind, Name, TypeKind, TypeRef};
use crate::syntax::number::Literal;
use crate::syntax::token::TokenKind;

impl Parser<'_> {
    /// True if a type starts here. A name counts only if it is known to be a type.
    pub(super) fn at_type(&self) -> bool {
        let token = self.peek();
        match &token.kind {
            TokenKind::Identifier(word) => {
                matches!(
                    &**word,
                    "bool" | "bit" | "int" | "varbit" | "string" | "void" | "tuple" | "match_kind" | "error"
                ) || (&**word == "list" && self.peek_at(1).is_sign("<"))
                    || self.is_type_name(word)
            }
            TokenKind::Sign(".") => self.peek_at(1).identifier().is_some_and(|name| self.is_type_name(name)),
            _ => false,
        }
    }

    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        self.enter()?;
        let result = self.type_inner();
        self.leave();
        result
    }

    fn type_inner(&mut self) -> Parsed<TypeRef> {
        let start = self.peek().span;
        let word = self.peek().identifier().cloned().unwrap_or_else(|| "".into());
        let mut kind = match &*word {
            "bool" => self.simple(TypeKind::Bool),
            "string" => self.simple(TypeKind::String),
            "void" => self.simple(TypeKind::Void),
            "error" => self.simple(TypeKind::Error),
            "match_kind" => self.simple(TypeKind::MatchKind),
            "_" => self.simple(TypeKind::DontCare),
            "bit" => {
                self.advance();
                if self.is_sign("<") {
                    TypeKind::Bit(Box::new(self.width()?))
                } else {
                    let one = Literal { value: 1.into(), width: None };
                    TypeKind::Bit(Box::new(Expr { kind: ExprKind::Int(one), span: start, height: 0 }))
                }
            }
            "int" => {
                self.advance();
                if self.is_sign("<") { TypeKind::SignedInt(Box::new(self.width()?)) } else { TypeKind::Int }
            }
            "varbit" => {
                self.advance();
                TypeKind::Varbit(Box::new(self.width()?))
            }
            "tuple" => {
                self.advance();
                TypeKind::Tuple(self.type_arguments()?)
            }
            "list" if self.peek_at(1).is_sign("<") && !self.is_type_name("list") => {
                self.advance();
                let mut arguments = self.type_arguments()?;
                match (arguments.pop(), arguments.is_empty()) {
                    (Some(element), true) => TypeKind::List(Box::new(element)),
                    _ => {
                        let span = self.since(start);
                        return self.error(span, "a list must have exactly one element type", Some("write list<TYPE>"));
                    }
                }
            }
            _ => {
                let global = self.take_sign(".");
                let name = self.name()?;
                let arguments = if self.is_sign("<") { self.type_arguments()? } else { Vec::new() };
                TypeKind::Named { name, global, arguments }
            }
        };
        let mut levels = 0;
        while self.is_sign("[") {
            levels += 1;
            if levels > 16 {
                let span = self.peek().span;
                return self.error(span, "too many dimensions", None);
            }
            let element = TypeRef { kind, span: self.since(start) };
            self.advance();
            let size = self.expression()?;
            self.expect_sign("]")?;
            kind = TypeKind::Stack(Box::new(element), Box::new(size));
        }
        Ok(TypeRef { kind, span: self.since(start) })
    }

    fn simple(&mut self, kind: TypeKind) -> TypeKind {
        self.advance();
        kind
    }

    /// `<8>` or `<(expression)>`
    fn width(&mut self) -> Parsed<Expr> {
        self.expect_sign("<")?;
        let width = self.primary_for_width()?;
        self.expect_sign(">")?;
        Ok(width)
    }

    /// `<A, B>`
    pub(super) fn type_arguments(&mut self) -> Parsed<Vec<TypeRef>> {
        self.expect_sign("<")?;
        let mut list = Vec::new();
        while !self.is_sign(">") {
            list.push(self.type_ref()?);
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(">")?;
        Ok(list)
    }

    /// `<A, B>` in a declaration, or nothing. The names are types from here on.
    pub(super) fn type_parameters(&mut self) -> Parsed<Vec<Name>> {
        let mut list = Vec::new();
        if self.take_sign("<") {
            loop {
                let name = self.name()?;
                self.declare(&name, true);
                list.push(name);
                if !self.take_sign(",") {
                    break;
                }
            }
            self.expect_sign(">")?;
        }
        Ok(list)
    }
}
