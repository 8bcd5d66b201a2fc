//! From text to a syntax tree.

pub(crate) mod ast;
pub(crate) mod lexer;
pub(crate) mod number;
pub(crate) mod parser;
pub(crate) mod token;

pub use ast::{Binary, Direction, StructKind, Unary};
