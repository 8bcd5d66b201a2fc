//! Checks control-plane names: no two actions, and no two tables, may have the same name.

use std::collections::HashSet;

use super::Checker;
use crate::syntax::ast::{Declaration, DeclarationKind};

impl Checker<'_> {
    pub(super) fn control_plane_names(&mut self) {
        let mut actions: HashSet<String> = HashSet::new();
        let mut tables: HashSet<String> = HashSet::new();
        for declaration in self.program {
            match &declaration.kind {
                DeclarationKind::Action { .. } => self.claim("action", declaration, "", &mut actions),
                DeclarationKind::Control(control) => {
                    let Some((locals, _)) = &control.body else { continue };
                    for local in locals {
                        let owner = &declaration.name.text;
                        match &local.kind {
                            DeclarationKind::Action { .. } => self.claim("action", local, owner, &mut actions),
                            DeclarationKind::Table(_) => self.claim("table", local, owner, &mut tables),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn claim(&mut self, kind: &str, declaration: &Declaration, owner: &str, taken: &mut HashSet<String>) {
        let name = self.naming(declaration).name;
        let own = name.as_deref().unwrap_or(&declaration.name.text);
        let full = match own.strip_prefix('.') {
            Some(absolute) => absolute.to_owned(),
            None if owner.is_empty() => own.to_owned(),
            None => format!("{owner}.{own}"),
        };
        if !taken.insert(full.clone()) {
            let message = format!("another {kind} has the control-plane name '{full}'");
            self.error_with_help("duplicate", declaration.name.span, message, "give one of them another @name");
        }
    }
}
