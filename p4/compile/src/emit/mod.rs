//! C from the intermediate representation: one function for each part of the pipeline, which returns at each lookup when
//! packets go in batches, and goes on there when it is called again.

mod burst;
mod cipher;
mod expression;
mod glue;
mod lanes;
pub mod lines;
mod operator;
pub mod quote;
mod stages;
mod statement;
mod table;
mod types;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::mem;

use crate::interpret::Switch;
use crate::ir::{self, Fused, Request, Statement};
use crate::optimise::visit;
use crate::types::Types;
use burst::Order;
use quote::{Comment, Literal};
use types::{Declarations, identifier};

/// How many values without parts a variable on the stack consists of at most.
const MAX_ON_STACK: u64 = 1024;

/// How many packets go through a stage together when nothing is known (`P4_USUAL_BATCH`).
pub const USUAL_BATCH: u32 = 32;

/// How a program is to be compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many packets go through a stage together; at first, where that is to be measured.
    pub batch: u32,
    /// Whether that is to be measured on the packets that come.
    pub automatic: bool,
    /// Whether lookups of other packets are started before one is finished.
    pub staged: bool,
    /// Whether tables are fetched into the cache ahead.
    pub prefetch: bool,
    /// Whether packets can also go in turns, one lookup each, for comparison.
    pub in_turns: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { batch: USUAL_BATCH, automatic: false, staged: true, prefetch: true, in_turns: false }
    }
}

/// What a program became.
pub struct Emitted {
    pub text: String,
    pub notes: Vec<String>,
    /// Whether it needs the library that encrypts.
    pub encrypts: bool,
}

struct Emitter<'a> {
    types: &'a Types,
    program: &'a ir::Program,
    options: &'a Options,
    declarations: Declarations,
    /// Names of variables in C.
    names: Vec<String>,
    /// Variables that are places in the packet.
    bases: HashSet<ir::Var>,
    registers: Vec<String>,
    counters: Vec<String>,
    meters: Vec<String>,
    tables: Vec<String>,
    /// All headers consist of whole bytes.
    aligned: bool,
    /// Packets go straight through, in one function.
    straight: bool,
    /// Variables that are needed after a lookup.
    kept: HashSet<ir::Var>,
    /// Labels that something jumps to.
    labels: HashSet<ir::Label>,
    text: String,
    indent: usize,
    /// What ends the stages of a part, in their order.
    ends: Vec<End>,
    /// All parts are one; how packets follow each other then.
    fused: Option<Order>,
    /// Stages after the first one, those of them before which payloads are encrypted, and checksums, so far.
    stages: usize,
    ciphers: BTreeSet<usize>,
    sums: usize,
    /// Whether values for the actions that are written are in the word that a lookup has found.
    small_values: bool,
}

/// What ends a stage.
#[derive(Clone, Copy)]
enum End {
    /// A lookup in a table.
    Lookup(usize),
    Cipher,
}

/// How C names variables, and which of them live with the packet.
struct Names {
    names: Vec<String>,
    kept: HashSet<ir::Var>,
    bases: HashSet<ir::Var>,
}

impl Names {
    /// Variables that are read after a lookup live with the packet, as do large ones; the others on the stack.
    fn of(types: &Types, program: &ir::Program, lasting: &HashSet<ir::Var>, bases: &HashSet<ir::Var>) -> Self {
        let mut kept = lasting.clone();
        let mut names = Vec::new();
        for (number, variable) in program.variables.iter().enumerate() {
            if types.leaves(variable.ty) > MAX_ON_STACK {
                kept.insert(number);
            }
            let name = identifier(&variable.name);
            names.push(if kept.contains(&number) { format!("s->{name}${number}") } else { format!("{name}${number}") });
        }
        Names { names, kept, bases: bases.clone() }
    }
}

/// Makes C of a program.
pub fn emit<'a>(
    title: &str,
    types: &'a Types,
    program: &'a ir::Program,
    fused: Option<&'a Fused>,
    switch: &Switch<'_>,
    options: &'a Options,
) -> Emitted {
    let unique = |prefix: &str, path: &str, number: usize| format!("{prefix}{}${number}", identifier(path));
    let emitter = Emitter {
        types,
        program,
        options,
        declarations: Declarations::default(),
        names: Vec::new(),
        bases: HashSet::new(),
        registers: names(program.registers.iter().map(|register| &*register.path), |path, number| {
            unique("register$", path, number)
        }),
        counters: names(program.counters.iter().map(|counter| &*counter.path), |path, number| {
            unique("counter$", path, number)
        }),
        meters: names(program.meters.iter().map(|meter| &*meter.path), |path, number| unique("meter$", path, number)),
        tables: names(program.tables.iter().map(|table| &*table.path), |path, number| unique("table$", path, number)),
        aligned: visit::is_aligned(program),
        straight: fused.is_some(),
        kept: HashSet::new(),
        labels: HashSet::new(),
        text: String::new(),
        indent: 1,
        ends: Vec::new(),
        fused: None,
        stages: 0,
        ciphers: BTreeSet::new(),
        sums: 0,
        small_values: false,
    };
    emitter.program(title, fused, switch)
}

fn names<'n>(paths: impl Iterator<Item = &'n str>, name: impl Fn(&str, usize) -> String) -> Vec<String> {
    paths.enumerate().map(|(number, path)| name(path, number)).collect()
}

impl<'a> Emitter<'a> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A variable as C names it.
    fn variable(&mut self, variable: ir::Var) -> String {
        self.names[variable].clone()
    }

    /// Writes about another program from now on. Gives what the names were.
    fn enter(&mut self, names: Names, program: &'a ir::Program) -> (Names, &'a ir::Program) {
        let before = Names {
            names: mem::replace(&mut self.names, names.names),
            kept: mem::replace(&mut self.kept, names.kept),
            bases: mem::replace(&mut self.bases, names.bases),
        };
        (before, mem::replace(&mut self.program, program))
    }

    fn leave(&mut self, (names, program): (Names, &'a ir::Program)) {
        self.enter(names, program);
    }

    fn program(mut self, title: &str, fused: Option<&'a Fused>, switch: &Switch<'_>) -> Emitted {
        self.name_variables();
        let mut notes = self.program.notes.clone();
        let order = self.order_note();
        let one_at_a_time = order.is_some();
        notes.extend(order);
        let mut functions = String::new();
        for part in &self.program.parts {
            functions += &self.part(part);
        }
        let glue = self.glue();
        let (burst, burst_name) = self.burst(fused);
        let state = self.state("packet", 3, &HashSet::new());
        let tables = self.table_declarations();
        let cells = self.cells();
        let entries = self.entries(switch);
        let mut text = String::new();
        let _ = writeln!(text, "{}", Comment::of(&format!("Made by namehop p4 of {title}.")));
        if !self.options.prefetch {
            text += "#define P4_NO_PREFETCH\n";
        }
        text += "#include \"wide.h\"\n#include \"meter.h\"\n#ifdef P4_DPDK_TABLES\n#include \"dpdk_tables.h\"\n#else\n#include \"prefix.h\"\n#endif\n\n";
        let encrypts = self.encrypts();
        if encrypts {
            text += "#include \"cipher.h\"\n\n";
        }
        text += &self.declarations.basic();
        text.push('\n');
        text += &self.declarations.text;
        text += &state;
        text += &tables;
        text += &cells;
        text += &glue;
        text += &functions;
        text += &burst;
        let list = |list: &[String]| list.join(", ");
        let packet_bytes = if fused.is_some() { "sizeof(union lane)" } else { "sizeof(struct packet)" };
        let parts: Vec<String> = self.program.parts.iter().map(|part| format!("run${}", part.name)).collect();
        let _ = write!(
            text,
            "const struct p4_program namehop_p4_program = {{\n    .version = P4_VERSION,\n    .name = {},\n    \
             .packet_bytes = {packet_bytes},\n    .parts = {{{}}},\n    \
             .tables = tables,\n    .table_count = {},\n    .registers = registers,\n    .register_count = {},\n    \
             .counters = counters,\n    .counter_count = {},\n    .meters = meters,\n    .meter_count = {},\n    .digest_count = {},\n    \
             .value_sets = value_sets,\n    .value_set_count = {},\n    .clear = clear,\n    \
             .begin_ingress = begin_ingress,\n    .begin_egress = begin_egress,\n    \
             .after_parser = after_parser,\n    .after_verify = after_verify,\n    .egress_spec = egress_spec,\n    \
             .multicast_group = multicast_group,\n    .ingress_port = ingress_port,\n    .preserve = preserve,\n    \
             .one_at_a_time = {one_at_a_time},\n    .batch = {},\n    .automatic = {},\n    .burst = {burst_name},\n    \
             .in_turns = {},\n}};\n\n",
            Literal::of(title),
            list(&parts),
            self.program.tables.len(),
            self.program.registers.len(),
            self.program.counters.len(),
            self.program.meters.len(),
            self.program.digests.len(),
            self.program.value_sets.len(),
            if self.options.staged { self.options.batch } else { 1 },
            self.options.automatic && self.options.staged,
            if burst.contains("static void in_turns(") { "in_turns" } else { "NULL" },
        );
        text += &entries;
        Emitted { text, notes, encrypts }
    }

    /// Names for programs whose parts are apart: what a packet has lives as long as it, under its own name.
    fn name_variables(&mut self) {
        let mut lasting = HashSet::new();
        for part in &self.program.parts {
            visit::segments(&part.body, &mut lasting);
        }
        let mut names = Names::of(self.types, self.program, &lasting, &HashSet::new());
        for root in [ir::HEADERS, ir::METADATA, ir::STANDARD] {
            names.names[root] = format!("s->{}", identifier(&self.program.variables[root].name));
        }
        self.enter(names, self.program);
    }

    /// The struct with all that a packet has: the first variables in any case, and others that are put there before lookups.
    fn state(&mut self, name: &str, always: usize, others: &HashSet<ir::Var>) -> String {
        let words = self.program.tables.iter().map(ir::Table::key_words).max().unwrap_or(1);
        let mut text = format!("/* A packet and all that the program knows of it. */\nstruct {name} {{\n");
        let _ = write!(text, "    struct p4_packet base;\n    uint64_t key[{words}];\n");
        for number in 0..self.program.variables.len() {
            if number >= always && !self.kept.contains(&number) && !others.contains(&number) {
                continue;
            }
            let ty = self.variable_type(number);
            let name = self.names[number].trim_start_matches("s->").to_owned();
            let _ = writeln!(text, "    {ty} {name};");
        }
        text + "};\n\n"
    }

    /// Why packets have to go one at a time, if they have to.
    fn order_note(&self) -> Option<String> {
        let mut places = vec![HashSet::new(); self.program.registers.len() + 1];
        let mut rounds = false;
        for (number, part) in self.program.parts.iter().enumerate() {
            visit::accesses(&part.body, &mut |access, segment| match access {
                visit::Access::Register(register) => {
                    places[register].insert((number, segment));
                }
                visit::Access::Random => {
                    places[self.program.registers.len()].insert((number, segment));
                }
            });
            visit::statements(&part.body, &mut |statement| {
                rounds |= matches!(statement, Statement::Request { request, .. } if *request != Request::Truncate);
            });
        }
        for (number, segments) in places.iter().enumerate() {
            let name = self.program.registers.get(number).map_or("random", |register| &*register.path);
            let again = rounds && !segments.is_empty();
            let several = segments.len() > 1 || segments.iter().any(|(_, segment)| segment.is_none());
            if again || several {
                let why = if again { "packets go round" } else { "it is used in several stages" };
                return Some(format!("packets go one at a time: {name} is to be seen in their order, and {why}"));
            }
        }
        None
    }
}
