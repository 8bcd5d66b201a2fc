//! Generates random valid programs, with random entries and packets.

use std::fmt::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const WIDTHS: [u32; 14] = [1, 3, 7, 8, 9, 16, 31, 32, 48, 63, 64, 65, 100, 129];
const MAX_DEPTH: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    Bool,
    Bit(u32),
    Int(u32),
}

impl Ty {
    fn text(self) -> String {
        match self {
            Ty::Bool => "bool".into(),
            Ty::Bit(width) => format!("bit<{width}>"),
            Ty::Int(width) => format!("int<{width}>"),
        }
    }
}

/// State of the generator.
pub struct Generator {
    pub(super) random: Xoshiro256PlusPlus,
    variables: Vec<(String, Ty)>,
    names: usize,
    /// True where tables may be applied: not inside actions.
    tables: bool,
    tables_left: usize,
    loops: u32,
    /// Encrypt payloads in some places.
    ciphers: bool,
    /// Read and write register cells, which reveals the order of packets.
    registers: bool,
}

/// A program and its test.
pub fn program(seed: u64) -> (String, String) {
    let mut generator = Generator {
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
        variables: Vec::new(),
        names: 0,
        tables: false,
        tables_left: 0,
        loops: 0,
        ciphers: false,
        registers: seed.is_multiple_of(4),
    };
    generator.ciphers = generator.below(3) == 0;
    generator.program()
}

impl Generator {
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count.max(1) as u64) as usize
    }

    pub(super) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn ty(&mut self) -> Ty {
        let width = self.one_of(&WIDTHS);
        match self.below(6) {
            0 => Ty::Bool,
            1 => Ty::Int(width.max(2)),
            _ => Ty::Bit(width),
        }
    }

    fn variable(&mut self, ty: Ty) -> Option<String> {
        let list: Vec<String> =
            self.variables.iter().filter(|(_, other)| *other == ty).map(|(name, _)| name.clone()).collect();
        (!list.is_empty()).then(|| list[self.below(list.len())].clone())
    }

    /// A number with long runs of ones or zeros, which often reveals bugs.
    fn literal(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bool => self.one_of(&["true", "false"]).into(),
            Ty::Bit(width) => {
                let most = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
                let value = match self.below(4) {
                    0 => 0,
                    1 => most,
                    _ => self.random.next_u64() & most,
                };
                format!("{width}w{value}")
            }
            Ty::Int(width) => {
                let most = if width >= 64 { i64::MAX as u64 } else { (1 << (width - 1)) - 1 };
                let value = self.random.next_u64() & most;
                if self.below(2) == 0 { format!("{width}s{value}") } else { format!("(-{width}s{value})") }
            }
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        match self.variable(ty) {
            Some(name) if self.below(4) > 0 => name,
            _ => self.literal(ty),
        }
    }

    fn expression(&mut self, ty: Ty, depth: u32) -> String {
        if depth >= MAX_DEPTH || self.below(5) == 0 {
            return self.leaf(ty);
        }
        if self.below(12) == 0 {
            let condition = self.expression(Ty::Bool, depth + 1);
            let (yes, no) = (self.expression(ty, depth + 1), self.expression(ty, depth + 1));
            return format!("({condition} ? {yes} : {no})");
        }
        match ty {
            Ty::Bool => self.condition(depth),
            Ty::Bit(width) => match self.below(9) {
                0 => {
                    let inner = self.expression(ty, depth + 1);
                    format!("({}{inner})", self.one_of(&["~", "-"]))
                }
                1 if width > 1 => {
                    let high = 1 + self.below(width as usize - 1) as u32;
                    let left = self.expression(Ty::Bit(high), depth + 1);
                    format!("({left} ++ {})", self.expression(Ty::Bit(width - high), depth + 1))
                }
                2 => {
                    let wider = self.variables.iter().filter(|(_, ty)| matches!(ty, Ty::Bit(other) if *other > width));
                    let list: Vec<(String, Ty)> = wider.cloned().collect();
                    if list.is_empty() {
                        return self.leaf(ty);
                    }
                    let (name, Ty::Bit(other)) = list[self.below(list.len())].clone() else { return self.leaf(ty) };
                    let low = self.below((other - width) as usize + 1) as u32;
                    format!("{name}[{}:{low}]", low + width - 1)
                }
                3 => {
                    let other = self.one_of(&WIDTHS);
                    format!("(bit<{width}>)({})", self.expression(Ty::Bit(other), depth + 1))
                }
                4 if width > 1 => format!("(bit<{width}>)({})", self.expression(Ty::Int(width), depth + 1)),
                5 => {
                    let left = self.expression(ty, depth + 1);
                    let count = self.variable(Ty::Bit(8)).unwrap_or_else(|| "8w3".into());
                    format!("({left} {} {count})", self.one_of(&["<<", ">>"]))
                }
                6 => match self.variable(ty) {
                    Some(divisor) => {
                        let left = self.expression(ty, depth + 1);
                        format!("({left} {} {divisor})", self.one_of(&["/", "%"]))
                    }
                    None => self.leaf(ty),
                },
                _ => self.plain(ty, depth),
            },
            Ty::Int(width) => match self.below(5) {
                0 => format!("(int<{width}>)({})", self.expression(Ty::Bit(width), depth + 1)),
                1 => {
                    let left = self.expression(ty, depth + 1);
                    let count = self.variable(Ty::Bit(8)).unwrap_or_else(|| "8w3".into());
                    format!("({left} {} {count})", self.one_of(&["<<", ">>"]))
                }
                2 => format!("(-{})", self.expression(ty, depth + 1)),
                _ => self.plain(ty, depth),
            },
        }
    }

    fn plain(&mut self, ty: Ty, depth: u32) -> String {
        let left = self.expression(ty, depth + 1);
        let right = self.expression(ty, depth + 1);
        format!("({left} {} {right})", self.one_of(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]))
    }

    fn condition(&mut self, depth: u32) -> String {
        match self.below(6) {
            0 => format!("(!{})", self.expression(Ty::Bool, depth + 1)),
            1 => format!("{}.isValid()", self.one_of(&["hdr.a", "hdr.b", "hdr.s[0]", "hdr.s[1]", "hdr.u", "hdr.u.x"])),
            2 | 3 => {
                let left = self.expression(Ty::Bool, depth + 1);
                let sign = self.one_of(&["&&", "||"]);
                format!("({left} {sign} {})", self.expression(Ty::Bool, depth + 1))
            }
            _ => {
                let ty = match self.ty() {
                    Ty::Bool => Ty::Bit(8),
                    other => other,
                };
                let sign = self.one_of(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {sign} {})", self.expression(ty, depth + 1), self.expression(ty, depth + 1))
            }
        }
    }

    fn assignment(&mut self) -> String {
        let place = self.below(self.variables.len());
        let (name, ty) = self.variables[place].clone();
        // Parameters without a direction cannot be written to.
        if matches!(&*name, "p" | "q") {
            return "meta.number = meta.number + 1;".into();
        }
        if let Ty::Bit(width @ 2..) = ty
            && self.below(5) == 0
        {
            let low = self.below(width as usize) as u32;
            let high = low + self.below((width - low) as usize) as u32;
            return format!("{name}[{high}:{low}] = {};", self.expression(Ty::Bit(high - low + 1), 0));
        }
        format!("{name} = {};", self.expression(ty, 0))
    }

    fn statements(&mut self, depth: u32) -> String {
        let known = self.variables.len();
        let mut text = String::new();
        for _ in 0..=self.below(5) {
            text += &self.statement(depth);
            text.push('\n');
        }
        self.variables.truncate(known);
        text
    }

    fn statement(&mut self, depth: u32) -> String {
        let nested = depth < 3;
        match self.below(20) {
            0 | 1 if nested => {
                let condition = self.expression(Ty::Bool, 0);
                let then = self.statements(depth + 1);
                format!("if ({condition}) {{ {then} }} else {{ {} }}", self.statements(depth + 1))
            }
            2 => {
                let (name, ty) = (self.name(), self.ty());
                let text = format!("{} {name} = {};", ty.text(), self.expression(ty, 0));
                self.variables.push((name, ty));
                text
            }
            3 => format!(
                "{}.{}();",
                self.one_of(&["hdr.a", "hdr.b", "hdr.s[1]", "hdr.u.x", "hdr.u.y"]),
                self.one_of(&["setValid", "setInvalid"])
            ),
            4 => self
                .one_of(&[
                    "hdr.s[2] = hdr.s[1];",
                    "hdr.s[1] = hdr.s[0];",
                    "hdr.s.push_front(1);",
                    "hdr.s.pop_front(1);",
                ])
                .into(),
            5 => {
                let index = self.expression(Ty::Bit(3), 1);
                // Not a constant, which would have to be inside the stack.
                format!("hdr.s[{index} ^ hdr.a.g].f = {};", self.expression(Ty::Bit(16), 0))
            }
            6 if nested && self.loops < 2 => {
                self.loops += 1;
                let name = self.name();
                let body = self.statements(depth + 1);
                self.loops -= 1;
                let end = self.one_of(&["", "", "break;", "continue;"]);
                format!("for (bit<8> {name} in 8w0 .. 8w{}) {{ {body} {end} }}", self.below(4))
            }
            7..=9 if self.tables && self.tables_left > 0 && self.loops == 0 => {
                self.tables_left -= 1;
                let table = format!("t{}", self.tables_left);
                match self.below(3) {
                    0 => format!("{table}.apply();"),
                    1 => {
                        let then = self.statements(depth + 1);
                        format!("if ({table}.apply().hit) {{ {then} }} else {{ {} }}", self.statements(depth + 1))
                    }
                    _ => {
                        let first = self.statements(depth + 1);
                        format!(
                            "switch ({table}.apply().action_run) {{ act0: {{ {first} }} default: {{ {} }} }}",
                            self.statements(depth + 1)
                        )
                    }
                }
            }
            10 if self.tables => {
                format!("act1({}, {});", self.expression(Ty::Bit(16), 1), self.expression(Ty::Bool, 1))
            }
            11 if self.tables => {
                let value = self.expression(Ty::Bit(32), 1);
                format!("meta.wide = twist({value}, meta.wide, meta.number);")
            }
            12 if depth > 0 && self.tables && self.below(3) == 0 => self.one_of(&["exit;", "return;"]).into(),
            13 if self.ciphers => {
                let name = self.one_of(&["aes_cbc_encrypt", "aes_cbc_decrypt"]);
                let offset = self.one_of(&["0", "1", "(bit<32>)hdr.a.g"]);
                let key = self.expression(Ty::Bit(64), 1);
                format!("{name}({offset}, {key} ++ 64w7, (bit<128>)({}));", self.expression(Ty::Bit(100), 1))
            }
            14 if self.registers => {
                let index = self.expression(Ty::Bit(3), 1);
                if self.below(2) == 0 {
                    let value = self.expression(Ty::Bit(16), 1);
                    format!("cells.write((bit<32>){index}, {value});")
                } else {
                    format!("cells.read({}, (bit<32>){index});", self.one_of(&["hdr.s[0].f", "hdr.s[1].f"]))
                }
            }
            13 => format!("counted.count({});", self.expression(Ty::Bit(32), 1)),
            _ => self.assignment(),
        }
    }

    fn program(&mut self) -> (String, String) {
        let wide = self.one_of(&[65, 100, 129]);
        let number = self.one_of(&[9, 16, 31, 64]);
        let signed = self.one_of(&[7, 8, 33, 64]);
        let outside = [
            ("hdr.a.f", Ty::Bit(8)),
            ("hdr.a.g", Ty::Bit(3)),
            ("hdr.a.h", Ty::Bit(13)),
            ("hdr.b.f", Ty::Bit(48)),
            ("hdr.b.g", Ty::Int(16)),
            ("hdr.s[0].f", Ty::Bit(16)),
            ("hdr.s[1].f", Ty::Bit(16)),
            ("hdr.u.x.f", Ty::Bit(8)),
            ("meta.wide", Ty::Bit(wide)),
            ("meta.number", Ty::Bit(number)),
            ("meta.signed", Ty::Int(signed)),
            ("meta.flag", Ty::Bool),
        ];
        self.variables = outside.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect();
        let mut text = format!(
            "#include <core.p4>\n#include <v1model.p4>\n#include <namehop.p4>\n\
             header A {{ bit<8> f; bit<3> g; bit<13> h; }}\nheader B {{ bit<48> f; int<16> g; }}\n\
             header S {{ bit<16> f; }}\nheader X {{ bit<8> f; }}\nheader Y {{ bit<16> f; }}\n\
             header_union U {{ X x; Y y; }}\n\
             header R {{ bit<7> pad; bool flag; bit<64> low; bit<64> high; bit<64> other; }}\n\
             struct H {{ A a; B b; S[3] s; U u; R r; }}\n\
             struct M {{ bit<{wide}> wide; bit<{number}> number; int<{signed}> signed; bool flag; }}\n"
        );
        let _ = write!(
            text,
            "bit<{wide}> twist(in bit<32> x, in bit<{wide}> y, inout bit<{number}> z) {{\n\
             z = z + 1; if (x[0:0] == 1) {{ return y ^ (bit<{wide}>)x; }} return y - (bit<{wide}>)z; }}\n\
             parser P(packet_in b, out H hdr, inout M meta, inout standard_metadata_t std) {{\n\
             state start {{ b.extract(hdr.a); transition select(hdr.a.g, hdr.a.f) {{ (0, _): stack; (1, \
             0x10 .. 0x80): second; \
             (2, 0x40 &&& 0xc0): unite; default: accept; }} }}\n\
             state second {{ b.extract(hdr.b); transition select(b.lookahead<bit<8>>()) {{ 0 .. 100: stack; \
             default: accept; }} }}\n\
             state stack {{ b.extract(hdr.s.next); transition select(hdr.s.last.f[15:15]) {{ 1: stack; \
             default: accept; }} }}\n\
             state unite {{ transition select(hdr.a.f[0:0]) {{ 0: ux; 1: uy; }} }}\n\
             state ux {{ b.extract(hdr.u.x); transition accept; }}\n\
             state uy {{ b.extract(hdr.u.y); transition accept; }}\n}}\n\
             control V(inout H hdr, inout M meta) {{ apply {{ }} }}\n\
             control I(inout H hdr, inout M meta, inout standard_metadata_t std) {{\n\
             counter(8, CounterType.packets_and_bytes) counted;\n"
        );
        if self.registers {
            // Some indices are out of range.
            text += "register<bit<16>>(6) cells;\n";
        }
        let _ = writeln!(text, "action act0() {{ {} }}", self.statements(1));
        self.variables.extend([("p".to_owned(), Ty::Bit(16)), ("q".to_owned(), Ty::Bool)]);
        let body = self.statements(1);
        self.variables.truncate(outside.len());
        let _ = writeln!(text, "action act1(bit<16> p, bool q) {{ {body} }}");
        let mut test = String::new();
        self.tables_left = 1 + self.below(4);
        for number in 0..self.tables_left {
            self.table(number, &mut text, &mut test);
        }
        self.tables = true;
        let body = self.statements(0) + &self.statements(0) + &self.statements(0);
        // A header with all metadata. Without it, other headers may stay in place in the packet.
        let report = if self.below(2) == 0 {
            format!(
                "hdr.r.setValid(); hdr.r.flag = meta.flag; hdr.r.low = (bit<64>)meta.wide; \
                 hdr.r.high = (bit<64>)meta.number; hdr.r.other = (bit<64>)(bit<{signed}>)meta.signed;"
            )
        } else {
            "hdr.b.f = hdr.b.f ^ (bit<48>)meta.number;".to_owned()
        };
        let sum = match self.below(3) {
            0 => {
                "update_checksum(hdr.a.isValid(), { hdr.a.f, hdr.a.g, hdr.a.h, hdr.b.f, meta.wide }, hdr.s[0].f, \
                 HashAlgorithm.csum16);"
            }
            1 => "update_checksum(true, { hdr.b.f, hdr.b.g, hdr.a.f }, hdr.u.y.f, HashAlgorithm.csum16);",
            _ => "",
        };
        let _ = write!(
            text,
            "apply {{ std.egress_spec = 1; {body} }} }}\n\
             control E(inout H hdr, inout M meta, inout standard_metadata_t std) {{ apply {{ {report} }} }}\n\
             control C(inout H hdr, inout M meta) {{ apply {{ {sum} }} }}\n\
             control D(packet_out b, in H hdr) {{ apply {{ b.emit(hdr); }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
        );
        for _ in 0..70 {
            let length = self.one_of(&[0, 2, 3, 5, 8, 12, 20, 45]);
            let mut bytes = String::new();
            for place in 0..length {
                let byte = match self.below(3) {
                    0 => 0,
                    _ if place == 1 => self.one_of(&[0x00u8, 0x20, 0x40, 0x5f]),
                    _ => self.random.next_u64() as u8,
                };
                let _ = write!(bytes, "{byte:02x}");
            }
            let _ = writeln!(test, "packet {} {bytes}", self.below(4));
        }
        (text, test)
    }
}
