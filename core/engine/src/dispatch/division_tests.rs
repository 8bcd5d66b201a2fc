//! Tests that Interests and the Data that satisfies them reach the same worker when entries are divided.

use proptest::prelude::*;

use namehop_wire::{Data, Name};

use super::tests::{data, interest, name};
use super::*;

const WORKERS: usize = 4;

fn table(components: usize) -> NameDispatch {
    NameDispatch::new(WORKERS, components, DispatchKey::new(7, 11))
}

fn owners(table: &NameDispatch, packet: &[u8]) -> Owners {
    table.owners(packet, &LinkFields::default()).expect("a name")
}

fn entry(table: &NameDispatch, name: &Name) -> usize {
    table.entry_of(name.value()).expect("a name").0
}

/// Divides the entries of all prefixes of these lengths, and ends their grace period.
fn divide(table: &NameDispatch, name: &Name, depths: std::ops::Range<usize>) {
    for depth in depths {
        let index = entry(table, &name.prefix(depth).to_owned());
        assert!(table.divide_entry(index) && !table.divide_entry(index));
        table.forget_division(index);
    }
    assert_eq!(table.exceptions.count.load(Ordering::Relaxed), 0);
}

#[test]
fn names_below_a_divided_prefix_have_entries_of_their_own() {
    let table = table(2);
    let prefix = name("/a/b");
    let below = |number: usize| prefix.clone().append_generic(format!("n{number}"));
    let own = entry(&table, &prefix);
    assert!((0..20).all(|number| entry(&table, &below(number)) == own));
    divide(&table, &prefix, 2..3);
    assert!(table.is_divided(own));
    assert_eq!(entry(&table, &prefix), own);
    let entries: std::collections::BTreeSet<usize> = (0..20).map(|number| entry(&table, &below(number))).collect();
    assert!(entries.len() == 20 && !entries.contains(&own));
    let deeper = below(3).append_generic("deeper").append_generic("still");
    assert_eq!(entry(&table, &deeper), entry(&table, &below(3)));
    assert_eq!(table.entries_of(deeper.value()).collect::<Vec<_>>(), [own, entry(&table, &below(3))]);
    assert_eq!(table.entries_of(prefix.value()).collect::<Vec<_>>(), [own]);
    assert_eq!(table.entries_of(name("/a").value()).collect::<Vec<_>>(), [entry(&table, &name("/a"))]);
}

#[test]
fn division_ends_at_the_most_components() {
    let table = table(MAX_COMPONENTS - 1);
    let long = name("/a/b/c/d/e/f/g/h/i/j");
    divide(&table, &long, MAX_COMPONENTS - 1..MAX_COMPONENTS + 1);
    assert_eq!(entry(&table, &long), entry(&table, &long.prefix(MAX_COMPONENTS).to_owned()));
    assert!(!table.deciding(long.value(), true).expect("a name").is_short);
}

/// Returns a prefix with a divided entry, a name below it with another owner, and the prefix's owner.
fn name_of_another(table: &NameDispatch) -> (Name, Name, u8) {
    let owner_of = |name: &Name| table.deciding(name.value(), true).expect("a name").entry.owner();
    let prefix = name("/a/b");
    divide(table, &prefix, 2..3);
    let owner = owner_of(&prefix);
    let mut names = (0..).map(|number| prefix.clone().append_generic(format!("n{number}")));
    let name = names.find(|name| owner_of(name) != owner).expect("a name with another owner");
    (prefix, name, owner)
}

#[test]
fn an_interest_with_a_divided_prefix_as_its_name_gets_all_data_below() {
    let table = table(2);
    let (prefix, name, owner) = name_of_another(&table);
    let packet = data(&name.append_generic("segment"));
    let of_name = owners(&table, &packet).owner;
    assert!(of_name != owner);
    assert!(table.count_pending(prefix.value()));
    let expected = Owners { owner, others: [of_name].into_iter().collect() };
    assert_eq!(owners(&table, &packet), expected);
    table.uncount_pending(prefix.value());
    assert_eq!(owners(&table, &packet), Owners::one(of_name));
}

#[test]
fn data_is_offered_to_the_owner_of_the_undivided_prefix_for_a_while() {
    let other = table(2);
    let (prefix, name, owner) = name_of_another(&other);
    // The same table without a division.
    let table = table(2);
    let (index, packet) = (entry(&table, &prefix), data(&name));
    assert_eq!(owners(&table, &packet), Owners::one(owner), "the Interest is pending at the owner");
    assert!(!table.count_pending(prefix.value()), "the owner gets all Data already");
    assert!(table.divide_entry(index));
    let now = owners(&table, &packet);
    assert!(now.owner != owner && now.others == [owner].into_iter().collect());
    assert_eq!(owners(&table, &interest(&name)), Owners::one(now.owner));
    // The entry may be moved in the meantime.
    let third =
        (0..WORKERS as u8).find(|&third| third != owner && third != now.owner).expect("a worker that owns neither");
    assert!(table.move_entry(index, third));
    assert_eq!(owners(&table, &packet).others, [owner, third].into_iter().collect());
    assert!(table.forget_former_owner(index));
    table.forget_division(index);
    table.forget_division(index);
    assert_eq!(owners(&table, &packet), Owners::one(now.owner));
    assert_eq!(table.exceptions.count.load(Ordering::Relaxed), 0);
}

/// Generates names from few components, so that many have prefixes in common.
fn names() -> impl Strategy<Value = Name> {
    let component = prop_oneof![Just("a"), Just("b"), Just("c")];
    prop::collection::vec(component, 0..6)
        .prop_map(|components| components.into_iter().fold(Name::new(), |name, each| name.append_generic(each)))
}

proptest! {
    /// Data reaches the worker of every Interest for its name, its full name or a prefix, whichever entries are divided
    /// or moved, and when.
    #[test]
    fn data_comes_to_whoever_asks_for_it(
        components in 1..4_usize,
        before in prop::collection::vec((names(), prop::option::of(0..WORKERS as u8)), 0..6),
        after in prop::collection::vec((names(), prop::option::of(0..WORKERS as u8)), 0..6),
        asked in names().prop_filter("an Interest must have a name", |name| !name.is_empty()),
        below in names(),
        exactly: bool,
        by_digest: bool,
    ) {
        let table = table(components);
        let change = |(name, to): &(Name, Option<u8>)| match to {
            None => table.divide_entry(entry(&table, name)),
            Some(to) => table.move_entry(entry(&table, name), *to),
        };
        before.iter().for_each(|step| {
            change(step);
        });
        (0..ENTRIES).for_each(|index| {
            table.forget_division(index);
            table.forget_former_owner(index);
        });
        let name = if exactly { asked.clone() } else { below.as_ref().components().fold(asked.clone(), Name::append) };
        let packet = data(&name);
        let asked = if exactly && by_digest { Data::decode(&packet).expect("valid").full_name() } else { asked };
        let by = owners(&table, &interest(&asked)).owner;
        let is_counted = !exactly && table.count_pending(asked.value());
        after.iter().for_each(|step| {
            change(step);
        });
        let Owners { owner, others } = owners(&table, &packet);
        prop_assert!(
            owner == by || others.iter().any(|other| other == by),
            "worker {by} has the Interest, but {owner} and {others:?} get the Data"
        );
        if is_counted {
            table.uncount_pending(asked.value());
        }
        (0..ENTRIES).for_each(|index| {
            table.forget_division(index);
            table.forget_former_owner(index);
        });
        prop_assert_eq!(table.exceptions.count.load(Ordering::Relaxed), 0);
    }
}
