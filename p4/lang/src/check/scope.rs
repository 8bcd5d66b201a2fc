//! Names and their meaning.

use std::collections::HashMap;
use std::sync::Arc;

use super::Checker;
use crate::syntax::ast::Name;
use crate::tree::{self, Expr, InstanceRef, Variable};
use crate::types::Ty;

/// The meaning of a name.
#[derive(Clone)]
pub enum Entity {
    Const(Expr),
    Variable {
        variable: Variable,
        ty: Ty,
        writable: bool,
    },
    /// A constructor argument.
    Constructed {
        index: usize,
        ty: Ty,
    },
    Instance(InstanceRef, Ty),
    Type(TypeEntity),
    /// Overloaded functions, by declaration number.
    Functions(Vec<usize>),
    Action(usize),
    GlobalAction(usize),
    Table(usize),
    ValueSet(usize, Ty),
}

/// The meaning of a type name. Numbers are declaration numbers.
#[derive(Clone, Copy)]
pub enum TypeEntity {
    Plain(Ty),
    Struct(usize),
    Extern(usize),
    Parser(usize),
    Control(usize),
    Package(usize),
}

/// The kind of code that is being checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    Top,
    Function,
    Action,
    Control,
    Parser,
}

/// State of the checker.
#[derive(Default)]
pub struct Context {
    pub scopes: Vec<HashMap<Arc<str>, Entity>>,
    /// Top-level declarations from this number on are not visible.
    pub limit: usize,
    pub place: Place,
    /// In a parser or control: its contents so far.
    pub shell: Option<tree::Shell>,
    pub actions: Vec<tree::Function>,
    pub tables: Vec<tree::Table>,
    pub value_sets: Vec<crate::tree::ValueSet>,
    /// In a function or action: the types of its variables.
    pub locals: Vec<Ty>,
    pub returns: Option<Ty>,
    pub loops: u32,
}

impl Checker<'_> {
    pub(super) fn lookup(&self, name: &Name, global: bool) -> Option<Entity> {
        if !global && let Some(entity) = self.context.scopes.iter().rev().find_map(|scope| scope.get(&name.text)) {
            return Some(entity.clone());
        }
        let declared = self.globals.get(&name.text)?;
        let mut visible = declared.iter().filter(|(number, _)| *number <= self.context.limit);
        let mut functions = Vec::new();
        for (number, entity) in visible.clone() {
            if let Entity::Functions(_) = entity {
                functions.push(*number);
            }
        }
        if !functions.is_empty() {
            return Some(Entity::Functions(functions));
        }
        visible.next_back().map(|(_, entity)| entity.clone())
    }

    /// Declares a name in the innermost scope, or at the top level outside of all scopes.
    pub(super) fn declare(&mut self, name: &Name, entity: Entity) {
        if let Some(scope) = self.context.scopes.last_mut() {
            if scope.insert(name.text.clone(), entity).is_some() {
                self.diagnostics
                    .error("duplicate", name.span, format!("'{}' is already declared in this scope", name.text))
                    .help("choose another name");
            }
            return;
        }
        let number = self.context.limit;
        let declared = self.globals.entry(name.text.clone()).or_default();
        let overloads = matches!(entity, Entity::Functions(_))
            && declared.iter().all(|(_, other)| matches!(other, Entity::Functions(_)));
        let clash = !declared.is_empty() && !overloads;
        declared.push((number, entity));
        if clash {
            self.diagnostics
                .error("duplicate", name.span, format!("'{}' is already declared", name.text))
                .help("choose another name");
        }
    }

    pub(super) fn scoped<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        self.context.scopes.push(HashMap::new());
        let result = part(self);
        self.context.scopes.pop();
        result
    }

    /// Checks a part of the top level with a fresh context.
    pub(super) fn elsewhere<T>(&mut self, limit: usize, part: impl FnOnce(&mut Self) -> T) -> T {
        let fresh = Context { limit, scopes: vec![HashMap::new()], ..Context::default() };
        let before = std::mem::replace(&mut self.context, fresh);
        let result = part(self);
        self.context = before;
        result
    }

    /// Allocates a variable in the frame of the code that is being checked.
    pub(super) fn new_variable(&mut self, ty: Ty) -> Variable {
        if matches!(self.context.place, Place::Function | Place::Action) || self.context.shell.is_none() {
            self.context.locals.push(ty);
            return Variable::Local(self.context.locals.len() - 1);
        }
        let frame = self.context.shell.get_or_insert_default();
        frame.frame.push(ty);
        Variable::Frame(frame.frame.len() - 1)
    }
}
