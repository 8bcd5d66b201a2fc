//! Declarations.

use super::{Parsed, Parser};
use crate::syntax::ast::{
    Annotation, Control, Declaration, DeclarationKind, Direction, Field, Function, Name, Parameter,
    Parser as ParserTree, SelectCase, State, StructKind, Transition, TypeRef,
};
use crate::syntax::token::TokenKind;

impl Parser<'_> {
    /// A declaration, or `None` for a lone semicolon.
    pub(super) fn top_level(&mut self) -> Parsed<Option<Declaration>> {
        if self.take_sign(";") {
            return Ok(None);
        }
        let annotations = self.annotations()?;
        let word = self.peek().identifier().cloned().unwrap_or_else(|| "".into());
        let declaration = match &*word {
            "const" => self.constant(annotations)?,
            "extern" => self.extern_declaration(annotations)?,
            "action" => self.action(annotations)?,
            "parser" => self.parser(annotations)?,
            "control" => self.control(annotations)?,
            "package" => self.package(annotations)?,
            "typedef" => self.alias(annotations, false)?,
            "type" if self.peek_at(1).identifier().is_some() => self.alias(annotations, true)?,
            "header" => self.structure(StructKind::Header, annotations)?,
            "struct" => self.structure(StructKind::Struct, annotations)?,
            "header_union" => self.structure(StructKind::Union, annotations)?,
            "enum" => self.enumeration(annotations)?,
            "error" | "match_kind" if self.peek_at(1).is_sign("{") => self.members(annotations)?,
            _ if self.at_function() => self.function(annotations)?,
            _ => self.variable_or_instance(annotations)?,
        };
        Ok(Some(declaration))
    }

    fn alias(&mut self, annotations: Vec<Annotation>, new: bool) -> Parsed<Declaration> {
        let start = self.advance().span;
        let ty = self.type_ref()?;
        let name = self.name()?;
        self.expect_sign(";")?;
        self.declare(&name, true);
        let kind = if new { DeclarationKind::NewType { ty } } else { DeclarationKind::Typedef { ty } };
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    fn structure(&mut self, kind: StructKind, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        let name = self.name()?;
        self.declare(&name, true);
        let (type_parameters, fields) = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            parser.expect_sign("{")?;
            let mut fields = Vec::new();
            while !parser.take_sign("}") {
                let annotations = parser.annotations()?;
                let ty = parser.type_ref()?;
                let name = parser.name()?;
                parser.expect_sign(";")?;
                fields.push(Field { annotations, ty, name });
            }
            Ok((type_parameters, fields))
        })?;
        let kind = DeclarationKind::Struct { kind, type_parameters, fields };
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    fn enumeration(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        let ty = if self.at_type() || self.peek_at(1).identifier().is_some() { Some(self.type_ref()?) } else { None };
        let name = self.name()?;
        self.declare(&name, true);
        self.expect_sign("{")?;
        let mut names = Vec::new();
        let mut members = Vec::new();
        while !self.take_sign("}") {
            self.annotations()?;
            let member = self.name()?;
            if ty.is_some() {
                self.expect_sign("=")?;
                members.push((member, self.expression()?));
            } else {
                names.push(member);
            }
            if !self.take_sign(",") {
                self.expect_sign("}")?;
                break;
            }
        }
        let kind = match ty {
            Some(ty) => DeclarationKind::SerializableEnum { ty, members },
            None => DeclarationKind::Enum { members: names },
        };
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    /// `error { … }` and `match_kind { … }`
    fn members(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let word = self.advance();
        self.expect_sign("{")?;
        let mut members = Vec::new();
        while !self.take_sign("}") {
            self.annotations()?;
            members.push(self.name()?);
            if !self.take_sign(",") {
                self.expect_sign("}")?;
                break;
            }
        }
        let kind = if word.is_word("error") {
            DeclarationKind::Errors { members }
        } else {
            DeclarationKind::MatchKinds { members }
        };
        let text = word.identifier().cloned().unwrap_or_else(|| "".into());
        Ok(Declaration { kind, name: Name { text, span: word.span }, annotations, span: self.since(word.span) })
    }

    pub(super) fn parameters(&mut self) -> Parsed<Vec<Parameter>> {
        self.expect_sign("(")?;
        let mut list = Vec::new();
        while !self.is_sign(")") {
            let annotations = self.annotations()?;
            let direction = if self.take_word("in") {
                Direction::In
            } else if self.take_word("out") {
                Direction::Out
            } else if self.take_word("inout") {
                Direction::InOut
            } else {
                Direction::None
            };
            let ty = self.type_ref()?;
            let name = self.name()?;
            self.declare(&name, false);
            let default = if self.take_sign("=") { Some(self.expression()?) } else { None };
            let optional = annotations.iter().any(|annotation| &*annotation.name == "optional");
            list.push(Parameter { direction, ty, name, default, optional });
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        Ok(list)
    }

    /// True if a function is declared here: `R name(` or `R name<`.
    pub(super) fn at_function(&mut self) -> bool {
        let (at, depth) = (self.at, self.depth);
        self.trying += 1;
        self.take_word("abstract");
        let found = self.type_ref().is_ok() && self.name().is_ok() && (self.is_sign("(") || self.is_sign("<"));
        self.trying -= 1;
        (self.at, self.depth) = (at, depth);
        found
    }

    /// Name, parameters and body of a function. The name is declared in the enclosing scope.
    fn function_rest(&mut self, is_abstract: bool, body: bool) -> Parsed<Function> {
        // The result type may refer to a type parameter that is declared behind it.
        let returns = self.type_ref()?;
        let name = self.name()?;
        self.declare(&name, false);
        self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            let body = if body { Some(parser.block()?) } else { None };
            if body.is_none() {
                parser.expect_sign(";")?;
            }
            Ok(Function { name, returns, type_parameters, parameters, body, is_abstract })
        })
    }

    pub(super) fn function(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.peek().span;
        let function = self.function_rest(false, true)?;
        let name = function.name.clone();
        Ok(Declaration { kind: DeclarationKind::Function(function), name, annotations, span: self.since(start) })
    }

    fn extern_declaration(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        if self.at_function() {
            let function = self.function_rest(false, false)?;
            let name = function.name.clone();
            return Ok(Declaration {
                kind: DeclarationKind::ExternFunction(function),
                name,
                annotations,
                span: self.since(start),
            });
        }
        let name = self.name()?;
        self.declare(&name, true);
        let kind = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            let mut constructors = Vec::new();
            let mut methods = Vec::new();
            if parser.take_sign("{") {
                while !parser.take_sign("}") {
                    parser.annotations()?;
                    let is_abstract = parser.take_word("abstract");
                    if parser.is_word(&name.text) && parser.peek_at(1).is_sign("(") {
                        parser.advance();
                        constructors.push(parser.scoped(|parser| parser.parameters())?);
                        parser.expect_sign(";")?;
                    } else {
                        methods.push(parser.function_rest(is_abstract, false)?);
                    }
                }
            } else {
                parser.expect_sign(";")?;
            }
            Ok(DeclarationKind::ExternObject { type_parameters, constructors, methods })
        })?;
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    pub(super) fn action(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        let name = self.name()?;
        self.declare(&name, false);
        let kind = self.scoped(|parser| {
            let parameters = parser.parameters()?;
            Ok(DeclarationKind::Action { parameters, body: parser.block()? })
        })?;
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    fn package(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        let name = self.name()?;
        self.declare(&name, true);
        let kind = self.scoped(|parser| {
            let type_parameters = parser.type_parameters()?;
            Ok(DeclarationKind::Package { type_parameters, parameters: parser.parameters()? })
        })?;
        self.expect_sign(";")?;
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    /// A parser or control: a keyword, and a name that becomes a type. `rest` is parsed in its own scope.
    fn shell(
        &mut self,
        annotations: Vec<Annotation>,
        rest: impl FnOnce(&mut Self) -> Parsed<DeclarationKind>,
    ) -> Parsed<Declaration> {
        let start = self.advance().span;
        let name = self.name()?;
        self.declare(&name, true);
        let kind = self.scoped(rest)?;
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    fn control(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.shell(annotations, |parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            let constructor = if parser.is_sign("(") { parser.parameters()? } else { Vec::new() };
            let body = if parser.take_sign(";") {
                None
            } else {
                parser.expect_sign("{")?;
                let mut locals = Vec::new();
                let mut annotations = parser.annotations()?;
                while !(parser.is_word("apply") && parser.peek_at(1).is_sign("{")) {
                    let word = parser.peek().identifier().cloned();
                    locals.push(match word.as_deref() {
                        Some("const") => parser.constant(annotations)?,
                        Some("action") => parser.action(annotations)?,
                        Some("table") => parser.table(annotations)?,
                        Some(_) if parser.at_declaration() => parser.variable_or_instance(annotations)?,
                        _ => return parser.unexpected("a declaration or 'apply { … }'"),
                    });
                    annotations = parser.annotations()?;
                }
                parser.advance();
                let block = parser.block()?;
                parser.expect_sign("}")?;
                Some((locals, block))
            };
            Ok(DeclarationKind::Control(Box::new(Control { type_parameters, parameters, constructor, body })))
        })
    }

    fn parser(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.shell(annotations, |parser| {
            let type_parameters = parser.type_parameters()?;
            let parameters = parser.parameters()?;
            let constructor = if parser.is_sign("(") { parser.parameters()? } else { Vec::new() };
            let body = if parser.take_sign(";") {
                None
            } else {
                parser.expect_sign("{")?;
                let mut locals = Vec::new();
                let mut states = Vec::new();
                while !parser.take_sign("}") {
                    let annotations = parser.annotations()?;
                    if parser.is_word("state") && !parser.is_type_name("state") {
                        states.push(parser.state()?);
                    } else if parser.is_word("const") {
                        locals.push(parser.constant(annotations)?);
                    } else if parser.is_word("value_set") {
                        locals.push(parser.value_set(annotations)?);
                    } else {
                        locals.push(parser.variable_or_instance(annotations)?);
                    }
                }
                Some((locals, states))
            };
            Ok(DeclarationKind::Parser(Box::new(ParserTree { type_parameters, parameters, constructor, body })))
        })
    }

    fn value_set(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.advance().span;
        let mut arguments = self.type_arguments()?;
        let ty: TypeRef = match (arguments.pop(), arguments.is_empty()) {
            (Some(ty), true) => ty,
            _ => {
                return self.error(
                    start,
                    "a value set must have exactly one type",
                    Some("write value_set<TYPE>(SIZE) NAME"),
                );
            }
        };
        self.expect_sign("(")?;
        let size = self.expression()?;
        self.expect_sign(")")?;
        let name = self.name()?;
        self.expect_sign(";")?;
        self.declare(&name, false);
        Ok(Declaration { kind: DeclarationKind::ValueSet { ty, size }, name, annotations, span: self.since(start) })
    }

    fn state(&mut self) -> Parsed<State> {
        self.advance();
        let name = self.name()?;
        self.scoped(|parser| {
            parser.expect_sign("{")?;
            let mut body = Vec::new();
            let mut next = Transition::To(None);
            loop {
                if parser.take_sign("}") {
                    break;
                }
                if parser.take_word("transition") {
                    next = parser.transition()?;
                    parser.expect_sign("}")?;
                    break;
                }
                body.push(parser.statement()?);
            }
            Ok(State { name, body, next })
        })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        if !self.is_word("select") {
            let name = self.name()?;
            self.expect_sign(";")?;
            return Ok(Transition::To(Some(name)));
        }
        self.advance();
        self.expect_sign("(")?;
        let mut keys = Vec::new();
        while !self.is_sign(")") {
            keys.push(self.expression()?);
            if !self.take_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        self.expect_sign("{")?;
        let mut cases = Vec::new();
        while !self.take_sign("}") {
            if self.peek().kind == TokenKind::End {
                return self.unexpected("'}'");
            }
            let set = self.set()?;
            self.expect_sign(":")?;
            let next = self.name()?;
            self.expect_sign(";")?;
            cases.push(SelectCase { set, next });
        }
        self.take_sign(";");
        Ok(Transition::Select { keys, cases })
    }
}
