//! Makes the p4info of a program: the objects that controllers can access through P4Runtime, with their ids. The ids
//! are the same as p4c's, so that a controller can use the p4info of either compiler.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use namehop_p4_lang::interpret::Switch;
use namehop_p4_lang::syntax::StructKind;
use namehop_p4_lang::tree::{self, Class, Expr, ExprKind, Instance, Program};
use namehop_p4runtime::info::action::Param;
use namehop_p4runtime::info::action_ref::Scope;
use namehop_p4runtime::info::controller_packet_metadata::Metadata;
use namehop_p4runtime::info::match_field::MatchType;
use namehop_p4runtime::info::p4_bitstring_like_type_spec::TypeSpec as BitstringKind;
use namehop_p4runtime::info::p4_data_type_spec::TypeSpec as DataKind;
use namehop_p4runtime::info::p4_ids::Prefix;
use namehop_p4runtime::info::p4_struct_type_spec::Member;
use namehop_p4runtime::info::{
    Action, ActionProfile, ActionRef, ControllerPacketMetadata, Counter, CounterSpec, Digest, DirectCounter,
    DirectMeter, MatchField, Meter, MeterSpec, Object, P4BitTypeSpec, P4BitstringLikeTypeSpec, P4BoolType,
    P4DataTypeSpec, P4Info, P4IntTypeSpec, P4NamedType, P4StructTypeSpec, P4TupleTypeSpec, P4TypeInfo, PkgInfo,
    Preamble, Register, Table, ValueSet, counter_spec, meter_spec,
};
use thiserror::Error;

use crate::description::Description;
use crate::ir::{self, Shape};

/// Width of the part of an id that comes from `@id` or from the name, in bits.
const ID_BITS: u32 = 24;
/// Number of ids of each kind of object.
const OWN_IDS: u32 = 1 << ID_BITS;
/// Values of `CounterType` and `MeterType`.
const COUNTS_BYTES: u64 = 1;
const COUNTS_BOTH: u64 = 2;

/// Why a program has no p4info.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum P4InfoError {
    /// The program has chosen an id that does not fit the kind of object.
    #[error(
        "@id({id:#x}) of {name} is not valid: it must begin with {prefix:#04x}, or be below {own:#x}",
        own = OWN_IDS
    )]
    InvalidId {
        /// The id in the program.
        id: u32,
        /// The object.
        name: String,
        /// The highest byte of ids of this kind of object.
        prefix: u32,
    },
    /// The program has chosen an id twice.
    #[error("@id({id:#x}) of {name} is already used by another object of its kind")]
    UsedId {
        /// The id in the program.
        id: u32,
        /// The second object.
        name: String,
    },
    /// There is no id for a further object.
    #[error("the program has too many names")]
    TooManyNames,
    /// Two tables have the same name, as happens with two instances of a control with an absolute `@name`.
    #[error("two tables have the control-plane name '{0}': give one of them another @name")]
    SameName(String),
}

/// Jenkins' one-at-a-time hash.
fn hash(name: &str) -> u32 {
    let mut hash = name.bytes().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_add(byte.into());
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Objects of one kind by name, each with the program's `@id`, if it has one.
type Wanted<'p> = BTreeMap<&'p str, Option<u32>>;

/// Assigns ids to objects of one kind, first to those with an `@id`.
fn ids(prefix: Prefix, wanted: &Wanted<'_>) -> Result<HashMap<String, u32>, P4InfoError> {
    let (mut ids, mut taken) = (HashMap::new(), HashSet::new());
    let first_id = (prefix as u32) << ID_BITS;
    for (name, chosen) in wanted.iter().filter_map(|(name, chosen)| chosen.map(|chosen| (name, chosen))) {
        let id = if chosen < OWN_IDS { first_id | chosen } else { chosen };
        if id >> ID_BITS != prefix as u32 || id % OWN_IDS == 0 {
            return Err(P4InfoError::InvalidId { id: chosen, name: (*name).to_owned(), prefix: prefix as u32 });
        }
        if !taken.insert(id) {
            return Err(P4InfoError::UsedId { id: chosen, name: (*name).to_owned() });
        }
        ids.insert((*name).to_owned(), id);
    }
    for (name, _) in wanted.iter().filter(|(_, chosen)| chosen.is_none()) {
        let first = hash(name);
        let mut others = (0..OWN_IDS).map(|step| first_id | (first.wrapping_add(step) % OWN_IDS));
        let id = others.find(|id| !taken.contains(id)).ok_or(P4InfoError::TooManyNames)?;
        taken.insert(id);
        ids.insert((*name).to_owned(), id);
    }
    Ok(ids)
}

/// The shortest unique suffixes of names.
struct Aliases(HashMap<String, u32>);

impl Aliases {
    fn of<'n>(names: impl Iterator<Item = &'n str>) -> Aliases {
        let mut counts = HashMap::new();
        for name in names.collect::<BTreeSet<_>>() {
            suffixes(name).for_each(|suffix| *counts.entry(suffix.to_owned()).or_insert(0) += 1);
        }
        Aliases(counts)
    }

    fn alias(&self, name: &str) -> String {
        suffixes(name).find(|suffix| self.0.get(*suffix) == Some(&1)).unwrap_or(name).to_owned()
    }
}

/// The suffixes of a name that begin behind a dot, and the whole name, the shortest first.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.').map(|(place, _)| &name[place + 1..]).chain([name])
}

/// An extern instance of a program, with its name and object number.
struct Extern<'p> {
    instance: &'p Instance,
    name: String,
}

impl Extern<'_> {
    /// True if it is an instance of this extern.
    fn is(&self, class: &str) -> bool {
        matches!(&self.instance.class, Class::Extern(name) if &**name == class)
    }
}

struct Maker<'p> {
    program: &'p Program,
    switch: &'p Switch<'p>,
    externs: HashMap<usize, Extern<'p>>,
    ids: HashMap<Prefix, HashMap<String, u32>>,
    aliases: Aliases,
    structs: BTreeMap<String, P4StructTypeSpec>,
}

impl<'p> Maker<'p> {
    fn preamble(&self, prefix: Prefix, name: &str) -> Preamble {
        let id = self.ids.get(&prefix).and_then(|ids| ids.get(name)).copied().unwrap_or_default();
        Preamble { id, name: name.to_owned(), alias: self.aliases.alias(name), annotations: Vec::new() }
    }

    fn data_type(&mut self, shape: &Shape) -> P4DataTypeSpec {
        let kind = match shape {
            Shape::Bool => DataKind::Bool(P4BoolType {}),
            Shape::Bits { width, signed } => {
                let bitwidth = *width as i32;
                let kind = if *signed {
                    BitstringKind::Int(P4IntTypeSpec { bitwidth })
                } else {
                    BitstringKind::Bit(P4BitTypeSpec { bitwidth })
                };
                DataKind::Bitstring(P4BitstringLikeTypeSpec { type_spec: Some(kind) })
            }
            Shape::Tuple(members) => {
                let members = members.iter().map(|member| self.data_type(member)).collect();
                DataKind::Tuple(P4TupleTypeSpec { members })
            }
            Shape::Struct { name, members } => {
                let member = |(name, shape): &(String, Shape)| Member {
                    name: name.clone(),
                    type_spec: Some(self.data_type(shape)),
                };
                let members = members.iter().map(member).collect();
                self.structs.insert(name.clone(), P4StructTypeSpec { members });
                DataKind::Struct(P4NamedType { name: name.clone() })
            }
        };
        P4DataTypeSpec { type_spec: Some(kind) }
    }

    /// The extern that a table property refers to, and its object number.
    fn property(&self, owner: usize, property: Option<&Expr>) -> Option<(usize, &Extern<'p>)> {
        let ExprKind::Instance(instance) = property?.kind else { return None };
        let object = self.switch.instance(owner, instance)?;
        Some((object, self.externs.get(&object)?))
    }

    /// What a counter counts.
    fn counter_spec(&self, object: usize) -> Option<CounterSpec> {
        let unit = match self.switch.units.get(&object) {
            Some(&COUNTS_BYTES) => counter_spec::Unit::Bytes,
            Some(&COUNTS_BOTH) => counter_spec::Unit::Both,
            _ => counter_spec::Unit::Packets,
        };
        Some(CounterSpec { unit: unit as i32 })
    }

    /// What a meter measures.
    fn meter_spec(&self, object: usize) -> Option<MeterSpec> {
        let unit = match self.switch.units.get(&object) {
            Some(&COUNTS_BYTES) => meter_spec::Unit::Bytes,
            _ => meter_spec::Unit::Packets,
        };
        Some(MeterSpec { unit: unit as i32 })
    }

    /// Adds the direct counter and meter of a table to `info`, and returns their ids.
    fn direct_resources(&self, owner: usize, table: &tree::Table, direct_table_id: u32, info: &mut P4Info) -> Vec<u32> {
        let mut ids = Vec::new();
        if let Some((object, found)) = self.property(owner, table.counter.as_ref()) {
            let preamble = self.preamble(Prefix::DirectCounter, &found.name);
            ids.push(preamble.id);
            let (preamble, spec) = (Some(preamble), self.counter_spec(object));
            info.direct_counters.push(DirectCounter { preamble, spec, direct_table_id });
        }
        if let Some((object, found)) = self.property(owner, table.meter.as_ref().map(|(meter, _)| meter)) {
            let preamble = self.preamble(Prefix::DirectMeter, &found.name);
            ids.push(preamble.id);
            let (preamble, spec) = (Some(preamble), self.meter_spec(object));
            info.direct_meters.push(DirectMeter { preamble, spec, direct_table_id });
        }
        ids
    }

    fn tables(&mut self, compiled: &ir::Program, description: &Description, info: &mut P4Info) {
        let mut actions: BTreeMap<String, Action> = BTreeMap::new();
        for (table, described) in compiled.tables.iter().zip(&description.tables) {
            let (owner, place) = table.owner;
            let Some(control) = self.switch.unit(owner).and_then(|unit| unit.control()) else { continue };
            let tree = &self.program.controls[control].tables[place];
            let fields = table.keys.iter().zip(&tree.keys).enumerate().filter_map(|(number, (key, written))| {
                let kind = match (key.kind, &*written.kind) {
                    (ir::Match::Selector, _) => return None,
                    (_, "optional") => MatchType::Optional,
                    (ir::Match::Exact, _) => MatchType::Exact,
                    (ir::Match::Lpm, _) => MatchType::Lpm,
                    (ir::Match::Ternary, _) => MatchType::Ternary,
                    (ir::Match::Range, _) => MatchType::Range,
                };
                let (id, name) = (number as u32 + 1, key.name.to_string());
                Some(MatchField { id, name, bitwidth: key.width as i32, match_type: kind as i32 })
            });
            let match_fields = fields.collect();
            let mut action_refs = Vec::new();
            for (action, listed) in described.actions.iter().zip(&table.actions) {
                let preamble = self.preamble(Prefix::Action, &action.path);
                let (scope, annotation) = match (action.default_only, action.table_only) {
                    (true, _) => (Scope::DefaultOnly, Some("@defaultonly")),
                    (_, true) => (Scope::TableOnly, Some("@tableonly")),
                    _ => (Scope::TableAndDefault, None),
                };
                let annotations = annotation.map(str::to_owned).into_iter().collect();
                action_refs.push(ActionRef { id: preamble.id, annotations, scope: scope as i32 });
                let params = action.parameters.iter().zip(&listed.arguments).enumerate();
                let param = |(place, (name, width)): (usize, (&String, &u32))| Param {
                    id: place as u32 + 1,
                    name: name.clone(),
                    bitwidth: *width as i32,
                };
                actions
                    .entry(action.path.clone())
                    .or_insert_with(|| Action { preamble: Some(preamble), params: params.map(param).collect() });
            }
            let preamble = self.preamble(Prefix::Table, &table.path);
            let direct_resource_ids = self.direct_resources(owner, tree, preamble.id, info);
            let mut implementation_id = 0;
            if let Some((object, found)) = self.property(owner, tree.implementation.as_ref()) {
                let size = self.switch.profiles.get(&object).map_or(0, |profile| profile.size);
                let profile = self.preamble(Prefix::ActionProfile, &found.name);
                implementation_id = profile.id;
                match info.action_profiles.iter_mut().find(|known| known.preamble().id == profile.id) {
                    Some(known) => known.table_ids.push(preamble.id),
                    None => info.action_profiles.push(ActionProfile {
                        preamble: Some(profile),
                        table_ids: vec![preamble.id],
                        with_selector: found.is("action_selector"),
                        size: size as i64,
                    }),
                }
            }
            let default = tree.default.as_ref().filter(|_| tree.default_is_const);
            let default = default.and_then(|default| action_refs.get(default.action)).map_or(0, |action| action.id);
            info.tables.push(Table {
                preamble: Some(preamble),
                match_fields,
                action_refs,
                const_default_action_id: default,
                implementation_id,
                direct_resource_ids,
                size: table.size as i64,
                idle_timeout_behavior: i32::from(tree.support_timeout),
                is_const_table: tree.entries_are_const,
                has_initial_entries: !tree.entries.is_empty(),
            });
        }
        info.actions = actions.into_values().collect();
    }
}

/// Makes the p4info of a compiled program.
///
/// # Errors
/// Fails if ids that the program has chosen do not fit, or if two tables have the same name.
pub fn p4info(
    program: &Program,
    switch: &Switch<'_>,
    compiled: &ir::Program,
    description: &Description,
    title: &str,
) -> Result<P4Info, P4InfoError> {
    let externs: HashMap<usize, Extern<'_>> =
        switch.externs().into_iter().map(|(instance, name, object)| (object, Extern { instance, name })).collect();
    let headers = program.types.structs.iter().filter(|info| info.kind == StructKind::Header);
    let headers: Vec<_> = headers.filter_map(|info| Some((info.controller.as_deref()?, info))).collect();
    let mut wanted: BTreeMap<Prefix, Wanted<'_>> = BTreeMap::new();
    for (table, described) in compiled.tables.iter().zip(&description.tables) {
        let Some(control) = switch.unit(table.owner.0).and_then(|unit| unit.control()) else { continue };
        let tree = &program.controls[control].tables[table.owner.1];
        if wanted.entry(Prefix::Table).or_default().insert(&table.path, tree.naming.id).is_some() {
            return Err(P4InfoError::SameName(table.path.to_string()));
        }
        for (action, listed) in described.actions.iter().zip(&tree.actions) {
            let id = program.action(control, &listed.action).and_then(|function| function.annotations.id);
            wanted.entry(Prefix::Action).or_default().insert(&action.path, id);
        }
    }
    for found in externs.values() {
        let Class::Extern(class) = &found.instance.class else { continue };
        let prefix = match &**class {
            "action_profile" | "action_selector" => Prefix::ActionProfile,
            "counter" => Prefix::Counter,
            "direct_counter" => Prefix::DirectCounter,
            "meter" => Prefix::Meter,
            "direct_meter" => Prefix::DirectMeter,
            "register" => Prefix::Register,
            _ => continue,
        };
        wanted.entry(prefix).or_default().insert(&found.name, found.instance.naming.id);
    }
    for set in &compiled.value_sets {
        let tree = switch.value_set(set.owner);
        wanted.entry(Prefix::ValueSet).or_default().insert(&set.path, tree.and_then(|set| set.naming.id));
    }
    for (name, _) in &headers {
        wanted.entry(Prefix::ControllerHeader).or_default().insert(name, None);
    }
    for digest in &compiled.digests {
        wanted.entry(Prefix::Digest).or_default().insert(&digest.name, None);
    }
    let mut all = HashMap::new();
    for (prefix, names) in &wanted {
        all.insert(*prefix, ids(*prefix, names)?);
    }
    let aliases = Aliases::of(wanted.values().flat_map(|names| names.keys().copied()));
    let object_of: HashMap<String, usize> =
        externs.iter().map(|(object, found)| (found.name.clone(), *object)).collect();
    let mut maker = Maker { program, switch, externs, ids: all, aliases, structs: BTreeMap::new() };
    let package = PkgInfo { name: title.to_owned(), arch: "v1model".to_owned() };
    let mut info = P4Info { pkg_info: Some(package), ..P4Info::default() };
    maker.tables(compiled, description, &mut info);
    for counter in compiled.counters.iter().filter(|counter| counter.table.is_none()) {
        let (preamble, spec) = (maker.preamble(Prefix::Counter, &counter.path), maker.counter_spec(counter.object));
        info.counters.push(Counter { preamble: Some(preamble), spec, size: counter.size as i64 });
    }
    for meter in compiled.meters.iter().filter(|meter| meter.table.is_none()) {
        let object = object_of.get(&meter.path).copied().unwrap_or(usize::MAX);
        let (preamble, spec) = (maker.preamble(Prefix::Meter, &meter.path), maker.meter_spec(object));
        info.meters.push(Meter { preamble: Some(preamble), spec, size: meter.size as i64 });
    }
    for set in &compiled.value_sets {
        let preamble = maker.preamble(Prefix::ValueSet, &set.path);
        let field = |(place, key): (usize, &ir::Key)| MatchField {
            id: place as u32 + 1,
            name: key.name.to_string(),
            bitwidth: key.width as i32,
            match_type: match key.kind {
                ir::Match::Lpm => MatchType::Lpm,
                ir::Match::Ternary => MatchType::Ternary,
                ir::Match::Range => MatchType::Range,
                ir::Match::Exact | ir::Match::Selector => MatchType::Exact,
            } as i32,
        };
        let r#match = set.fields.iter().enumerate().map(field).collect();
        let size = i32::try_from(set.size).unwrap_or(i32::MAX);
        info.value_sets.push(ValueSet { preamble: Some(preamble), r#match, size });
    }
    for (name, header) in headers {
        let mut preamble = maker.preamble(Prefix::ControllerHeader, name);
        preamble.annotations.push(format!("@controller_header(\"{name}\")"));
        let metadata = header.fields.iter().enumerate().map(|(place, (name, ty))| Metadata {
            id: place as u32 + 1,
            name: name.to_string(),
            bitwidth: program.types.width(*ty).unwrap_or(0) as i32,
        });
        let metadata = metadata.collect();
        info.controller_packet_metadata.push(ControllerPacketMetadata { preamble: Some(preamble), metadata });
    }
    for register in &description.registers {
        let type_spec = register.shape.as_ref().map(|shape| maker.data_type(shape));
        let size = i32::try_from(register.size).unwrap_or(i32::MAX);
        let preamble = Some(maker.preamble(Prefix::Register, &register.path));
        info.registers.push(Register { preamble, type_spec, size });
    }
    for digest in &description.digests {
        let type_spec = Some(maker.data_type(&digest.shape));
        let preamble = Some(maker.preamble(Prefix::Digest, &digest.name));
        info.digests.push(Digest { preamble, type_spec });
    }
    if !maker.structs.is_empty() {
        info.type_info = Some(P4TypeInfo { structs: maker.structs });
    }
    Ok(info)
}
