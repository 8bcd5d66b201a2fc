//! Controls.

use std::collections::HashMap;

use super::Checker;
use super::scope::{Context, Entity, Place, TypeEntity};
use crate::syntax::ast::{self, DeclarationKind, Name};
use crate::tree::{self, Parameter, Shell};
use crate::types::Ty;

impl<'a> Checker<'a> {
    /// Enters a parser or control: declares its type arguments, parameters and constructor parameters.
    pub(super) fn enter_shell(
        &mut self,
        number: usize,
        types: (&[Name], &[Ty]),
        written: (&'a [ast::Parameter], &'a [ast::Parameter]),
        place: Place,
    ) -> Context {
        // The declaration itself and later ones are not visible inside.
        let limit = number.saturating_sub(1);
        let fresh = Context { limit, scopes: vec![HashMap::new()], place, ..Context::default() };
        let before = std::mem::replace(&mut self.context, fresh);
        for (name, ty) in types.0.iter().zip(types.1) {
            self.declare(name, Entity::Type(TypeEntity::Plain(*ty)));
        }
        let parameters = self.parameters(written.0);
        let constructor = self.parameters(written.1);
        let name = self.program[number].name.text.clone();
        self.context.shell = Some(Shell { name, parameters, constructor, ..Shell::default() });
        for (index, parameter) in written.1.iter().enumerate() {
            let ty = self.shell_parameter(true, index).ty;
            self.declare(&parameter.name, Entity::Constructed { index, ty });
        }
        for (index, parameter) in written.0.iter().enumerate() {
            let known = self.shell_parameter(false, index);
            let variable = self.new_variable(known.ty);
            self.declare_parameter(&parameter.name, &known, variable);
        }
        self.context.scopes.push(HashMap::new());
        before
    }

    fn shell_parameter(&mut self, constructor: bool, index: usize) -> Parameter {
        let shell = self.context.shell.get_or_insert_default();
        if constructor { shell.constructor[index].clone() } else { shell.parameters[index].clone() }
    }

    /// Checks a control for these type arguments, once per set of arguments.
    pub(super) fn specific_control(&mut self, number: usize, arguments: Vec<Ty>) -> Option<usize> {
        let key = (number, arguments);
        if let Some(known) = self.specific_controls.get(&key) {
            return Some(*known);
        }
        let declaration = &self.program[number];
        let DeclarationKind::Control(control) = &declaration.kind else { return None };
        let (locals, body) = control.body.as_ref()?;
        if !self.may_specialise(declaration.name.span) {
            return None;
        }
        let types = (&*control.type_parameters, &*key.1);
        let before = self.enter_shell(number, types, (&control.parameters, &control.constructor), Place::Control);
        let mut init = Vec::new();
        for local in locals {
            match &local.kind {
                DeclarationKind::Action { parameters, body } => {
                    let action = self.action(local, parameters, body);
                    self.context.actions.push(action);
                    let place = self.context.actions.len() - 1;
                    self.declare(&local.name, Entity::Action(place));
                }
                DeclarationKind::Table(table) => self.table(local, table),
                _ => self.local(local, &mut init),
            }
        }
        let body = self.block(body);
        let context = std::mem::replace(&mut self.context, before);
        let shell = Shell { init, ..context.shell.unwrap_or_default() };
        self.controls.push(tree::Control { shell, actions: context.actions, tables: context.tables, body });
        self.specific_controls.insert(key, self.controls.len() - 1);
        Some(self.controls.len() - 1)
    }
}
