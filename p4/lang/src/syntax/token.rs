//! Tokens of the language.

use std::sync::Arc;

use crate::source::Span;

/// Kind of a token. Keywords are identifiers until the parser interprets them, because macros may have their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Identifier(Arc<str>),
    /// A number as written, with its width.
    Number(Arc<str>),
    /// The content of a string, with escapes resolved.
    String(Arc<str>),
    /// An operator or punctuation of one to three characters. `>>` is two tokens, because it may end two type argument
    /// lists.
    Sign(&'static str),
    /// An invalid token, with the reason. It is an error only if it is used.
    Bad(&'static str),
    End,
}

/// A token and its position.
#[derive(Clone, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// The first token of its line.
    pub line_start: bool,
    /// Follows its predecessor without a space.
    pub joined: bool,
    /// Comes from a macro that must not be expanded again in it.
    pub painted: bool,
}

impl Token {
    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(&self.kind, TokenKind::Sign(this) if *this == sign)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, TokenKind::Identifier(this) if &**this == word)
    }

    pub fn identifier(&self) -> Option<&Arc<str>> {
        match &self.kind {
            TokenKind::Identifier(name) => Some(name),
            _ => None,
        }
    }

    /// Description for messages.
    pub fn describe(&self) -> String {
        match &self.kind {
            TokenKind::Identifier(name) => format!("'{name}'"),
            TokenKind::Number(text) => format!("the number {text}"),
            TokenKind::String(_) => "a string".into(),
            TokenKind::Sign(sign) => format!("'{sign}'"),
            TokenKind::Bad(reason) => (*reason).into(),
            TokenKind::End => "the end of the program".into(),
        }
    }
}

/// All operators and punctuation, longer ones before their prefixes.
pub const SIGNS: &[&str] = &[
    "|+|=", "|-|=", "<<=", "&&&=", "&&&", "|+|", "|-|", "...", "&&", "||", "==", "!=", "<=", ">=", "<<", "++", "..",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+:", "##", "(", ")", "{", "}", "[", "]", "<", ">", ":", ",", "?",
    ".", "=", ";", "@", "&", "|", "^", "~", "*", "/", "%", "+", "-", "!", "#",
];
