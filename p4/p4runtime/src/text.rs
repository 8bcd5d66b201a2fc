//! p4info in the text format of Protocol Buffers, which controller programs read from a file.

use crate::info::{
    ActionRef, BitstringKind, Counter, DataKind, DataType, DirectResource, MatchField, MatchType, P4Info, Param,
    Preamble, Scope, Table, Unit,
};

/// The text written so far.
#[derive(Default)]
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.text.extend(std::iter::repeat_n(' ', self.depth * 2));
        self.text += line;
        self.text.push('\n');
    }

    /// A field that is omitted if it has its default value, 0.
    fn number(&mut self, name: &str, number: i64) {
        if number != 0 {
            self.line(&format!("{name}: {number}"));
        }
    }

    fn flag(&mut self, name: &str, flag: bool) {
        if flag {
            self.line(&format!("{name}: true"));
        }
    }

    fn string(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let mut quoted = String::new();
        for byte in value.bytes() {
            match byte {
                b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                b' '..=b'~' => quoted.push(char::from(byte)),
                _ => quoted += &format!("\\{byte:03o}"),
            }
        }
        self.line(&format!("{name}: \"{quoted}\""));
    }

    fn block(&mut self, name: &str, inner: impl FnOnce(&mut Text)) {
        self.line(&format!("{name} {{"));
        self.depth += 1;
        inner(self);
        self.depth -= 1;
        self.line("}");
    }

    fn preamble(&mut self, preamble: &Preamble) {
        self.block("preamble", |text| {
            text.number("id", preamble.id.into());
            text.string("name", &preamble.name);
            text.string("alias", &preamble.alias);
            preamble.annotations.iter().for_each(|annotation| text.string("annotations", annotation));
        });
    }

    fn param(&mut self, name: &str, param: &Param) {
        self.block(name, |text| {
            text.number("id", param.id.into());
            text.string("name", &param.name);
            text.number("bitwidth", param.bitwidth.into());
        });
    }

    fn field(&mut self, name: &str, field: &MatchField) {
        self.block(name, |text| {
            text.number("id", field.id.into());
            text.string("name", &field.name);
            text.number("bitwidth", field.bitwidth.into());
            text.line(&format!("match_type: {}", match_name(field.match_type())));
        });
    }

    fn table(&mut self, table: &Table) {
        self.preamble(&table.preamble);
        table.match_fields.iter().for_each(|field| self.field("match_fields", field));
        table.action_refs.iter().for_each(|action| self.block("action_refs", |text| text.action_ref(action)));
        self.number("const_default_action_id", table.const_default_action_id.into());
        self.number("implementation_id", table.implementation_id.into());
        table.direct_resource_ids.iter().for_each(|id| self.number("direct_resource_ids", i64::from(*id)));
        self.number("size", table.size);
        if table.idle_timeout_behavior != 0 {
            self.line("idle_timeout_behavior: NOTIFY_CONTROL");
        }
        self.flag("is_const_table", table.is_const_table);
        self.flag("has_initial_entries", table.has_initial_entries);
    }

    fn action_ref(&mut self, action: &ActionRef) {
        self.number("id", action.id.into());
        action.annotations.iter().for_each(|annotation| self.string("annotations", annotation));
        match action.scope() {
            Scope::TableAndDefault => {}
            Scope::TableOnly => self.line("scope: TABLE_ONLY"),
            Scope::DefaultOnly => self.line("scope: DEFAULT_ONLY"),
        }
    }

    fn unit(&mut self, unit: Unit) {
        let name = match unit {
            Unit::Unspecified => return,
            Unit::Bytes => "BYTES",
            Unit::Packets => "PACKETS",
            Unit::Both => "BOTH",
        };
        self.block("spec", |text| text.line(&format!("unit: {name}")));
    }

    fn cells(&mut self, cells: &Counter) {
        self.preamble(&cells.preamble);
        self.unit(cells.spec.unwrap_or_default().unit());
        self.number("size", cells.size);
    }

    fn direct(&mut self, resource: &DirectResource) {
        self.preamble(&resource.preamble);
        self.unit(resource.spec.unwrap_or_default().unit());
        self.number("direct_table_id", resource.direct_table_id.into());
    }

    fn data_type(&mut self, name: &str, data_type: Option<&DataType>) {
        let Some(kind) = data_type.and_then(|data_type| data_type.kind.as_ref()) else { return };
        self.block(name, |text| match kind {
            DataKind::Bitstring(bits) => text.block("bitstring", |text| {
                let (name, width) = match bits.kind {
                    Some(BitstringKind::Bit(width)) => ("bit", width),
                    Some(BitstringKind::Int(width)) => ("int", width),
                    None => return,
                };
                text.block(name, |text| text.number("bitwidth", width.bitwidth.into()));
            }),
            DataKind::Bool(_) => text.block("bool", |_| {}),
            DataKind::Tuple(tuple) => text.block("tuple", |text| {
                tuple.members.iter().for_each(|member| text.data_type("members", Some(member)));
            }),
            DataKind::Struct(named) => text.block("struct", |text| text.string("name", &named.name)),
        });
    }
}

fn match_name(kind: MatchType) -> &'static str {
    match kind {
        MatchType::Unspecified => "UNSPECIFIED",
        MatchType::Exact => "EXACT",
        MatchType::Lpm => "LPM",
        MatchType::Ternary => "TERNARY",
        MatchType::Range => "RANGE",
        MatchType::Optional => "OPTIONAL",
    }
}

/// Writes p4info as text.
pub fn text(info: &P4Info) -> String {
    let mut text = Text::default();
    if let Some(package) = &info.pkg_info {
        text.block("pkg_info", |text| {
            text.string("name", &package.name);
            text.string("arch", &package.arch);
        });
    }
    info.tables.iter().for_each(|table| text.block("tables", |text| text.table(table)));
    for action in &info.actions {
        text.block("actions", |text| {
            text.preamble(&action.preamble);
            action.params.iter().for_each(|param| text.param("params", param));
        });
    }
    for profile in &info.action_profiles {
        text.block("action_profiles", |text| {
            text.preamble(&profile.preamble);
            profile.table_ids.iter().for_each(|id| text.number("table_ids", i64::from(*id)));
            text.flag("with_selector", profile.with_selector);
            text.number("size", profile.size);
        });
    }
    info.counters.iter().for_each(|counter| text.block("counters", |text| text.cells(counter)));
    info.direct_counters.iter().for_each(|direct| text.block("direct_counters", |text| text.direct(direct)));
    info.meters.iter().for_each(|meter| text.block("meters", |text| text.cells(meter)));
    info.direct_meters.iter().for_each(|direct| text.block("direct_meters", |text| text.direct(direct)));
    for header in &info.controller_packet_metadata {
        text.block("controller_packet_metadata", |text| {
            text.preamble(&header.preamble);
            header.metadata.iter().for_each(|field| text.param("metadata", field));
        });
    }
    for set in &info.value_sets {
        text.block("value_sets", |text| {
            text.preamble(&set.preamble);
            set.fields.iter().for_each(|field| text.field("match", field));
            text.number("size", set.size.into());
        });
    }
    for register in &info.registers {
        text.block("registers", |text| {
            text.preamble(&register.preamble);
            text.data_type("type_spec", register.type_spec.as_ref());
            text.number("size", register.size.into());
        });
    }
    for digest in &info.digests {
        text.block("digests", |text| {
            text.preamble(&digest.preamble);
            text.data_type("type_spec", digest.type_spec.as_ref());
        });
    }
    if let Some(types) = &info.type_info {
        text.block("type_info", |text| {
            for (name, described) in &types.structs {
                text.block("structs", |text| {
                    text.string("key", name);
                    text.block("value", |text| {
                        for member in &described.members {
                            text.block("members", |text| {
                                text.string("name", &member.name);
                                text.data_type("type_spec", member.type_spec.as_ref());
                            });
                        }
                    });
                });
            }
        });
    }
    text.text
}
