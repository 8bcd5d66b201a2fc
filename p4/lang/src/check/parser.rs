//! Parsers: states, transitions and value sets.

use std::collections::HashMap;
use std::sync::Arc;

use super::Checker;
use super::scope::{Entity, Place};
use crate::source::Span;
use crate::syntax::ast::{self, DeclarationKind, Name};
use crate::tree::{self, Expr, ExprKind, Next, Shell, Transition};
use crate::types::{Ty, Type, Types};

impl<'a> Checker<'a> {
    /// Checks a parser for these type arguments, once per set of arguments.
    pub(super) fn specific_parser(&mut self, number: usize, arguments: Vec<Ty>) -> Option<usize> {
        let key = (number, arguments);
        if let Some(known) = self.specific_parsers.get(&key) {
            return Some(*known);
        }
        let declaration = &self.program[number];
        let DeclarationKind::Parser(parser) = &declaration.kind else { return None };
        let (locals, states) = parser.body.as_ref()?;
        if !self.may_specialise(declaration.name.span) {
            return None;
        }
        let types = (&*parser.type_parameters, &*key.1);
        let before = self.enter_shell(number, types, (&parser.parameters, &parser.constructor), Place::Parser);
        let mut init = Vec::new();
        for local in locals {
            if let DeclarationKind::ValueSet { ty, size } = &local.kind {
                let ty = self.type_of(ty);
                let size = self.constant_number(size).unwrap_or(0);
                let (name, naming) = (local.name.text.clone(), self.naming(local));
                let fields = self.set_fields(ty, local.name.span);
                self.context.value_sets.push(tree::ValueSet { name, naming, size, fields });
                let place = self.context.value_sets.len() - 1;
                self.declare(&local.name, Entity::ValueSet(place, ty));
            } else {
                self.local(local, &mut init);
            }
        }
        let mut names: HashMap<Arc<str>, usize> = HashMap::new();
        for (place, state) in states.iter().enumerate() {
            let text = &state.name.text;
            if matches!(&**text, "accept" | "reject") || names.insert(text.clone(), place).is_some() {
                self.error("duplicate", state.name.span, format!("the state '{text}' already exists"));
            }
        }
        let start = names.get("start").copied();
        if start.is_none() {
            let help = "add the state in which parsing starts: state start { … }";
            self.error_with_help("state", declaration.name.span, "the parser has no state 'start'", help);
        }
        let mut list = Vec::new();
        for state in states {
            let (body, next) = self.scoped(|checker| {
                let mut body = Vec::new();
                for statement in &state.body {
                    checker.statement(statement, &mut body);
                }
                (body, checker.transition(&state.next, &names))
            });
            list.push(tree::State { name: state.name.text.clone(), body, next });
        }
        let context = std::mem::replace(&mut self.context, before);
        let shell = Shell { init, ..context.shell.unwrap_or_default() };
        let start = start.map_or(Next::Reject, Next::State);
        if !ends(&list, start) {
            let help = "at least one state must transition to 'accept' or 'reject'";
            self.error_with_help("state", declaration.name.span, "the parser never terminates", help);
        }
        self.parsers.push(tree::Parser { shell, value_sets: context.value_sets, states: list, start });
        self.specific_parsers.insert(key, self.parsers.len() - 1);
        Some(self.parsers.len() - 1)
    }

    /// The fields of a value set's members: the fields of a struct or tuple, or one value.
    fn set_fields(&mut self, ty: Ty, span: Span) -> Vec<(Arc<str>, Ty, Arc<str>)> {
        let exact: Arc<str> = "exact".into();
        let fields: Vec<_> = match (self.types.structure(ty), self.types.components(ty)) {
            (Some(info), _) => {
                let kinds = info.matches.iter().map(|kind| kind.clone().unwrap_or_else(|| exact.clone()));
                info.fields.iter().zip(kinds).map(|((name, ty), kind)| (name.clone(), *ty, kind)).collect()
            }
            (None, Some(parts)) => {
                let named = |(place, ty): (usize, &Ty)| (place.to_string().into(), *ty, exact.clone());
                parts.iter().enumerate().map(named).collect()
            }
            (None, None) => vec![("value".into(), ty, exact)],
        };
        for (name, ty, kind) in &fields {
            if !matches!(&**kind, "exact" | "ternary" | "lpm" | "range" | "optional") {
                self.error("unknown", span, format!("unknown match kind '{kind}' of the field '{name}'"));
            }
            let fine = self.types.width(*ty).is_some() && self.types.components(*ty).is_none()
                || matches!(self.types.get(self.types.stripped(*ty)), Type::Enum(_) | Type::Error | Type::Unknown);
            if !fine {
                let message = format!("a value set cannot have values of type {}", self.types.show(*ty));
                self.error("type", span, message);
            }
        }
        fields
    }

    fn next_state(&mut self, name: &Name, names: &HashMap<Arc<str>, usize>) -> Next {
        match &*name.text {
            "accept" => Next::Accept,
            "reject" => Next::Reject,
            other => match names.get(other) {
                Some(place) => Next::State(*place),
                None => {
                    self.error("state", name.span, format!("there is no state '{other}'"));
                    Next::Reject
                }
            },
        }
    }

    fn transition(&mut self, written: &'a ast::Transition, names: &HashMap<Arc<str>, usize>) -> Transition {
        match written {
            ast::Transition::To(None) => Transition::To(Next::Reject),
            ast::Transition::To(Some(name)) => Transition::To(self.next_state(name, names)),
            ast::Transition::Select { keys, cases } => {
                let mut list = Vec::new();
                for key in keys {
                    let key = self.expression(key);
                    if key.ty == Types::INT {
                        let help = "cast it, as in (bit<8>)(…)";
                        self.error_with_help("type", key.span, "the width of this number is unknown", help);
                    }
                    list.push(key);
                }
                let types: Vec<Ty> = list.iter().map(|key| key.ty).collect();
                let mut sets = Vec::new();
                for case in cases {
                    let set = self.key_sets(&case.set, &types);
                    let next = self.next_state(&case.next, names);
                    sets.push((set, next));
                }
                Transition::Select { keys: list, cases: sets }
            }
        }
    }

    /// The sets of a `select` case or table entry, one per key. A single `_` stands for all keys.
    pub(super) fn key_sets(&mut self, written: &'a ast::Expr, types: &[Ty]) -> Vec<Expr> {
        let any = |span| Expr { kind: ExprKind::DontCare, ty: Types::DONT_CARE, span };
        let elements: Vec<&'a ast::Expr> = match &written.kind {
            ast::ExprKind::List { elements, rest: false } if types.len() != 1 || elements.len() == 1 => {
                elements.iter().collect()
            }
            _ => vec![written],
        };
        if elements.len() == 1 && matches!(elements[0].kind, ast::ExprKind::DontCare) {
            return types.iter().map(|_| any(written.span)).collect();
        }
        if elements.len() == 1 && types.len() > 1 {
            let whole = self.expression(elements[0]);
            if matches!(whole.kind, ExprKind::ValueSet(_)) {
                return vec![whole];
            }
            if let (Some(components), ExprKind::Const(_) | ExprKind::Parts(_)) =
                (self.types.components(whole.ty), &whole.kind)
                && components.len() == types.len()
                && let ExprKind::Parts(parts) = whole.kind
            {
                return parts.into_iter().zip(types).map(|(part, ty)| self.coerce(part, *ty)).collect();
            }
        }
        if elements.len() != types.len() {
            let (given, wanted) = (elements.len(), types.len());
            self.error("select", written.span, format!("expected {wanted} sets, found {given}"));
            return Vec::new();
        }
        elements.into_iter().zip(types).map(|(element, ty)| self.key_set(element, *ty)).collect()
    }

    fn key_set(&mut self, element: &'a ast::Expr, ty: Ty) -> Expr {
        let set = self.expression(element);
        if tree::has_effects(&set) {
            self.error_with_help(
                "select",
                set.span,
                "a set must not contain a call",
                "call it before and store the result in a variable",
            );
        }
        match set.kind {
            ExprKind::ValueSet(_) => {
                let fits = set.ty == ty
                    || self.types.components(set.ty).is_some_and(|components| components == [ty])
                    || set.ty == Types::UNKNOWN;
                if !fits {
                    let message = format!("the value set has type {}", self.types.show(set.ty));
                    self.error("type", set.span, message);
                }
                set
            }
            ExprKind::Mask(left, right) => {
                // Masks apply to numbers.
                let ty = match self.types.get(ty) {
                    Type::Enum(number) => self.types.enums[*number].representation.as_ref().map_or(ty, |(ty, _)| *ty),
                    _ => ty,
                };
                let (left, right) = (Box::new(self.set_bound(*left, ty)), Box::new(self.set_bound(*right, ty)));
                Expr { kind: ExprKind::Mask(left, right), ty, span: set.span }
            }
            ExprKind::Range(left, right) => {
                let (left, right) = (Box::new(self.set_bound(*left, ty)), Box::new(self.set_bound(*right, ty)));
                Expr { kind: ExprKind::Range(left, right), ty, span: set.span }
            }
            ExprKind::DontCare => set,
            _ => self.set_bound(set, ty),
        }
    }

    fn set_bound(&mut self, value: Expr, ty: Ty) -> Expr {
        let value = if matches!(self.types.get(ty), Type::Enum(_)) { value } else { self.represented(value) };
        let value = self.coerce(value, ty);
        self.folded(value)
    }
}

/// True if some path from a state leaves the parser. A `select` that may match no case leads to `reject`.
fn ends(states: &[tree::State], start: Next) -> bool {
    let mut seen = vec![false; states.len()];
    let mut open = vec![start];
    while let Some(next) = open.pop() {
        let Next::State(place) = next else { return true };
        if std::mem::replace(&mut seen[place], true) {
            continue;
        }
        match &states[place].next {
            Transition::To(next) => open.push(*next),
            Transition::Select { cases, .. } => {
                let fits_all =
                    |(sets, _): &(Vec<Expr>, Next)| sets.iter().all(|set| matches!(set.kind, ExprKind::DontCare));
                if !cases.iter().any(fits_all) {
                    return true;
                }
                open.extend(cases.iter().map(|(_, next)| *next));
            }
        }
    }
    false
}
