//! Tests that Interests and the Data that satisfies them reach the same worker, for all names.

use namehop_wire::Name;
use namehop_wire::builder::InterestBuilder;
use namehop_wire::lp::NackReason;
use namehop_wire::security::DigestSigner;
use namehop_wire::{Data, DataBuilder};

use super::*;
use crate::pit_token::TokenForm;

const WORKERS: usize = 4;

fn table(components: usize) -> NameDispatch {
    NameDispatch::new(WORKERS, components, DispatchKey::new(7, 11))
}

pub(super) fn interest(name: &Name) -> Vec<u8> {
    InterestBuilder::new(name).nonce(1).build().expect("fits")
}

pub(super) fn data(name: &Name) -> Vec<u8> {
    DataBuilder::new(name).sign(&DigestSigner).expect("fits")
}

pub(super) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// Returns a token of this worker, for tables of some size.
fn token_of(worker: u8) -> PitToken {
    TokenForm::new(worker, 1000, 100).encode(5, 6, 7)
}

fn owner(table: &NameDispatch, packet: &[u8]) -> u8 {
    let owners = table.owners(packet, &LinkFields::default()).expect("a name");
    assert!(owners.others.is_empty());
    owners.owner
}

#[test]
fn interests_meet_their_data_by_name_and_by_digest() {
    for components in 1..=4 {
        let table = table(components);
        for number in 0..40 {
            for depth in 1..6 {
                let name: Name = name(&format!("/n{number}/a/b/c/d")).prefix(depth).to_owned();
                let packet = data(&name);
                let full_name = Data::decode(&packet).expect("valid").full_name();
                let expected = owner(&table, &packet);
                assert_eq!(owner(&table, &interest(&name)), expected, "{name}, {components} components");
                assert_eq!(owner(&table, &interest(&full_name)), expected, "{full_name}, {components} components");
                if depth >= components {
                    let longer = name.clone().append_generic("longer");
                    assert_eq!(owner(&table, &data(&longer)), expected, "{longer}, {components} components");
                }
            }
        }
    }
}

#[test]
fn names_are_spread_over_all_workers() {
    let table = table(2);
    let mut counts = [0; WORKERS];
    for number in 0..4_000 {
        counts[usize::from(owner(&table, &interest(&name(&format!("/net/site{number}/x")))))] += 1;
    }
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    assert_eq!(table.entries_by_worker(), [ENTRIES as u64 / WORKERS as u64; WORKERS]);
}

#[test]
fn data_and_nacks_follow_tokens_of_this_router_alone() {
    let table = table(2);
    let name = name("/a/b");
    let by_name = owner(&table, &data(&name));
    for worker in 0..=u8::MAX {
        let pit_token = token_of(worker);
        let expected = if usize::from(worker) < WORKERS { worker } else { by_name };
        let of_data = LinkFields { pit_token, ..LinkFields::default() };
        assert_eq!(table.owners(&data(&name), &of_data), Some(Owners::one(expected)), "worker {worker}");
        assert_eq!(
            table.owners(&interest(&name), &of_data),
            Some(Owners::one(by_name)),
            "the token of an Interest is the peer's"
        );
        let of_nack = LinkFields { pit_token, nack: Some(NackReason::NO_ROUTE), ..LinkFields::default() };
        assert_eq!(table.owners(&interest(&name), &of_nack), Some(Owners::one(expected)), "worker {worker}");
    }
    let pit_token = PitToken::from_slice(&[2; 7]).expect("short");
    let of_others = LinkFields { pit_token, ..LinkFields::default() };
    assert_eq!(table.owners(&data(&name), &of_others), Some(Owners::one(by_name)));
}

#[test]
fn what_has_no_name_is_nobodys() {
    let table = table(2);
    for packet in [&[][..], &[5], &[5, 0], &[6, 3, 8, 1, 65], &[5, 3, 7, 5, 8], &[5, 4, 7, 2, 8, 9]] {
        assert_eq!(table.owners(packet, &LinkFields::default()), None, "{packet:?}");
    }
}

/// Returns a name with different owners for its first component and for its first two.
fn divided(table: &NameDispatch) -> (Name, u8, u8) {
    let names = (0..).map(|number| name(&format!("/n{number}/b/c")));
    let with_owners = names.map(|name| {
        let short = owner(table, &interest(&name.prefix(1).to_owned()));
        let long = owner(table, &interest(&name));
        (name, short, long)
    });
    with_owners.into_iter().find(|(_, short, long)| short != long).expect("a name with two owners")
}

#[test]
fn a_set_gives_its_workers_in_order() {
    assert_eq!(set(&[63, 7, 0, 7]).iter().collect::<Vec<_>>(), [0, 7, 63]);
    assert_eq!(set(&[]).iter().count(), 0);
    let all: Vec<u8> = (0..MAX_WORKERS as u8).collect();
    assert_eq!(set(&all).iter().collect::<Vec<_>>(), all);
}

fn set(workers: &[u8]) -> WorkerSet {
    workers.iter().copied().collect()
}

#[test]
fn data_is_offered_to_the_owner_of_a_short_interest_while_it_is_pending() {
    let table = table(2);
    let (name, short, long) = divided(&table);
    let packet = data(&name);
    let asked = name.prefix(1).to_owned();
    assert!(table.count_pending(asked.value()));
    let owners = |pit_token| table.owners(&packet, &LinkFields { pit_token, ..LinkFields::default() });
    assert_eq!(owners(PitToken::empty()), Some(Owners { owner: short, others: set(&[long]) }));
    let with_token = owners(token_of(short));
    assert_eq!(with_token, Some(Owners { owner: short, others: set(&[long]) }));
    let with_token = owners(token_of(long));
    assert_eq!(with_token, Some(Owners { owner: long, others: set(&[short]) }));
    // Interests, and Data below other names, go to their owner alone.
    assert_eq!(owner(&table, &interest(&name)), long);
    assert!(
        table
            .owners(&data(&"/other/b".parse().expect("name")), &LinkFields::default())
            .is_some_and(|it| it.others.is_empty())
    );
    table.uncount_pending(asked.value());
    assert_eq!(owners(PitToken::empty()), Some(Owners::one(long)));
    assert_eq!(table.exceptions.count.load(Ordering::Relaxed), 0);
    // Interests with enough components are not counted.
    assert!(!table.count_pending(name.value()));
    assert_eq!(table.exceptions.count.load(Ordering::Relaxed), 0);
}

#[test]
fn a_moved_entry_has_a_former_owner_for_a_while() {
    let table = table(2);
    let (name, _, long) = divided(&table);
    let (index, owner_before) = table.entry_of(name.value()).expect("a name");
    assert_eq!(owner_before, long);
    let new = (long + 1) % WORKERS as u8;
    assert!(!table.move_entry(index, long) && !table.move_entry(index, WORKERS as u8));
    assert!(table.move_entry(index, new));
    assert!(!table.move_entry(index, long), "the entry must stay until the former owner is forgotten");
    let of = |packet: &[u8]| table.owners(packet, &LinkFields::default());
    assert_eq!(of(&interest(&name)), Some(Owners::one(new)));
    assert_eq!(of(&data(&name)), Some(Owners { owner: new, others: set(&[long]) }));
    assert!(table.forget_former_owner(index) && !table.forget_former_owner(index));
    assert_eq!(of(&data(&name)), Some(Owners::one(new)));
    let entries = table.entries_by_worker();
    assert_eq!(entries[usize::from(new)], ENTRIES as u64 / WORKERS as u64 + 1);
}
