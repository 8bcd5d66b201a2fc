//! Compares a p4info with a program's own: everything that has an id, regardless of order and annotations.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::info::{P4Info, Preamble};

/// Something with an id.
trait Named: Clone + PartialEq + Debug {
    fn preamble(&mut self) -> &mut Preamble;
}

macro_rules! named {
    ($($type:ident),*) => { $(impl Named for crate::info::$type {
        fn preamble(&mut self) -> &mut Preamble {
            &mut self.preamble
        }
    })* };
}

named!(Table, Action, ActionProfile, Counter, DirectResource, ControllerPacketMetadata, Register, Digest, ValueSet);

/// Objects by id, without annotations and without what a compiler may choose freely.
fn by_id<T: Named>(list: &[T], plain: impl Fn(&mut T)) -> BTreeMap<u32, T> {
    let entry = |thing: &T| {
        let mut thing = thing.clone();
        thing.preamble().annotations.clear();
        thing.preamble().alias.clear();
        plain(&mut thing);
        (thing.preamble().id, thing)
    };
    list.iter().map(entry).collect()
}

fn same_list<T: Named>(kind: &str, own: &[T], given: &[T], plain: impl Fn(&mut T)) -> Result<(), String> {
    let (mut own, mut given) = (by_id(own, &plain), by_id(given, &plain));
    for (id, other) in &mut given {
        let name = other.preamble().name.clone();
        match own.get(id) {
            None => return Err(format!("it has {kind} {name} with id {id:#010x}, which the program does not have")),
            Some(known) if known != other => return Err(format!("{kind} {name} with id {id:#010x} differs")),
            Some(_) => {}
        }
    }
    match own.iter_mut().find(|(id, _)| !given.contains_key(id)) {
        Some((id, missing)) => Err(format!("{kind} {} with id {id:#010x} is missing", missing.preamble().name)),
        None => Ok(()),
    }
}

/// Compares a p4info with the program's own.
///
/// # Errors
/// Returns the first difference.
pub fn same(own: &P4Info, given: &P4Info) -> Result<(), String> {
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
    use crate::info::{Action, P4Info, Param, Preamble};

    fn action(id: u32, bitwidth: i32) -> Action {
        let preamble = Preamble { id, name: format!("a{id}"), alias: "a".into(), annotations: vec!["@x".into()] };
        Action { preamble, params: vec![Param { id: 1, name: "p".into(), bitwidth }] }
    }

    fn info(actions: &[Action]) -> P4Info {
        P4Info { actions: actions.to_vec(), ..P4Info::default() }
    }

    #[test]
    fn the_first_difference_is_named() {
        let own = info(&[action(1, 9), action(2, 9)]);
        let mut reordered = info(&[action(2, 9), action(1, 9)]);
        reordered.actions[0].preamble.annotations.clear();
        assert_eq!(same(&own, &reordered), Ok(()));
        for (given, part) in [
            (info(&[action(1, 9)]), "action a2 with id 0x00000002 is missing"),
            (info(&[action(1, 9), action(2, 8)]), "action a2 with id 0x00000002 differs"),
            (info(&[action(1, 9), action(2, 9), action(3, 9)]), "a3"),
            (P4Info::default(), "a1"),
        ] {
            let difference = same(&own, &given).expect_err(part);
            assert!(difference.contains(part), "{difference}");
        }
    }
}
