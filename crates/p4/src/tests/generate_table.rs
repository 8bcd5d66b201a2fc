//! Tables of random programs, with entries.

use std::fmt::Write;

use rand_xoshiro::rand_core::Rng;

use super::generate::Generator;

impl Generator {
    pub(super) fn table(&mut self, number: usize, text: &mut String, test: &mut String) {
        const KEYS: [(&str, u32); 5] =
            [("hdr.a.f", 8), ("hdr.a.h", 13), ("hdr.s[0].f", 16), ("hdr.b.f", 48), ("hdr.a.g", 3)];
        let count = 1 + self.below(3);
        let mut keys = Vec::new();
        let mut kinds = Vec::new();
        for place in 0..count {
            let (name, width) = KEYS[(number + place) % KEYS.len()];
            let mut kind = self.one_of(&["exact", "exact", "ternary", "lpm", "range"]);
            if kind == "lpm" && kinds.contains(&"lpm") {
                kind = "exact";
            }
            kinds.push(kind);
            keys.push((name, width, kind));
        }
        let list: String = keys.iter().map(|(name, _, kind)| format!("{name}: {kind}; ")).collect();
        let _ = writeln!(
            text,
            "table t{number} {{ key = {{ {list}}} actions = {{ act0; act1; NoAction; }} default_action = {}; }}",
            self.one_of(&["NoAction()", "act0()", "act1(16w7, true)"])
        );
        let mut known = Vec::new();
        for _ in 0..self.below(12) {
            let mut line = format!("add t{number} {}", 1 + self.below(100));
            for (name, width, kind) in &keys {
                let value = match self.below(3) {
                    0 => 0,
                    1 => self.below(4) as u64,
                    _ => self.random.next_u64() & ((1 << width) - 1),
                };
                let name = name.replace('[', "$").replace(']', "");
                let _ = match *kind {
                    "exact" => write!(line, " {name}:{value}"),
                    "lpm" => write!(line, " {name}:{value}/{}", self.below(*width as usize + 1)),
                    "range" => write!(line, " {name}:{}&&&{}", value / 2, value),
                    _ => write!(line, " {name}:{value}&&&{}", self.random.next_u64() & ((1 << width) - 1)),
                };
            }
            if known.contains(&line) {
                continue;
            }
            let action = if self.below(2) == 0 {
                "act0()".to_owned()
            } else {
                format!("act1(p:{}, q:{})", self.random.next_u64() & 0xffff, self.below(2))
            };
            let _ = writeln!(test, "{line} {action}");
            known.push(line);
        }
    }
}
