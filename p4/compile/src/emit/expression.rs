//! Generates C expressions. Integers of up to 64 bits are computed in words and truncated to their width; wider ones
//! are computed by functions.

use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::types::{Ty, Type, Types};
use namehop_p4_lang::value::{self, Value};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::Emitter;
use super::burst::Order;
use super::types::{Declarations, Form, form, words};
use crate::ir::{Expr, Kind, Place, Step};

/// The width and sign of integers and similar forms.
pub(super) fn width_of(form: Form) -> (u32, bool) {
    match form {
        Form::Bool => (1, false),
        Form::Narrow(width, signed) | Form::Wide(_, width, signed) => (width, signed),
        _ => (0, false),
    }
}

pub(super) fn mask(width: u32) -> String {
    match width {
        0..64 => format!("UINT64_C(0x{:x})", (1u64 << width) - 1),
        _ => "~UINT64_C(0)".into(),
    }
}

/// Truncates a word to a width.
pub(super) fn cut(text: &str, width: u32, signed: bool) -> String {
    match (width, signed) {
        (_, true) => format!("p4_sign((uint64_t)({text}), {width})"),
        (64.., false) => format!("({text})"),
        (_, false) => format!("(({text}) & {})", mask(width)),
    }
}

impl Emitter<'_> {
    pub(super) fn form(&self, ty: Ty) -> Form {
        form(self.types, ty)
    }

    pub(super) fn type_name(&mut self, ty: Ty) -> String {
        self.declarations.name(self.types, ty)
    }

    /// The place as an lvalue, and the conditions under which it exists.
    pub(super) fn place(&mut self, place: &Place) -> (String, Vec<String>) {
        let mut text = self.variable(place.root);
        let mut ty = self.program.variables[place.root].ty;
        let mut conditions = Vec::new();
        for step in &place.steps {
            match step {
                Step::Field(field) => {
                    text += ".";
                    text += &Declarations::field(self.types, ty, *field);
                    ty = self
                        .types
                        .components(self.types.stripped(ty))
                        .and_then(|list| list.get(*field).copied())
                        .unwrap_or(ty);
                }
                Step::Index(index) => {
                    let (element, size) = match self.types.get(ty) {
                        Type::Stack(element, size) => (*element, *size),
                        _ => (ty, 0),
                    };
                    let number = match &index.kind {
                        Kind::Const(value) => value.number().to_string(),
                        _ => self.word(index),
                    };
                    if !matches!(&index.kind, Kind::Const(value) if value.number() < u64::from(size)) {
                        conditions.push(format!("{number} < {size}"));
                    }
                    text = format!("{text}.element[{number}]");
                    ty = element;
                }
                Step::Valid => {
                    text += ".$valid";
                    ty = Types::BOOL;
                }
                Step::Next => text += ".$next",
            }
        }
        (text, conditions)
    }

    /// A number as an unsigned word; a number that does not fit becomes the largest word.
    pub(super) fn word(&mut self, expr: &Expr) -> String {
        let text = self.expr(expr);
        match self.form(expr.ty) {
            Form::Wide(words, ..) => format!("w{words}_word({text})"),
            Form::Narrow(64, false) => text,
            _ => format!("(uint64_t)({text})"),
        }
    }

    /// The zero value of a type.
    fn zero(&mut self, ty: Ty) -> String {
        match self.form(ty) {
            Form::Bool => "false".into(),
            Form::Narrow(..) | Form::None => "0".into(),
            _ => format!("({}){{0}}", self.type_name(ty)).replace("{0}", "{}"),
        }
    }

    pub(super) fn constant(&mut self, value: &Value, ty: Ty) -> String {
        match (self.form(ty), value) {
            (Form::Bool, _) => value.truth().to_string(),
            (Form::Narrow(width, signed), _) => {
                let number = value::wrap(&value.int(), width, signed);
                match number.to_i64() {
                    Some(i64::MIN) => "INT64_MIN".into(),
                    Some(number) if signed => format!("INT64_C({number})"),
                    Some(number) if number < 10 => number.to_string(),
                    _ => format!("UINT64_C(0x{:x})", number),
                }
            }
            (Form::Wide(count, width, signed), _) => {
                self.declarations.wide.insert(count);
                format!("(w{count}){{{{{}}}}}", wide_words(&value::wrap(&value.int(), width, signed), count))
            }
            (Form::Varbit(most), Value::Varbit { bits, value }) => {
                let name = self.type_name(ty);
                format!("({name}){{{bits}, {{{{{}}}}}}}", wide_words(value, words(most)))
            }
            (Form::Parts, Value::Header { valid, fields }) => self.composed(fields, ty, Some(*valid)),
            (Form::Parts, Value::Struct(fields)) => self.composed(fields, ty, None),
            (Form::Parts, Value::Stack { next, elements }) => {
                if *value == self.types.zero(ty) {
                    return self.zero(ty);
                }
                let element = match self.types.get(ty) {
                    Type::Stack(element, _) => *element,
                    _ => ty,
                };
                let list: Vec<String> = elements.iter().map(|value| self.constant(value, element)).collect();
                format!("({}){{.$next = {next}, .element = {{{}}}}}", self.type_name(ty), list.join(", "))
            }
            _ => self.zero(ty),
        }
    }

    fn composed(&mut self, fields: &[Value], ty: Ty, valid: Option<bool>) -> String {
        let components = self.types.components(self.types.stripped(ty)).unwrap_or_default();
        let mut list = Vec::new();
        for (number, (value, component)) in fields.iter().zip(components).enumerate() {
            if *value != self.types.zero(component) {
                let value = self.constant(value, component);
                list.push(format!(".{} = {value}", Declarations::field(self.types, ty, number)));
            }
        }
        if valid == Some(true) {
            list.push(".$valid = true".into());
        }
        format!("({}){{{}}}", self.type_name(ty), list.join(", "))
    }

    /// Converts an integer to the form of another type, truncating it.
    fn converted(&mut self, text: &str, from: Ty, to: Ty) -> String {
        let (from_form, to_form) = (self.form(from), self.form(to));
        if let Form::Wide(count, ..) = to_form {
            self.declarations.wide.insert(count);
        }
        let (from_width, from_signed) = width_of(from_form);
        match (from_form, to_form) {
            (one, other) if one == other => text.into(),
            (Form::Narrow(..), Form::Bool) => format!("({text} != 0)"),
            (Form::Wide(count, ..), Form::Bool) => format!("(!w{count}_eq({text}, w{count}_u(0)))"),
            (Form::Bool | Form::Narrow(..), Form::Narrow(width, signed)) => {
                if !from_signed && !signed && from_width <= width {
                    format!("(uint64_t)({text})")
                } else {
                    cut(&format!("(uint64_t)({text})"), width, signed)
                }
            }
            (Form::Wide(..), Form::Narrow(width, signed)) => cut(&format!("({text}).w[0]"), width, signed),
            (Form::Bool | Form::Narrow(..), Form::Wide(count, width, signed)) => {
                let wide = if from_signed { format!("w{count}_s({text})") } else { format!("w{count}_u({text})") };
                if from_signed && !signed { format!("w{count}_wrap({wide}, {width})") } else { wide }
            }
            (Form::Wide(from, ..), Form::Wide(count, width, signed)) => {
                let wide = if from == count {
                    text.to_owned()
                } else {
                    format!("w{count}_load(({text}).w, {from}, {from_signed})")
                };
                fit(&wide, count, width, signed)
            }
            _ => text.into(),
        }
    }

    /// An expression in the form of a type.
    pub(super) fn as_type(&mut self, expr: &Expr, ty: Ty) -> String {
        let text = self.expr(expr);
        self.converted(&text, expr.ty, ty)
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        match &expr.kind {
            Kind::Const(value) => self.constant(value, expr.ty),
            Kind::Read(place) => {
                let (text, conditions) = self.place(place);
                if conditions.is_empty() {
                    return text;
                }
                let zero = self.zero(expr.ty);
                format!("({} ? {text} : {zero})", conditions.join(" && "))
            }
            Kind::Unary(operator, inner) => self.unary(*operator, inner, expr.ty),
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right, expr.ty),
            Kind::Choice(condition, yes, no) => {
                let (yes, no) = (self.as_type(yes, expr.ty), self.as_type(no, expr.ty));
                format!("({} ? {yes} : {no})", self.expr(condition))
            }
            Kind::Cast(inner) => self.as_type(inner, expr.ty),
            Kind::Slice(inner, high, low) => {
                let text = self.expr(inner);
                let width = high - low + 1;
                match self.form(inner.ty) {
                    Form::Wide(count, ..) => {
                        let moved = format!("w{count}_shr({text}, {low})");
                        match self.form(expr.ty) {
                            Form::Wide(to, ..) => {
                                self.declarations.wide.insert(to);
                                format!("w{to}_wrap(w{to}_load({moved}.w, {count}, false), {width})")
                            }
                            _ => cut(&format!("{moved}.w[0]"), width, false),
                        }
                    }
                    _ => cut(&format!("(uint64_t)({text}) >> {low}"), width, false),
                }
            }
            Kind::Insert(base, high, low, part) => {
                let text = self.expr(base);
                match self.form(base.ty) {
                    Form::Wide(count, width, signed) => {
                        let part = match self.form(part.ty) {
                            Form::Wide(from, ..) => {
                                let part = self.expr(part);
                                format!("w{count}_load(({part}).w, {from}, false)")
                            }
                            _ => format!("w{count}_u({})", self.word(part)),
                        };
                        fit(&format!("w{count}_insert({text}, {high}, {low}, {part})"), count, width, signed)
                    }
                    other => {
                        let (width, signed) = width_of(other);
                        let bits = mask(high - low + 1);
                        let part = self.word(part);
                        cut(
                            &format!("((uint64_t)({text}) & ~({bits} << {low})) | (({part} & {bits}) << {low})"),
                            width,
                            signed,
                        )
                    }
                }
            }
            Kind::Parts(parts) => self.parts(parts, expr.ty),
            Kind::Packet(offset) => {
                let (data, _, position) = self.input();
                if self.aligned {
                    self.bits_at(&format!("{data} + ({position} >> 3)"), &offset.to_string(), expr.ty)
                } else {
                    self.bits_at(data, &format!("{position} + {offset}"), expr.ty)
                }
            }
            Kind::Argument(offset) if self.small_values => {
                let found = self.found();
                match self.form(expr.ty) {
                    Form::Bool => format!("(p4_argument({found}.value, {offset}, 1) != 0)"),
                    Form::Narrow(width, false) => format!("p4_argument({found}.value, {offset}, {width})"),
                    Form::Narrow(width, true) => {
                        format!("p4_sign(p4_argument({found}.value, {offset}, {width}), {width})")
                    }
                    _ => self.zero(expr.ty),
                }
            }
            Kind::Argument(offset) => {
                let data = format!("{}.data", self.found());
                self.bits_at(&data, &offset.to_string(), expr.ty)
            }
            Kind::Field(base, offset) => {
                let base = self.variable(*base);
                self.bits_at(&base, &offset.to_string(), expr.ty)
            }
            Kind::Sum(values) => {
                let sum = self.sum(values);
                match self.form(expr.ty) {
                    Form::Wide(count, ..) => {
                        self.declarations.wide.insert(count);
                        format!("w{count}_u({sum})")
                    }
                    other => {
                        let (width, signed) = width_of(other);
                        cut(&sum, width, signed)
                    }
                }
            }
            Kind::Port => "(came_in & 511)".into(),
            Kind::InSet(number, values) => {
                let set = &self.program.value_sets[*number];
                let mut words = Vec::new();
                for (value, field) in values.iter().zip(&set.fields) {
                    let text = self.expr(value);
                    match self.form(value.ty) {
                        Form::Wide(..) => {
                            words.extend((0..field.width.div_ceil(64)).map(|word| format!("({text}).w[{word}]")));
                        }
                        _ => words.push(format!("((uint64_t)({text}) & {})", mask(field.width))),
                    }
                }
                let count = words.len();
                format!("p4_in_set(&value_sets[{number}], (const uint64_t[{count}]){{{}}}, {count})", words.join(", "))
            }
            Kind::Left => {
                let (_, length, position) = self.input();
                format!("({length} * 8 - {position})")
            }
            Kind::Length => format!("({} & UINT32_MAX)", self.input().1),
            Kind::Hash(algorithm) => {
                let algorithm = self.word(algorithm);
                match self.form(expr.ty) {
                    Form::Wide(count, width, signed) => {
                        self.declarations.wide.insert(count);
                        fit(&format!("w{count}_hash(&p4_data, {algorithm})"), count, width, signed)
                    }
                    other => {
                        let (width, signed) = width_of(other);
                        cut(&format!("p4_hash(&p4_data, {algorithm})"), width, signed)
                    }
                }
            }
            Kind::Random => "p4_random()".into(),
            Kind::Register(number, index) => {
                let index = self.word(index);
                let size = self.program.registers[*number].size;
                let zero = self.zero(expr.ty);
                format!("({index} < {size} ? {}[{index}] : {zero})", self.registers[*number])
            }
            Kind::Meter(number, index) => {
                let index = self.word(index);
                let meter = &self.program.meters[*number];
                let amount = if meter.bytes { self.input().1 } else { "1" };
                format!("p4_meter({}, {}, {index}, {amount})", self.meters[*number], meter.size)
            }
        }
    }

    /// C expression for the result of a lookup.
    pub(super) fn found(&self) -> &'static str {
        match self.fused {
            Some(Order::AtOnce | Order::Free) => "found",
            Some(Order::Kept) | None => "p->found",
        }
    }

    /// Loads a value of this type from `bytes`, at the offset `bit` in bits.
    fn bits_at(&mut self, bytes: &str, bit: &str, ty: Ty) -> String {
        match self.form(ty) {
            Form::Bool => format!("(p4_get({bytes}, {bit}, 1) != 0)"),
            Form::Narrow(width, false) => format!("p4_get({bytes}, {bit}, {width})"),
            Form::Narrow(width, true) => format!("p4_sign(p4_get({bytes}, {bit}, {width}), {width})"),
            Form::Wide(count, width, signed) => {
                self.declarations.wide.insert(count);
                let read = format!("w{count}_get({bytes}, {bit}, {width})");
                if signed { fit(&read, count, width, signed) } else { read }
            }
            _ => self.zero(ty),
        }
    }

    fn parts(&mut self, parts: &[Expr], ty: Ty) -> String {
        let name = self.type_name(ty);
        if let Type::Stack(element, _) = self.types.get(self.types.stripped(ty)) {
            let list: Vec<String> = parts.iter().map(|part| self.as_type(part, *element)).collect();
            return format!("({name}){{.element = {{{}}}}}", list.join(", "));
        }
        let components = self.types.components(self.types.stripped(ty)).unwrap_or_default();
        let mut list = Vec::new();
        for (number, (part, component)) in parts.iter().zip(components).enumerate() {
            let value = self.as_type(part, component);
            list.push(format!(".{} = {value}", Declarations::field(self.types, ty, number)));
        }
        if self.types.is_kind(ty, StructKind::Header) {
            list.push(".$valid = true".into());
        }
        format!("({name}){{{}}}", list.join(", "))
    }
}

/// Truncates a wide integer to its width.
pub(super) fn fit(text: &str, count: u32, width: u32, signed: bool) -> String {
    format!("w{count}_{}({text}, {width})", if signed { "sign" } else { "wrap" })
}

/// The words of a number, the lowest one first.
fn wide_words(number: &BigInt, count: u32) -> String {
    let number = value::wrap(number, count * 64, false);
    let list: Vec<String> =
        (0..count).map(|word| format!("UINT64_C(0x{:x})", (&number >> (64 * word)) & BigInt::from(u64::MAX))).collect();
    list.join(", ")
}
