//! Tests of the order in which PIT slots are evicted.

use proptest::prelude::*;

use super::*;

fn slot(entry: u32) -> PitRef {
    PitRef { entry, slot: entry }
}

fn serial(entry: u32) -> u32 {
    entry ^ 0xffff
}

/// A queue with its counts, and a list of its expected content, oldest first.
struct Fixture {
    queue: PitQueue,
    shares: Shares,
    listed: Vec<(u32, FaceId, u32)>,
}

impl Fixture {
    fn new(capacity: usize) -> Self {
        Fixture { queue: PitQueue::new(capacity).expect("memory"), shares: Shares::default(), listed: Vec::new() }
    }

    /// Returns all slots in the queue, oldest first.
    fn queued(&self) -> Vec<PitRef> {
        self.queue.with_holders().map(|(slot, _)| slot).collect()
    }

    fn push(&mut self, entry: u32, face: u32) {
        let position = self.queue.push(slot(entry), FaceId(face), serial(entry));
        self.shares.add(FaceId(face));
        self.listed.push((entry, FaceId(face), position));
    }

    fn remove(&mut self, index: usize) -> FaceId {
        let (_, face, position) = self.listed.remove(index);
        assert_eq!(self.queue.remove(position), face);
        self.shares.remove(face);
        face
    }

    /// Removes the next victim, and returns its entry and its holder.
    fn give_up(&mut self) -> (u32, u32) {
        self.give_up_for(400).expect("a victim")
    }

    /// Removes the next victim for a new slot of `newcomer`.
    fn give_up_for(&mut self, newcomer: u32) -> Option<(u32, u32)> {
        self.shares.note_victim();
        let victim = self.queue.victim(&self.shares, FaceId(newcomer))?;
        let index = self.listed.iter().position(|&(entry, ..)| entry == victim.entry).expect("listed");
        Some((victim.entry, self.remove(index).0))
    }

    fn held(&self, face: FaceId) -> usize {
        self.listed.iter().filter(|&&(_, holder, _)| holder == face).count()
    }

    fn check(&self) {
        self.shares.check_invariants(self.listed.iter().map(|&(_, face, _)| face)).expect("invariants");
        let mut queued: Vec<u32> = self.queue.with_holders().map(|(slot, _)| slot.entry).collect();
        queued.sort_unstable();
        let mut listed: Vec<u32> = self.listed.iter().map(|&(entry, ..)| entry).collect();
        listed.sort_unstable();
        assert_eq!(queued, listed);
        assert!(
            self.listed
                .iter()
                .all(|&(entry, _, position)| self.queue.get_by_serial(position, serial(entry)) == Some(slot(entry)))
        );
        assert_eq!(self.queue.len(), listed.len());
    }
}

#[test]
fn one_face_gives_up_its_oldest_slots_and_gaps_are_passed() {
    let mut fixture = Fixture::new(4);
    (0..4).for_each(|entry| fixture.push(entry, 300));
    assert_eq!(fixture.queue.sequences(), 0..4);
    fixture.remove(2);
    fixture.remove(0);
    let at = [0, 1, 2, 3, 4].map(|sequence| fixture.queue.at(sequence));
    assert_eq!(at, [None, Some(slot(1)), None, Some(slot(3)), None]);
    assert_eq!([fixture.give_up(), fixture.give_up()], [(1, 300), (3, 300)]);
    assert_eq!((fixture.queue.len(), fixture.give_up_for(300)), (0, None));
}

#[test]
fn a_flood_gives_up_its_own_slots() {
    let mut fixture = Fixture::new(100);
    (0..10).for_each(|entry| fixture.push(entry, 300));
    for entry in 10..1_000 {
        if fixture.queue.len() == 100 {
            assert_eq!(fixture.give_up(), (entry - 90, 301));
        }
        fixture.push(entry, 301);
        fixture.check();
    }
    assert_eq!(fixture.held(FaceId(300)), 10);
}

#[test]
fn faces_that_hold_the_same_give_up_what_is_oldest() {
    let mut fixture = Fixture::new(90);
    for entry in 0..900 {
        if fixture.queue.len() == 90 {
            assert_eq!(fixture.give_up().0, entry - 90);
        }
        fixture.push(entry, 300 + entry % 3);
    }
}

/// If none of the examined faces holds much, the one that holds most loses a slot, but not to a face that holds more.
#[test]
fn many_faces_with_little_before_one_with_much() {
    let mut fixture = Fixture::new(4_000);
    for entry in 0..800 {
        // Every fourth slot is held by the same face.
        fixture.push(entry, if entry % 4 == 1 { 300 } else { 1_000 + entry });
    }
    (800..2_000).for_each(|entry| fixture.push(entry, 301));
    assert_eq!(fixture.give_up_for(400), Some((1, 300)));
    assert_eq!(fixture.give_up_for(301), None, "the face holds more than all examined holders");
    assert_eq!(fixture.give_up_for(300), Some((513, 300)));
    assert_eq!(fixture.give_up_for(301), Some((800, 301)));
    (0..800).for_each(|_| assert_eq!(fixture.give_up_for(301).map(|(_, face)| face), Some(301)));
    fixture.check();
}

#[test]
fn a_look_ahead_passes_gaps_and_changes_nothing() {
    let mut fixture = Fixture::new(200);
    let next = |fixture: &Fixture, from| fixture.queue.next_victim_from(from, &fixture.shares);
    assert_eq!(next(&fixture, 0), (None, 0));
    (0..200).for_each(|entry| fixture.push(entry, 300));
    for gap in (1..3).chain(4..104) {
        let index = fixture.listed.iter().position(|&(entry, ..)| entry == gap).expect("listed");
        fixture.remove(index);
    }
    // The upper bound of the largest holder has to be recomputed.
    assert_eq!(next(&fixture, 0), (Some(slot(0)), LOOKAHEAD_POSITIONS));
    fixture.shares.note_victim();
    assert_eq!(next(&fixture, 0), (Some(slot(0)), 1));
    assert_eq!(next(&fixture, 1), (Some(slot(3)), 4));
    // More gaps than one look-ahead examines.
    assert_eq!(next(&fixture, 4), (None, 4 + LOOKAHEAD_POSITIONS));
    assert_eq!(next(&fixture, 4 + LOOKAHEAD_POSITIONS), (Some(slot(104)), 105));
    assert_eq!((next(&fixture, 199), next(&fixture, 200)), ((Some(slot(199)), 200), (None, 200)));
    assert_eq!(next(&fixture, 1_000), (None, 1_000));
    assert_eq!(fixture.queue.sequences(), 0..200);
    // Positions that the hand has passed are not examined again, and the ring may have wrapped.
    assert_eq!([fixture.give_up().0, fixture.give_up().0], [0, 3]);
    (200..300).for_each(|entry| fixture.push(entry, 300));
    let mut from = 0;
    for entry in 104..300 {
        let (found, after) = next(&fixture, from);
        assert_eq!(found, Some(slot(entry)));
        assert_eq!(fixture.give_up().0, entry);
        from = after;
        fixture.push(entry + 1_000, 300);
    }
}

#[test]
fn a_long_lived_slot_does_not_block_the_ring() {
    let mut fixture = Fixture::new(4);
    fixture.push(1_000, 300);
    for entry in 0..1_000 {
        fixture.push(entry, 301);
        let listed: Vec<_> = fixture.queue.sequences().filter_map(|sequence| fixture.queue.at(sequence)).collect();
        assert_eq!(listed, fixture.queued());
        assert_eq!(fixture.queue.at(fixture.queue.sequences().end - 1), Some(slot(entry)));
        fixture.check();
        fixture.remove(1);
    }
    assert_eq!(fixture.give_up(), (1_000, 300));
}

/// Returns a face, whether to remove a slot (0), and which one.
fn any_step() -> impl Strategy<Value = (u32, u8, prop::sample::Index)> {
    (prop_oneof![Just(300_u32), 300..304_u32, 300..320_u32], 0..8_u8, any::<prop::sample::Index>())
}

proptest! {
    /// With fewer slots than are examined, every victim's holder holds at least half of what any other face holds.
    #[test]
    fn victims_are_held_by_faces_with_much(
        capacity in 1..MAX_EXAMINED / 4,
        steps in prop::collection::vec(any_step(), 1..400),
    ) {
        let mut fixture = Fixture::new(capacity);
        for (entry, (face, what, which)) in (0..).zip(steps) {
            if what == 0 && !fixture.listed.is_empty() {
                fixture.remove(which.index(fixture.listed.len()));
            }
            if fixture.queue.len() == capacity {
                let before: Vec<FaceId> = fixture.listed.iter().map(|&(_, face, _)| face).collect();
                let held = |face: FaceId| before.iter().filter(|&&other| other == face).count();
                let (_, victim) = fixture.give_up();
                let most = before.iter().map(|&face| held(face)).max().unwrap_or(0);
                prop_assert!(
                    2 * held(FaceId(victim)) >= most,
                    "the holder has {} slots, another face has {most}",
                    held(FaceId(victim))
                );
            }
            fixture.push(entry, face);
            fixture.check();
        }
    }
}
