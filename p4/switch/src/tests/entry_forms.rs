//! A random table and its entries as a program and as P4Runtime messages.

use std::fmt::Write;

use namehop_p4runtime::info::{Object, P4Info};
use namehop_p4runtime::message::action::Param;
use namehop_p4runtime::message::action_profile_group::Member as GroupMember;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use namehop_p4runtime::message::field_match::{Exact, Lpm, Optional, Range, Ternary};
use namehop_p4runtime::message::table_action::Type as ActionKind;
use namehop_p4runtime::message::{
    Action, ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember, FieldMatch,
    TableAction, TableEntry,
};

use super::entry_model::{DEFAULT, Known, Order, SIZE, Table, Want};
use super::entry_profile::{Does, Group, Profile, ROOM, Values};

/// P4Runtime ids of the table and of its objects.
#[derive(Clone, Copy)]
pub struct Ids {
    pub table: u32,
    pub profile: u32,
    action: u32,
}

impl Ids {
    pub fn of(info: &P4Info) -> Ids {
        let profile = info.action_profiles.first().map_or(0, |profile| profile.preamble().id);
        Ids { table: info.tables[0].preamble().id, profile, action: info.actions[0].preamble().id }
    }

    fn action(&self, values: Values) -> Action {
        let params = [u128::from(values.id), values.further].map(bytes);
        let params = (1..).zip(params).map(|(param_id, value)| Param { param_id, value }).collect();
        Action { action_id: self.action, params }
    }

    /// The default action with this result.
    pub fn default(&self, id: u16) -> TableEntry {
        let action = ActionKind::Action(self.action(Values { id, further: 0 }));
        let action = Some(TableAction { r#type: Some(action) });
        TableEntry { table_id: self.table, action, is_default_action: true, ..TableEntry::default() }
    }

    pub fn member(&self, member_id: u32, values: Values) -> ActionProfileMember {
        ActionProfileMember { action_profile_id: self.profile, member_id, action: Some(self.action(values)) }
    }

    pub fn group(&self, group_id: u32, group: &Group) -> ActionProfileGroup {
        let members = group.members.iter().map(|(member_id, weight, watch_port)| GroupMember {
            member_id: *member_id,
            weight: *weight as i32,
            watch_port: watch_port.clone(),
            ..GroupMember::default()
        });
        let (action_profile_id, max_size) = (self.profile, group.most as i32);
        ActionProfileGroup { action_profile_id, group_id, members: members.collect(), max_size }
    }
}

/// A number in P4Runtime's encoding: at least one byte, without leading zeros.
fn bytes(value: u128) -> Vec<u8> {
    let all = value.to_be_bytes();
    let zeros = all.iter().take(15).take_while(|byte| **byte == 0).count();
    all[zeros..].to_vec()
}

impl Table {
    pub fn program(&self) -> String {
        let mut fields = String::new();
        let mut keys = String::new();
        let mut bits = 0;
        for (place, key) in self.keys.iter().enumerate() {
            let _ = write!(fields, "{}<{}> k{place}; ", if key.is_signed { "int" } else { "bit" }, key.width);
            let _ = write!(keys, "hdr.h.k{place}: {}; ", key.kind);
            bits += key.width;
        }
        if bits % 8 != 0 {
            let _ = write!(fields, "bit<{}> pad; ", 8 - bits % 8);
        }
        let mut properties = String::new();
        let mut made = String::new();
        match &self.profile {
            None => {}
            Some(Profile { is_selector: false, .. }) => made = format!("action_profile(32w{ROOM}) ap;"),
            Some(Profile { is_selector: true, .. }) => {
                made = format!("action_selector(HashAlgorithm.crc16, 32w{ROOM}, 32w16) ap;");
                keys.push_str("hdr.h.flow: selector; ");
            }
        }
        if self.profile.is_some() {
            properties.push_str("implementation = ap; ");
        }
        if self.times_out {
            properties.push_str("support_timeout = true; ");
        }
        properties.push_str(&self.initial());
        format!(
            "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ {fields}bit<16> flow; bit<16> result; }}\n\
             struct headers_t {{ h_t h; }}\nstruct meta_t {{ }}\n\
             parser P(packet_in p, out headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n\
             state start {{ p.extract(hdr.h); transition accept; }} }}\n\
             control V(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control I(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{\n{made}\n\
             action hit(bit<16> id, bit<{further}> more) {{ hdr.h.result = id ^ (bit<16>)more; s.egress_spec = 1; }}\n\
             table t {{ key = {{ {keys}}} actions = {{ hit; }} default_action = hit({DEFAULT}, 0); size = {SIZE}; \
             {properties} }}\n\
             apply {{ t.apply(); }} }}\n\
             control E(inout headers_t hdr, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
             control U(inout headers_t hdr, inout meta_t m) {{ apply {{ }} }}\n\
             control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.h); }} }}\n\
             V1Switch(P(), V(), I(), E(), U(), D()) main;\n",
            further = self.further,
        )
    }

    /// The program's own entries, and their priorities.
    fn initial(&self) -> String {
        let mut list = String::new();
        for (entry, number) in &self.own {
            let mut sets = Vec::new();
            for (want, key) in entry.keys.iter().zip(&self.keys) {
                let width = key.width;
                sets.push(match want {
                    Want::Bits { mask: 0, .. } => "_".to_owned(),
                    Want::Bits { value, mask } if key.kind == "lpm" || key.kind == "ternary" => {
                        format!("{width}w{value:#x} &&& {width}w{mask:#x}")
                    }
                    Want::Bits { value, .. } => format!("{width}w{value:#x}"),
                    Want::Range(first, last) if key.is_signed => {
                        format!("(int<{width}>){width}w{first:#x} .. (int<{width}>){width}w{last:#x}")
                    }
                    Want::Range(first, last) => format!("{width}w{first:#x} .. {width}w{last:#x}"),
                });
            }
            if self.profile.as_ref().is_some_and(|profile| profile.is_selector) {
                sets.push("_".to_owned());
            }
            let (before, behind) = match number {
                Some(number) if self.order == Order::Ranks => (String::new(), format!(" @priority({number})")),
                Some(number) => (format!("priority = {number}: "), String::new()),
                None => (String::new(), String::new()),
            };
            let constant = if entry.is_const && !self.is_const { "const " } else { "" };
            let Does::Own(Values { id, further }) = entry.does else { continue };
            let (width, sets) = (self.further, sets.join(", "));
            let _ = writeln!(list, "{constant}{before}({sets}): hit({id}, {width}w{further:#x}){behind};");
        }
        let order = match self.order {
            _ if !self.has_priorities() => String::new(),
            Order::Largest => "largest_priority_wins = true; ".to_owned(),
            Order::Smallest => "largest_priority_wins = false; ".to_owned(),
            Order::Ranks => String::new(),
            Order::Places { largest_wins, delta } => {
                format!("largest_priority_wins = {largest_wins}; priority_delta = {delta}; ")
            }
        };
        let kept = if self.is_const { "const " } else { "" };
        if self.is_const || !self.own.is_empty() { format!("{order}{kept}entries = {{ {list} }}") } else { order }
    }

    /// An entry as a P4Runtime message.
    pub fn message(&self, entry: &Known, ids: Ids) -> TableEntry {
        let mut matches = Vec::new();
        for (place, (want, key)) in entry.keys.iter().zip(&self.keys).enumerate() {
            let kind = match *want {
                Want::Bits { value, .. } if key.kind == "exact" => FieldKind::Exact(Exact { value: bytes(value) }),
                Want::Bits { mask: 0, .. } => continue,
                Want::Bits { value, mask } if key.kind == "lpm" => {
                    FieldKind::Lpm(Lpm { value: bytes(value), prefix_len: mask.count_ones() as i32 })
                }
                Want::Bits { value, .. } if key.kind == "optional" => {
                    FieldKind::Optional(Optional { value: bytes(value) })
                }
                Want::Bits { value, mask } => FieldKind::Ternary(Ternary { value: bytes(value), mask: bytes(mask) }),
                Want::Range(first, last) if (key.order(first), key.order(last)) == (0, key.all()) => continue,
                Want::Range(first, last) => FieldKind::Range(Range { low: bytes(first), high: bytes(last) }),
            };
            matches.push(FieldMatch { field_id: place as u32 + 1, field_match_type: Some(kind) });
        }
        let weighted = |(values, weight): &(Values, u32)| ActionProfileAction {
            action: Some(ids.action(*values)),
            weight: *weight as i32,
            ..ActionProfileAction::default()
        };
        let set = |set: &[(Values, u32)]| {
            ActionKind::ActionProfileActionSet(ActionProfileActionSet {
                action_profile_actions: set.iter().map(weighted).collect(),
                ..ActionProfileActionSet::default()
            })
        };
        let kind = Some(match &entry.does {
            Does::Own(values) if self.profile.is_none() => ActionKind::Action(ids.action(*values)),
            Does::Own(values) => set(&[(*values, 1)]),
            Does::Member(id) => ActionKind::ActionProfileMemberId(*id),
            Does::Group(id) => ActionKind::ActionProfileGroupId(*id),
            Does::Set(actions) => set(actions),
        });
        TableEntry {
            table_id: ids.table,
            r#match: matches,
            action: Some(TableAction { r#type: kind }),
            priority: entry.priority as i32,
            idle_timeout_ns: entry.timeout_ns,
            metadata: entry.metadata.clone(),
            is_const: entry.is_const,
            ..TableEntry::default()
        }
    }
}
