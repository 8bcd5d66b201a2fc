//! The expressions of `#if`: 64-bit integers, as in C.

use super::Preprocessor;
use crate::source::Span;
use crate::syntax::number;
use crate::syntax::token::{Token, TokenKind};

/// Maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 100;

/// Operators by precedence, the weakest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<"],
    &["+", "-"],
    &["*", "/", "%"],
];

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Preprocessor<'_> {
    pub(super) fn condition(&mut self, span: Span, line: Vec<Token>) -> bool {
        let mut tokens = Vec::new();
        let mut input = line.into_iter();
        while let Some(token) = input.next() {
            if !token.is_word("defined") {
                tokens.push(token);
                continue;
            }
            let mut name = input.next();
            if name.as_ref().is_some_and(|token| token.is_sign("(")) {
                name = input.next();
                input.next();
            }
            let known = name.as_ref().and_then(Token::identifier).is_some_and(|name| self.macros.contains_key(name));
            let text = if known { "1" } else { "0" };
            tokens.push(Token { kind: TokenKind::Number(text.into()), painted: true, ..token });
        }
        let tokens = self.expand(tokens, 0);
        let mut reader = Reader { tokens, at: 0, depth: 0 };
        match reader.level(0) {
            Ok(value) if reader.at == reader.tokens.len() => value != 0,
            Ok(_) => {
                self.diagnostics.error("preprocessor", span, "unexpected text after the condition");
                false
            }
            Err(reason) => {
                self.diagnostics.error("preprocessor", span, reason);
                false
            }
        }
    }
}

impl Reader {
    fn sign(&self) -> &'static str {
        match self.tokens.get(self.at).map(|token| &token.kind) {
            Some(TokenKind::Sign(sign)) => sign,
            _ => "",
        }
    }

    fn level(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        loop {
            let sign = self.sign();
            if !operators.contains(&sign) {
                return Ok(left);
            }
            self.at += 1;
            let right = self.level(level + 1)?;
            left = match sign {
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => u32::try_from(right).ok().and_then(|shift| left.checked_shl(shift)).unwrap_or(0),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right).ok_or("division by zero in a condition")?,
                _ => left.checked_rem(right).ok_or("division by zero in a condition")?,
            };
        }
    }

    fn unary(&mut self) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the condition is nested too deeply".into());
        }
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err("the condition is incomplete".into()) };
        self.at += 1;
        let value = match &token.kind {
            TokenKind::Sign("!") => i64::from(self.unary()? == 0),
            TokenKind::Sign("-") => self.unary()?.wrapping_neg(),
            TokenKind::Sign("~") => !self.unary()?,
            TokenKind::Sign("(") => {
                let value = self.level(0)?;
                if self.sign() != ")" {
                    return Err("missing ')' in a condition".into());
                }
                self.at += 1;
                value
            }
            // As in C, an undefined name counts as 0.
            TokenKind::Identifier(_) => 0,
            TokenKind::Number(text) => {
                let number = number::parse(text)?;
                i64::try_from(&number.value).map_err(|_| format!("{text} is too large for a condition"))?
            }
            _ => return Err(format!("unexpected {} in a condition", token.describe())),
        };
        self.depth -= 1;
        Ok(value)
    }
}
