//! C types for the types of a program, and C names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::{Ty, Type, Types};

/// How values of a type are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Bool,
    /// In a machine word: width, and whether it is signed.
    Narrow(u32, bool),
    /// In several words: number of words, width, and whether it is signed.
    Wide(u32, u32, bool),
    /// A varbit of at most this many bits.
    Varbit(u32),
    /// A C struct.
    Parts,
    /// No value.
    None,
}

/// Number of words for integers of more than 64 bits: room for one bit more than they need.
pub fn words(width: u32) -> u32 {
    width / 64 + 1
}

pub fn form(types: &Types, ty: Ty) -> Form {
    let ty = types.stripped(ty);
    match types.get(ty) {
        Type::Bool => Form::Bool,
        Type::Bits { .. } => integer(types.representation(ty)),
        Type::Enum(_) if types.representation(ty).is_some() => integer(types.representation(ty)),
        Type::Enum(_) | Type::Error | Type::MatchKind => Form::Narrow(32, false),
        Type::Varbit(most) => Form::Varbit(*most),
        Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) | Type::Record(_) => Form::Parts,
        _ => Form::None,
    }
}

fn integer(representation: Option<(u32, bool)>) -> Form {
    match representation {
        Some((width, signed)) if width <= 64 => Form::Narrow(width, signed),
        Some((width, signed)) => Form::Wide(words(width), width, signed),
        None => Form::None,
    }
}

/// True for names that C, its headers or the runtime use.
fn is_taken(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "asm",
        "typeof",
        "bool",
        "true",
        "false",
        "offsetof",
        "linux",
        "unix",
        "i386",
        "packet",
        "noreturn",
        "errno",
        "stdin",
        "stdout",
        "stderr",
        "timespec",
        "timeval",
        "random_data",
        "drand48_data",
        "way",
        "lane",
        "aes_enc_key_expanded",
        "aes_dec_key_expanded",
        "aes_key_len_in_bytes",
    ];
    name.starts_with('_')
        || name.starts_with("p4")
        || name.starts_with("P4")
        || name.starts_with("varbit")
        || name.starts_with('w') && name[1..].bytes().all(|digit| digit.is_ascii_digit())
        || name.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_') && name.len() > 2
        || WORDS.contains(&name)
}

/// Converts a name of a program to a C identifier. Different P4 identifiers stay different; paths, which may contain
/// any characters, get a number too. Only names with a single `$` at an end belong to the emitter.
pub fn identifier(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '$' => text.push_str("$$"),
            c if c.is_ascii_alphanumeric() => text.push(c),
            _ => text.push('_'),
        }
    }
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || is_taken(&text) {
        text.push('$');
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '$');
    }
    text
}

/// The types declared so far.
#[derive(Default)]
pub struct Declarations {
    pub text: String,
    names: HashMap<Ty, String>,
    taken: HashSet<String>,
    /// The numbers of words for which there are wide types.
    pub wide: BTreeSet<u32>,
    varbits: BTreeSet<u32>,
    equal: HashSet<Ty>,
}

impl Declarations {
    /// The C type; declares it first if necessary.
    pub fn name(&mut self, types: &Types, ty: Ty) -> String {
        match form(types, ty) {
            Form::Bool => "bool".into(),
            Form::Narrow(width, signed) => {
                let size = [8, 16, 32, 64].into_iter().find(|size| width <= *size).unwrap_or(64);
                format!("{}int{size}_t", if signed { "" } else { "u" })
            }
            Form::Wide(words, ..) => {
                self.wide.insert(words);
                format!("w{words}")
            }
            Form::Varbit(most) => {
                self.wide.insert(words(most));
                self.varbits.insert(most);
                format!("struct varbit{most}")
            }
            Form::Parts => self.parts(types, types.stripped(ty)),
            Form::None => "uint8_t".into(),
        }
    }

    /// Declarations of types that do not depend on the program's types.
    pub fn basic(&self) -> String {
        let mut text = String::new();
        for count in &self.wide {
            let _ = writeln!(text, "P4_WIDE({count})");
        }
        for most in &self.varbits {
            let _ = writeln!(text, "struct varbit{most} {{ uint32_t bits; w{} value; }};", words(*most));
        }
        text
    }

    /// The C name of a field.
    pub fn field(types: &Types, ty: Ty, field: usize) -> String {
        match types.get(types.stripped(ty)) {
            Type::Struct(number) => {
                types.structs[*number].fields.get(field).map_or_else(String::new, |(name, _)| identifier(name))
            }
            Type::Record(fields) => fields.get(field).map_or_else(String::new, |(name, _)| identifier(name)),
            _ => format!("e{field}"),
        }
    }

    fn parts(&mut self, types: &Types, ty: Ty) -> String {
        if let Some(name) = self.names.get(&ty) {
            return name.clone();
        }
        let mut body = String::new();
        let mut wanted = match types.get(ty) {
            Type::Stack(element, count) => {
                let element_name = self.name(types, *element);
                let _ = write!(body, "    uint32_t $next;\n    {element_name} element[{count}];\n");
                format!("{}$stack{count}", element_name.trim_start_matches("struct "))
            }
            Type::Struct(number) => identifier(&types.structs[*number].name),
            _ => "tuple$".into(),
        };
        for (number, component) in types.components(ty).unwrap_or_default().into_iter().enumerate() {
            let name = self.name(types, component);
            let _ = writeln!(body, "    {name} {};", Self::field(types, ty, number));
        }
        if types.is_kind(ty, StructKind::Header) {
            body += "    bool $valid;\n";
        }
        if !self.taken.insert(wanted.clone()) {
            let _ = write!(wanted, "${}", ty.0);
            self.taken.insert(wanted.clone());
        }
        let name = format!("struct {wanted}");
        let _ = writeln!(self.text, "{name} {{\n{body}}};\n");
        self.names.insert(ty, name.clone());
        name
    }

    /// The name of the function that compares two values.
    pub fn equality(&mut self, types: &Types, ty: Ty) -> String {
        let ty = types.stripped(ty);
        let name = self.name(types, ty);
        let function = match form(types, ty) {
            Form::Varbit(most) => format!("equal$varbit{most}"),
            _ => format!("equal${}", name.trim_start_matches("struct ")),
        };
        if !self.equal.insert(ty) {
            return function;
        }
        let mut body = String::new();
        match types.get(ty) {
            Type::Varbit(most) => {
                let _ = writeln!(body, "    return a.bits == b.bits && w{}_eq(a.value, b.value);", words(*most));
            }
            Type::Stack(element, count) => {
                let same = self.compare(types, *element, "a.element[i]", "b.element[i]");
                let _ = write!(
                    body,
                    "    for (unsigned i = 0; i < {count}; i++)\n        if (!({same})) return false;\n    \
                     return true;\n"
                );
            }
            _ => {
                if types.is_kind(ty, StructKind::Header) {
                    body += "    if (!a.$valid || !b.$valid) return a.$valid == b.$valid;\n";
                }
                for (number, component) in types.components(ty).unwrap_or_default().into_iter().enumerate() {
                    let field = Self::field(types, ty, number);
                    let same = self.compare(types, component, &format!("a.{field}"), &format!("b.{field}"));
                    let _ = writeln!(body, "    if (!({same})) return false;");
                }
                body += "    return true;\n";
            }
        }
        let _ = write!(self.text, "static inline bool {function}({name} a, {name} b)\n{{\n{body}}}\n\n");
        function
    }

    /// An expression that compares two values.
    pub fn compare(&mut self, types: &Types, ty: Ty, left: &str, right: &str) -> String {
        match form(types, ty) {
            Form::Bool | Form::Narrow(..) => format!("{left} == {right}"),
            Form::Wide(words, ..) => {
                self.wide.insert(words);
                format!("w{words}_eq({left}, {right})")
            }
            Form::Parts | Form::Varbit(_) => format!("{}({left}, {right})", self.equality(types, ty)),
            Form::None => "true".into(),
        }
    }
}
