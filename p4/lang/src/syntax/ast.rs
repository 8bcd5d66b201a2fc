//! The syntax tree, with unresolved names.

use std::sync::Arc;

use crate::source::Span;
use crate::syntax::number::Literal;

/// A name and its position.
#[derive(Clone, Debug)]
pub struct Name {
    pub text: Arc<str>,
    pub span: Span,
}

/// `@name(…)` or `@name[…]`. Of the content, only what the fields hold is kept.
#[derive(Clone, Debug)]
pub struct Annotation {
    pub name: Arc<str>,
    pub text: Option<Arc<str>>,
    /// The content, if it is a single name.
    pub word: Option<Arc<str>>,
    /// All numbers in the content that fit into 64 bits.
    pub numbers: Vec<u64>,
    /// The content, if it is a list of expressions (`@field_list`, `@priority`).
    pub values: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// Height of the tree below; limited by the parser.
    pub height: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Not,
    Complement,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    SaturatingAdd,
    SaturatingSub,
    Mul,
    Div,
    Mod,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    Concat,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Bool(bool),
    Int(Literal),
    Str(Arc<str>),
    Name {
        name: Name,
        global: bool,
    },
    This,
    Type(Box<TypeRef>),
    Member(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    /// `value[high:low]`
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `value[low +: width]`
    SliceFrom(Box<Expr>, Box<Expr>, Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Box<TypeRef>, Box<Expr>),
    Mask(Box<Expr>, Box<Expr>),
    Range(Box<Expr>, Box<Expr>),
    Call {
        function: Box<Expr>,
        types: Vec<TypeRef>,
        arguments: Vec<Argument>,
    },
    /// `{ a, b, ... }`
    List {
        elements: Vec<Expr>,
        rest: bool,
    },
    /// `{ x = a, y = b, ... }`
    Record {
        fields: Vec<(Name, Expr)>,
        rest: bool,
    },
    /// `{#}`
    Invalid,
    /// `default` in a select, `_`
    DontCare,
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: Option<Name>,
    /// `None` for `_`.
    pub value: Option<Expr>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct TypeRef {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    Bool,
    Error,
    String,
    Int,
    Void,
    MatchKind,
    Bit(Box<Expr>),
    SignedInt(Box<Expr>),
    Varbit(Box<Expr>),
    Named {
        name: Name,
        global: bool,
        arguments: Vec<TypeRef>,
    },
    Stack(Box<TypeRef>, Box<Expr>),
    Tuple(Vec<TypeRef>),
    List(Box<TypeRef>),
    /// `_`: to be inferred.
    DontCare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    None,
    In,
    Out,
    InOut,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub direction: Direction,
    pub ty: TypeRef,
    pub name: Name,
    pub default: Option<Expr>,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub annotations: Vec<Annotation>,
    pub ty: TypeRef,
    pub name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructKind {
    Header,
    Struct,
    Union,
}

/// `R f<T>(parameters)`, with a body or without.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: Name,
    pub returns: TypeRef,
    pub type_parameters: Vec<Name>,
    pub parameters: Vec<Parameter>,
    pub body: Option<Block>,
    pub is_abstract: bool,
}

/// A declaration and its position.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub kind: DeclarationKind,
    pub name: Name,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DeclarationKind {
    Constant { ty: TypeRef, value: Expr },
    Variable { ty: TypeRef, value: Option<Expr> },
    Instance { ty: TypeRef, arguments: Vec<Argument>, methods: Vec<Declaration> },
    Typedef { ty: TypeRef },
    NewType { ty: TypeRef },
    Struct { kind: StructKind, type_parameters: Vec<Name>, fields: Vec<Field> },
    Enum { members: Vec<Name> },
    SerializableEnum { ty: TypeRef, members: Vec<(Name, Expr)> },
    Errors { members: Vec<Name> },
    MatchKinds { members: Vec<Name> },
    ExternObject { type_parameters: Vec<Name>, constructors: Vec<Vec<Parameter>>, methods: Vec<Function> },
    ExternFunction(Function),
    Function(Function),
    Action { parameters: Vec<Parameter>, body: Block },
    Parser(Box<Parser>),
    Control(Box<Control>),
    Package { type_parameters: Vec<Name>, parameters: Vec<Parameter> },
    Table(Box<Table>),
    ValueSet { ty: TypeRef, size: Expr },
}

#[derive(Clone, Debug)]
pub struct Parser {
    pub type_parameters: Vec<Name>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    /// `None` for the declaration of a parser type.
    pub body: Option<(Vec<Declaration>, Vec<State>)>,
}

#[derive(Clone, Debug)]
pub struct State {
    pub name: Name,
    pub body: Vec<Statement>,
    pub next: Transition,
}

#[derive(Clone, Debug)]
pub enum Transition {
    /// `None` stands for `reject`.
    To(Option<Name>),
    Select {
        keys: Vec<Expr>,
        cases: Vec<SelectCase>,
    },
}

#[derive(Clone, Debug)]
pub struct SelectCase {
    pub set: Expr,
    pub next: Name,
}

#[derive(Clone, Debug)]
pub struct Control {
    pub type_parameters: Vec<Name>,
    pub parameters: Vec<Parameter>,
    pub constructor: Vec<Parameter>,
    pub body: Option<(Vec<Declaration>, Block)>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub keys: Vec<TableKey>,
    pub actions: Vec<ActionRef>,
    pub entries: Option<Entries>,
    pub properties: Vec<Property>,
}

#[derive(Clone, Debug)]
pub struct TableKey {
    pub value: Expr,
    pub kind: Name,
    pub annotations: Vec<Annotation>,
}

/// An action in the list of a table, with the arguments that are bound there.
#[derive(Clone, Debug)]
pub struct ActionRef {
    pub name: Name,
    pub global: bool,
    pub arguments: Vec<Argument>,
    pub annotations: Vec<Annotation>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Entries {
    pub is_const: bool,
    pub list: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub is_const: bool,
    pub priority: Option<Expr>,
    /// `@priority(N)`; with it, the smallest number wins.
    pub rank: Option<Expr>,
    pub keys: Expr,
    pub action: ActionRef,
}

/// `name = value;` of a table.
#[derive(Clone, Debug)]
pub struct Property {
    pub name: Name,
    pub is_const: bool,
    pub value: Expr,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StatementKind {
    Empty,
    Assign { target: Expr, operator: Option<Binary>, value: Expr },
    Call(Expr),
    If { condition: Expr, then: Box<Statement>, otherwise: Option<Box<Statement>> },
    Block(Block),
    Return(Option<Expr>),
    Exit,
    Break,
    Continue,
    Switch { value: Expr, cases: Vec<SwitchCase> },
    For { init: Vec<Statement>, condition: Expr, update: Vec<Statement>, body: Box<Statement> },
    ForIn { ty: TypeRef, name: Name, collection: ForCollection, body: Box<Statement> },
    Declare(Box<Declaration>),
}

#[derive(Clone, Debug)]
pub enum ForCollection {
    Value(Expr),
    Range(Expr, Expr),
}

/// A case; labels without a body fall through to the next case.
#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// `None` for `default`.
    pub label: Option<Expr>,
    pub body: Option<Block>,
}
