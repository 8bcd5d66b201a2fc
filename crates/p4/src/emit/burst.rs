//! The way of a batch through all parts of a program in one function, for programs whose packets go straight through.

use std::collections::HashSet;
use std::fmt::Write;

use super::Emitter;
use super::types::Form;
use crate::ir::{Expr, Kind, Part, STANDARD, Sink, Statement, Step};
use crate::optimise::visit;

impl Emitter<'_> {
    /// Whether no packet is copied or goes round, and all headers that are written end at bytes.
    fn goes_straight(&self) -> bool {
        let ty = self.program.variables[STANDARD].ty;
        let group =
            self.types.structure(ty).and_then(|info| info.fields.iter().position(|(name, _)| &**name == "mcast_grp"));
        let mut straight = self.aligned;
        for part in &self.program.parts {
            visit::statements(&part.body, &mut |statement| match statement {
                Statement::Request { .. } => straight = false,
                // A program that drops a packet clears the group; to set it to anything else copies packets.
                Statement::Set(place, value) if place.root == STANDARD => {
                    let clears = matches!(&value.kind, Kind::Const(value) if value.number() == 0);
                    straight &=
                        matches!(place.steps.first(), Some(Step::Field(field)) if clears || Some(*field) != group);
                }
                _ => {}
            });
            straight &= self.writes_bytes(&part.body);
        }
        straight
    }

    /// Whether what statements append to the packet are whole bytes, each sequence for itself.
    fn writes_bytes(&self, list: &[Statement]) -> bool {
        let mut bits = 0;
        for statement in list {
            if let Statement::Append(Sink::Packet, value) = statement {
                let Some(width) = self.fixed_width(value) else { return false };
                bits += width;
            } else if bits % 8 != 0 {
                return false;
            }
            if !statement.inner().into_iter().all(|inner| self.writes_bytes(inner)) {
                return false;
            }
        }
        bits % 8 == 0
    }

    /// Bits of a value that always has as many.
    fn fixed_width(&self, value: &Expr) -> Option<u32> {
        match self.form(value.ty) {
            Form::Bool => Some(1),
            Form::Narrow(width, _) | Form::Wide(_, width, _) => Some(width),
            Form::Parts | Form::None => Some(0),
            Form::Varbit(_) => None,
        }
    }

    /// How many statements from the first one on append whole bytes to the packet together.
    pub(super) fn bytes_together(&self, list: &[Statement]) -> Option<usize> {
        if !self.straight {
            return None;
        }
        let append = |statement: &&Statement| matches!(statement, Statement::Append(Sink::Packet, _));
        Some(list.iter().take_while(append).count()).filter(|count| *count > 0)
    }

    /// Appends values that are whole bytes together, word by word.
    pub(super) fn append_bytes(&mut self, list: &[Statement]) {
        let mut words: Vec<Vec<String>> = Vec::new();
        let mut bit = 0;
        self.line("{");
        self.indent += 1;
        let mut number = 0;
        for statement in list {
            let Statement::Append(_, value) = statement else { continue };
            let text = self.expr(value);
            let mut parts = Vec::new();
            match self.form(value.ty) {
                Form::Bool => parts.push((format!("(uint64_t)({text})"), 1)),
                Form::Narrow(0, _) | Form::Wide(_, 0, _) => {}
                Form::Narrow(width, _) => {
                    parts.push((super::expression::cut(&format!("(uint64_t)({text})"), width, false), width));
                }
                Form::Wide(count, width, _) => {
                    self.line(&format!("const w{count} wide{number} = {text};"));
                    for word in (0..width.div_ceil(64)).rev() {
                        let part = (width - word * 64).min(64);
                        parts.push((super::expression::cut(&format!("wide{number}.w[{word}]"), part, false), part));
                    }
                }
                Form::Parts | Form::None | Form::Varbit(_) => {}
            }
            for (part, width) in parts {
                self.line(&format!("const uint64_t part{number} = {part};"));
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
            }
        }
        let bytes = bit / 8;
        self.line(&format!("uint8_t *to = p4_put_bytes(&p->output, {bytes});"));
        self.line("if (!to) { p->lost = true; return 0; }");
        for (place, parts) in words.iter().enumerate() {
            let at = place as u32 * 8;
            self.line(&format!("p4_store(to + {at}, {}, {});", parts.join(" | "), (bytes - at).min(8)));
        }
        self.indent -= 1;
        self.line("}");
    }

    /// Decides before anything is written.
    pub(super) fn decide_straight(&mut self) {
        self.straight = self.goes_straight();
    }

    /// The function for a batch, and its name.
    pub(super) fn burst(&self) -> (String, &'static str) {
        if !self.straight {
            return (String::new(), "NULL");
        }
        let empty: HashSet<&str> =
            self.program.parts.iter().filter(|part| part.body.is_empty()).map(|part| part.name).collect();
        let names: Vec<&str> = self.program.parts.iter().map(|part: &Part| part.name).collect();
        let run = |place: usize| {
            if empty.contains(names[place]) {
                String::new()
            } else {
                format!("    set = run${}(lanes, set);\n", names[place])
            }
        };
        let each = |body: &str| {
            format!(
                "    for (uint64_t rest = set; rest; rest &= rest - 1) {{\n        unsigned lane = (unsigned)__builtin_ctzll(rest);\n{body}    }}\n"
            )
        };
        let mut text = String::from(
            "static void burst(struct p4_packet *packets, struct p4_frame *frames, unsigned count)\n{\n    \
             struct packet *states = (struct packet *)packets;\n    struct p4_packet *lanes[P4_BATCH];\n    \
             uint64_t set = count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;\n    \
             for (unsigned lane = 0; lane < count; lane++) {\n        lanes[lane] = &states[lane].base;\n        \
             clear(lanes[lane]);\n        p4_frame_begin(lanes[lane], &frames[lane]);\n        \
             begin_ingress(lanes[lane], frames[lane].port, 0);\n        frames[lane].port = P4_DROPPED;\n    }\n",
        );
        text += &run(0);
        text += &each("        after_parser(lanes[lane]);\n");
        if !empty.contains(names[1]) {
            text += &run(1);
            text += &each("        after_verify(lanes[lane]);\n");
        }
        text += &run(2);
        text += &each(
            "        uint64_t port = egress_spec(lanes[lane]);\n        if (port == P4_DROP_PORT) {\n            \
             set &= ~(rest & -rest);\n            continue;\n        }\n        frames[lane].port = (uint32_t)port;\n        \
             begin_egress(lanes[lane], port, 0, 0);\n        lanes[lane]->steps = 0;\n",
        );
        let _ = write!(text, "    uint64_t leaving = set;\n{}", run(3));
        if !empty.contains(names[3]) {
            text +=
                &each("        if (egress_spec(lanes[lane]) == P4_DROP_PORT)\n            set &= ~(rest & -rest);\n");
        }
        text += &run(4);
        text += &run(5);
        text += &each("        if (!p4_frame_end(lanes[lane], &frames[lane]))\n            set &= ~(rest & -rest);\n");
        text += "    for (uint64_t rest = leaving & ~set; rest; rest &= rest - 1)\n        \
                 frames[__builtin_ctzll(rest)].port = P4_DROPPED;\n}\n\n";
        (text, "burst")
    }
}
