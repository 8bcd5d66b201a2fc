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
        let default = self.one_of(&["NoAction()", "act0()", "act1(16w7, true)"]);
        let mut counters = String::new();
        if self.below(3) == 0 {
            let _ = writeln!(text, "direct_counter(CounterType.packets_and_bytes) hits{number};");
            counters = format!("counters = hits{number}; size = 64;");
        }
        let _ = writeln!(
            text,
            "table t{number} {{ key = {{ {list}}} actions = {{ act0; act1; NoAction; }} default_action = {default}; \
             {counters} }}",
        );
        let ranked = kinds.iter().any(|kind| matches!(*kind, "ternary" | "range"));
        let mut known = Vec::new();
        for _ in 0..self.below(12) {
            let priority = 1 + self.below(100);
            let mut line = format!("add t{number} {priority}");
            // The identity of an entry: priorities only if a key is ternary, and no bits that are not compared.
            let mut identity = vec![if ranked { priority as u64 } else { 0 }];
            for (name, width, kind) in &keys {
                let value = match self.below(3) {
                    0 => 0,
                    1 => self.below(4) as u64,
                    _ => self.random.next_u64() & ((1 << width) - 1),
                };
                let name = name.replace('[', "$").replace(']', "");
                let _ = match *kind {
                    "exact" => {
                        identity.push(value);
                        write!(line, " {name}:{value}")
                    }
                    "lpm" => {
                        let length = self.below(*width as usize + 1);
                        identity.extend([length as u64, value >> (*width as usize - length)]);
                        write!(line, " {name}:{value}/{length}")
                    }
                    "range" => {
                        identity.extend([value / 2, value]);
                        write!(line, " {name}:{}&&&{}", value / 2, value)
                    }
                    _ => {
                        let mask = self.random.next_u64() & ((1 << width) - 1);
                        identity.extend([mask, value & mask]);
                        write!(line, " {name}:{value}&&&{mask}")
                    }
                };
            }
            if known.contains(&identity) {
                continue;
            }
            let action = if self.below(2) == 0 {
                "act0()".to_owned()
            } else {
                format!("act1(p:{}, q:{})", self.random.next_u64() & 0xffff, self.below(2))
            };
            let _ = writeln!(test, "{line} {action}");
            known.push(identity);
        }
    }
}
