//! Types, interned: equal types have equal numbers.

use std::collections::HashMap;
use std::sync::Arc;

use num_traits::Zero;

use crate::syntax::ast::StructKind;
use crate::value::Value;

/// Maximum number of leaf values of a type.
pub const MAX_LEAVES: u64 = 1 << 18;
/// Maximum nesting depth of types.
const MAX_DEPTH: u32 = 500;

/// The number of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// Type of an expression with an error; fits every type.
    Unknown,
    Void,
    Bool,
    Error,
    MatchKind,
    String,
    /// Integers of arbitrary size; only constants have this type.
    Int,
    Bits {
        width: u32,
        signed: bool,
    },
    Varbit(u32),
    Enum(usize),
    Struct(usize),
    Stack(Ty, u32),
    Tuple(Vec<Ty>),
    List(Ty),
    New(usize),
    /// A type parameter.
    Variable(u32),
    Extern {
        declaration: usize,
        arguments: Vec<Ty>,
    },
    Parser {
        declaration: usize,
        arguments: Vec<Ty>,
    },
    Control {
        declaration: usize,
        arguments: Vec<Ty>,
    },
    Package {
        declaration: usize,
        arguments: Vec<Ty>,
    },
    /// `{ x = …, y = … }`, of a type that is not known yet.
    Record(Vec<(Arc<str>, Ty)>),
    /// A literal list that ends with `...`: missing values get defaults.
    Partial(Ty),
    /// `{#}`
    Invalid,
    /// `_`
    DontCare,
    Table(usize),
    /// The result of applying a table.
    Applied(usize),
}

/// A struct, header or header union with its type arguments.
#[derive(Clone, Debug)]
pub struct StructInfo {
    pub name: Arc<str>,
    pub kind: StructKind,
    pub declaration: usize,
    pub arguments: Vec<Ty>,
    pub fields: Vec<(Arc<str>, Ty)>,
    /// For each field, the field lists (`@field_list`) that contain it.
    pub field_lists: Vec<Vec<u64>>,
    /// For each field, its match kind in value sets (`@match`), if stated.
    pub matches: Vec<Option<Arc<str>>>,
    /// The kind of controller packets that begin with this header (`@controller_header`).
    pub controller: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub struct EnumInfo {
    pub name: Arc<str>,
    pub members: Vec<Arc<str>>,
    /// The type and the values of a serializable enum.
    pub representation: Option<(Ty, Vec<Value>)>,
}

/// All types of a program.
pub struct Types {
    list: Vec<Type>,
    numbers: HashMap<Type, Ty>,
    leaves: Vec<u64>,
    depths: Vec<u32>,
    pub structs: Vec<StructInfo>,
    pub struct_numbers: HashMap<(usize, Vec<Ty>), Ty>,
    pub enums: Vec<EnumInfo>,
    /// Name and underlying type.
    pub new_types: Vec<(Arc<str>, Ty)>,
    /// Names of type parameters.
    pub variables: Vec<Arc<str>>,
    /// Names of externs, parsers, controls and packages, by declaration number.
    pub names: HashMap<usize, Arc<str>>,
    pub errors: Vec<Arc<str>>,
    pub match_kinds: Vec<Arc<str>>,
}

impl Default for Types {
    fn default() -> Self {
        Types::new()
    }
}

impl Types {
    pub const UNKNOWN: Ty = Ty(0);
    pub const VOID: Ty = Ty(1);
    pub const BOOL: Ty = Ty(2);
    pub const INT: Ty = Ty(3);
    pub const STRING: Ty = Ty(4);
    pub const ERROR: Ty = Ty(5);
    pub const DONT_CARE: Ty = Ty(6);
    pub const INVALID: Ty = Ty(7);
    pub const MATCH_KIND: Ty = Ty(8);

    pub fn new() -> Self {
        let mut types = Types {
            list: Vec::new(),
            numbers: HashMap::new(),
            leaves: Vec::new(),
            depths: Vec::new(),
            structs: Vec::new(),
            struct_numbers: HashMap::new(),
            enums: Vec::new(),
            new_types: Vec::new(),
            variables: Vec::new(),
            names: HashMap::new(),
            errors: Vec::new(),
            match_kinds: Vec::new(),
        };
        for ty in [
            Type::Unknown,
            Type::Void,
            Type::Bool,
            Type::Int,
            Type::String,
            Type::Error,
            Type::DontCare,
            Type::Invalid,
            Type::MatchKind,
        ] {
            types.of(ty);
        }
        types
    }

    /// The number of a type.
    pub fn of(&mut self, ty: Type) -> Ty {
        if let Some(number) = self.numbers.get(&ty) {
            return *number;
        }
        let leaves = match &ty {
            Type::Stack(element, count) => self.leaves(*element).saturating_mul(u64::from(*count)),
            Type::Tuple(elements) => elements.iter().fold(0, |sum, ty| self.leaves(*ty).saturating_add(sum)),
            Type::Record(fields) => fields.iter().fold(0, |sum, (_, ty)| self.leaves(*ty).saturating_add(sum)),
            Type::Struct(number) => {
                self.structs[*number].fields.iter().fold(0, |sum, (_, ty)| self.leaves(*ty).saturating_add(sum))
            }
            _ => 1,
        };
        let depth = |list: &mut dyn Iterator<Item = Ty>| list.map(|ty| self.depths[ty.0 as usize]).max().unwrap_or(0);
        let depth = match &ty {
            Type::Stack(element, _) | Type::List(element) | Type::Partial(element) => {
                depth(&mut [*element].into_iter())
            }
            Type::Tuple(elements)
            | Type::Extern { arguments: elements, .. }
            | Type::Parser { arguments: elements, .. }
            | Type::Control { arguments: elements, .. }
            | Type::Package { arguments: elements, .. } => depth(&mut elements.iter().copied()),
            Type::Record(fields) => depth(&mut fields.iter().map(|(_, ty)| *ty)),
            Type::Struct(number) => {
                let info = &self.structs[*number];
                depth(&mut info.fields.iter().map(|(_, ty)| *ty).chain(info.arguments.iter().copied()))
            }
            Type::New(number) => depth(&mut [self.new_types[*number].1].into_iter()),
            _ => 0,
        };
        self.depths.push(depth + 1);
        let number = Ty(self.list.len() as u32);
        self.list.push(ty.clone());
        self.leaves.push(leaves);
        self.numbers.insert(ty, number);
        number
    }

    /// Number of leaf values of a value of the type.
    pub fn leaves(&self, ty: Ty) -> u64 {
        self.leaves[ty.0 as usize].max(1)
    }

    /// True if the type exceeds the limits on leaf values or nesting depth.
    pub fn is_too_large(&self, ty: Ty) -> bool {
        self.leaves(ty) > MAX_LEAVES || self.depths[ty.0 as usize] > MAX_DEPTH
    }

    pub fn get(&self, ty: Ty) -> &Type {
        &self.list[ty.0 as usize]
    }

    pub fn bits(&mut self, width: u32, signed: bool) -> Ty {
        self.of(Type::Bits { width, signed })
    }

    /// Width and sign of an integer type of fixed width.
    pub fn integer(&self, ty: Ty) -> Option<(u32, bool)> {
        match self.get(ty) {
            Type::Bits { width, signed } => Some((*width, *signed)),
            _ => None,
        }
    }

    /// Width and sign of types represented as integers of fixed width: also newtypes and serializable enums.
    pub fn representation(&self, ty: Ty) -> Option<(u32, bool)> {
        match self.get(ty) {
            Type::Bits { width, signed } => Some((*width, *signed)),
            Type::New(number) => self.representation(self.new_types[*number].1),
            Type::Enum(number) => self.integer(self.enums[*number].representation.as_ref()?.0),
            _ => None,
        }
    }

    pub fn structure(&self, ty: Ty) -> Option<&StructInfo> {
        match self.get(ty) {
            Type::Struct(number) => Some(&self.structs[*number]),
            _ => None,
        }
    }

    pub fn is_kind(&self, ty: Ty, kind: StructKind) -> bool {
        self.structure(ty).is_some_and(|info| info.kind == kind)
    }

    /// The types of the elements of a list literal for this type.
    pub fn components(&self, ty: Ty) -> Option<Vec<Ty>> {
        match self.get(ty) {
            Type::Tuple(elements) => Some(elements.clone()),
            Type::Struct(number) => Some(self.structs[*number].fields.iter().map(|(_, ty)| *ty).collect()),
            Type::Record(fields) => Some(fields.iter().map(|(_, ty)| *ty).collect()),
            _ => None,
        }
    }

    /// The underlying type of a newtype; other types unchanged.
    pub fn stripped(&self, ty: Ty) -> Ty {
        match self.get(ty) {
            Type::New(number) => self.stripped(self.new_types[*number].1),
            _ => ty,
        }
    }

    /// Substitutes types for type parameters.
    pub fn substitute(&mut self, ty: Ty, map: &HashMap<u32, Ty>) -> Ty {
        if map.is_empty() {
            return ty;
        }
        let each =
            |types: &mut Types, list: &[Ty]| list.iter().map(|ty| types.substitute(*ty, map)).collect::<Vec<_>>();
        let new = match self.get(ty).clone() {
            Type::Variable(number) => return map.get(&number).copied().unwrap_or(ty),
            Type::Stack(element, count) => Type::Stack(self.substitute(element, map), count),
            Type::Tuple(elements) => Type::Tuple(each(self, &elements)),
            Type::List(element) => Type::List(self.substitute(element, map)),
            Type::Extern { declaration, arguments } => Type::Extern { declaration, arguments: each(self, &arguments) },
            Type::Parser { declaration, arguments } => Type::Parser { declaration, arguments: each(self, &arguments) },
            Type::Control { declaration, arguments } => {
                Type::Control { declaration, arguments: each(self, &arguments) }
            }
            Type::Package { declaration, arguments } => {
                Type::Package { declaration, arguments: each(self, &arguments) }
            }
            Type::Struct(number) => {
                let info = self.structs[number].clone();
                if info.arguments.is_empty() {
                    return ty;
                }
                let arguments = each(self, &info.arguments);
                let fields = info.fields.iter().map(|(name, ty)| (name.clone(), self.substitute(*ty, map))).collect();
                return self.struct_type(StructInfo { arguments, fields, ..info });
            }
            _ => return ty,
        };
        self.of(new)
    }

    /// A struct type; the same number for the same declaration and arguments.
    pub fn struct_type(&mut self, info: StructInfo) -> Ty {
        let key = (info.declaration, info.arguments.clone());
        if let Some(ty) = self.struct_numbers.get(&key) {
            return *ty;
        }
        self.structs.push(info);
        let ty = self.of(Type::Struct(self.structs.len() - 1));
        self.struct_numbers.insert(key, ty);
        ty
    }

    /// True if the type contains a type parameter.
    pub fn is_open(&self, ty: Ty) -> bool {
        match self.get(ty) {
            Type::Variable(_) => true,
            Type::Stack(element, _) | Type::List(element) | Type::Partial(element) => self.is_open(*element),
            Type::Tuple(elements)
            | Type::Extern { arguments: elements, .. }
            | Type::Parser { arguments: elements, .. }
            | Type::Control { arguments: elements, .. }
            | Type::Package { arguments: elements, .. } => elements.iter().any(|ty| self.is_open(*ty)),
            Type::Struct(number) => self.structs[*number].arguments.iter().any(|ty| self.is_open(*ty)),
            Type::Record(fields) => fields.iter().any(|(_, ty)| self.is_open(*ty)),
            _ => false,
        }
    }

    /// The initial value of variables: zero, with invalid headers.
    pub fn zero(&self, ty: Ty) -> Value {
        match self.get(ty) {
            Type::Bool => Value::Bool(false),
            Type::Bits { .. } | Type::Int => Value::Int(Zero::zero()),
            Type::Varbit(_) => Value::Varbit { bits: 0, value: Zero::zero() },
            Type::Enum(number) => match &self.enums[*number].representation {
                Some(_) => Value::Int(Zero::zero()),
                None => Value::Member(0),
            },
            Type::Error | Type::MatchKind => Value::Member(0),
            Type::String => Value::Text("".into()),
            Type::New(number) => self.zero(self.new_types[*number].1),
            Type::Struct(number) => {
                let info = &self.structs[*number];
                let fields = info.fields.iter().map(|(_, ty)| self.zero(*ty)).collect();
                if info.kind == StructKind::Header {
                    Value::Header { valid: false, fields }
                } else {
                    Value::Struct(fields)
                }
            }
            Type::Stack(element, count) => {
                Value::Stack { next: 0, elements: vec![self.zero(*element); *count as usize] }
            }
            Type::Tuple(elements) => Value::Struct(elements.iter().map(|ty| self.zero(*ty)).collect()),
            Type::List(_) => Value::Struct(Vec::new()),
            Type::Record(fields) => Value::Struct(fields.iter().map(|(_, ty)| self.zero(*ty)).collect()),
            _ => Value::None,
        }
    }

    /// The maximum number of bits of a value in a packet; `None` for values that cannot be in one.
    pub fn width(&self, ty: Ty) -> Option<u64> {
        Some(match self.get(ty) {
            Type::Bool => 1,
            Type::Bits { width, .. } | Type::Varbit(width) => u64::from(*width),
            Type::Enum(_) | Type::New(_) => u64::from(self.representation(ty)?.0),
            Type::Stack(element, count) => self.width(*element)?.saturating_mul(u64::from(*count)),
            Type::Tuple(_) | Type::Record(_) => {
                self.components(ty)?.iter().try_fold(0, |sum: u64, ty| Some(sum.saturating_add(self.width(*ty)?)))?
            }
            Type::Struct(number) => {
                let info = &self.structs[*number];
                let mut widths = Vec::new();
                for (_, ty) in &info.fields {
                    widths.push(self.width(*ty)?);
                }
                if info.kind == StructKind::Union {
                    widths.into_iter().max().unwrap_or(0)
                } else {
                    widths.into_iter().fold(0, u64::saturating_add)
                }
            }
            _ => return None,
        })
    }

    /// The name of a type in messages.
    pub fn show(&self, ty: Ty) -> String {
        let list = |list: &[Ty]| list.iter().map(|ty| self.show(*ty)).collect::<Vec<_>>().join(", ");
        let named = |name: &str, arguments: &[Ty]| {
            if arguments.is_empty() { name.to_owned() } else { format!("{name}<{}>", list(arguments)) }
        };
        match self.get(ty) {
            Type::Unknown => "an unknown type".into(),
            Type::Void => "void".into(),
            Type::Bool => "bool".into(),
            Type::Error => "error".into(),
            Type::MatchKind => "match_kind".into(),
            Type::String => "string".into(),
            Type::Int => "int".into(),
            Type::Bits { width, signed: false } => format!("bit<{width}>"),
            Type::Bits { width, signed: true } => format!("int<{width}>"),
            Type::Varbit(width) => format!("varbit<{width}>"),
            Type::Enum(number) => self.enums[*number].name.to_string(),
            Type::Struct(number) => named(&self.structs[*number].name, &self.structs[*number].arguments),
            Type::Stack(element, count) => format!("{}[{count}]", self.show(*element)),
            Type::Tuple(elements) => format!("tuple<{}>", list(elements)),
            Type::List(element) => format!("list<{}>", self.show(*element)),
            Type::New(number) => self.new_types[*number].0.to_string(),
            Type::Variable(number) => self.variables[*number as usize].to_string(),
            Type::Extern { declaration, arguments }
            | Type::Parser { declaration, arguments }
            | Type::Control { declaration, arguments }
            | Type::Package { declaration, arguments } => {
                named(self.names.get(declaration).map_or("", |name| name), arguments)
            }
            Type::Record(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, ty)| format!("{} {name}", self.show(*ty))).collect();
                format!("{{ {} }}", fields.join(", "))
            }
            Type::Partial(inner) => format!("{} with defaults", self.show(*inner)),
            Type::Invalid => "an invalid header".into(),
            Type::DontCare => "_".into(),
            Type::Table(_) => "a table".into(),
            Type::Applied(_) => "the result of a table".into(),
        }
    }
}
