//! Generates one function that takes a batch through a whole program, for programs whose packets go straight through.
//! Headers stay in place in the packet, and changed fields are written there; the packet is rebuilt only if headers are
//! added or removed.

use std::mem;

use super::expression::cut;
use super::lanes::{self, Lanes};
use super::types::Form;
use super::{Emitter, Names};
use crate::ir::{Emit, EmitField, Expr, Fused, Kind, Resume, Sink, Statement, Table, Var};
use crate::optimise::fuse::fixed_width;
use crate::optimise::visit;

/// How the packets of a batch are interleaved in a program of one part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// One by one, each through the whole program.
    AtOnce,
    /// Together from lookup to lookup, in order.
    Kept,
    /// Together, in any order.
    Free,
}

impl Order {
    fn of(fused: &Fused) -> Self {
        if fused.ordered { Order::Kept } else { Order::Free }
    }
}

/// Variables with more values than this are not saved before a lookup.
const MOST_PUT_AWAY: u64 = 16;

/// A part of a byte sequence: bits of the packet, or another value.
enum Piece {
    Bits(Var, u64, u32),
    Value(String, u32),
}

impl<'a> Emitter<'a> {
    /// Number of leading statements that together append whole bytes to the packet.
    pub(super) fn bytes_together(&self, list: &[Statement]) -> Option<usize> {
        if !self.straight {
            return None;
        }
        let append = |statement: &&Statement| matches!(statement, Statement::Append(Sink::Packet, _));
        Some(list.iter().take_while(append).count()).filter(|count| *count > 0)
    }

    /// Appends values that together are whole bytes, word by word.
    pub(super) fn append_bytes<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) {
        self.line("{");
        self.indent += 1;
        let (words, bits) = self.words(values);
        self.line(&format!("uint8_t *out = p4_put_bytes(&p->output, {});", bits / 8));
        self.line(&format!("if (!out) {{ p->lost = true; {} }}", self.end()));
        self.store("out", 0, &words, bits / 8);
        self.indent -= 1;
        self.line("}");
    }

    /// Stores words to memory.
    fn store(&mut self, to: &str, from: u64, words: &[String], bytes: u32) {
        for (place, word) in words.iter().enumerate() {
            let at = place as u32 * 8;
            self.line(&format!("p4_store({to} + {}, {word}, {});", from + u64::from(at), (bytes - at).min(8)));
        }
    }

    /// Packs values into words, the first value in the highest bits. Also returns the total number of bits.
    pub(super) fn words<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) -> (Vec<String>, u32) {
        let mut pieces = Vec::new();
        for (number, value) in values.enumerate() {
            self.pieces(number, value, &mut pieces);
        }
        let mut words: Vec<Vec<String>> = Vec::new();
        let mut bit = 0;
        let mut number = 0;
        let mut add = |emitter: &mut Self, text: String, width: u32| {
            emitter.line(&format!("const uint64_t part{number} = {text};"));
            let (place, used) = ((bit / 64) as usize, bit % 64);
            words.resize_with(words.len().max(((bit + width - 1) / 64) as usize + 1), Vec::new);
            if used + width <= 64 {
                words[place].push(format!("part{number} << {}", 64 - used - width));
            } else {
                words[place].push(format!("part{number} >> {}", used + width - 64));
                words[place + 1].push(format!("part{number} << {}", 128 - used - width));
            }
            bit += width;
            number += 1;
        };
        let mut total = 0;
        for piece in pieces {
            match piece {
                Piece::Value(text, width) => {
                    add(self, text, width);
                    total += width;
                }
                Piece::Bits(base, mut offset, mut width) => {
                    let place = self.variable(base);
                    while width > 0 {
                        let part = width.min(64 - total % 64);
                        add(self, format!("p4_get({place}, {offset}, {part})"), part);
                        offset += u64::from(part);
                        width -= part;
                        total += part;
                    }
                }
            }
        }
        (words.into_iter().map(|parts| parts.join(" | ")).collect(), total)
    }

    /// The pieces of a value. Adjacent fields of the packet are merged into one piece.
    fn pieces(&mut self, number: usize, value: &Expr, pieces: &mut Vec<Piece>) {
        let width = fixed_width(self.types, value.ty).unwrap_or(0);
        if width == 0 {
            return;
        }
        if let Kind::Field(base, offset) = value.kind {
            if let Some(Piece::Bits(before, start, length)) = pieces.last_mut()
                && *before == base
                && *start + u64::from(*length) == offset
            {
                *length += width;
            } else {
                pieces.push(Piece::Bits(base, offset, width));
            }
            return;
        }
        let text = self.expr(value);
        match self.form(value.ty) {
            Form::Bool => pieces.push(Piece::Value(format!("(uint64_t)({text})"), 1)),
            Form::Narrow(width, _) => {
                pieces.push(Piece::Value(cut(&format!("(uint64_t)({text})"), width, false), width));
            }
            Form::Wide(count, width, _) => {
                self.line(&format!("const w{count} wide{number} = {text};"));
                for word in (0..width.div_ceil(64)).rev() {
                    let part = (width - word * 64).min(64);
                    pieces.push(Piece::Value(cut(&format!("wide{number}.w[{word}]"), part, false), part));
                }
            }
            Form::Parts | Form::None | Form::Varbit(_) => {}
        }
    }

    /// The checksum of values: the sum of their 16-bit words, computed on the 32-bit halves of 64-bit words (RFC 1071,
    /// section 2).
    pub(super) fn sum(&mut self, values: &[Expr]) -> String {
        self.sums += 1;
        let name = format!("sum${}", self.sums);
        self.line(&format!("uint64_t {name} = 0;"));
        self.line("{");
        self.indent += 1;
        let (words, _) = self.words(values.iter());
        for (place, word) in words.iter().enumerate() {
            self.line(&format!("const uint64_t word{place} = {word};"));
            self.line(&format!("{name} += (word{place} >> 32) + (uint32_t)word{place};"));
        }
        self.indent -= 1;
        self.line("}");
        format!("p4_folded({name})")
    }

    /// Sends the packet. If all headers are where they were parsed, only changed fields are written there.
    pub(super) fn send(&mut self, port: &Expr, headers: Option<&[Emit]>) {
        let port = self.word(port);
        let Some(headers) = headers else {
            self.line("p->position = position;");
            self.line(&format!("if (!p4_frame_end(p, frame)) {}", self.end()));
            self.leave_by(&port);
            return;
        };
        self.line("uint8_t *to = data;");
        self.line("bool moved = false;");
        for header in headers {
            let check = match header.base {
                Some(base) => format!("moved |= {} != to;", self.variable(base)),
                // Other headers that are still to be read may lie where it is written.
                None => "moved = true;".into(),
            };
            self.if_valid(header, |emitter| {
                emitter.line(&check);
                emitter.line(&format!("to += {};", bytes_of(header)));
            });
        }
        self.line("moved |= to != data + (position >> 3);");
        self.line("if (__builtin_expect(!moved, 1)) {");
        self.indent += 1;
        self.line("to = data;");
        for header in headers.iter().filter(|header| header.base.is_some()) {
            self.if_valid(header, |emitter| {
                emitter.write_changes(header);
                emitter.line(&format!("to += {};", bytes_of(header)));
            });
        }
        self.indent -= 1;
        self.line("} else {");
        self.indent += 1;
        self.line("p->output.length = 0;");
        self.line("p->position = position;");
        for header in headers {
            self.if_valid(header, |emitter| {
                emitter.append_bytes(header.fields.iter().map(|field| &field.value));
            });
        }
        self.line(&format!("if (!p4_frame_end(p, frame)) {}", self.end()));
        self.indent -= 1;
        self.line("}");
        self.leave_by(&port);
    }

    /// Ends the packet with an egress port.
    fn leave_by(&mut self, port: &str) {
        if self.fused == Some(Order::AtOnce) {
            self.line(&format!("return (uint16_t){port};"));
        } else {
            self.line(&format!("frame->port = (uint16_t){port};"));
        }
    }

    /// Ends the packet without sending it.
    pub(super) fn end(&self) -> &'static str {
        if self.fused == Some(Order::AtOnce) { "return P4_DROPPED;" } else { "return 0;" }
    }

    fn if_valid(&mut self, header: &Emit, body: impl FnOnce(&mut Self)) {
        match &header.valid {
            Some(valid) => {
                let valid = self.expr(valid);
                self.line(&format!("if ({valid}) {{"));
            }
            None => self.line("{"),
        }
        self.indent += 1;
        body(self);
        self.indent -= 1;
        self.line("}");
    }

    /// Writes the changed fields, together with fields that share bytes with them.
    fn write_changes(&mut self, header: &Emit) {
        let mut rest: &[EmitField] = &header.fields;
        let mut start = 0;
        while !rest.is_empty() {
            // Up to the next field that ends at a byte boundary.
            let mut bits = 0;
            let count = rest.iter().take_while(|field| {
                let before = bits;
                bits += field.width;
                before == 0 || before % 8 != 0
            });
            let mut count = count.count();
            let changed = |list: &[EmitField]| list.iter().any(|field| field.changed);
            if changed(&rest[..count]) {
                while count < rest.len() && (rest[count].changed || !whole_bytes(&rest[..count])) {
                    count += 1;
                }
                self.line("{");
                self.indent += 1;
                let (words, bits) = self.words(rest[..count].iter().map(|field| &field.value));
                self.store("to", start, &words, bits / 8);
                self.indent -= 1;
                self.line("}");
            }
            start += rest[..count].iter().map(|field| u64::from(field.width)).sum::<u64>() / 8;
            rest = &rest[count..];
        }
    }

    /// The functions for one packet and for a batch, and the name of the latter.
    pub(super) fn burst(&mut self, fused: Option<&'a Fused>) -> (String, &'static str) {
        let Some(fused) = fused else { return (String::new(), "NULL") };
        // Small variables are C variables, which are saved before a lookup; large ones stay in the packet's state.
        let large = fused
            .kept
            .iter()
            .copied()
            .filter(|variable| self.types.leaves(fused.program.variables[*variable].ty) > MOST_PUT_AWAY);
        let names = Names::of(self.types, &fused.program, &large.collect(), &fused.bases);
        let before = self.enter(names, &fused.program);
        let part = &fused.program.parts[0];
        let mut staged = None;
        if self.options.staged {
            self.fused = Some(Order::of(fused));
            staged = Some(self.body(part)).filter(|(.., stages)| *stages > 0);
        }
        let ciphers = mem::take(&mut self.ciphers);
        if ciphers.is_empty() && self.program.tables.is_empty() {
            // No stage ever ends, and there is no table with a size that decides how packets are interleaved.
            staged = None;
        }
        let mut at_once = None;
        if staged.as_ref().is_none_or(|(_, body, _)| !lanes::is_long(body)) {
            self.fused = Some(Order::AtOnce);
            at_once = Some(self.body(part));
        }
        let state = self.state("way", &[], &fused.kept);
        self.fused = None;
        self.leave(before);
        let mut appends = false;
        visit::statements(&part.body, &mut |statement| {
            appends |= matches!(statement, Statement::Send(_, None));
        });
        let key_words = fused.program.tables.iter().map(Table::key_words).max().unwrap_or(1);
        // In-turn execution would encrypt payloads one by one.
        let in_turns = self.options.in_turns && !fused.ordered && ciphers.is_empty();
        let lanes = Lanes { staged, at_once, ciphers, key_words, appends, in_turns };
        (state + &lanes.functions(), "burst")
    }

    /// Ends a stage: saves what the packet needs to continue, and restores it behind. With a lookup, the packet
    /// continues once `step` was the last step; each packet makes one step before any packet makes the next. Returns
    /// the number of the stage that begins.
    pub(super) fn wait(&mut self, resume: &Resume, step: Option<&str>) -> usize {
        // Known values need not be saved.
        let is_kept = |variable: &Var| resume.kept.contains(variable) && !self.kept.contains(variable);
        let located: Vec<(Var, u64)> = resume.located.iter().copied().filter(|(base, _)| is_kept(base)).collect();
        let known: Vec<(Var, Expr)> = resume
            .known
            .iter()
            .filter(|(variable, _)| is_kept(variable))
            .map(|(variable, value)| (*variable, Expr::constant(value.clone(), self.program.variables[*variable].ty)))
            .collect();
        let is_known = |variable: &Var| {
            located.iter().any(|(base, _)| base == variable)
                || known.iter().any(|(other, _)| other == variable)
                || resume.fields.iter().any(|(other, _)| other == variable)
        };
        let kept: Vec<Var> = resume.kept.iter().copied().filter(|variable| !is_known(variable)).collect();
        self.put_away(&kept, resume.position);
        let stage = self.stage();
        if let Some(step) = step {
            self.line(&format!("if (!{step}) return {stage};"));
            if self.fused == Some(Order::Kept) {
                self.stage();
            }
        }
        self.take_back(&kept, resume.position);
        for (base, place) in located {
            let base = self.variable(base);
            self.line(&format!("{base} = data + {};", place / 8));
        }
        for (variable, value) in known {
            let (variable, value) = (self.variable(variable), self.as_type(&value, value.ty));
            self.line(&format!("{variable} = {value};"));
        }
        stage
    }

    /// Where a packet continues, loads the variables that are fields of it again.
    pub(super) fn read_again(&mut self, resume: &Resume) {
        for (variable, field) in resume.fields.iter().filter(|(variable, _)| resume.kept.contains(variable)) {
            let (variable, field) = (self.variable(*variable), self.as_type(field, field.ty));
            self.line(&format!("{variable} = {field};"));
        }
    }

    /// Makes all packets wait for each other.
    pub(super) fn barrier(&mut self, kept: &[Var]) {
        self.put_away(kept, None);
        self.stage();
        self.take_back(kept, None);
    }

    /// Saves variables, and the parser position if it is not known, to the packet's state.
    fn put_away(&mut self, kept: &[Var], position: Option<u64>) {
        if position.is_none() {
            self.line("p->position = position;");
        }
        for variable in kept.iter().filter(|variable| !self.kept.contains(variable)).copied().collect::<Vec<_>>() {
            let name = self.variable(variable);
            self.line(&format!("s->{name} = {name};"));
        }
    }

    fn take_back(&mut self, kept: &[Var], position: Option<u64>) {
        self.line(&position.map_or("position = p->position;".to_owned(), |position| format!("position = {position};")));
        for variable in kept.iter().filter(|variable| !self.kept.contains(variable)).copied().collect::<Vec<_>>() {
            let name = self.variable(variable);
            self.line(&format!("{name} = s->{name};"));
        }
    }

    /// True if packets go together from lookup to lookup.
    pub(super) fn is_staged(&self) -> bool {
        self.options.staged && self.fused != Some(Order::AtOnce)
    }

    /// C expressions for the state of a lookup and for its key.
    pub(super) fn places(&self) -> (&'static str, &'static str) {
        if self.fused == Some(Order::AtOnce) { ("cursor", "key") } else { ("p->cursor", "s->key") }
    }

    /// C expressions for the received packet, its length in bytes, and the parsed length in bits.
    pub(super) fn input(&self) -> (&'static str, &'static str, &'static str) {
        if self.fused.is_some() { ("data", "length", "position") } else { ("p->data", "p->length", "p->position") }
    }

    /// Ends a stage and begins the next one. Returns its number.
    pub(super) fn stage(&mut self) -> usize {
        self.stages += 1;
        let stage = self.stages;
        self.line(&format!("return {stage};"));
        self.line(&format!("case {stage}:;"));
        stage
    }

    /// C expression for bits of a wide key that lie in the packet.
    pub(super) fn key_in_packet(&mut self, value: &Expr, width: u32, chunk: u32, part: u32) -> Option<String> {
        let Kind::Field(base, offset) = value.kind else { return None };
        let place = self.variable(base);
        let bit = offset + u64::from(width - chunk * 64 - part);
        Some(format!("p4_get({place}, {bit}, {part})"))
    }
}

fn whole_bytes(list: &[EmitField]) -> bool {
    list.iter().map(|field| field.width).sum::<u32>() % 8 == 0
}

fn bytes_of(header: &Emit) -> u32 {
    header.fields.iter().map(|field| field.width).sum::<u32>() / 8
}
