//! Statements.

use super::{Parsed, Parser};
use crate::syntax::ast::{
    Annotation, Binary, Block, Declaration, DeclarationKind, Expr, ExprKind, ForCollection, Statement, StatementKind,
    SwitchCase,
};
use crate::syntax::token::TokenKind;

impl Parser<'_> {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.scoped(|parser| {
            parser.expect_sign("{")?;
            let mut statements = Vec::new();
            while !parser.is_sign("}") {
                statements.push(parser.statement()?);
            }
            parser.expect_sign("}")?;
            Ok(Block { statements })
        })
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        self.enter()?;
        let result = self.statement_inner();
        self.leave();
        result
    }

    fn statement_inner(&mut self) -> Parsed<Statement> {
        let annotations = self.annotations()?;
        let start = self.peek().span;
        let word = self.peek().identifier().cloned().unwrap_or_else(|| "".into());
        let kind = match &*word {
            _ if self.take_sign(";") => StatementKind::Empty,
            _ if self.is_sign("{") => StatementKind::Block(self.block()?),
            "if" => self.conditional()?,
            "return" => {
                self.advance();
                let value = if self.is_sign(";") { None } else { Some(self.expression()?) };
                self.expect_sign(";")?;
                StatementKind::Return(value)
            }
            "exit" => self.single(StatementKind::Exit)?,
            "break" if self.peek_at(1).is_sign(";") => self.single(StatementKind::Break)?,
            "continue" if self.peek_at(1).is_sign(";") => self.single(StatementKind::Continue)?,
            "switch" => self.switch()?,
            "for" if self.peek_at(1).is_sign("(") => self.loops()?,
            "const" => StatementKind::Declare(Box::new(self.constant(annotations)?)),
            _ if self.at_declaration() => StatementKind::Declare(Box::new(self.variable_or_instance(annotations)?)),
            _ => {
                let kind = self.assignment_or_call()?;
                self.expect_sign(";")?;
                kind
            }
        };
        Ok(Statement { kind, span: self.since(start) })
    }

    fn single(&mut self, kind: StatementKind) -> Parsed<StatementKind> {
        self.advance();
        self.expect_sign(";")?;
        Ok(kind)
    }

    /// True if a variable or an instance is declared here: a type and a name, or a constructor call and a name.
    pub(super) fn at_declaration(&mut self) -> bool {
        let unknown_type = self.peek().identifier().is_some()
            && !self.at_type()
            && self.peek_at(1).identifier().is_some_and(|word| &**word != "in");
        if unknown_type {
            return true;
        }
        if !self.at_type() {
            return false;
        }
        let (at, depth) = (self.at, self.depth);
        self.trying += 1;
        let found = self.type_ref().is_ok()
            && (self.peek().identifier().is_some()
                || (self.is_sign("(") && self.arguments().is_ok() && (self.peek().identifier().is_some())));
        self.trying -= 1;
        (self.at, self.depth) = (at, depth);
        found
    }

    /// `T name;`, `T name = value;` or `T(arguments) name;`
    pub(super) fn variable_or_instance(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.peek().span;
        let ty = self.type_ref()?;
        if self.is_sign("(") {
            let arguments = self.arguments()?;
            let name = self.name()?;
            let methods = if self.take_sign("=") { self.methods()? } else { Vec::new() };
            self.expect_sign(";")?;
            self.declare(&name, false);
            let kind = DeclarationKind::Instance { ty, arguments, methods };
            return Ok(Declaration { kind, name, annotations, span: self.since(start) });
        }
        let name = self.name()?;
        let value = if self.take_sign("=") { Some(self.expression()?) } else { None };
        self.expect_sign(";")?;
        self.declare(&name, false);
        Ok(Declaration { kind: DeclarationKind::Variable { ty, value }, name, annotations, span: self.since(start) })
    }

    pub(super) fn constant(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.peek().span;
        self.expect_word("const")?;
        let ty = self.type_ref()?;
        let name = self.name()?;
        self.expect_sign("=")?;
        let value = self.expression()?;
        self.expect_sign(";")?;
        self.declare(&name, false);
        Ok(Declaration { kind: DeclarationKind::Constant { ty, value }, name, annotations, span: self.since(start) })
    }

    /// The methods that an instance implements for its extern.
    fn methods(&mut self) -> Parsed<Vec<Declaration>> {
        self.scoped(|parser| {
            parser.expect_sign("{")?;
            let mut list = Vec::new();
            while !parser.is_sign("}") {
                let annotations = parser.annotations()?;
                list.push(if parser.at_function() {
                    parser.function(annotations)?
                } else {
                    parser.variable_or_instance(annotations)?
                });
            }
            parser.expect_sign("}")?;
            Ok(list)
        })
    }

    fn conditional(&mut self) -> Parsed<StatementKind> {
        self.advance();
        self.expect_sign("(")?;
        let condition = self.expression()?;
        self.expect_sign(")")?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.take_word("else") { Some(Box::new(self.statement()?)) } else { None };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    fn switch(&mut self) -> Parsed<StatementKind> {
        self.advance();
        self.expect_sign("(")?;
        let value = self.expression()?;
        self.expect_sign(")")?;
        self.expect_sign("{")?;
        let mut cases = Vec::new();
        while !self.is_sign("}") {
            let label = if self.take_word("default") || self.take_word("_") {
                None
            } else {
                // A label is a value or the name of an action; both parse as an expression.
                Some(self.expression()?)
            };
            self.expect_sign(":")?;
            let body = if self.is_sign("{") { Some(self.block()?) } else { None };
            cases.push(SwitchCase { label, body });
        }
        self.expect_sign("}")?;
        Ok(StatementKind::Switch { value, cases })
    }

    fn loops(&mut self) -> Parsed<StatementKind> {
        self.scoped(|parser| {
            parser.advance();
            parser.expect_sign("(")?;
            if let Some((ty, name)) = parser.attempt(|parser| {
                parser.annotations()?;
                let ty = parser.type_ref()?;
                let name = parser.name()?;
                parser.expect_word("in")?;
                Ok((ty, name))
            }) {
                parser.declare(&name, false);
                let first = parser.expression()?;
                let collection = if parser.take_sign("..") {
                    ForCollection::Range(first, parser.expression()?)
                } else {
                    ForCollection::Value(first)
                };
                parser.expect_sign(")")?;
                let body = Box::new(parser.statement()?);
                return Ok(StatementKind::ForIn { ty, name, collection, body });
            }
            let mut init = Vec::new();
            while !parser.take_sign(";") {
                init.push(parser.loop_part(true)?);
                if parser.previous_span().end > 0 && parser.tokens[parser.at - 1].is_sign(";") {
                    break;
                }
                parser.take_sign(",");
            }
            let condition = parser.expression()?;
            parser.expect_sign(";")?;
            let mut update = Vec::new();
            while !parser.take_sign(")") {
                update.push(parser.loop_part(false)?);
                if !parser.take_sign(",") && !parser.is_sign(")") {
                    return parser.unexpected("',' or ')'");
                }
            }
            let body = Box::new(parser.statement()?);
            Ok(StatementKind::For { init, condition, update, body })
        })
    }

    /// A statement in the head of a loop. A declaration includes its semicolon.
    fn loop_part(&mut self, declarations: bool) -> Parsed<Statement> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        let kind = if declarations && self.at_declaration() {
            let start = self.peek().span;
            let ty = self.type_ref()?;
            let name = self.name()?;
            let value = if self.take_sign("=") { Some(self.expression()?) } else { None };
            self.declare(&name, false);
            let kind = DeclarationKind::Variable { ty, value };
            StatementKind::Declare(Box::new(Declaration { kind, name, annotations, span: self.since(start) }))
        } else {
            self.assignment_or_call()?
        };
        Ok(Statement { kind, span: self.since(start) })
    }

    fn assignment_or_call(&mut self) -> Parsed<StatementKind> {
        let start = self.peek().span;
        let target = self.target()?;
        let operator = match self.peek().kind {
            TokenKind::Sign("=") => None,
            TokenKind::Sign("+=") => Some(Binary::Add),
            TokenKind::Sign("-=") => Some(Binary::Sub),
            TokenKind::Sign("*=") => Some(Binary::Mul),
            TokenKind::Sign("/=") => Some(Binary::Div),
            TokenKind::Sign("%=") => Some(Binary::Mod),
            TokenKind::Sign("&=") => Some(Binary::BitAnd),
            TokenKind::Sign("|=") => Some(Binary::BitOr),
            TokenKind::Sign("^=") => Some(Binary::BitXor),
            TokenKind::Sign("|+|=") => Some(Binary::SaturatingAdd),
            TokenKind::Sign("|-|=") => Some(Binary::SaturatingSub),
            TokenKind::Sign("<<=") => Some(Binary::Shl),
            TokenKind::Sign(">") if self.peek_at(1).is_sign(">=") => {
                self.advance();
                Some(Binary::Shr)
            }
            _ => {
                if matches!(target.kind, ExprKind::Call { .. }) {
                    return Ok(StatementKind::Call(target));
                }
                let span = self.since(start);
                return self.error(
                    span,
                    "this is not a statement",
                    Some("assign the value, or call a function with '(…)'"),
                );
            }
        };
        self.advance();
        let value = self.expression()?;
        Ok(StatementKind::Assign { target, operator, value })
    }

    /// The left side of an assignment, or a call.
    fn target(&mut self) -> Parsed<Expr> {
        self.enter()?;
        let target = self.postfix();
        self.leave();
        target
    }
}
