//! The wheel against a list of deadlines.

use proptest::prelude::*;

use super::*;

const TICK_NS: u64 = 1 << TICK_SHIFT;

fn due(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
    let mut entries = Vec::new();
    wheel.poll(Timestamp(now), |entry, generation, kind| {
        assert_eq!((generation, kind), (entry ^ 0xffff_ffff, entry as u8));
        entries.push(entry);
    });
    entries
}

fn schedule(wheel: &mut TimerWheel, deadline: u64, entry: u32) {
    wheel.schedule(Timestamp(deadline), entry, entry ^ 0xffff_ffff, entry as u8);
}

#[test]
fn timers_come_due_in_time_and_in_order() {
    let mut wheel = TimerWheel::new(Timestamp(0));
    assert_eq!(wheel.next_deadline(), None);
    for entry in 0..100 {
        schedule(&mut wheel, 5 * TICK_NS, entry);
    }
    schedule(&mut wheel, 3 * TICK_NS - 1, 200);
    schedule(&mut wheel, 3 * TICK_NS + 1, 201);
    assert_eq!(wheel.next_deadline(), Some(Timestamp(3 * TICK_NS)));
    assert_eq!(due(&mut wheel, 3 * TICK_NS - 1), []);
    assert_eq!(due(&mut wheel, 3 * TICK_NS), [200]);
    assert_eq!(due(&mut wheel, 4 * TICK_NS - 1), []);
    assert_eq!(due(&mut wheel, 4 * TICK_NS), [201]);
    assert_eq!(due(&mut wheel, 100 * TICK_NS), (0..100).collect::<Vec<_>>());
    assert!(wheel.is_empty());
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn past_far_and_never() {
    let mut wheel = TimerWheel::new(Timestamp(1_000 * TICK_NS));
    schedule(&mut wheel, 0, 1);
    schedule(&mut wheel, 50 * 3600 * 1_000_000_000, 2);
    schedule(&mut wheel, u64::MAX, 3);
    schedule(&mut wheel, u64::MAX - 1, 4);
    assert_eq!(wheel.len(), 3);
    assert_eq!(due(&mut wheel, 1_001 * TICK_NS), [1]);
    let mut now = 1_001 * TICK_NS;
    let mut polls = 0;
    while wheel.len() == 2 {
        let next = wheel.next_deadline().expect("two timers left").0;
        assert!(next > now);
        now = next;
        polls += 1;
        let due = due(&mut wheel, now);
        if now < 50 * 3600 * 1_000_000_000 {
            assert_eq!(due, []);
        } else {
            assert_eq!(due, [2]);
        }
    }
    assert!(now - 50 * 3600 * 1_000_000_000 < TICK_NS);
    assert!(polls < 50_000, "{polls}");
    assert_eq!(due(&mut wheel, u64::MAX), [] as [u32; 0]);
    assert_eq!(wheel.len(), 1);
}

#[test]
fn timers_may_be_set_while_others_come_due() {
    let mut wheel = TimerWheel::new(Timestamp(0));
    for entry in 0..40 {
        schedule(&mut wheel, TICK_NS, entry);
    }
    let mut seen = 0;
    // Each timer is set again at once, for a time that has passed: it waits for the next tick.
    while let Some(timer) = wheel.pop_due(Timestamp(TICK_NS)) {
        wheel.schedule(Timestamp(0), timer.entry, timer.generation, timer.kind);
        seen += 1;
        assert!(wheel.next_deadline().expect("timers are left").0 <= 2 * TICK_NS);
    }
    assert_eq!((seen, wheel.len()), (40, 40));
    assert_eq!(due(&mut wheel, 2 * TICK_NS), (0..40).collect::<Vec<_>>());
}

#[test]
fn memory_is_used_again() {
    let mut wheel = TimerWheel::new(Timestamp(0));
    let mut now = 0;
    let mut memory_bytes = 0;
    for round in 0..50 {
        for entry in 0..20_000 {
            schedule(&mut wheel, now + 4_000_000_000 + u64::from(entry % 50) * TICK_NS, entry);
        }
        now += 5_000_000_000;
        assert_eq!(due(&mut wheel, now).len(), 20_000);
        if round == 0 {
            memory_bytes = wheel.memory_bytes();
        }
    }
    assert_eq!(wheel.memory_bytes(), memory_bytes);
    assert!(memory_bytes < 20_000 * 16 * 2);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Nanoseconds from now, which may be negative.
    Schedule(i64),
    Advance(u64),
    Back(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let tick = TICK_NS as i64;
    prop_oneof![
        4 => (-3 * tick..20 * tick).prop_map(Step::Schedule),
        2 => (0..3 * 4096 * tick).prop_map(Step::Schedule),
        1 => (4090 * tick..4100 * tick).prop_map(Step::Schedule),
        4 => (0..10 * TICK_NS).prop_map(Step::Advance),
        1 => (0..9000 * TICK_NS).prop_map(Step::Advance),
        1 => (4090 * TICK_NS..4100 * TICK_NS).prop_map(Step::Advance),
        1 => (0..5000 * TICK_NS).prop_map(Step::Back),
    ]
}

proptest! {
    #[test]
    fn never_early_and_late_by_less_than_a_tick(
        start in 0u64..1 << 60, steps in prop::collection::vec(step(), 1..150)
    ) {
        let mut wheel = TimerWheel::new(Timestamp(start));
        let mut model: Vec<(u64, u32)> = Vec::new();
        let (mut now, mut latest) = (start, start);
        for (entry, step) in (0..).zip(steps) {
            match step {
                Step::Schedule(delay) => {
                    let deadline = now.saturating_add_signed(delay);
                    schedule(&mut wheel, deadline, entry);
                    // What is set for the past comes due with the tick after the latest poll.
                    model.push((deadline.max((latest / TICK_NS) * TICK_NS + 1), entry));
                    continue;
                }
                Step::Advance(by) => now += by,
                Step::Back(by) => now = now.saturating_sub(by),
            }
            let next = wheel.next_deadline();
            prop_assert_eq!(next.is_none(), model.is_empty());
            if let Some(next) = next {
                let first = model.iter().map(|&(deadline, _)| deadline).min().unwrap_or(0);
                prop_assert!(next.0 < first + TICK_NS, "next deadline is late");
            }
            for entry in due(&mut wheel, now) {
                let position = model.iter().position(|&(_, other)| other == entry).expect("was set");
                let (deadline, _) = model.swap_remove(position);
                prop_assert!(deadline <= now, "{} ns early", deadline - now);
            }
            latest = latest.max(now);
            for &(deadline, _) in &model {
                prop_assert!(deadline.div_ceil(TICK_NS) > now / TICK_NS, "{} ns late", now - deadline);
            }
            prop_assert_eq!(wheel.len(), model.len());
        }
    }
}
