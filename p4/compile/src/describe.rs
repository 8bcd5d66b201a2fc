//! Describes a program for its control plane. The compiler stores the description in loadable programs.

use std::collections::BTreeSet;

use base64ct::{Base64, Encoding as _};
use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::tree::{Program, Table, TableAction};
use namehop_p4runtime::Message as _;

use crate::description::Identity;
use crate::description::{
    ActionDescription, CounterDescription, Description, DigestDescription, MeterDescription, ProfileDescription,
    RegisterDescription, TableDescription, ValueSetDescription,
};
use crate::ir::{self, Id, Shape};
use crate::lower;
use crate::p4info::{self, P4InfoError};

/// Constant entries of a table that has other entries too.
fn const_entries(switch: &Switch<'_>, shape: &ir::Table, tree: &Table) -> BTreeSet<Identity> {
    let state = lower::initial(switch, shape).filter(|_| !tree.entries_are_const && shape.members_of.is_none());
    let all = state.into_iter().flat_map(|state| tree.entries.iter().zip(&state.entries));
    all.filter(|(written, _)| written.is_const).map(|(_, entry)| lower::pack(shape, entry).identity()).collect()
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
) -> Result<Description, P4InfoError> {
    let table = |table: &ir::Table| {
        let shape = table;
        // Group members have the same actions as the entries of their table.
        let table = table.members_of.map_or(table, |main| &compiled.tables[main]);
        let unit = switch.unit(table.owner.0)?;
        let control = unit.control()?;
        let tree = &program.controls[control].tables[table.owner.1];
        let action = |listed: &TableAction| {
            let function = program.action(control, &listed.action)?;
            let parameters = function.parameters.iter().skip(listed.bound.len());
            Some(ActionDescription {
                path: function.control_name(&listed.action, &unit.path),
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
        table: counter.table.map(Id::index),
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
        table: meter.table.map(Id::index),
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
