//! Tables and their lists of actions.

use super::{Parsed, Parser};
use crate::syntax::ast::{
    ActionRef, Annotation, Declaration, DeclarationKind, Entries, Entry, Expr, ExprKind, Property, Table, TableKey,
};

impl Parser<'_> {
    pub(super) fn table(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        let start = self.peek().span;
        self.expect_word("table")?;
        let name = self.name()?;
        self.declare(&name, false);
        self.expect_sign("{")?;
        let mut table = Table { keys: Vec::new(), actions: Vec::new(), entries: None, properties: Vec::new() };
        while !self.take_sign("}") {
            self.annotations()?;
            let is_const = self.take_word("const");
            let at = self.peek().span;
            match self.peek().identifier().map(|word| &**word) {
                Some("key") if !is_const => {
                    self.property_start()?;
                    self.expect_sign("{")?;
                    while !self.take_sign("}") {
                        table.keys.push(self.key()?);
                    }
                    self.take_sign(";");
                }
                Some("actions") if !is_const => {
                    self.property_start()?;
                    self.expect_sign("{")?;
                    while !self.take_sign("}") {
                        let annotations = self.annotations()?;
                        let action = self.action_ref()?;
                        table.actions.push(ActionRef { annotations, ..action });
                        self.expect_sign(";")?;
                    }
                    self.take_sign(";");
                }
                Some("entries") => {
                    self.property_start()?;
                    self.expect_sign("{")?;
                    let mut list = Vec::new();
                    while !self.take_sign("}") {
                        list.push(self.entry()?);
                    }
                    self.take_sign(";");
                    if table.keys.is_empty() || table.actions.is_empty() {
                        return self.error(at, "entries must come after the keys and the actions of a table", None);
                    }
                    if table.entries.is_some() {
                        return self.error(at, "the table already has entries", None);
                    }
                    table.entries = Some(Entries { is_const, list });
                }
                Some("default_action") => {
                    let name = self.name()?;
                    self.expect_sign("=")?;
                    let value = self.expression()?;
                    self.expect_sign(";")?;
                    table.properties.push(Property { name, is_const, value });
                }
                _ => {
                    let name = self.name()?;
                    self.expect_sign("=")?;
                    let value = self.expression()?;
                    self.expect_sign(";")?;
                    table.properties.push(Property { name, is_const, value });
                }
            }
        }
        let kind = DeclarationKind::Table(Box::new(table));
        Ok(Declaration { kind, name, annotations, span: self.since(start) })
    }

    fn property_start(&mut self) -> Parsed<()> {
        self.advance();
        self.expect_sign("=")
    }

    fn key(&mut self) -> Parsed<TableKey> {
        let value = self.expression()?;
        self.expect_sign(":")?;
        let kind = self.name()?;
        let annotations = self.annotations()?;
        self.expect_sign(";")?;
        Ok(TableKey { value, kind, annotations })
    }

    pub(super) fn action_ref(&mut self) -> Parsed<ActionRef> {
        let start = self.peek().span;
        let global = self.take_sign(".");
        let name = self.name()?;
        let arguments = if self.is_sign("(") { self.arguments()? } else { Vec::new() };
        Ok(ActionRef { name, global, arguments, annotations: Vec::new(), span: self.since(start) })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let is_const = self.take_word("const");
        let priority = if self.is_word("priority") && self.peek_at(1).is_sign("=") {
            self.advance();
            self.advance();
            let value = self.expression()?;
            self.expect_sign(":")?;
            Some(value)
        } else {
            None
        };
        let keys = self.set()?;
        let keys = match keys.kind {
            ExprKind::List { .. } => keys,
            _ => Expr {
                span: keys.span,
                height: keys.height + 1,
                kind: ExprKind::List { elements: vec![keys], rest: false },
            },
        };
        self.expect_sign(":")?;
        let action = self.action_ref()?;
        let annotations = self.annotations()?;
        let rank = annotations.into_iter().find(|annotation| &*annotation.name == "priority");
        let rank = rank.and_then(|annotation| annotation.values.into_iter().next());
        self.expect_sign(";")?;
        Ok(Entry { is_const, priority, rank, keys, action })
    }
}
