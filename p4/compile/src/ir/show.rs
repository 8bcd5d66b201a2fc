//! Prints the intermediate representation as text.

use std::fmt::Write;

use namehop_p4_lang::interpret::show as show_value;
use namehop_p4_lang::syntax::{Binary, Unary};
use namehop_p4_lang::types::Types;

use super::{EmitField, Expr, Id, IndexVec, Kind, Place, Program, RegisterId, Resume, Statement, Step, Var, Variable};

struct Shown<'a> {
    program: &'a Program,
    types: &'a Types,
    text: String,
    indent: usize,
}

impl Program {
    /// The program as text.
    pub fn show(&self, types: &Types) -> String {
        let mut shown = Shown { program: self, types, text: String::new(), indent: 0 };
        for table in &self.tables {
            shown.line(&format!("table {}", table.path));
            for key in &table.keys {
                shown.line(&format!("    key {}: {:?} of {} bits", key.name, key.kind, key.width));
            }
            for action in &table.actions {
                shown.line(&format!("    action {} with values of {:?} bits", action.name, action.arguments));
            }
        }
        for register in &self.registers {
            shown.line(&format!("register {}: {} of {}", register.path, register.size, types.show(register.ty)));
        }
        for counter in &self.counters {
            shown.line(&format!("counter {}: {}", counter.path, counter.size));
        }
        shown.text + &self.show_parts(types)
    }

    /// A statement as text, which need not be valid.
    pub fn show_statement(&self, types: &Types, statement: &Statement) -> String {
        let mut shown = Shown { program: self, types, text: String::new(), indent: 0 };
        shown.statement(statement);
        shown.text
    }

    /// The parts of the program as text.
    pub fn show_parts(&self, types: &Types) -> String {
        let mut shown = Shown { program: self, types, text: String::new(), indent: 0 };
        for part in &self.parts {
            shown.line(&format!("{} {}", part.name, part.title));
            shown.inner(&part.body);
        }
        shown.text
    }
}

/// The name of an object, or its number if there is no such object.
fn name<'o, I: Id, T>(objects: &'o IndexVec<I, T>, number: I, name: impl FnOnce(&'o T) -> &'o str) -> String {
    objects.get(number).map_or_else(|| format!("?{}", number.index()), |object| name(object).to_owned())
}

impl Shown<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "    ".repeat(self.indent));
    }

    fn inner(&mut self, list: &[Statement]) {
        self.indent += 1;
        for statement in list {
            self.statement(statement);
        }
        self.indent -= 1;
    }

    fn statement(&mut self, statement: &Statement) {
        let text = match statement {
            Statement::Set(place, value) => format!("{} = {}", self.place(place), self.expr(value)),
            Statement::If(condition, then, otherwise) => {
                self.line(&format!("if {}", self.expr(condition)));
                self.inner(then);
                if !otherwise.is_empty() {
                    self.line("else");
                    self.inner(otherwise);
                }
                return;
            }
            Statement::Block(label, body) => {
                self.line(&format!("block {label}"));
                return self.inner(body);
            }
            Statement::Loop(body) => {
                self.line("loop");
                return self.inner(body);
            }
            Statement::Jump(label) => format!("leave {label}"),
            Statement::Machine { number, states, start, timeout } => {
                self.line(&format!("machine {number} from {}", name(states, *start, |state| &state.name)));
                for state in states {
                    self.line(&format!("state {}", state.name));
                    self.inner(&state.body);
                }
                self.line("after too many states");
                return self.inner(timeout);
            }
            Statement::Goto { machine, state } => format!("go to {machine}.{state}"),
            Statement::Error(error) => format!("error {}", self.expr(error)),
            Statement::Lose => "abort the packet".into(),
            Statement::Advance(bits) => format!("advance {}", self.expr(bits)),
            Statement::ReadVarbit(place, bits) => format!("{} = next {} bits", self.place(place), self.expr(bits)),
            Statement::Append(sink, value) => format!("append to {sink:?}: {}", self.expr(value)),
            Statement::BeginData => "begin data".into(),
            Statement::Digest(number) => {
                format!("report data as {}", name(&self.program.digests, *number, |digest| &digest.name))
            }
            Statement::AppendPayload => "append payload".into(),
            Statement::ChecksumError => "checksum error".into(),
            Statement::Request { request, value, list } => {
                let list = list.as_ref().map(|list| format!(", with list {}", self.expr(list))).unwrap_or_default();
                format!("request {request:?} {}{list}", self.expr(value))
            }
            Statement::WriteRegister(number, index, value) => {
                format!("{}[{}] = {}", self.register(*number), self.expr(index), self.expr(value))
            }
            Statement::Count(number, index) => {
                let counter = name(&self.program.counters, *number, |counter| &counter.path);
                format!("count {counter}[{}]", self.expr(index))
            }
            Statement::Apply(apply) => {
                let table = name(&self.program.tables, apply.table, |table| &table.path);
                let keys: Vec<String> = apply.keys.iter().map(|key| self.expr(key)).collect();
                self.line(&format!("look up {} in {table}", keys.join(", ")));
                if apply.hashed > 0 {
                    self.line(&format!("    key words hashed before: {}", apply.hashed));
                }
                for (what, variable) in [("hit", apply.hit), ("action", apply.chosen)] {
                    if let Some(variable) = variable {
                        self.line(&format!("    {what} in {}", self.variable(variable)));
                    }
                }
                let actions = self.program.tables.get(apply.table).map_or(&[][..], |table| &table.actions);
                for (action, body) in actions.iter().zip(&apply.actions) {
                    self.line(&format!("action {}", action.name));
                    self.inner(body);
                }
                return self.resume(&apply.resume);
            }
            Statement::Cipher(cipher) => {
                self.line(&format!(
                    "{} payload from {} on, key {}, iv {}",
                    if cipher.encrypts { "encrypt" } else { "decrypt" },
                    self.expr(&cipher.offset),
                    self.expr(&cipher.key),
                    self.expr(&cipher.iv)
                ));
                return self.resume(&cipher.resume);
            }
            Statement::Locate(base, true) => format!("{} is at the parser position", self.variable(*base)),
            Statement::Locate(base, false) => format!("{} is not in the packet", self.variable(*base)),
            Statement::Barrier(kept) if kept.is_empty() => "barrier".into(),
            Statement::Barrier(kept) => format!("barrier, keeps {}", self.variables(kept)),
            Statement::Drop => "drop the packet".into(),
            Statement::Send(port, headers) => {
                for header in headers.iter().flatten() {
                    let list: Vec<String> = header.fields.iter().map(|field| self.emitted(field)).collect();
                    let valid = header.valid.as_ref().map_or("true".into(), |valid| self.expr(valid));
                    let from = header.base.map(|base| format!(" from {}", self.variable(base))).unwrap_or_default();
                    self.line(&format!("emit if {valid}{from}: {}", list.join(", ")));
                }
                format!("send by port {}", self.expr(port))
            }
        };
        self.line(&text);
    }

    /// How the packet continues after the end of a stage.
    fn resume(&mut self, resume: &Resume) {
        let Resume { kept, position, located, known, fields } = resume;
        let mut parts = Vec::new();
        if !kept.is_empty() {
            parts.push(format!("keeps {}", self.variables(kept)));
        }
        parts.extend(position.map(|position| format!("parsed bits: {position}")));
        parts.extend(located.iter().map(|(header, bit)| format!("{} at bit {bit}", self.variable(*header))));
        parts.extend(known.iter().map(|(known, value)| format!("{} = {}", self.variable(*known), show_value(value))));
        parts.extend(fields.iter().map(|(field, value)| format!("{} is {}", self.variable(*field), self.expr(value))));
        for part in parts {
            self.line(&format!("    resumes: {part}"));
        }
    }

    fn variables(&self, list: &[Var]) -> String {
        list.iter().map(|variable| self.variable(*variable)).collect::<Vec<_>>().join(", ")
    }

    fn emitted(&self, field: &EmitField) -> String {
        format!("{}{}", self.expr(&field.value), if field.changed { "*" } else { "" })
    }

    /// The name of a variable. The verifier also shows statements with variables that are not declared.
    fn variable(&self, variable: Var) -> String {
        match self.program.variables.get(variable) {
            Some(Variable { name, .. }) => format!("{name}.{variable}"),
            None => format!("?.{variable}"),
        }
    }

    fn register(&self, number: RegisterId) -> String {
        name(&self.program.registers, number, |register| &register.path)
    }

    fn place(&self, place: &Place) -> String {
        let mut text = self.variable(place.root);
        let mut ty = self.program.variables.get(place.root).map(|variable| variable.ty);
        for step in &place.steps {
            match step {
                Step::Field(field) => {
                    let info = ty.and_then(|ty| self.types.structure(ty));
                    match info.and_then(|info| info.fields.get(*field)) {
                        Some((name, _)) => text += &format!(".{name}"),
                        None => text += &format!(".{field}"),
                    }
                    ty = ty.and_then(|ty| self.types.components(ty)).and_then(|list| list.get(*field).copied());
                }
                Step::Index(index) => {
                    text += &format!("[{}]", self.expr(index));
                    ty = None;
                }
                Step::Valid => text += ".valid",
                Step::Next => text += ".next",
            }
        }
        text
    }

    fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            Kind::Const(value) => show_value(value),
            Kind::Read(place) => self.place(place),
            Kind::Unary(operator, inner) => format!("{}{}", sign_before(*operator), self.expr(inner)),
            Kind::Binary(operator, left, right) => {
                format!("({} {} {})", self.expr(left), sign(*operator), self.expr(right))
            }
            Kind::Choice(condition, yes, no) => {
                format!("({} ? {} : {})", self.expr(condition), self.expr(yes), self.expr(no))
            }
            Kind::Cast(inner) => format!("({}){}", self.types.show(expr.ty), self.expr(inner)),
            Kind::Slice(inner, high, low) => format!("{}[{high}:{low}]", self.expr(inner)),
            Kind::Insert(base, high, low, part) => {
                format!("({} with [{high}:{low}] = {})", self.expr(base), self.expr(part))
            }
            Kind::Parts(parts) => {
                format!("{{{}}}", parts.iter().map(|part| self.expr(part)).collect::<Vec<_>>().join(", "))
            }
            Kind::Packet(offset) => format!("packet[+{offset}] as {}", self.types.show(expr.ty)),
            Kind::Left => "bits left".into(),
            Kind::Length => "packet length".into(),
            Kind::Hash(algorithm) => format!("hash {}", self.expr(algorithm)),
            Kind::Random => "random".into(),
            Kind::Register(number, index) => {
                format!("{}[{}]", self.register(*number), self.expr(index))
            }
            Kind::Meter(number, index) => {
                let meter = name(&self.program.meters, *number, |meter| &meter.path);
                format!("meter {meter}[{}]", self.expr(index))
            }
            Kind::Argument(offset) => format!("entry[{offset}] as {}", self.types.show(expr.ty)),
            Kind::Field(base, offset) => format!("{}[+{offset}] as {}", self.variable(*base), self.types.show(expr.ty)),
            Kind::Sum(parts) => {
                format!("checksum of {}", parts.iter().map(|part| self.expr(part)).collect::<Vec<_>>().join(", "))
            }
            Kind::Port => "port".into(),
            Kind::InSet(set, values) => {
                let values = values.iter().map(|value| self.expr(value)).collect::<Vec<_>>().join(", ");
                format!("({values}) in {}", name(&self.program.value_sets, *set, |set| &set.path))
            }
        }
    }
}

fn sign_before(operator: Unary) -> &'static str {
    match operator {
        Unary::Not => "!",
        Unary::Complement => "~",
        Unary::Minus => "-",
        Unary::Plus => "+",
    }
}

fn sign(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::SaturatingAdd => "|+|",
        Binary::SaturatingSub => "|-|",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Mod => "%",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::BitAnd => "&",
        Binary::BitOr => "|",
        Binary::BitXor => "^",
        Binary::Concat => "++",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::LessEqual => "<=",
        Binary::Greater => ">",
        Binary::GreaterEqual => ">=",
        Binary::And => "&&",
        Binary::Or => "||",
    }
}
