//! Builds the syntax tree by recursive descent. The parser tracks which names are types, because the meaning of `a < b
//! > (c)` and `(a) (b)` depends on it.

mod declaration;
mod expression;
mod statement;
mod table;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use num_traits::ToPrimitive;

use crate::diagnostics::Diagnostics;
use crate::source::Span;
use crate::syntax::ast::{Annotation, Declaration, Name};
use crate::syntax::number;
use crate::syntax::token::{Token, TokenKind};

/// Maximum nesting depth of constructs. It bounds the stack that all later passes need.
pub const MAX_DEPTH: u32 = 256;
/// Maximum height of an expression; chains of operators count too.
const MAX_HEIGHT: u32 = 1000;

/// Maximum number of tokens read in failed attempts. Usual programs waste one or two for each pair of parentheses.
const MAX_WASTED: usize = 1_000_000;

/// An error that has already been reported.
#[derive(Debug)]
pub struct Reported;

pub type Parsed<T> = Result<T, Reported>;

pub struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    diagnostics: &'a mut Diagnostics,
    /// For each scope, whether a name is a type.
    scopes: Vec<HashMap<Arc<str>, bool>>,
    depth: u32,
    /// More than zero during an attempt: errors are not reported.
    trying: u32,
    /// Number of tokens read in failed attempts.
    wasted: usize,
}

const RESERVED: &[&str] = &[
    "abstract",
    "action",
    "bool",
    "bit",
    "const",
    "control",
    "default",
    "else",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "match_kind",
    "out",
    "parser",
    "package",
    "return",
    "select",
    "string",
    "struct",
    "switch",
    "this",
    "transition",
    "true",
    "tuple",
    "typedef",
    "varbit",
    "valueset",
    "void",
    "_",
];

/// Parses a whole program. Declarations with errors are reported and omitted.
pub fn parse(tokens: &[Token], diagnostics: &mut Diagnostics) -> Vec<Declaration> {
    let mut parser =
        Parser { tokens, at: 0, diagnostics, scopes: vec![HashMap::new()], depth: 0, trying: 0, wasted: 0 };
    let mut program = Vec::new();
    while parser.peek().kind != TokenKind::End {
        let before = parser.at;
        match parser.top_level() {
            Ok(Some(declaration)) => program.push(declaration),
            Ok(None) => {}
            Err(Reported) => {
                if parser.diagnostics.is_full() {
                    break;
                }
                parser.recover(before);
            }
        }
    }
    program
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    fn peek_at(&self, offset: usize) -> &Token {
        &self.tokens[(self.at + offset).min(self.tokens.len() - 1)]
    }

    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        if self.at < self.tokens.len() - 1 {
            self.at += 1;
        }
        token
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// The span from `start` to the last token that was read.
    fn since(&self, start: Span) -> Span {
        start.to(self.previous_span())
    }

    fn is_sign(&self, sign: &str) -> bool {
        self.peek().is_sign(sign)
    }

    fn is_word(&self, word: &str) -> bool {
        self.peek().is_word(word)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn error<T>(&mut self, span: Span, message: impl Into<String>, help: Option<&str>) -> Parsed<T> {
        if self.trying == 0 {
            let diagnostic = self.diagnostics.error("syntax", span, message);
            if let Some(help) = help {
                diagnostic.help(help);
            }
        }
        Err(Reported)
    }

    fn unexpected<T>(&mut self, wanted: &str) -> Parsed<T> {
        let token = self.peek().clone();
        self.error(token.span, format!("expected {wanted}, found {}", token.describe()), None)
    }

    fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign) {
            return Ok(());
        }
        self.unexpected(&format!("'{sign}'"))
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) {
            return Ok(());
        }
        self.unexpected(&format!("'{word}'"))
    }

    /// A name that is not a keyword.
    fn name(&mut self) -> Parsed<Name> {
        let token = self.peek().clone();
        match token.identifier() {
            Some(text) if !RESERVED.contains(&&**text) => {
                self.advance();
                Ok(Name { text: text.clone(), span: token.span })
            }
            Some(text) => {
                let message = format!("expected a name, found the keyword '{text}'");
                self.error(token.span, message, Some("choose another name"))
            }
            None => self.unexpected("a name"),
        }
    }

    /// Enters a construct that may contain itself.
    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            let span = self.peek().span;
            return self.error(span, format!("constructs are nested more than {MAX_DEPTH} deep"), None);
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Parses a part with its own scope for names.
    fn scoped<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.enter()?;
        self.scopes.push(HashMap::new());
        let result = part(self);
        self.scopes.pop();
        self.leave();
        result
    }

    fn declare(&mut self, name: &Name, is_type: bool) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.text.clone(), is_type);
        }
    }

    fn is_type_name(&self, name: &str) -> bool {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied().unwrap_or(false)
    }

    /// Attempts to parse a part; if that fails, the state is restored.
    fn attempt<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Option<T> {
        // Nested attempts could take exponential time.
        if self.trying >= 3 || self.wasted > MAX_WASTED {
            return None;
        }
        let (at, depth, scopes) = (self.at, self.depth, self.scopes.len());
        self.trying += 1;
        let result = part(self).ok();
        self.trying -= 1;
        if result.is_none() {
            self.wasted += self.at - at + 1;
            self.at = at;
            self.depth = depth;
            self.scopes.truncate(scopes);
        }
        result
    }

    fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut list = Vec::new();
        while self.take_sign("@") {
            let token = self.peek().clone();
            let Some(name) = token.identifier().cloned() else { return self.unexpected("the name of an annotation") };
            self.advance();
            let close = match self.peek().kind {
                TokenKind::Sign("(") => ")",
                TokenKind::Sign("[") => "]",
                _ => {
                    list.push(Annotation { name, text: None, word: None, numbers: Vec::new(), values: Vec::new() });
                    continue;
                }
            };
            let open = self.advance();
            if matches!(&*name, "field_list" | "priority") {
                let mut values = Vec::new();
                while !self.take_sign(close) {
                    if !values.is_empty() {
                        self.expect_sign(",")?;
                    }
                    values.push(self.expression()?);
                }
                list.push(Annotation { name, text: None, word: None, numbers: Vec::new(), values });
                continue;
            }
            let mut nesting = vec![close];
            let (mut text, mut word) = (None, None);
            let mut numbers = Vec::new();
            let first = self.at;
            while let Some(innermost) = nesting.last().copied() {
                let token = self.advance();
                match &token.kind {
                    TokenKind::End => return self.error(open.span, "unterminated annotation", None),
                    TokenKind::Sign("(") => nesting.push(")"),
                    TokenKind::Sign("[") => nesting.push("]"),
                    TokenKind::Sign("{") => nesting.push("}"),
                    TokenKind::Sign(sign @ (")" | "]" | "}")) => {
                        if *sign != innermost {
                            return self.error(token.span, format!("expected '{innermost}', found '{sign}'"), None);
                        }
                        nesting.pop();
                    }
                    TokenKind::String(content) if self.at == first + 1 => text = Some(content.clone()),
                    TokenKind::Number(digits) => {
                        let value = number::parse(digits).ok().and_then(|literal| literal.value.to_u64());
                        numbers.extend(value);
                    }
                    TokenKind::Bad(reason) => return self.error(token.span, *reason, None),
                    _ if self.at == first + 1 => word = token.identifier().cloned(),
                    _ => {}
                }
            }
            let is_alone = self.at == first + 2;
            let (text, word) = (text.filter(|_| is_alone), word.filter(|_| is_alone));
            list.push(Annotation { name, text, word, numbers, values: Vec::new() });
        }
        Ok(list)
    }

    /// After an error: continues behind the declaration with the error.
    fn recover(&mut self, start: usize) {
        self.depth = 0;
        self.trying = 0;
        self.scopes.truncate(1);
        let reached = self.at;
        self.at = start;
        let mut nesting = 0i32;
        while self.peek().kind != TokenKind::End {
            let token = self.advance();
            match token.kind {
                TokenKind::Sign("{") => nesting += 1,
                TokenKind::Sign("}") => {
                    nesting -= 1;
                    if nesting <= 0 && self.at > reached {
                        self.take_sign(";");
                        return;
                    }
                }
                TokenKind::Sign(";") if nesting <= 0 && self.at > reached => return,
                _ => {}
            }
        }
    }
}
