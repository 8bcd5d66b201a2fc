//! Compares any sequence of events with a map: a lookup finds the Data last offered under its name.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    /// Data with this name, content and size is evicted from memory.
    Offer(u8, u8, usize),
    /// Newer Data of the name is in memory.
    Forget(u8),
    /// Everything under the prefix of this name is erased.
    Erase(u8),
    LookUp(u8),
    /// The process ends, and the next one is told of the erasures that were not on the disk.
    Restart,
    /// A byte changes; the position, as a fraction of the file, and the change.
    Corrupt(f64, u8),
    Mood(u8),
    Pass(u64),
}

const NAMES: u8 = 24;

fn name(number: u8) -> String {
    format!("/p{}/n{number}", number % 3)
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..NAMES;
    prop_oneof![
        8 => (number.clone(), any::<u8>(), prop_oneof![0..200_usize, 0..8_000_usize])
            .prop_map(|(number, content, bytes)| Step::Offer(number, content, bytes)),
        1 => number.clone().prop_map(Step::Forget),
        1 => number.clone().prop_map(Step::Erase),
        8 => number.prop_map(Step::LookUp),
        1 => Just(Step::Restart),
        2 => (0.0..1.0, 1..=u8::MAX).prop_map(|(at, change)| Step::Corrupt(at, change)),
        1 => (0..4_u8).prop_map(Step::Mood),
        2 => (0..3_000_u64).prop_map(Step::Pass),
    ]
}

/// Data that may be found under a name.
#[derive(Debug, Default)]
struct Known {
    /// In this run.
    now: Option<Vec<u8>>,
    /// After a restart: any Data offered since the last erasure.
    ever: Vec<Vec<u8>>,
    /// Data offered before the last erasure: it may come back if the erasure was changed on the disk.
    before: Vec<Vec<u8>>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_found_was_last_given(steps in prop::collection::vec(step(), 1..120), is_faulty in any::<bool>()) {
        let mut rig = Rig::new(384);
        let mut known: HashMap<u8, Known> = HashMap::new();
        let mut is_changed = false;
        let mut unwritten: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Offer(number, content, bytes) => {
                    let packet = data(&name(number), content, bytes);
                    let entry = known.entry(number).or_default();
                    // As a worker does when other Data of the name is inserted into memory.
                    if entry.now.as_ref() != Some(&packet) {
                        rig.tier.forget(hash_of(&name(number)));
                    }
                    rig.offer(&name(number), &packet, 1_000);
                    entry.now = Some(packet.clone());
                    entry.ever.push(packet);
                }
                Step::Forget(number) => {
                    rig.tier.forget(hash_of(&name(number)));
                    known.entry(number).or_default().now = None;
                }
                Step::Erase(number) => {
                    let prefix = format!("/p{}", number % 3);
                    rig.tier.erase(&value_of(&prefix));
                    unwritten.push(prefix);
                    for (_, entry) in known.iter_mut().filter(|(other, _)| **other % 3 == number % 3) {
                        let before = entry.before.drain(..).chain(entry.ever.drain(..)).collect();
                        *entry = Known { before, ..Known::default() };
                    }
                }
                Step::LookUp(number) => {
                    let outcome = rig.look_up(&name(number));
                    let entry = known.entry(number).or_default();
                    match &outcome {
                        Outcome::Found(packet, _) => prop_assert_eq!(entry.now.as_ref(), Some(packet)),
                        Outcome::Unknown | Outcome::Nothing | Outcome::TimedOut => {}
                    }
                }
                Step::Restart => {
                    rig.poll();
                    if rig.shared.status().erasing_workers == 0 {
                        unwritten.clear();
                    }
                    rig = rig.restart_with(0, &unwritten);
                    for (number, entry) in &mut known {
                        entry.now = match rig.look_up(&name(*number)) {
                            Outcome::Found(packet, _) => {
                                let was_before = is_changed && entry.before.contains(&packet);
                                prop_assert!(was_before || entry.ever.contains(&packet));
                                Some(packet)
                            }
                            _ => None,
                        };
                    }
                }
                Step::Corrupt(at, change) if is_faulty => {
                    let mut disk = rig.disk.0.borrow_mut();
                    let length = disk.bytes.len() - SUPERBLOCK_BYTES;
                    disk.bytes[SUPERBLOCK_BYTES + (at * length as f64) as usize] ^= change;
                    // The changed byte may be in an erasure.
                    is_changed = true;
                }
                Step::Mood(mood) if is_faulty => {
                    rig.disk.set_mood([Mood::Works, Mood::Works, Mood::Fails, Mood::Stalls][usize::from(mood)]);
                }
                Step::Corrupt(..) | Step::Mood(_) => {}
                Step::Pass(ms) => rig.pass(ms),
            }
        }
        // Nothing is lost without a fault.
        if !is_faulty {
            prop_assert_eq!(rig.shared.status().counters.errors + rig.shared.status().counters.checksum_failures, 0);
            prop_assert_eq!(rig.tier.report().counters.timed_out, 0);
        }
    }

    #[test]
    fn no_changed_byte_gives_wrong_data(at in 0..2_048_usize, change in 1..=u8::MAX, bytes in 0..1_900_usize) {
        let mut rig = Rig::new(1024);
        let packet = data("/a", 1, bytes);
        rig.offer("/a", &packet, 0);
        rig.pass(0);
        let covered = crate::format::HEADER_BYTES + packet.len();
        rig.disk.0.borrow_mut().bytes[SUPERBLOCK_BYTES + at] ^= change;
        let expected = if at < covered { Outcome::Nothing } else { Outcome::Found(packet, false) };
        prop_assert_eq!(rig.look_up("/a"), expected.clone());
        let mut rig = rig.restart(0);
        let outcome = rig.look_up("/a");
        prop_assert!(outcome == expected || outcome == Outcome::Unknown && at < covered, "{:?}", outcome);
    }
}

#[test]
fn all_that_fits_is_found_again_after_a_restart() {
    let slots = 4_096;
    let mut rig = Rig::new(slots);
    let names: Vec<String> = (0..800).map(|number| format!("/n/{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        rig.offer(name, &data(name, number as u8, number % 7 * 600), 0);
        rig.poll();
    }
    let count = |rig: &mut Rig| {
        names
            .iter()
            .enumerate()
            .rev()
            .take_while(|(number, name)| {
                rig.look_up(name) == Outcome::Found(data(name, *number as u8, number % 7 * 600), false)
            })
            .count()
    };
    let before = count(&mut rig);
    assert!(before == 800, "{before} packets are found");
    for _ in 0..3 {
        rig = rig.restart(0);
        assert_eq!(count(&mut rig), before);
    }
}
