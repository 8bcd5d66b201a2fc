//! Keeps headers in the packet: fields that come only from the packet are read where they are, and an unchanged header
//! is not written when the packet leaves.

use std::collections::{HashMap, HashSet};

use namehop_p4_lang::types::Types;
use namehop_p4_lang::value::Value;

use super::fuse::fixed_width;
use super::visit;
use crate::ir::{Emit, EmitField, Expr, Fused, HeaderParts, Kind, Place, Sink, Statement, Var, Variable};

/// Longer headers, in bits, are copied: the runtime has this many zeros for headers that are not in the packet
/// (P4_LONGEST_HEADER).
const LONGEST: u64 = 8192 * 8;

/// A header that is parsed in only one way: all fields at once.
struct Header {
    base: Var,
    valid: Var,
    fields: Vec<(Var, u64, u32)>,
}

/// Finds headers that can be read in place, and adds the variables that hold their positions.
pub fn locate(fused: &mut Fused, types: &Types) {
    let Fused { program, headers, .. } = fused;
    let mut body = std::mem::take(&mut program.parts[0].body);
    let mut finder = Finder::new(headers);
    finder.list(&body);
    let mut placer = Placer { headers: Vec::new(), owner: HashMap::new(), lazy: HashMap::new() };
    for (number, header) in headers.iter().enumerate() {
        let bits: u64 = header.fields.iter().map(|(_, _, width)| u64::from(*width)).sum();
        if !finder.parsed.contains(&number)
            || finder.partial.contains(&number)
            || !bits.is_multiple_of(8)
            || bits > LONGEST
        {
            continue;
        }
        let name = format!("{}_at", header.name).into();
        let base = program.variables.push(Variable { name, ty: Types::VOID });
        let place = placer.headers.len();
        for (variable, offset, _) in &header.fields {
            placer.owner.insert(*variable, place);
            if !finder.written.contains(variable) {
                placer.lazy.insert(*variable, (base, *offset));
            }
        }
        placer.headers.push(Header { base, valid: header.valid, fields: header.fields.clone() });
    }
    placer.list(&mut body);
    placer.leave(&mut body, types);
    program.parts[0].body = body;
    fused.bases = placer.headers.iter().map(|header| header.base).collect();
}

/// The variable that a statement sets as a whole, and its value.
fn set(statement: &Statement) -> Option<(Var, &Expr)> {
    match statement {
        Statement::Set(place, value) if place.steps.is_empty() => Some((place.root, value)),
        _ => None,
    }
}

/// Number of leading statements that read all fields of a header from the packet.
fn parsing(list: &[Statement], fields: &[(Var, u64, u32)]) -> Option<usize> {
    let count = fields.len();
    let reads = |(statement, (variable, offset, _)): (&Statement, &(Var, u64, u32))| {
        set(statement).is_some_and(|(set, value)| set == *variable && value.kind == Kind::Packet(*offset))
    };
    (count > 0 && list.len() >= count && list.iter().zip(fields).all(reads)).then_some(count)
}

/// Number of leading statements that set a header to its initial state, invalid and zero.
fn clearing(list: &[Statement], fields: &[(Var, u64, u32)], valid: Var) -> Option<usize> {
    let count = fields.len();
    let zero = |value: &Expr| match &value.kind {
        Kind::Const(Value::Bool(truth)) => !truth,
        Kind::Const(value @ (Value::Int(_) | Value::Member(_))) => value.number() == 0,
        _ => false,
    };
    let clears = |(statement, (variable, ..)): (&Statement, &(Var, u64, u32))| {
        set(statement).is_some_and(|(set, value)| set == *variable && zero(value))
    };
    let last = list.get(count).and_then(set).is_some_and(|(variable, value)| variable == valid && zero(value));
    (last && list.iter().zip(fields).all(clears)).then_some(count)
}

/// Collects what happens to the fields of headers.
struct Finder<'a> {
    headers: &'a [HeaderParts],
    owner: HashMap<Var, usize>,
    parsed: HashSet<usize>,
    /// Headers of which parts are read from the packet separately.
    partial: HashSet<usize>,
    /// Fields that are assigned other values.
    written: HashSet<Var>,
}

impl<'a> Finder<'a> {
    fn new(headers: &'a [HeaderParts]) -> Self {
        let mut owner = HashMap::new();
        for (number, header) in headers.iter().enumerate() {
            owner.extend(header.fields.iter().map(|(variable, ..)| (*variable, number)));
        }
        Finder { headers, owner, parsed: HashSet::new(), partial: HashSet::new(), written: HashSet::new() }
    }

    fn list(&mut self, list: &[Statement]) {
        let mut at = 0;
        while let Some(statement) = list.get(at) {
            let first = set(statement).and_then(|(variable, _)| self.owner.get(&variable).copied());
            if let Some(number) = first {
                let HeaderParts { fields, valid, .. } = &self.headers[number];
                if let Some(count) = parsing(&list[at..], fields) {
                    self.parsed.insert(number);
                    at += count;
                    continue;
                }
                if let Some(count) = clearing(&list[at..], fields, *valid) {
                    at += count;
                    continue;
                }
            }
            if let Statement::Set(place, value) = statement
                && let Some(number) = self.owner.get(&place.root)
            {
                self.written.insert(place.root);
                if matches!(value.kind, Kind::Packet(_)) {
                    self.partial.insert(*number);
                }
            }
            for inner in statement.inner() {
                self.list(inner);
            }
            at += 1;
        }
    }
}

struct Placer {
    headers: Vec<Header>,
    owner: HashMap<Var, usize>,
    /// Fields that are read in place: the position variable of their header, and the offset in bits.
    lazy: HashMap<Var, (Var, u64)>,
}

impl Placer {
    fn list(&self, list: &mut Vec<Statement>) {
        let before = std::mem::take(list);
        let mut skip = 0;
        let mut parsed = None;
        for (at, statement) in before.iter().enumerate() {
            let header =
                set(statement).and_then(|(variable, _)| self.owner.get(&variable)).map(|place| &self.headers[*place]);
            if let (Some(Header { base, valid, fields }), 0) = (header, skip) {
                parsed = None;
                if let Some(count) = parsing(&before[at..], fields) {
                    list.push(Statement::Locate(*base, true));
                    skip = count;
                    parsed = Some(*base);
                } else if let Some(count) = clearing(&before[at..], fields, *valid) {
                    list.push(Statement::Locate(*base, false));
                    skip = count;
                }
            }
            let from = parsed.filter(|_| skip > 0);
            skip = usize::saturating_sub(skip, 1);
            if set(statement).is_some_and(|(variable, _)| self.lazy.contains_key(&variable)) {
                continue;
            }
            let mut statement = statement.clone();
            statement.change(&mut |expr| {
                if let Kind::Read(place) = &expr.kind
                    && let Some((base, offset)) = self.lazy.get(&place.root)
                {
                    expr.kind = Kind::Field(*base, *offset);
                }
                // Parsed data does not change, so it can be read later.
                if let (Kind::Packet(offset), Some(base)) = (&expr.kind, from) {
                    expr.kind = Kind::Field(base, *offset);
                }
            });
            for inner in statement.inner_mut() {
                self.list(inner);
            }
            list.push(statement);
        }
    }

    /// Determines the headers that packets leave with, if they are a plain list.
    fn leave(&self, body: &mut Vec<Statement>, types: &Types) {
        let appends = |list: &[Statement]| {
            let mut count = 0;
            visit::statements(list, &mut |statement| count += usize::from(is_append(statement)));
            count
        };
        let Some(Statement::Send(port, None)) = body.last().cloned() else { return };
        let all = appends(body);
        let mut emits = Vec::new();
        let deparser = body.len() - 2;
        if all > 0 {
            let last = &body[deparser..=deparser];
            if appends(last) != all || !self.emits(last, &mut emits, types) {
                return;
            }
            body.remove(deparser);
        }
        body.pop();
        body.push(Statement::Send(port, Some(emits)));
    }

    /// Collects what statements append into a list. Returns false if they do anything else.
    fn emits(&self, list: &[Statement], emits: &mut Vec<Emit>, types: &Types) -> bool {
        let mut rest = list;
        while let Some((first, others)) = rest.split_first() {
            rest = others;
            match first {
                Statement::Block(label, body) => {
                    let mut jumps = false;
                    visit::statements(body, &mut |inner| {
                        jumps |= matches!(inner, Statement::Jump(to) if to == label);
                    });
                    if jumps || !self.emits(body, emits, types) {
                        return false;
                    }
                }
                Statement::If(valid, then, otherwise) if otherwise.is_empty() && then.iter().all(is_append) => {
                    emits.push(self.emit(Some(valid.clone()), then, types));
                }
                Statement::Append(Sink::Packet, _) => {
                    let count = rest.iter().take_while(|statement| is_append(statement)).count();
                    emits.push(self.emit(None, &list[list.len() - rest.len() - 1..][..=count], types));
                    rest = &rest[count..];
                }
                _ => return false,
            }
        }
        true
    }

    fn emit(&self, valid: Option<Expr>, list: &[Statement], types: &Types) -> Emit {
        let mut fields = Vec::new();
        for statement in list {
            if let Statement::Append(_, value) = statement {
                let width = fixed_width(types, value.ty).unwrap_or(0);
                fields.push(EmitField { value: value.clone(), width, changed: true });
            }
        }
        let whole = self.headers.iter().find(|header| {
            header.fields.len() == fields.len()
                && header.fields.iter().zip(&fields).all(|((variable, ..), field)| match &field.value.kind {
                    Kind::Field(base, offset) => self.lazy.get(variable) == Some(&(*base, *offset)),
                    Kind::Read(Place { root, steps, .. }) => root == variable && steps.is_empty(),
                    _ => false,
                })
        });
        if whole.is_some() {
            for field in &mut fields {
                field.changed = !matches!(field.value.kind, Kind::Field(..));
            }
        }
        Emit { valid, base: whole.map(|header| header.base), fields }
    }
}

fn is_append(statement: &Statement) -> bool {
    matches!(statement, Statement::Append(Sink::Packet, _))
}
