//! The control plane's description of a program: names, kinds and widths of all objects that it may change. The
//! compiler stores it in loadable programs as JSON.

use std::collections::BTreeSet;

use base64ct::{Base64, Encoding as _};
use namehop_p4runtime::Message as _;
use namehop_p4runtime::info::P4Info;
use serde::{Deserialize, Serialize};

use super::entry;
use super::rows::{Identity, identity};
use crate::interpret::Switch;
use crate::ir::{self, Shape};
use crate::lower;
use crate::p4info;
use crate::tree::{Function, Program, Target};

/// All objects that can be changed, in the order of the compiled program.
#[derive(Serialize, Deserialize)]
pub struct Description {
    pub tables: Vec<TableDescription>,
    pub counters: Vec<CounterDescription>,
    pub registers: Vec<RegisterDescription>,
    pub meters: Vec<MeterDescription>,
    pub profiles: Vec<ProfileDescription>,
    pub value_sets: Vec<ValueSetDescription>,
    pub digests: Vec<DigestDescription>,
    /// p4info in Protocol Buffers encoding, in Base64; objects are in the order of the lists above.
    pub p4info: String,
}

#[derive(Serialize, Deserialize)]
pub struct TableDescription {
    pub table: ir::Table,
    pub actions: Vec<ActionDescription>,
    pub entries_are_const: bool,
    /// Constant entries of a table that has other entries too.
    pub const_entries: BTreeSet<Identity>,
    pub default_is_const: bool,
}

#[derive(Serialize, Deserialize)]
pub struct ActionDescription {
    /// The full name.
    pub path: String,
    /// Parameters that the control plane sets; `ir::Action` has their widths.
    pub parameters: Vec<String>,
    pub default_only: bool,
    pub table_only: bool,
}

#[derive(Serialize, Deserialize)]
pub struct CounterDescription {
    pub path: String,
    pub size: u64,
    /// The table for which this is a direct counter: one cell per entry.
    pub table: Option<usize>,
}

/// A value set of a parser.
#[derive(Serialize, Deserialize)]
pub struct ValueSetDescription {
    pub path: String,
    pub size: u64,
    pub fields: Vec<ir::Key>,
}

/// An action profile or selector.
#[derive(Serialize, Deserialize)]
pub struct ProfileDescription {
    pub path: String,
    pub size: u64,
    pub selector: bool,
}

#[derive(Serialize, Deserialize)]
pub struct RegisterDescription {
    pub path: String,
    pub size: u64,
    /// `None` if the control plane cannot access the cells.
    pub shape: Option<Shape>,
}

#[derive(Serialize, Deserialize)]
pub struct MeterDescription {
    pub path: String,
    pub size: u64,
    /// True if it meters bytes instead of packets.
    pub bytes: bool,
    /// The table for which this is a direct meter: one cell per entry.
    pub table: Option<usize>,
}

#[derive(Serialize, Deserialize)]
pub struct DigestDescription {
    pub name: String,
    pub shape: Shape,
}

/// The function behind an action of a table of this control.
pub fn function<'p>(program: &'p Program, control: usize, target: &Target) -> Option<&'p Function> {
    match target {
        Target::Action(number) => program.controls[control].actions.get(*number),
        Target::GlobalAction(number) => program.actions.get(*number),
        _ => None,
    }
}

/// The control plane's name of an action, in the instance `path` of a control.
pub fn action_path(function: &Function, target: &Target, path: &str) -> String {
    match &function.annotations.name {
        Some(name) => name.trim_start_matches('.').to_owned(),
        None if matches!(target, Target::GlobalAction(_)) => function.name.to_string(),
        None => format!("{path}.{}", function.name),
    }
}

impl Description {
    /// The objects that controllers can access through P4Runtime.
    ///
    /// # Errors
    /// Fails if the p4info is damaged.
    pub fn p4info(&self) -> Result<P4Info, String> {
        let bytes = Base64::decode_vec(&self.p4info).map_err(|error| format!("its p4info is corrupt: {error}"))?;
        P4Info::decode(&*bytes).map_err(|error| format!("its p4info is corrupt: {error}"))
    }
}

/// Constant entries of a table that has other entries too.
fn const_entries(switch: &Switch<'_>, shape: &ir::Table, tree: &crate::tree::Table) -> BTreeSet<Identity> {
    let state = lower::initial(switch, shape).filter(|_| !tree.entries_are_const && shape.members_of.is_none());
    let all = state.into_iter().flat_map(|state| tree.entries.iter().zip(&state.entries));
    all.filter(|(written, _)| written.is_const).map(|(_, entry)| identity(&entry::packed(shape, entry))).collect()
}

/// Describes a program.
///
/// # Errors
/// Fails if P4Runtime ids that the program has chosen do not fit.
pub fn describe(
    program: &Program,
    switch: &Switch<'_>,
    compiled: &ir::Program,
    title: &str,
) -> Result<Description, String> {
    let table = |table: &ir::Table| {
        let shape = table;
        // Group members have the same actions as the entries of their table.
        let table = table.members_of.map_or(table, |main| &compiled.tables[main]);
        let unit = switch.unit(table.owner.0)?;
        let control = unit.control()?;
        let tree = &program.controls[control].tables[table.owner.1];
        let action = |listed: &crate::tree::TableAction| {
            let function = function(program, control, &listed.action)?;
            let parameters = function.parameters.iter().skip(listed.bound.len());
            Some(ActionDescription {
                path: action_path(function, &listed.action, &unit.path),
                parameters: parameters.map(|parameter| parameter.name.to_string()).collect(),
                default_only: listed.default_only,
                table_only: listed.table_only,
            })
        };
        Some(TableDescription {
            table: shape.clone(),
            actions: tree.actions.iter().map(action).collect::<Option<_>>()?,
            entries_are_const: tree.entries_are_const,
            const_entries: const_entries(switch, shape, tree),
            default_is_const: tree.default_is_const,
        })
    };
    let counter = |counter: &ir::Counter| CounterDescription {
        path: counter.path.clone(),
        size: counter.size as u64,
        table: counter.table,
    };
    let register = |register: &ir::Register| RegisterDescription {
        path: register.path.clone(),
        size: register.size as u64,
        shape: Shape::of(&program.types, register.ty),
    };
    let meter = |meter: &ir::Meter| MeterDescription {
        path: meter.path.clone(),
        size: meter.size as u64,
        bytes: meter.bytes,
        table: meter.table,
    };
    let value_set =
        |set: &ir::ValueSet| ValueSetDescription { path: set.path.clone(), size: set.size, fields: set.fields.clone() };
    let profile = |profile: &ir::Profile| ProfileDescription {
        path: profile.path.clone(),
        size: profile.size,
        selector: profile.selector,
    };
    let digest = |digest: &ir::Digest| DigestDescription { name: digest.name.clone(), shape: digest.shape.clone() };
    let mut description = Description {
        tables: compiled.tables.iter().filter_map(table).collect(),
        counters: compiled.counters.iter().map(counter).collect(),
        registers: compiled.registers.iter().map(register).collect(),
        meters: compiled.meters.iter().map(meter).collect(),
        profiles: compiled.profiles.iter().map(profile).collect(),
        value_sets: compiled.value_sets.iter().map(value_set).collect(),
        digests: compiled.digests.iter().map(digest).collect(),
        p4info: String::new(),
    };
    let info = p4info::p4info(program, switch, compiled, &description, title)?;
    description.p4info = Base64::encode_string(&info.encode_to_vec());
    Ok(description)
}
