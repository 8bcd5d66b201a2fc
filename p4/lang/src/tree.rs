//! The typed tree: names resolved, types known, implicit casts explicit, constants evaluated, generic functions
//! specialized. The interpreter runs it, and the lowering compiles it.

use std::sync::Arc;

use crate::source::Span;
use crate::syntax::ast::{Binary, Direction, Unary};
use crate::types::{Ty, Types};
use crate::value::Value;

/// A variable. Each parser and control has a frame; each function and action also has its own frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    Frame(usize),
    Local(usize),
}

/// Location of an instance: at the top level, or in the running parser or control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceRef {
    Global(usize),
    Member(usize),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Const(Value),
    Variable(Variable),
    /// A constructor argument.
    Constructed(usize),
    Instance(InstanceRef),
    /// An unnamed instance that is a constructor argument.
    Construct(Box<Instance>),
    Field(Box<Expr>, usize),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, u32, u32),
    Next(Box<Expr>),
    Last(Box<Expr>),
    LastIndex(Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A cast to the type of this expression.
    Cast(Box<Expr>),
    /// All parts of a struct, valid header, tuple, list or stack.
    Parts(Vec<Expr>),
    IsValid(Box<Expr>),
    Call(Box<Call>),
    Hit(Box<Call>),
    Mask(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, Box<Expr>),
    DontCare,
    ValueSet(usize),
}

/// True if evaluating the expression has side effects.
pub fn has_effects(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(_) | ExprKind::Hit(_) | ExprKind::Next(_) | ExprKind::Last(_) => true,
        ExprKind::Field(inner, _)
        | ExprKind::Slice(inner, ..)
        | ExprKind::LastIndex(inner)
        | ExprKind::Unary(_, inner)
        | ExprKind::Cast(inner)
        | ExprKind::IsValid(inner) => has_effects(inner),
        ExprKind::Index(left, right)
        | ExprKind::Binary(_, left, right)
        | ExprKind::Mask(left, right)
        | ExprKind::Range(left, right) => has_effects(left) || has_effects(right),
        ExprKind::Choice(condition, yes, no) => has_effects(condition) || has_effects(yes) || has_effects(no),
        ExprKind::Parts(parts) => parts.iter().any(has_effects),
        ExprKind::Const(_)
        | ExprKind::Variable(_)
        | ExprKind::Constructed(_)
        | ExprKind::Instance(_)
        | ExprKind::Construct(_)
        | ExprKind::DontCare
        | ExprKind::ValueSet(_) => false,
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    pub target: Target,
    pub arguments: Vec<Argument>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Target {
    Function(usize),
    Action(usize),
    /// A top-level action.
    GlobalAction(usize),
    ExternFunction(Arc<str>),
    Method {
        object: Expr,
        class: Arc<str>,
        name: Arc<str>,
    },
    Apply(InstanceRef),
    /// A parser or control that is a constructor argument.
    ApplyArgument(Expr),
    Table(usize),
    SetValid(Expr),
    SetInvalid(Expr),
    PushFront(Expr, u32),
    PopFront(Expr, u32),
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub direction: Direction,
    /// `None` for `_` and for omitted optional arguments.
    pub value: Option<Expr>,
    pub ty: Ty,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: Arc<str>,
    pub direction: Direction,
    pub ty: Ty,
    pub default: Option<Expr>,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub enum Statement {
    /// Creates a variable with the zero value of its type.
    Reset(Variable, Ty),
    Assign {
        target: Expr,
        operator: Option<Binary>,
        value: Expr,
    },
    Call(Expr),
    If {
        condition: Expr,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Block(Vec<Statement>),
    Return(Option<Expr>),
    Exit,
    Break,
    Continue,
    /// The number of a case is the action's index in the table's list; `None` for `default`.
    SwitchAction {
        call: Box<Call>,
        cases: Vec<(Vec<Option<usize>>, Vec<Statement>)>,
    },
    SwitchValue {
        value: Expr,
        cases: Vec<(Vec<Option<Value>>, Vec<Statement>)>,
    },
    For {
        init: Vec<Statement>,
        condition: Expr,
        update: Vec<Statement>,
        body: Vec<Statement>,
    },
    /// The range includes both bounds.
    ForRange {
        target: Expr,
        first: Expr,
        last: Expr,
        body: Vec<Statement>,
    },
    ForEach {
        target: Expr,
        collection: Expr,
        body: Vec<Statement>,
    },
}

/// A function or an action: its parameters are first in its frame.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: Arc<str>,
    pub parameters: Vec<Parameter>,
    /// Types of the variables of its frame.
    pub locals: Vec<Ty>,
    pub body: Vec<Statement>,
    pub annotations: Naming,
}

/// Control-plane name and id of an object.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// `@name`
    pub name: Option<Arc<str>>,
    /// `@id`, for P4Runtime.
    pub id: Option<u32>,
}

#[derive(Clone, Debug)]
pub enum Class {
    Extern(Arc<str>),
    Parser(usize),
    Control(usize),
    Package(Arc<str>),
}

#[derive(Clone, Debug)]
pub struct Instance {
    pub name: Arc<str>,
    pub naming: Naming,
    pub class: Class,
    pub arguments: Vec<Option<Expr>>,
    pub ty: Ty,
}

/// Common parts of parsers and controls.
#[derive(Clone, Debug, Default)]
pub struct Shell {
    pub name: Arc<str>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    /// Types of the variables of the frame; parameters are first.
    pub frame: Vec<Ty>,
    pub instances: Vec<Instance>,
    /// Initialization of variables, before the first state or the body.
    pub init: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Control {
    pub shell: Shell,
    pub actions: Vec<Function>,
    pub tables: Vec<Table>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Parser {
    pub shell: Shell,
    pub value_sets: Vec<ValueSet>,
    pub states: Vec<State>,
    /// The state `start`.
    pub start: Next,
}

/// A value set, filled by the control plane.
#[derive(Clone, Debug)]
pub struct ValueSet {
    pub name: Arc<str>,
    pub naming: Naming,
    /// Maximum number of members.
    pub size: u64,
    /// Fields of a member: name, type, and match kind.
    pub fields: Vec<(Arc<str>, Ty, Arc<str>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Accept,
    Reject,
    State(usize),
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: Arc<str>,
    pub body: Vec<Statement>,
    pub next: Transition,
}

#[derive(Clone, Debug)]
pub enum Transition {
    To(Next),
    Select { keys: Vec<Expr>, cases: Vec<(Vec<Expr>, Next)> },
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: Arc<str>,
    pub naming: Naming,
    pub keys: Vec<Key>,
    pub actions: Vec<TableAction>,
    pub default: Option<BoundAction>,
    pub default_is_const: bool,
    pub entries: Vec<Entry>,
    pub entries_are_const: bool,
    /// Number of entries, if the program states it.
    pub size: Option<u64>,
    /// The action profile or selector, direct counter and direct meter.
    pub implementation: Option<Expr>,
    pub counter: Option<Expr>,
    pub meter: Option<(Expr, Option<Expr>)>,
    /// Entries may have an idle timeout.
    pub support_timeout: bool,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub value: Expr,
    pub kind: Arc<str>,
    /// The control plane's name.
    pub name: Arc<str>,
}

/// An action of a table, with the arguments that the program binds to its first parameters.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// An action of the control, or a top-level one.
    pub action: Target,
    pub name: Arc<str>,
    pub bound: Vec<Argument>,
    pub default_only: bool,
    pub table_only: bool,
}

#[derive(Clone, Debug)]
pub struct BoundAction {
    /// Its index in the table's list.
    pub action: usize,
    /// Arguments of the parameters that the control plane sets.
    pub arguments: Vec<Expr>,
}

/// The largest priority of an entry in P4Runtime; the smallest is 1.
pub const LARGEST_PRIORITY: i64 = i32::MAX as i64;

#[derive(Clone, Debug)]
pub struct Entry {
    pub keys: Vec<Expr>,
    pub action: BoundAction,
    /// The control plane cannot change it, although it can change other entries of the table.
    pub is_const: bool,
    /// The largest priority wins, regardless of how the program numbers priorities. 0 in tables without priorities.
    pub priority: i64,
}

/// A whole program.
pub struct Program {
    pub types: Types,
    pub functions: Vec<Function>,
    pub actions: Vec<Function>,
    pub parsers: Vec<Parser>,
    pub controls: Vec<Control>,
    pub instances: Vec<Instance>,
}

impl Program {
    /// The function behind an action of a table of this control.
    pub fn action(&self, control: usize, target: &Target) -> Option<&Function> {
        match target {
            Target::Action(number) => self.controls[control].actions.get(*number),
            Target::GlobalAction(number) => self.actions.get(*number),
            _ => None,
        }
    }
}

impl Function {
    /// The control plane's name of this action, reached by `target` in the instance `path` of a control.
    pub fn control_name(&self, target: &Target, path: &str) -> String {
        match &self.annotations.name {
            Some(name) => name.trim_start_matches('.').to_owned(),
            None if matches!(target, Target::GlobalAction(_)) => self.name.to_string(),
            None => format!("{path}.{}", self.name),
        }
    }
}
