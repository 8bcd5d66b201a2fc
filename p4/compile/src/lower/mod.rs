//! Lowering: from the typed tree of a program, with its instances, to the intermediate representation.
//!
//! It emits as statements what the reference interpreter executes, in the same order.

mod call;
mod cipher;
mod data;
mod expression;
mod externs;
mod parser;
mod place;
mod profile;
mod scope;
mod statement;
mod table;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::source::Span;
use namehop_p4_lang::tree::{Class, Program};
use namehop_p4_lang::types::{Ty, Types};
use namehop_p4_lang::value::Value;

use crate::ir::{
    self, CounterId, DigestId, Expr, Id, IndexVec, Kind, Label, MeterId, Place, ProfileId, RegisterId, Statement,
    TableId, ValueSetId, Var,
};
use scope::Scope;

pub use table::{Packed, identity, initial, pack, pack_member, pack_values};

/// Maximum number of statements of a program with all calls inlined.
const MAX_STATEMENTS: usize = 400_000;
/// Maximum nesting depth of calls.
const MAX_DEPTH: usize = 200;

/// Why a program cannot be compiled.
#[derive(Debug)]
pub struct Refusal {
    pub message: String,
    pub span: Span,
}

type Lower<T> = Result<T, Refusal>;

/// Types that the lowered program needs besides its own.
#[derive(Clone, Copy)]
struct Common {
    word: Ty,
    byte: Ty,
    index: Ty,
    /// Type of negative numbers without a width.
    negative: Ty,
    /// Unsigned integers of some widths, in which hashes are reduced to their range.
    wide: [(u32, Ty); 5],
}

struct Lowerer<'p> {
    program: &'p Program,
    switch: &'p Switch<'p>,
    common: Common,
    variables: IndexVec<Var, ir::Variable>,
    /// The numbers of labels and of machines so far.
    labels: usize,
    machines: usize,
    /// Statements of the block that is being lowered.
    out: Vec<Statement>,
    scope: Scope,
    tables: HashMap<(usize, usize), TableId>,
    table_list: IndexVec<TableId, ir::Table>,
    registers: HashMap<usize, RegisterId>,
    register_list: IndexVec<RegisterId, ir::Register>,
    counters: HashMap<usize, CounterId>,
    counter_list: IndexVec<CounterId, ir::Counter>,
    meters: HashMap<usize, MeterId>,
    meter_list: IndexVec<MeterId, ir::Meter>,
    /// Tables of group members; they follow all other tables.
    member_tables: Vec<ir::Table>,
    profiles: IndexVec<ProfileId, ir::Profile>,
    value_sets: IndexVec<ValueSetId, ir::ValueSet>,
    /// Colours of direct meters, by meter, while an action is lowered.
    colors: HashMap<usize, Expr>,
    digests: IndexVec<DigestId, ir::Digest>,
    paths: HashMap<usize, String>,
    notes: BTreeSet<String>,
    statements: usize,
    depth: usize,
    /// The part of the pipeline that is being lowered.
    part: usize,
    span: Span,
}

const PARTS: [&str; 6] = ["parser", "verify", "ingress", "egress", "compute", "deparser"];

/// Stands for the place of an extern, which has no value.
const NO_PLACE: Place = Place { root: Var::HEADERS, steps: Vec::new(), ty: Types::VOID };

/// Types for expressions of the lowered program; they are created before lowering starts.
fn common(types: &mut Types) -> Common {
    Common {
        word: types.bits(64, false),
        byte: types.bits(8, false),
        index: types.bits(32, false),
        negative: types.bits(64, true),
        wide: [64, 65, 256, 2048, 16384].map(|width| (width, types.bits(width, false))),
    }
}

/// Lowers a checked program.
pub fn lower(program: &mut Program) -> Result<ir::Program, Refusal> {
    let common = common(&mut program.types);
    let program = &*program;
    let refuse = |message| Refusal { message, span: Span::default() };
    let switch = Switch::new(program).map_err(refuse)?;
    let mut lowerer = Lowerer {
        program,
        switch: &switch,
        common,
        variables: IndexVec::new(),
        labels: 0,
        machines: 0,
        out: Vec::new(),
        scope: Scope::new(Label::new(0)),
        tables: HashMap::new(),
        table_list: IndexVec::new(),
        registers: HashMap::new(),
        register_list: IndexVec::new(),
        counters: HashMap::new(),
        counter_list: IndexVec::new(),
        meters: HashMap::new(),
        meter_list: IndexVec::new(),
        member_tables: Vec::new(),
        profiles: IndexVec::new(),
        value_sets: IndexVec::new(),
        colors: HashMap::new(),
        digests: IndexVec::new(),
        paths: switch.extern_paths().into_iter().map(|(path, object)| (object, path)).collect(),
        notes: BTreeSet::new(),
        statements: 0,
        depth: 0,
        part: 0,
        span: Span::default(),
    };
    lowerer.state_of_instances().map_err(refuse)?;
    let types = switch.pipeline_types();
    for (name, ty) in ["headers", "metadata", "standard"].into_iter().zip(types) {
        lowerer.variable(name, ty);
    }
    let mut parts = Vec::new();
    for (part, name) in PARTS.into_iter().enumerate() {
        parts.push(lowerer.part(part, name, types)?);
    }
    profile::number_member_tables(&mut parts, &mut lowerer.table_list, lowerer.member_tables);
    Ok(ir::Program {
        variables: lowerer.variables,
        parts,
        tables: lowerer.table_list,
        registers: lowerer.register_list,
        counters: lowerer.counter_list,
        meters: lowerer.meter_list,
        profiles: lowerer.profiles,
        value_sets: lowerer.value_sets,
        digests: lowerer.digests,
        notes: lowerer.notes.into_iter().collect(),
    })
}

impl<'p> Lowerer<'p> {
    fn types(&self) -> &'p Types {
        &self.program.types
    }

    fn refuse<T>(&self, message: impl Into<String>) -> Lower<T> {
        Err(Refusal { message: message.into(), span: self.span })
    }

    fn variable(&mut self, name: &str, ty: Ty) -> Var {
        self.variables.push(ir::Variable { name: Arc::from(name), ty })
    }

    fn temporary(&mut self, name: &str, ty: Ty) -> Place {
        Place::variable(self.variable(name, ty), ty)
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label::new(self.labels)
    }

    fn push(&mut self, statement: Statement) -> Lower<()> {
        self.statements += 1;
        if let Statement::Set(place, _) = &statement {
            // Values with many parts take as much memory as many statements.
            self.statements += usize::try_from(self.types().leaves(place.ty) / 8).unwrap_or(usize::MAX);
        }
        if self.statements > MAX_STATEMENTS {
            return self
                .refuse(format!("the program has more than {MAX_STATEMENTS} statements after inlining all calls"));
        }
        self.out.push(statement);
        Ok(())
    }

    fn set(&mut self, place: Place, value: Expr) -> Lower<()> {
        self.push(Statement::Set(place, value))
    }

    fn zero(&self, ty: Ty) -> Expr {
        Expr::constant(self.types().zero(ty), ty)
    }

    fn truth(&self, value: bool) -> Expr {
        Expr::constant(Value::Bool(value), Types::BOOL)
    }

    fn word(&self, value: u64) -> Expr {
        Expr::constant(Value::Int(value.into()), self.common.word)
    }

    /// Saves the current value of an expression.
    fn keep(&mut self, value: Expr) -> Lower<Expr> {
        if matches!(value.kind, Kind::Const(_)) {
            return Ok(value);
        }
        let place = self.temporary("kept", value.ty);
        self.set(place.clone(), value)?;
        Ok(Expr::read(place))
    }

    /// Saves an index that is more than a variable, because it appears several times in the C code.
    fn keep_index(&mut self, index: Expr) -> Lower<Expr> {
        match &index.kind {
            Kind::Read(place) if place.steps.iter().all(|step| !matches!(step, ir::Step::Index(_))) => Ok(index),
            _ => self.keep(index),
        }
    }

    /// Lowers something into a separate list.
    fn list(&mut self, work: impl FnOnce(&mut Self) -> Lower<()>) -> Lower<Vec<Statement>> {
        let before = std::mem::take(&mut self.out);
        let result = work(self);
        let list = std::mem::replace(&mut self.out, before);
        result.map(|()| list)
    }

    /// Lowers one of the six parts, applied to the variables of a packet.
    fn part(&mut self, part: usize, name: &'static str, types: [Ty; 3]) -> Lower<ir::Part> {
        let object = self.switch.part_object(part);
        let unit = self.switch.unit(object);
        let title = match unit.map(|unit| unit.class()) {
            Some(Class::Parser(number)) => self.program.parsers[*number].shell.name.clone(),
            Some(Class::Control(number)) => self.program.controls[*number].shell.name.clone(),
            _ => return self.refuse("a part of the pipeline is missing"),
        };
        // The packet itself is an extern, which has no place.
        let [headers, metadata, standard] = Var::OF_PACKET;
        let roots: &[Option<Var>] = match part {
            0 => &[None, Some(headers), Some(metadata), Some(standard)],
            1 | 4 => &[Some(headers), Some(metadata)],
            2 | 3 => &[Some(headers), Some(metadata), Some(standard)],
            _ => &[None, Some(headers)],
        };
        let place = |root: &Option<Var>| root.map_or(NO_PLACE, |root| Place::variable(root, types[root.index()]));
        let places: Vec<Place> = roots.iter().map(place).collect();
        self.part = part;
        let body = self.list(|lowerer| {
            let end = lowerer.label();
            lowerer.scope = Scope::new(end);
            let body = lowerer.list(|lowerer| lowerer.unit_body(object, places))?;
            lowerer.push(Statement::Block(end, body))
        })?;
        Ok(ir::Part { name, title, body })
    }
}
