//! Splits a text into tokens. Comments and line ends are dropped; tokens at the start of a line are marked for the
//! preprocessor.

use std::sync::Arc;

use crate::source::Span;
use crate::syntax::token::{SIGNS, Token, TokenKind};

/// Reads one file.
#[derive(Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    file: u32,
    at: usize,
    line_start: bool,
    spaced: bool,
}

impl<'a> Lexer<'a> {
    pub fn new(file: u32, text: &'a str) -> Self {
        Lexer { text, file, at: 0, line_start: true, spaced: true }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    /// Skips spaces and comments. An unterminated comment is returned as a token.
    fn skip(&mut self) -> Option<Token> {
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
                self.at += rest.find('\n').unwrap_or(0) + 1;
            } else if first == '\n' {
                self.line_start = true;
                self.at += 1;
            } else if first.is_whitespace() || first == '\u{feff}' {
                self.at += first.len_utf8();
            } else if rest.starts_with("//") {
                self.at += line_comment(rest);
            } else if rest.starts_with("/*") {
                let start = self.at;
                match rest.get(2..).and_then(|body| body.find("*/")) {
                    Some(end) => self.at += end + 4,
                    None => {
                        self.at = self.text.len();
                        return Some(self.token(TokenKind::Bad("unterminated comment"), start));
                    }
                }
            } else {
                return None;
            }
            self.spaced = true;
        }
    }

    fn token(&mut self, kind: TokenKind, start: usize) -> Token {
        let token =
            Token { kind, span: self.span(start), line_start: self.line_start, joined: !self.spaced, painted: false };
        self.line_start = false;
        self.spaced = false;
        token
    }

    /// The next token; after the last one, always `End`.
    pub fn next(&mut self) -> Token {
        if let Some(bad) = self.skip() {
            return bad;
        }
        let start = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return self.token(TokenKind::End, start) };
        if first.is_ascii_alphabetic() || first == '_' || first == '$' {
            let length =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
            self.at += length;
            return self.token(TokenKind::Identifier(rest[..length].into()), start);
        }
        if first.is_ascii_digit() {
            let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            self.at += length;
            return self.token(TokenKind::Number(rest[..length].into()), start);
        }
        if first == '"' {
            return self.string(start);
        }
        for sign in SIGNS {
            if rest.starts_with(sign) {
                self.at += sign.len();
                return self.token(TokenKind::Sign(sign), start);
            }
        }
        self.at += first.len_utf8();
        self.token(TokenKind::Bad("unexpected character"), start)
    }

    fn string(&mut self, start: usize) -> Token {
        let mut content = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.at = start + offset + 1;
                    return self.token(TokenKind::String(content.into()), start);
                }
                '\n' => break,
                '\\' => match characters.next() {
                    Some((_, 'n')) => content.push('\n'),
                    Some((_, 't')) => content.push('\t'),
                    Some((_, 'r')) => content.push('\r'),
                    Some((_, '\n')) => {}
                    Some((_, other)) => content.push(other),
                    None => break,
                },
                other => content.push(other),
            }
        }
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
        self.token(TokenKind::Bad("unterminated string"), start)
    }

    /// The raw text from here to the end of the line, which is skipped: for `#error` and similar directives.
    pub fn rest_of_line(&mut self) -> Arc<str> {
        let rest = self.rest();
        let length = rest.find('\n').unwrap_or(rest.len());
        self.at += length;
        rest[..length].trim().into()
    }
}

/// Length of a comment that starts with `//`; a backslash at the end of its line continues it.
fn line_comment(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            return length - usize::from(line.ends_with('\n'));
        }
    }
    length
}
