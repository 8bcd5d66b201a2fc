//! Words and signs of the language.

use std::sync::Arc;

use crate::source::Span;

/// What a token is. Keywords are identifiers until the parser looks at them, since macros may have their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Identifier(Arc<str>),
    /// A number as written, with its width.
    Number(Arc<str>),
    /// The content of a string, escapes resolved.
    String(Arc<str>),
    /// A sign: one to three characters. `>>` is two tokens, because it may end two lists of types.
    Sign(&'static str),
    /// Something that is no token, with the reason. It is an error only where it is used.
    Bad(&'static str),
    End,
}

/// A token and its place.
#[derive(Clone, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// The first of its line.
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

    /// How messages name it.
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

/// All signs, longer ones before their beginnings.
pub const SIGNS: &[&str] = &[
    "|+|=", "|-|=", "<<=", "&&&=", "&&&", "|+|", "|-|", "...", "&&", "||", "==", "!=", "<=", ">=", "<<", "++", "..",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+:", "##", "(", ")", "{", "}", "[", "]", "<", ">", ":", ",", "?",
    ".", "=", ";", "@", "&", "|", "^", "~", "*", "/", "%", "+", "-", "!", "#",
];
