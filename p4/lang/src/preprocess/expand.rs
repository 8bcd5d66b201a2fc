//! Macro expansion.

use std::sync::Arc;

use super::{Macro, Preprocessor};
use crate::source::Span;
use crate::syntax::lexer::Lexer;
use crate::syntax::token::{Token, TokenKind};

/// Maximum nesting depth of macros.
const MAX_DEPTH: usize = 64;

impl Preprocessor<'_> {
    /// Expands all macros in a sequence of tokens.
    pub(super) fn expand(&mut self, tokens: Vec<Token>, depth: usize) -> Vec<Token> {
        let mut output = Vec::new();
        // The tokens still to be processed, the next one last.
        let mut input: Vec<Token> = tokens;
        input.reverse();
        // Macros with an expansion that is being processed, and the length of the input at which it ends.
        let mut active: Vec<(Arc<str>, usize)> = Vec::new();
        while let Some(mut token) = input.pop() {
            active.retain(|(_, end)| input.len() >= *end);
            if self.overflowed || !self.spend(&token) {
                break;
            }
            let Some(name) = token.identifier().cloned() else {
                output.push(token);
                continue;
            };
            let Some(definition) = self.macros.get(&name).cloned().filter(|_| !token.painted) else {
                output.push(token);
                continue;
            };
            if active.iter().any(|(other, _)| *other == name) {
                token.painted = true;
                output.push(token);
                continue;
            }
            let arguments = match &definition.parameters {
                None => Vec::new(),
                Some(_) if !input.last().is_some_and(|next| next.is_sign("(")) => {
                    output.push(token);
                    continue;
                }
                Some(parameters) => match self.arguments(&mut input, parameters.len(), &name, token.span) {
                    Some(arguments) => arguments,
                    None => continue,
                },
            };
            if depth + active.len() >= MAX_DEPTH {
                self.diagnostics.error(
                    "preprocessor",
                    token.span,
                    format!("macros are nested more than {MAX_DEPTH} deep"),
                );
                self.overflowed = true;
                break;
            }
            let end = input.len();
            let body = self.substitute(&definition, &arguments, token.span, depth);
            input.extend(body.into_iter().rev());
            active.push((name, end));
        }
        output
    }

    /// Counts a processed token. Returns false if there were too many.
    fn spend(&mut self, token: &Token) -> bool {
        if self.budget == 0 {
            self.diagnostics.error("preprocessor", token.span, "the program is too large after expanding its macros");
            self.overflowed = true;
            return false;
        }
        self.budget -= 1;
        true
    }

    fn arguments(&mut self, input: &mut Vec<Token>, count: usize, name: &str, span: Span) -> Option<Vec<Vec<Token>>> {
        input.pop();
        let mut arguments = vec![Vec::new()];
        let mut nesting = 0;
        loop {
            let Some(token) = input.pop() else {
                self.diagnostics.error(
                    "preprocessor",
                    span,
                    format!("missing ')' after the arguments of macro {name}"),
                );
                return None;
            };
            if nesting == 0 && token.is_sign(")") {
                break;
            }
            if nesting == 0 && token.is_sign(",") {
                arguments.push(Vec::new());
                continue;
            }
            nesting += i32::from(token.is_sign("(")) - i32::from(token.is_sign(")"));
            if let Some(last) = arguments.last_mut() {
                last.push(token);
            }
        }
        if count == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if arguments.len() != count {
            let given = arguments.len();
            self.diagnostics.error("preprocessor", span, format!("macro {name} takes {count} arguments, not {given}"));
            return None;
        }
        Some(arguments)
    }

    fn substitute(&mut self, definition: &Macro, arguments: &[Vec<Token>], span: Span, depth: usize) -> Vec<Token> {
        let index = |token: &Token| {
            let name = token.identifier()?;
            definition.parameters.as_ref()?.iter().position(|parameter| parameter == name)
        };
        let mut output: Vec<Token> = Vec::new();
        let mut paste = false;
        let mut at = 0;
        while let Some(token) = definition.body.get(at) {
            at += 1;
            if token.is_sign("##") {
                paste = true;
                continue;
            }
            let next_pastes = definition.body.get(at).is_some_and(|next| next.is_sign("##"));
            let mut part: Vec<Token> = match index(token) {
                Some(argument) if paste || next_pastes => arguments[argument].clone(),
                Some(argument) => self.expand(arguments[argument].clone(), depth + 1),
                None if token.is_sign("#") && definition.body.get(at).and_then(index).is_some() => {
                    let argument = definition.body.get(at).and_then(index).unwrap_or(0);
                    at += 1;
                    let text: Vec<&str> =
                        arguments[argument].iter().map(|token| self.sources.text(token.span)).collect();
                    vec![Token { kind: TokenKind::String(text.join(" ").into()), ..token.clone() }]
                }
                None => vec![token.clone()],
            };
            for token in &mut part {
                token.line_start = false;
            }
            if paste && !part.is_empty() {
                let glued = output.pop().map(|left| self.glue(&left, &part[0], span));
                part.splice(..1, glued.into_iter().flatten());
            }
            paste = false;
            if self.budget < output.len() + part.len() {
                self.spend_all(span);
                return Vec::new();
            }
            output.extend(part);
        }
        // Messages refer to the place where the macro is used.
        for token in &mut output {
            token.span = span;
        }
        output
    }

    fn spend_all(&mut self, span: Span) {
        self.diagnostics.error("preprocessor", span, "the program is too large after expanding its macros");
        self.overflowed = true;
    }

    fn glue(&mut self, left: &Token, right: &Token, span: Span) -> Vec<Token> {
        let text = format!("{}{}", spelling(left), spelling(right));
        let mut lexer = Lexer::new(span.file, &text);
        let token = lexer.next();
        if lexer.next().kind != TokenKind::End {
            self.diagnostics.error("preprocessor", span, format!("## produces '{text}', which is not a valid token"));
        }
        vec![token]
    }
}

fn spelling(token: &Token) -> &str {
    match &token.kind {
        TokenKind::Identifier(text) | TokenKind::Number(text) | TokenKind::String(text) => text,
        TokenKind::Sign(sign) => sign,
        TokenKind::Bad(_) | TokenKind::End => "",
    }
}
