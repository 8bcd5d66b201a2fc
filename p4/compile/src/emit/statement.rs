//! Generates statements in C.

use super::quote::Comment;
use super::types::{Form, words};
use super::{Emitter, End};
use crate::ir::{self, Expr, Place, Request, Sink, Statement};
use crate::optimise::visit;

impl Emitter<'_> {
    pub(super) fn statements(&mut self, list: &[Statement]) {
        let mut rest = list;
        while let Some((first, others)) = rest.split_first() {
            rest = if let Some(count) = self.bytes_together(rest) {
                self.append_bytes(rest[..count].iter().filter_map(|statement| match statement {
                    Statement::Append(_, value) => Some(value),
                    _ => None,
                }));
                &rest[count..]
            } else {
                self.statement(first);
                others
            };
        }
    }

    pub(super) fn inner(&mut self, list: &[Statement]) {
        self.indent += 1;
        self.statements(list);
        self.indent -= 1;
    }

    /// Executes a statement only if the place exists.
    fn guarded(&mut self, conditions: &[String], text: &str) {
        if conditions.is_empty() {
            self.line(text);
        } else {
            self.line(&format!("if ({}) {text}", conditions.join(" && ")));
        }
    }

    fn set(&mut self, place: &Place, value: &Expr) {
        let value = self.as_type(value, place.ty);
        let (target, conditions) = self.place(place);
        self.guarded(&conditions, &format!("{target} = {value};"));
    }

    pub(super) fn lose_unless(&mut self, condition: &str) {
        self.line(&format!("if (!{condition}) {{ p->lost = true; {} }}", self.end()));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Set(place, value) => self.set(place, value),
            Statement::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                if then.is_empty() {
                    self.line(&format!("if (!({condition})) {{"));
                    self.inner(otherwise);
                } else {
                    self.line(&format!("if ({condition}) {{"));
                    self.inner(then);
                    if !otherwise.is_empty() {
                        self.line("} else {");
                        self.inner(otherwise);
                    }
                }
                self.line("}");
            }
            Statement::Block(label, body) => {
                self.statements(body);
                if self.labels.contains(label) {
                    self.line(&format!("l{label}:;"));
                }
            }
            Statement::Loop(body) => {
                self.line("for (;;) {");
                self.indent += 1;
                self.lose_unless("(++p->steps <= P4_STEPS)");
                self.statements(body);
                self.indent -= 1;
                self.line("}");
            }
            Statement::Jump(label) => self.line(&format!("goto l{label};")),
            Statement::Machine { number, states, start, timeout } => {
                self.line(&format!("uint32_t states${number} = 0;"));
                self.line(&format!("goto s{number}_{start};"));
                for (place, state) in states.iter().enumerate() {
                    self.line(&format!("s{number}_{place}: {};", Comment::of(&state.name)));
                    self.line(&format!("if (++states${number} > P4_STATES) {{"));
                    self.inner(timeout);
                    self.line("}");
                    self.statements(&state.body);
                }
            }
            Statement::Goto { machine, state } => self.line(&format!("goto s{machine}_{state};")),
            Statement::Error(error) => {
                let error = self.word(error);
                self.line(&format!("p->error = (uint32_t){error};"));
                self.line("p->rejected = true;");
            }
            Statement::Lose => self.line(&format!("{{ p->lost = true; {} }}", self.end())),
            Statement::Advance(bits) => {
                let bits = self.word(bits);
                let (_, _, position) = self.input();
                self.line(&format!("{position} += {bits};"));
            }
            Statement::ReadVarbit(place, bits) => {
                let bits = self.word(bits);
                let (target, conditions) = self.place(place);
                let Form::Varbit(most) = self.form(place.ty) else { return };
                let count = words(most);
                self.type_name(place.ty);
                self.guarded(&conditions, &format!("{target}.bits = (uint32_t){bits};"));
                let (data, _, position) = self.input();
                self.guarded(&conditions, &format!("{target}.value = w{count}_get({data}, {position}, {bits});"));
                let (_, _, position) = self.input();
                self.line(&format!("{position} += {bits};"));
            }
            Statement::Append(sink, value) => self.append(*sink, value),
            Statement::BeginData => self.line("p4_begin_data();"),
            Statement::Digest(number) => self.line(&format!("p4_report({number});")),
            Statement::AppendPayload => {
                if self.fused.is_some() {
                    self.line("p->data = data;");
                    self.line("p->length = length;");
                    self.line("p->position = position;");
                }
                self.lose_unless("p4_put_rest(&p4_data, p)");
            }
            Statement::ChecksumError => self.line("p->checksum_error = true;"),
            Statement::Request { request, value, list } => self.request(*request, value, list.as_ref()),
            Statement::WriteRegister(number, index, value) => {
                let index = self.word(index);
                let register = &self.program.registers[*number];
                let (size, ty) = (register.size, register.ty);
                let value = self.as_type(value, ty);
                let name = self.registers[*number].clone();
                self.line(&format!("if ({index} < {size}) {name}[{index}] = {value};"));
            }
            Statement::Count(number, index) => {
                let index = self.word(index);
                let size = self.program.counters[*number].size;
                let name = self.counters[*number].clone();
                let (_, length, _) = self.input();
                self.line(&format!("if ({index} < {size}) p4_count(&{name}[{index}], {length});"));
            }
            Statement::Apply(apply) => self.apply(apply),
            Statement::Cipher(cipher) => self.cipher(cipher),
            Statement::Locate(base, here) => {
                let base = self.variable(*base);
                let (data, _, position) = self.input();
                let place = if *here { format!("{data} + ({position} >> 3)") } else { "p4_zeros".to_owned() };
                self.line(&format!("{base} = {place};"));
            }
            Statement::Barrier(kept) => {
                if self.is_staged() {
                    self.barrier(kept);
                }
            }
            Statement::Drop => self.line(self.end()),
            Statement::Send(port, headers) => self.send(port, headers.as_deref()),
        }
    }

    fn append(&mut self, sink: Sink, value: &Expr) {
        let sink = if sink == Sink::Packet { "p->output" } else { "p4_data" };
        let text = self.expr(value);
        let put = match self.form(value.ty) {
            Form::Bool => format!("p4_put(&{sink}, {text}, 1)"),
            Form::Narrow(width, _) => format!("p4_put(&{sink}, (uint64_t)({text}), {width})"),
            Form::Wide(count, width, _) => format!("p4_wide_put(&{sink}, ({text}).w, {count}, {width})"),
            Form::Varbit(most) => {
                format!("p4_wide_put(&{sink}, ({text}).value.w, {}, ({text}).bits)", words(most))
            }
            Form::Parts | Form::None => return,
        };
        self.lose_unless(&put);
    }

    fn request(&mut self, request: Request, value: &Expr, list: Option<&Expr>) {
        let value = self.word(value);
        let word = match request {
            Request::Clone => {
                self.line(&format!("p->clone_session = {value};"));
                "clone"
            }
            Request::Truncate => {
                self.line(&format!("p4_request_truncate(p, {value});"));
                return;
            }
            Request::Resubmit => "resubmit",
            Request::Recirculate => "recirculate",
        };
        self.line(&format!("p->{word}s = true;"));
        self.line(&format!("p->{word}_listed = {};", list.is_some()));
        if let Some(list) = list {
            let list = self.word(list);
            self.line(&format!("p->{word}_list = {list};"));
        }
    }

    /// A lookup: one stage ends with the key and the start of the lookup; the next begins after its last step.
    fn apply(&mut self, apply: &ir::Apply) {
        let table = &self.program.tables[apply.table];
        let (start, step) = self.lookup(apply.table, apply.hashed);
        self.key(table, &apply.keys);
        self.line(&format!("{start};"));
        if table.keys.is_empty() {
            // A table without keys has no memory to wait for.
            self.line(&format!("(void){step};"));
        } else if self.is_staged() {
            self.ends.push(End::Lookup(apply.table));
            if self.fused.is_some() {
                self.wait(&apply.resume, Some(&step));
            } else {
                self.stage();
            }
        } else {
            self.line(&format!("while (!{step});"));
        }
        self.read_again(&apply.resume);
        if let Some(hit) = apply.hit {
            let hit = self.variable(hit);
            let found = self.found();
            self.line(&format!("{hit} = {found}.hit;"));
        }
        if let Some(chosen) = apply.chosen {
            let chosen = self.variable(chosen);
            let found = self.found();
            self.line(&format!("{chosen} = {found}.action;"));
        }
        if apply.actions.iter().all(Vec::is_empty) {
            return;
        }
        self.small_values = Self::is_small(table);
        let found = self.found();
        if self.is_staged() && apply.actions.iter().any(|action| visit::has_stages(action)) {
            // A stage that begins inside an action is a case of the enclosing switch.
            for (number, action) in apply.actions.iter().enumerate() {
                let otherwise = if number > 0 { "} else " } else { "" };
                let name = Comment::of(&table.actions[number].name);
                self.line(&format!("{otherwise}if ({found}.action == {number}) {{ {name}"));
                self.inner(action);
            }
            self.line("}");
            return;
        }
        // Programs list the most frequent action first; dropping actions come later.
        self.line(&format!("switch (__builtin_expect({found}.action, 0)) {{"));
        for (number, action) in apply.actions.iter().enumerate() {
            self.line(&format!("case {number}: {}", Comment::of(&table.actions[number].name)));
            self.inner(action);
            self.line("    break;");
        }
        self.line("}");
    }
}
