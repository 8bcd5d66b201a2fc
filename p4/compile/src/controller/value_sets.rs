//! P4Runtime access to value sets of parsers: all members at once.

use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::entity::{
    Entity, FieldKind, FieldMatch, Kind, Pair, Prefix, Single, ValueSetEntry, ValueSetMember,
};
use namehop_p4runtime::message::UpdateType;
use num_bigint::BigInt;

use super::keys::key_match;
use super::{Running, bits, parts, place, places};
use crate::interpret::table::Match;

/// Encodes a match on a field; one that matches any value is omitted.
fn show(place: usize, wanted: &Match) -> Option<FieldMatch> {
    let pair = |first: &BigInt, second: &BigInt| Pair { first: bits::write(first), second: bits::write(second) };
    let kind = match wanted {
        Match::Any => return None,
        Match::Exact(value) => FieldKind::Exact(Single { value: bits::write(&value.int()) }),
        Match::Masked(value, mask) => FieldKind::Ternary(pair(value, mask)),
        Match::Prefix(_, _, 0) => return None,
        Match::Prefix(value, _, length) => FieldKind::Lpm(Prefix { value: bits::write(value), length: *length as i32 }),
        Match::Range(first, last) => FieldKind::Range(pair(first, last)),
    };
    Some(FieldMatch { field_id: place as u32 + 1, kind: Some(kind) })
}

impl Running {
    pub(super) fn change_value_set(&self, update: UpdateType, given: &ValueSetEntry) -> Result<(), Status> {
        if update != UpdateType::Modify {
            return Err(Status::invalid_argument("a value set can only be modified, with all its members at once"));
        }
        let number = place(&self.info.value_sets, "value set", given.value_set_id, |set| &set.preamble)?;
        let info = &self.info.value_sets[number];
        let of = || format!("value set {}", info.preamble.name);
        let mut members = Vec::new();
        for member in &given.members {
            let known = |id: u32| info.fields.iter().any(|field| field.id == id);
            if let Some(unknown) = member.matches.iter().find(|value| !known(value.field_id)) {
                return Err(Status::invalid_argument(format!(
                    "{}: it has no field with id {}",
                    of(),
                    unknown.field_id
                )));
            }
            let mut keys = Vec::new();
            for field in &info.fields {
                let mut values = member.matches.iter().filter(|value| value.field_id == field.id);
                let value = values.next();
                if values.next().is_some() {
                    return Err(Status::invalid_argument(format!("{}: duplicate field {}", of(), field.name)));
                }
                keys.push(key_match(&of, field, false, value)?);
            }
            members.push(keys);
        }
        self.control.state().set_members(number, members).map_err(Status::resource_exhausted)
    }

    pub(super) fn read_value_sets(&self, given: &ValueSetEntry) -> Result<Parts<'_>, Status> {
        let numbers = places(&self.info.value_sets, "value set", given.value_set_id, |set| &set.preamble)?;
        let state = self.control.state();
        let mut found = Vec::new();
        for number in numbers {
            let member = |member: &Vec<Match>| ValueSetMember {
                matches: member.iter().enumerate().filter_map(|(place, wanted)| show(place, wanted)).collect(),
            };
            let entry = ValueSetEntry {
                value_set_id: self.info.value_sets[number].preamble.id,
                members: state.value_sets[number].iter().map(member).collect(),
            };
            found.push(Entity { kind: Some(Kind::ValueSet(entry)) });
        }
        Ok(parts(found.into_iter().map(Ok)))
    }
}
