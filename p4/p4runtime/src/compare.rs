//! Compares a p4info with a program's own: everything that has an id, regardless of order and annotations.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::info::{Object, P4Info};

/// The first difference between a p4info and the program's own. Each variant has the kind, name and id of the object.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Difference {
    /// The program has no object with this id.
    #[error("it has {0} {1} with id {2:#010x}, which the program does not have")]
    Unknown(&'static str, String, u32),
    /// The program has another object with this id.
    #[error("{0} {1} with id {2:#010x} differs")]
    Differs(&'static str, String, u32),
    /// The p4info lacks an object of the program.
    #[error("{0} {1} with id {2:#010x} is missing")]
    Missing(&'static str, String, u32),
}

/// Objects by id, without annotations and without what a compiler may choose freely.
fn by_id<T: Object + Clone>(list: &[T], plain: impl Fn(&mut T)) -> BTreeMap<u32, T> {
    let entry = |object: &T| {
        let mut object = object.clone();
        object.preamble_mut().annotations.clear();
        object.preamble_mut().alias.clear();
        plain(&mut object);
        (object.preamble().id, object)
    };
    list.iter().map(entry).collect()
}

fn same_list<T: Object + Clone + PartialEq>(
    kind: &'static str,
    own: &[T],
    given: &[T],
    plain: impl Fn(&mut T),
) -> Result<(), Difference> {
    let (own, given) = (by_id(own, &plain), by_id(given, &plain));
    for (id, other) in &given {
        let name = || other.preamble().name.clone();
        match own.get(id) {
            None => return Err(Difference::Unknown(kind, name(), *id)),
            Some(known) if known != other => return Err(Difference::Differs(kind, name(), *id)),
            Some(_) => {}
        }
    }
    match own.iter().find(|(id, _)| !given.contains_key(id)) {
        Some((id, missing)) => Err(Difference::Missing(kind, missing.preamble().name.clone(), *id)),
        None => Ok(()),
    }
}

/// Compares a p4info with the program's own.
///
/// # Errors
/// Returns the first difference.
pub fn same(own: &P4Info, given: &P4Info) -> Result<(), Difference> {
    same_list("table", &own.tables, &given.tables, |table| {
        // The size and the presence of initial entries do not affect how entries are written.
        table.size = 0;
        table.has_initial_entries = false;
        table.action_refs.iter_mut().for_each(|action| action.annotations.clear());
        table.action_refs.sort_by_key(|action| action.id);
    })?;
    same_list("action", &own.actions, &given.actions, |_| {})?;
    same_list("action profile", &own.action_profiles, &given.action_profiles, |profile| {
        profile.size = 0;
        profile.table_ids.sort_unstable();
    })?;
    same_list("counter", &own.counters, &given.counters, |_| {})?;
    same_list("direct counter", &own.direct_counters, &given.direct_counters, |_| {})?;
    same_list("meter", &own.meters, &given.meters, |_| {})?;
    same_list("direct meter", &own.direct_meters, &given.direct_meters, |_| {})?;
    let (headers, others) = (&own.controller_packet_metadata, &given.controller_packet_metadata);
    same_list("controller header", headers, others, |_| {})?;
    same_list("register", &own.registers, &given.registers, |_| {})?;
    same_list("value set", &own.value_sets, &given.value_sets, |set| set.size = 0)?;
    same_list("digest", &own.digests, &given.digests, |_| {})
}

#[cfg(test)]
mod tests {
    use super::same;
    use crate::info::{Action, Object, P4Info, Preamble, action::Param};

    fn action(id: u32, bitwidth: i32) -> Action {
        let preamble = Preamble { id, name: format!("a{id}"), alias: "a".into(), annotations: vec!["@x".into()] };
        Action { preamble: Some(preamble), params: vec![Param { id: 1, name: "p".into(), bitwidth }] }
    }

    fn info(actions: &[Action]) -> P4Info {
        P4Info { actions: actions.to_vec(), ..P4Info::default() }
    }

    #[test]
    fn the_first_difference_is_named() {
        let own = info(&[action(1, 9), action(2, 9)]);
        let mut reordered = info(&[action(2, 9), action(1, 9)]);
        reordered.actions[0].preamble_mut().annotations.clear();
        assert_eq!(same(&own, &reordered), Ok(()));
        for (given, part) in [
            (info(&[action(1, 9)]), "action a2 with id 0x00000002 is missing"),
            (info(&[action(1, 9), action(2, 8)]), "action a2 with id 0x00000002 differs"),
            (info(&[action(1, 9), action(2, 9), action(3, 9)]), "a3"),
            (P4Info::default(), "a1"),
        ] {
            let difference = same(&own, &given).expect_err(part).to_string();
            assert!(difference.contains(part), "{difference}");
        }
    }
}
