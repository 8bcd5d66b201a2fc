//! P4Runtime access to value sets of parsers: all members at once.

use namehop_p4_lang::interpret::table::Match;
use namehop_p4runtime::Status;
use namehop_p4runtime::device::Parts;
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::field_match::FieldMatchType as FieldKind;
use namehop_p4runtime::message::field_match::{Exact, Lpm, Range, Ternary};
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{Entity, FieldMatch, ValueSetEntry, ValueSetMember};

use super::keys::key_match;
use super::profiles::status;
use super::{Running, bits, parts, place, places};

/// Encodes a match on a field; one that matches any value is omitted.
fn show(place: usize, wanted: &Match) -> Option<FieldMatch> {
    let kind = match wanted {
        Match::Any => return None,
        Match::Exact(value) => FieldKind::Exact(Exact { value: bits::write(&value.int()) }),
        Match::Masked(value, mask) => {
            FieldKind::Ternary(Ternary { value: bits::write(value), mask: bits::write(mask) })
        }
        Match::Prefix(_, _, 0) => return None,
        Match::Prefix(value, _, length) => {
            FieldKind::Lpm(Lpm { value: bits::write(value), prefix_len: *length as i32 })
        }
        Match::Range(first, last) => FieldKind::Range(Range { low: bits::write(first), high: bits::write(last) }),
    };
    Some(FieldMatch { field_id: place as u32 + 1, field_match_type: Some(kind) })
}

impl Running {
    pub(super) fn change_value_set(&self, update: UpdateType, given: &ValueSetEntry) -> Result<(), Status> {
        if update != UpdateType::Modify {
            return Err(Status::invalid_argument("a value set can only be modified, with all its members at once"));
        }
        let number = place(&self.info.value_sets, "value set", given.value_set_id)?;
        let info = &self.info.value_sets[number];
        let of = || format!("value set {}", info.preamble().name);
        let mut members = Vec::new();
        for member in &given.members {
            let known = |id: u32| info.r#match.iter().any(|field| field.id == id);
            if let Some(unknown) = member.r#match.iter().find(|value| !known(value.field_id)) {
                return Err(Status::invalid_argument(format!(
                    "{}: it has no field with id {}",
                    of(),
                    unknown.field_id
                )));
            }
            let mut keys = Vec::new();
            for field in &info.r#match {
                let mut values = member.r#match.iter().filter(|value| value.field_id == field.id);
                let value = values.next();
                if values.next().is_some() {
                    return Err(Status::invalid_argument(format!("{}: duplicate field {}", of(), field.name)));
                }
                keys.push(key_match(&of, field, false, value)?);
            }
            members.push(keys);
        }
        self.objects.state().set_members(number, members).map_err(status)
    }

    pub(super) fn read_value_sets(&self, given: &ValueSetEntry) -> Result<Parts<'_>, Status> {
        let numbers = places(&self.info.value_sets, "value set", given.value_set_id)?;
        let state = self.objects.state();
        let mut found = Vec::new();
        for number in numbers {
            let member = |member: &Vec<Match>| ValueSetMember {
                r#match: member.iter().enumerate().filter_map(|(place, wanted)| show(place, wanted)).collect(),
            };
            let entry = ValueSetEntry {
                value_set_id: self.info.value_sets[number].preamble().id,
                members: state.value_sets[number].iter().map(member).collect(),
            };
            found.push(Entity { entity: Some(Kind::ValueSetEntry(entry)) });
        }
        Ok(parts(found.into_iter().map(Ok)))
    }
}
