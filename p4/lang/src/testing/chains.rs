//! Random chains of lookups with keys that begin with the same fields: hashes are shared between them, unless a field
//! has changed.

use std::fmt::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

struct Chain {
    random: Xoshiro256PlusPlus,
    /// Number of key fields of each table.
    tables: Vec<usize>,
    text: String,
}

impl Chain {
    fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count as u64) as usize
    }

    /// Statements, among them lookups and assignments.
    fn statements(&mut self, depth: usize) {
        for _ in 0..1 + self.below(3) {
            match self.below(12) {
                0 if depth < 3 => {
                    let field = FIELDS[self.below(4)];
                    let _ = writeln!(self.text, "if (hdr.h.{field} == 1) {{");
                    self.statements(depth + 1);
                    self.text += "} else {";
                    self.statements(depth + 1);
                    self.text += "}\n";
                }
                1 => {
                    let (to, from) = (FIELDS[self.below(4)], FIELDS[self.below(4)]);
                    let _ = writeln!(self.text, "hdr.h.{to} = hdr.h.{from};");
                }
                2 if depth < 3 => {
                    let table = self.below(self.tables.len());
                    let _ = writeln!(self.text, "if (t{table}.apply().hit) {{");
                    self.statements(depth + 1);
                    self.text += "}\n";
                }
                _ => {
                    let table = self.below(self.tables.len());
                    let _ = writeln!(self.text, "t{table}.apply();");
                }
            }
        }
    }

    /// A value that other places probably have too.
    fn value(&mut self) -> usize {
        self.below(2)
    }
}

/// A program and a test for it.
pub fn chain(seed: u64) -> (String, String) {
    let mut chain = Chain { random: Xoshiro256PlusPlus::seed_from_u64(seed), tables: Vec::new(), text: String::new() };
    let mut text = String::from(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header h_t { bit<64> a; bit<64> b; bit<64> c; bit<64> d; bit<64> seen; }\nstruct headers_t { h_t h; }\n\
         struct meta_t { }\n\
         parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {\n\
         state start { packet.extract(hdr.h); transition accept; }\n}\n\
         control V(inout headers_t hdr, inout meta_t meta) { apply { } }\n\
         control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {\n\
         action mark(bit<8> value) { hdr.h.seen = hdr.h.seen * 3 + (bit<64>)value; }\n\
         action change(bit<1> value) { hdr.h.c = (bit<64>)value; }\n",
    );
    let mut test = String::new();
    for table in 0..6 {
        let count = 1 + chain.below(4);
        chain.tables.push(count);
        let keys: String =
            FIELDS[..count].iter().fold(String::new(), |keys, field| keys + &format!("hdr.h.{field}: exact; "));
        let default = if chain.below(2) == 0 { "NoAction()" } else { "mark(8w255)" };
        let _ = writeln!(
            text,
            "table t{table} {{ key = {{ {keys}}} actions = {{ mark; change; NoAction; }} default_action = {default}; \
             size = 64; }}"
        );
        for values in 0..1 << count {
            if chain.below(3) == 0 {
                continue;
            }
            let _ = write!(test, "add t{table}");
            for (place, field) in FIELDS[..count].iter().enumerate() {
                let _ = write!(test, " h.{field}:{}", values >> place & 1);
            }
            let _ = if chain.below(4) == 0 {
                writeln!(test, " change(value:{})", chain.value())
            } else {
                writeln!(test, " mark(value:{})", 1 + chain.below(200))
            };
        }
    }
    for _ in 0..3 {
        chain.statements(0);
    }
    let _ = write!(
        text,
        "apply {{\nstandard.egress_spec = 1;\n{}}}\n}}\n\
         control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {{ apply {{ }} }}\n\
         control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}\n\
         control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr.h); }} }}\n\
         V1Switch(P(), V(), I(), E(), U(), D()) main;\n",
        chain.text,
    );
    for _ in 0..40 {
        let fields: String = (0..4).map(|_| format!("{:016X}", chain.value())).collect();
        let _ = writeln!(test, "packet 0 {fields}0000000000000000");
    }
    (text, test)
}
