//! Generates C code from the intermediate representation. Each part of the pipeline becomes a function. If packets go
//! in batches, the function returns at each lookup, and continues there when it is called again.

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

use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::types::Types;

use crate::ir::{self, CounterId, Fused, Id, IndexVec, MeterId, RegisterId, Request, Statement, TableId, Var};
use crate::optimise::visit;
use burst::Order;
use quote::{Comment, Literal};
use types::{Declarations, identifier};

/// Maximum number of leaf values of a variable on the stack.
const MAX_ON_STACK: u64 = 1024;

/// Default batch size in packets (`P4_USUAL_BATCH`).
pub const USUAL_BATCH: u32 = 32;

/// Options of code generation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Batch size in packets; the initial one if `automatic` is set.
    pub batch: u32,
    /// Choose the batch size by measuring at run time.
    pub automatic: bool,
    /// Start lookups of other packets before one lookup is finished.
    pub staged: bool,
    /// Prefetch tables into the cache.
    pub prefetch: bool,
    /// Also generate the in-turn order of one lookup per packet, for comparison.
    pub in_turns: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { batch: USUAL_BATCH, automatic: false, staged: true, prefetch: true, in_turns: false }
    }
}

/// The generated C code.
pub struct Emitted {
    /// The code.
    pub text: String,
    /// What the user should know about the program, one sentence each.
    pub notes: Vec<String>,
    /// True if it needs the encryption library.
    pub encrypts: bool,
}

struct Emitter<'a> {
    types: &'a Types,
    program: &'a ir::Program,
    options: &'a Options,
    declarations: Declarations,
    /// C names of variables.
    names: IndexVec<Var, String>,
    /// Variables that are positions in the packet.
    bases: HashSet<Var>,
    registers: IndexVec<RegisterId, String>,
    counters: IndexVec<CounterId, String>,
    meters: IndexVec<MeterId, String>,
    tables: IndexVec<TableId, String>,
    /// All headers consist of whole bytes.
    aligned: bool,
    /// Packets go straight through, in one function.
    straight: bool,
    /// Variables that are needed after a lookup.
    kept: HashSet<Var>,
    /// Labels that are the target of a jump.
    labels: HashSet<ir::Label>,
    text: String,
    indent: usize,
    /// What ends the stages of a part, in order.
    ends: Vec<End>,
    /// Set if all parts are one: how packets are interleaved.
    fused: Option<Order>,
    /// Stages after the first one, the stages preceded by encryption, and checksums, so far.
    stages: usize,
    ciphers: BTreeSet<usize>,
    sums: usize,
    /// True if the action data of the current lookup is in the word that the lookup returned.
    small_values: bool,
}

/// What ends a stage.
#[derive(Clone, Copy)]
enum End {
    /// A lookup in a table.
    Lookup(TableId),
    Cipher,
}

/// C names of variables, and which of them live in the packet's state.
struct Names {
    names: IndexVec<Var, String>,
    kept: HashSet<Var>,
    bases: HashSet<Var>,
}

impl Names {
    /// Variables that are read after a lookup live in the packet's state, as do large ones; the others live on the
    /// stack.
    fn of(types: &Types, program: &ir::Program, lasting: &HashSet<Var>, bases: &HashSet<Var>) -> Self {
        let mut kept = lasting.clone();
        let mut names = IndexVec::new();
        for (number, variable) in program.variables.enumerated() {
            if types.leaves(variable.ty) > MAX_ON_STACK {
                kept.insert(number);
            }
            let name = identifier(&variable.name);
            names.push(if kept.contains(&number) { format!("s->{name}${number}") } else { format!("{name}${number}") });
        }
        Names { names, kept, bases: bases.clone() }
    }
}

/// Generates the C code of a program.
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
        names: IndexVec::new(),
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

fn names<'n, I: Id>(paths: impl Iterator<Item = &'n str>, name: impl Fn(&str, usize) -> String) -> IndexVec<I, String> {
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

    /// The C name of a variable.
    fn variable(&mut self, variable: Var) -> String {
        self.names[variable].clone()
    }

    /// Switches to another program. Returns the previous names and program.
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
        let state = self.state("packet", &Var::OF_PACKET, &HashSet::new());
        let tables = self.table_declarations();
        let cells = self.cells();
        let entries = self.entries(switch);
        let mut text = String::new();
        let _ = writeln!(text, "{}", Comment::of(&format!("Made by namehop p4 of {title}.")));
        if !self.options.prefetch {
            text += "#define P4_NO_PREFETCH\n";
        }
        text += "#include \"wide.h\"\n#include \"meter.h\"\n#ifdef P4_DPDK_TABLES\n#include \"dpdk_tables.h\"\n#else\n\
            #include \"prefix.h\"\n#endif\n\n";
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
             .counters = counters,\n    .counter_count = {},\n    .meters = meters,\n    .meter_count = {},\n    \
             .digest_count = {},\n    \
             .value_sets = value_sets,\n    .value_set_count = {},\n    .clear = clear,\n    \
             .begin_ingress = begin_ingress,\n    .begin_egress = begin_egress,\n    \
             .after_parser = after_parser,\n    .after_verify = after_verify,\n    .egress_spec = egress_spec,\n    \
             .multicast_group = multicast_group,\n    .ingress_port = ingress_port,\n    .preserve = preserve,\n    \
             .one_at_a_time = {one_at_a_time},\n    .batch = {},\n    .automatic = {},\n    \
             .burst = {burst_name},\n    \
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

    /// Names the variables of a program with separate parts: those in the packet's state live as long as the packet,
    /// under their own names.
    fn name_variables(&mut self) {
        let mut lasting = HashSet::new();
        for part in &self.program.parts {
            visit::segments(&part.body, &mut lasting);
        }
        let mut names = Names::of(self.types, self.program, &lasting, &HashSet::new());
        for root in Var::OF_PACKET {
            names.names[root] = format!("s->{}", identifier(&self.program.variables[root].name));
        }
        self.enter(names, self.program);
    }

    /// The struct of a packet's state: the `always` variables, the kept ones, and others that are saved before lookups.
    fn state(&mut self, name: &str, always: &[Var], others: &HashSet<Var>) -> String {
        let words = self.program.tables.iter().map(ir::Table::key_words).max().unwrap_or(1);
        let mut text = format!("/* A packet and all that the program knows of it. */\nstruct {name} {{\n");
        let _ = write!(text, "    struct p4_packet base;\n    uint64_t key[{words}];\n");
        for number in self.program.variables.ids() {
            if !always.contains(&number) && !self.kept.contains(&number) && !others.contains(&number) {
                continue;
            }
            let ty = self.variable_type(number);
            let name = self.names[number].trim_start_matches("s->").to_owned();
            let _ = writeln!(text, "    {ty} {name};");
        }
        text + "};\n\n"
    }

    /// The reason why packets have to go one at a time, if there is one.
    fn order_note(&self) -> Option<String> {
        let mut places: IndexVec<RegisterId, HashSet<_>> =
            self.program.registers.iter().map(|_| HashSet::new()).collect();
        let mut random = HashSet::new();
        let mut rounds = false;
        for (number, part) in self.program.parts.iter().enumerate() {
            visit::accesses(&part.body, &mut |access, segment| match access {
                visit::Access::Register(register) => {
                    places[register].insert((number, segment));
                }
                visit::Access::Random => {
                    random.insert((number, segment));
                }
            });
            visit::statements(&part.body, &mut |statement| {
                rounds |= matches!(statement, Statement::Request { request, .. } if *request != Request::Truncate);
            });
        }
        let paths = self.program.registers.iter().map(|register| &*register.path);
        for (name, segments) in paths.zip(&places).chain([("random", &random)]) {
            let again = rounds && !segments.is_empty();
            let several = segments.len() > 1 || segments.iter().any(|(_, segment)| segment.is_none());
            if again || several {
                let why = if again { "packets recirculate" } else { "it is used in several stages" };
                return Some(format!(
                    "packets are processed one at a time: {name} must be accessed in packet order, and {why}"
                ));
            }
        }
        None
    }
}
