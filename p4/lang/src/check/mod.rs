//! From the syntax tree to the typed tree: resolves names, infers and checks types, evaluates constants.
//!
//! Generic functions, parsers and controls are checked once for each set of type arguments that they are used with, so
//! the typed tree has no type parameters.

mod call;
mod coerce;
mod control;
mod declare;
mod expression;
mod infer;
mod instance;
mod member;
mod names;
mod operator;
mod parser;
mod scope;
mod signature;
mod statement;
mod table;
mod type_ref;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::source::Span;
use crate::syntax::ast;
use crate::tree::{self, Expr, ExprKind};
use crate::types::{Ty, Types};

pub use coerce::{binary_value, cast_value, unary_value};
use scope::{Context, Entity};
use signature::Signature;

/// Maximum number of specialized versions of generic declarations.
const MAX_SPECIFIC: usize = 10_000;

/// State of the checker: declarations that it has seen, scopes, and the typed tree so far.
pub struct Checker<'a> {
    diagnostics: &'a mut Diagnostics,
    program: &'a [ast::Declaration],
    types: Types,
    /// Top-level declarations. A declaration is visible only to those with higher numbers.
    globals: HashMap<Arc<str>, Vec<(usize, Entity)>>,
    context: Context,
    signatures: HashMap<*const ast::Function, Rc<Signature>>,
    functions: Vec<tree::Function>,
    /// Type parameters of extern objects, parsers, controls and packages, by declaration number.
    class_variables: HashMap<usize, Vec<u32>>,
    specific_functions: HashMap<(usize, Vec<Ty>), usize>,
    actions: Vec<tree::Function>,
    controls: Vec<tree::Control>,
    specific_controls: HashMap<(usize, Vec<Ty>), usize>,
    parsers: Vec<tree::Parser>,
    specific_parsers: HashMap<(usize, Vec<Ty>), usize>,
    instances: Vec<tree::Instance>,
}

/// Checks a program. The typed tree is complete only if no error was found.
pub fn check(program: &[ast::Declaration], diagnostics: &mut Diagnostics) -> tree::Program {
    let mut checker = Checker {
        diagnostics,
        program,
        types: Types::new(),
        globals: HashMap::new(),
        context: Context::default(),
        signatures: HashMap::new(),
        functions: Vec::new(),
        class_variables: HashMap::new(),
        specific_functions: HashMap::new(),
        actions: Vec::new(),
        controls: Vec::new(),
        specific_controls: HashMap::new(),
        parsers: Vec::new(),
        specific_parsers: HashMap::new(),
        instances: Vec::new(),
    };
    for (number, declaration) in program.iter().enumerate() {
        checker.context = Context { limit: number, ..Context::default() };
        checker.top_level(number, declaration);
        if checker.diagnostics.is_full() {
            break;
        }
    }
    checker.unused_generics();
    checker.control_plane_names();
    tree::Program {
        types: checker.types,
        functions: checker.functions,
        actions: checker.actions,
        parsers: checker.parsers,
        controls: checker.controls,
        instances: checker.instances,
    }
}

impl Checker<'_> {
    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics.error(code, span, message);
    }

    fn error_with_help(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.error(code, span, message).help(help);
    }

    /// Placeholder for an expression with an error.
    fn unknown(&self, span: Span) -> Expr {
        Expr { kind: ExprKind::DontCare, ty: Types::UNKNOWN, span }
    }

    /// Returns false, with an error, if there are too many specialized versions.
    fn may_specialise(&mut self, span: Span) -> bool {
        let count = self.functions.len() + self.controls.len() + self.parsers.len();
        if count >= MAX_SPECIFIC {
            self.error(
                "limit",
                span,
                format!("generic declarations are used with more than {MAX_SPECIFIC} sets of types"),
            );
        }
        count < MAX_SPECIFIC
    }
}
