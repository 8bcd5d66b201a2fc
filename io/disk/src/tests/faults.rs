//! Disks that fail, stall or are behind; freshness; the contents after a restart.

use namehop_engine::second_tier::RecordLocation;

use super::*;
use crate::format::CHUNK_BYTES;
use crate::messages::{READS, RUNS};

#[test]
fn data_is_found_before_and_after_it_is_written() {
    let mut rig = Rig::new(1024);
    for (name, bytes) in [("/a", 0), ("/a/b", 900), ("/c", 8_000)] {
        let packet = data(name, 1, bytes);
        rig.offer(name, &packet, 5_000);
        // In the same poll iteration, and much later.
        assert_eq!(rig.look_up(name), Outcome::Found(packet.clone(), true));
        rig.pass(100);
        assert_eq!(rig.look_up(name), Outcome::Found(packet.clone(), true));
        rig.pass(6_000);
        assert_eq!(rig.look_up(name), Outcome::Found(packet, false), "freshness must not be extended");
        assert_eq!(
            rig.tier.find(hash_of(name), true),
            None,
            "a stale packet must not be read for an Interest with MustBeFresh"
        );
    }
    assert_eq!(rig.look_up("/b"), Outcome::Unknown);
    assert_eq!(rig.tier.report().counters.stored, 3);
}

#[test]
fn freshness_is_by_the_time_of_day_across_restarts() {
    let packet = data("/a", 1, 100);
    let stored = || {
        let mut rig = Rig::new(1024);
        rig.offer("/a", &packet, 10_000);
        rig.pass(0);
        rig
    };
    for (pause_ms, is_fresh) in [(0, true), (9_000, true), (11_000, false), (-500, true), (-3_600_000, false)] {
        let mut rig = stored().restart(pause_ms);
        assert_eq!(rig.look_up("/a"), Outcome::Found(packet.clone(), is_fresh), "after {pause_ms} ms");
    }
}

#[test]
fn a_disk_with_an_error_is_left_alone_and_tried_again() {
    let mut rig = Rig::new(1024);
    let packet = data("/a", 1, 100);
    rig.offer("/a", &packet, 0);
    rig.pass(0);
    rig.disk.set_mood(Mood::Fails);
    rig.offer("/b", &data("/b", 2, 100), 0);
    rig.pass(0);
    assert_eq!(rig.shared.state(), TierState::Failed);
    assert_eq!(rig.shared.status().counters.errors, 1);
    assert_eq!(rig.look_up("/a"), Outcome::Unknown);
    rig.offer("/c", &data("/c", 2, 100), 0);
    assert_eq!(rig.tier.report().counters.not_stored, 1);
    rig.pass(11_000);
    assert_eq!(
        (rig.shared.state(), rig.shared.status().counters.errors),
        (TierState::Failed, 2),
        "the retry must have failed"
    );
    rig.disk.set_mood(Mood::Works);
    rig.pass(11_000);
    assert_eq!(rig.shared.state(), TierState::Working);
    assert_eq!(rig.look_up("/a"), Outcome::Found(packet, false));
    assert_eq!(rig.look_up("/b"), Outcome::Nothing, "the packet was never written");
    assert_eq!(rig.look_up("/b"), Outcome::Unknown);
}

#[test]
fn a_stalled_disk_delays_no_interest() {
    let mut rig = Rig::new(1024);
    let packet = data("/a", 1, 100);
    rig.offer("/a", &packet, 0);
    rig.pass(0);
    rig.disk.set_mood(Mood::Stalls);
    assert_eq!(rig.look_up("/a"), Outcome::TimedOut);
    assert_eq!(rig.look_up("/a"), Outcome::TimedOut, "reads must be tried until the stall is detected");
    rig.pass(1_000);
    assert_eq!(rig.shared.state(), TierState::Stalled);
    assert_eq!(rig.look_up("/a"), Outcome::Unknown);
    rig.offer("/b", &data("/b", 1, 100), 0);
    assert_eq!(rig.tier.report().counters.not_stored, 1);
    rig.pass(60_000);
    rig.disk.set_mood(Mood::Works);
    rig.pass(0);
    assert_eq!(rig.shared.state(), TierState::Working);
    assert_eq!(rig.look_up("/a"), Outcome::Found(packet, false));
    assert_eq!(rig.shared.status().counters.stalls, 1);
}

#[test]
fn a_disk_that_is_behind_takes_no_more_than_there_are_buffers() {
    let mut rig = Rig::new(8192);
    rig.disk.set_mood(Mood::Stalls);
    for number in 0..2_000 {
        let name = format!("/n/{number}");
        rig.offer(&name, &data(&name, 1, 7_000), 0);
        rig.poll();
    }
    let counters = rig.tier.report().counters;
    assert_eq!(counters.stored + counters.not_stored, 2_000);
    let least = (RUNS * (CHUNK_BYTES / (2 * 8_192))) as u64;
    assert!((least..1_000).contains(&counters.stored), "{} packets were stored in full buffers", counters.stored);
    let mut busy = 0;
    for number in 0..2_000 {
        let located = RecordLocation { position: number, slots: 1, may_be_fresh: false };
        busy += u64::from(rig.tier.start_read(number, located, false) == ReadStart::Busy);
    }
    assert_eq!(busy, 2_000 - READS as u64);
    assert_eq!(rig.tier.report().counters.busy, busy);
    rig.disk.set_mood(Mood::Works);
    rig.pass(1_000);
    rig.pass(0);
    rig.offer("/last", &data("/last", 1, 10), 0);
    rig.pass(0);
    assert!(matches!(rig.look_up("/last"), Outcome::Found(..)), "all buffers must be returned");
}

#[test]
fn one_read_serves_all_interests_for_a_packet() {
    let mut rig = Rig::new(1024);
    rig.offer("/a", &data("/a", 1, 100), 0);
    rig.pass(0);
    let located = rig.tier.find(hash_of("/a"), false).expect("the packet is in the index");
    let ReadStart::Started(id) = rig.tier.start_read(hash_of("/a"), located, false) else {
        panic!("the disk must be idle")
    };
    assert_eq!(rig.tier.start_read(hash_of("/a"), located, false), ReadStart::Joined(id));
    rig.pass(0);
    assert_eq!(rig.shared.status().counters.reads, 1);
}

#[test]
fn interests_during_a_late_read_join_the_later_read() {
    let mut rig = Rig::new(1024);
    rig.offer("/a", &data("/a", 1, 100), 0);
    rig.pass(0);
    rig.disk.set_mood(Mood::Stalls);
    assert_eq!(rig.look_up("/a"), Outcome::TimedOut);
    let located = rig.tier.find(hash_of("/a"), false).expect("the stall is not detected yet");
    let ReadStart::Started(id) = rig.tier.start_read(hash_of("/a"), located, false) else {
        panic!("further reads must be allowed")
    };
    // Otherwise each repeated request would take a read of its own.
    for _ in 0..3 {
        assert_eq!(rig.tier.start_read(hash_of("/a"), located, false), ReadStart::Joined(id));
    }
    assert_eq!(rig.tier.report().counters.timed_out, 1);
}

#[test]
fn unsolicited_peers_leave_half_of_the_reads_to_others_on_a_slow_disk() {
    let mut rig = Rig::new(8192);
    rig.disk.set_mood(Mood::Stalls);
    let located = |number| RecordLocation { position: number, slots: 1, may_be_fresh: false };
    let mut started = 0;
    for number in 0..1_000 {
        started += usize::from(matches!(rig.tier.start_read(number, located(number), true), ReadStart::Started(_)));
        // Timed-out reads are still in flight.
        if number % 100 == 0 {
            rig.pass(60);
            while rig.tier.next_expired().is_some() {}
        }
    }
    assert_eq!(started, READS / 2);
    let others = (1_000..2_000)
        .filter(|&number| matches!(rig.tier.start_read(number, located(number), false), ReadStart::Started(_)));
    assert_eq!(others.count(), READS / 2);
    rig.disk.set_mood(Mood::Works);
    rig.pass(0);
    rig.pass(0);
    let again = (0..1_000)
        .filter(|&number| matches!(rig.tier.start_read(number, located(number), true), ReadStart::Started(_)));
    assert_eq!(again.count(), READS / 2, "all reads must be available again");
}

#[test]
fn what_is_erased_stays_erased() {
    let mut rig = Rig::new(1024);
    for name in ["/a/1", "/a/2", "/b/1"] {
        rig.offer(name, &data(name, 1, 100), 0);
    }
    rig.pass(0);
    rig.tier.erase(&value_of("/a"));
    rig.offer("/a/2", &data("/a/2", 2, 100), 0);
    assert_eq!(rig.look_up("/a/1"), Outcome::Nothing);
    let newer = data("/a/2", 2, 100);
    let other = data("/b/1", 1, 100);
    rig.pass(0);
    for _ in 0..2 {
        assert!(!matches!(rig.look_up("/a/1"), Outcome::Found(..)));
        assert_eq!(rig.look_up("/b/1"), Outcome::Found(other.clone(), false));
        rig = rig.restart(0);
    }
    // The index had the older one, so the newer one was not written when it was offered.
    assert!(
        matches!(rig.look_up("/a/2"), Outcome::Found(packet, _) if packet == newer)
            || rig.look_up("/a/2") == Outcome::Unknown
    );
}

#[test]
fn erasures_are_written_when_the_disk_works_again() {
    let mut rig = Rig::new(1024);
    rig.offer("/a/1", &data("/a/1", 1, 100), 0);
    rig.pass(0);
    rig.disk.set_mood(Mood::Fails);
    rig.tier.erase(&value_of("/a"));
    rig.pass(0);
    assert_eq!(rig.shared.state(), TierState::Failed);
    rig.tier.erase(&value_of("/b"));
    rig.disk.set_mood(Mood::Works);
    rig.pass(11_000);
    rig.pass(0);
    assert_eq!(rig.shared.state(), TierState::Working);
    rig.pass(0);
    rig = rig.restart(0);
    assert!(!matches!(rig.look_up("/a/1"), Outcome::Found(..)), "a restart must not restore an erased packet");
}

#[test]
fn whether_erasures_are_on_the_disk_is_known() {
    let mut rig = Rig::new(1024);
    let erasing = |rig: &Rig| rig.shared.status().erasing_workers;
    rig.offer("/a/1", &data("/a/1", 1, 100), 0);
    rig.pass(0);
    assert_eq!(erasing(&rig), 0);
    rig.tier.erase(&value_of("/a"));
    assert_eq!(erasing(&rig), 1, "the erasure must be pending");
    rig.pass(0);
    rig.pass(0);
    assert_eq!(erasing(&rig), 0);
    for mood in [Mood::Fails, Mood::Stalls] {
        rig.disk.set_mood(mood);
        rig.tier.erase(&value_of("/b"));
        rig.tier.erase(&value_of("/c"));
        for _ in 0..20 {
            rig.pass(1_000);
            assert_eq!(erasing(&rig), 1, "{mood:?}");
        }
        rig.disk.set_mood(Mood::Works);
        rig.pass(11_000);
        rig.pass(0);
        rig.pass(0);
        assert_eq!((rig.shared.state(), erasing(&rig)), (TierState::Working, 0), "{mood:?}");
    }
}

#[test]
fn what_was_erased_before_the_start_is_erased_once_the_disk_is_there() {
    let mut rig = Rig::new(1024);
    for name in ["/a/1", "/b/1"] {
        rig.offer(name, &data(name, 1, 100), 0);
    }
    rig.pass(0);
    // The disk did not take the erasure before the process ended, but the router remembered it.
    let wall_ms = rig.wall_start_ms;
    let mut rig = Rig::over(rig.disk.clone(), 1024, wall_ms);
    rig.tier.erase(&value_of("/a"));
    assert_eq!(rig.shared.status().erasing_workers, 1);
    rig.server.scan(vec![Index::new(1024).expect("memory")], key(), Box::new(|_| 0), rig.started);
    rig.poll();
    assert!(!matches!(rig.look_up("/a/1"), Outcome::Found(..)));
    assert!(matches!(rig.look_up("/b/1"), Outcome::Found(..)));
    rig.pass(0);
    assert_eq!(rig.shared.status().erasing_workers, 0);
    rig = rig.restart(0);
    assert!(!matches!(rig.look_up("/a/1"), Outcome::Found(..)), "the disk must have the erasure");
    assert!(matches!(rig.look_up("/b/1"), Outcome::Found(..)));
}

#[test]
fn erasing_over_and_over_takes_little_of_the_log() {
    let mut rig = Rig::new(1024);
    let packet = data("/a", 1, 100);
    rig.offer("/a", &packet, 0);
    for _ in 0..500 {
        rig.tier.erase(&value_of("/b"));
        rig.poll();
    }
    assert!(rig.tier.position() < 800, "{} slots", rig.tier.position());
    assert_eq!(rig.look_up("/a"), Outcome::Found(packet, false));
}

#[test]
fn what_is_found_often_is_written_again_before_it_is_written_over() {
    let mut rig = Rig::new(1024);
    let packet = data("/hot", 1, 100);
    rig.offer("/hot", &packet, 0);
    for number in 0..5_000 {
        let name = format!("/n/{number}");
        rig.offer(&name, &data(&name, 1, 2_000), 0);
        rig.poll();
        if number % 50 == 0 {
            assert_eq!(rig.look_up("/hot"), Outcome::Found(packet.clone(), false), "after {number} others");
            rig.offer("/hot", &packet, 0);
        }
    }
    assert!(matches!(rig.look_up("/n/4999"), Outcome::Found(..)));
    assert_eq!(rig.look_up("/n/3"), Outcome::Unknown, "the oldest packets must be overwritten");
}

#[test]
fn the_disk_without_the_thread_has_no_state_that_lasts() {
    let mut rig = Rig::new(1024);
    rig.offer("/a", &data("/a", 1, 100), 0);
    rig.pass(0);
    // Another life: the records were written before the file was cleared.
    let mut bytes = Superblock { slots: 1024, life: LIFE + 1 }.encode();
    bytes.extend_from_slice(&rig.disk.0.borrow().bytes[SUPERBLOCK_BYTES..]);
    rig.disk.0.borrow_mut().bytes = bytes;
    let mut again = Rig::over(rig.disk.clone(), 1024, 0);
    again.server = {
        let (to_disk, from_worker) = handover_ring(RING_SLOTS);
        let (to_worker, from_disk) = handover_ring(RING_SLOTS);
        again.tier = DiskTier::new(Arc::clone(&again.shared), 50, to_disk, from_disk);
        let client =
            Client { worker: Worker { wake: Box::new(|| {}), started: again.started }, from_worker, to_worker };
        Server::new(Arc::clone(&again.shared), vec![client], rig.disk.clone(), LIFE + 1)
    };
    again.server.scan(vec![Index::new(1024).expect("memory")], key(), Box::new(|_| 0), again.started);
    again.poll();
    assert_eq!(again.look_up("/a"), Outcome::Unknown);
}
