//! Generates the parts of the pipeline in C: a function that takes one packet through one stage, and one that takes a
//! batch through all stages.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::quote::Comment;
use super::{Emitter, End};
use crate::ir::{self, Statement};
use crate::optimise::visit;

/// Maximum number of stages, and of characters, with which the function for one packet is inlined into each stage.
const MOST_INLINE: (usize, usize) = (4, 40_000);

impl Emitter<'_> {
    /// The type of a variable.
    pub(super) fn variable_type(&mut self, variable: ir::Var) -> String {
        if self.bases.contains(&variable) {
            return "const uint8_t *".into();
        }
        self.type_name(self.program.variables[variable].ty)
    }

    /// Declarations of the variables of a part, its statements, and the number of stages after the first one.
    pub(super) fn body(&mut self, part: &ir::Part) -> (String, String, usize) {
        self.text = String::new();
        self.ends.clear();
        self.stages = 0;
        self.ciphers.clear();
        self.indent = 1;
        self.labels.clear();
        let mut used = BTreeSet::new();
        visit::statements(&part.body, &mut |statement| {
            visit::variables(statement, &mut |variable, _| {
                used.insert(variable);
            });
            if let Statement::Jump(label) = statement {
                self.labels.insert(*label);
            }
        });
        self.statements(&part.body);
        let body = std::mem::take(&mut self.text);
        let kind = if self.fused.is_some() { "way" } else { "packet" };
        self.line(&format!("struct {kind} *s = (struct {kind} *)p;"));
        for variable in used {
            if (variable > ir::Var::STANDARD || self.fused.is_some()) && !self.kept.contains(&variable) {
                let ty = self.variable_type(variable);
                let name = self.variable(variable);
                self.line(&format!("{ty} {name};"));
            }
        }
        (std::mem::take(&mut self.text), body, self.stages)
    }

    /// The functions of a part.
    pub(super) fn part(&mut self, part: &ir::Part) -> String {
        let (declarations, body, _) = self.body(part);
        let (open, close) = if self.ends.is_empty() {
            ("    (void)stage;\n", "")
        } else {
            ("    switch (stage) {\n    case 0:;\n", "    }\n")
        };
        let inline = self.ends.len() <= MOST_INLINE.0 && body.len() <= MOST_INLINE.1;
        format!(
            "{}\nstatic {} uint32_t part${}(struct p4_packet *p, uint32_t stage)\n{{\n{declarations}    (void)s;\n\
             {open}{body}{close}    return 0;\n}}\n\n{}",
            Comment::of(&part.title),
            if inline { "P4_IN_PLACE" } else { "P4_APART" },
            part.name,
            self.batch(part.name),
        )
    }

    /// Generates the function that takes a batch through all stages. Packets at the same stage run together. All
    /// lookups, or all encryption, of a stage finish before the next stage begins.
    fn batch(&self, part: &str) -> String {
        let mut text = format!("static uint64_t run${part}(struct p4_packet **lanes, uint64_t set)\n{{\n");
        let last = self.ends.len();
        let _ = writeln!(text, "    uint64_t left = set, waiting[{}] = {{set}};\n    do {{", last + 1);
        let _ = writeln!(text, "        P4_STAGE(part${part}, 0)");
        for (number, end) in self.ends.iter().enumerate() {
            let stage = number + 1;
            let _ = match end {
                End::Lookup(table) => writeln!(text, "        P4_LOOK({stage}, {})", self.lookup(*table, 0).1),
                End::Cipher => writeln!(text, "        if (waiting[{stage}]) p4_cipher_all();"),
            };
            let _ = writeln!(text, "        P4_STAGE(part${part}, {stage})");
        }
        let again: Vec<String> = (1..=last).map(|stage| format!("waiting[{stage}]")).collect();
        let again = if again.is_empty() { "0".to_owned() } else { again.join(" | ") };
        let _ = write!(text, "    }} while ({again});\n    return left;\n}}\n\n");
        text
    }
}
