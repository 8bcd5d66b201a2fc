//! Tests of the wheel against a list of deadlines.

use proptest::prelude::*;

use super::*;

impl TimerWheel {
    /// Returns the number of chunks that were ever used.
    fn chunks_made(&self) -> usize {
        self.chunks.made()
    }
}

const TICK_NS: u64 = 1 << TICK_SHIFT;

fn due(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
    let mut entries = Vec::new();
    while let Some(timer) = wheel.pop_due(Timestamp(now), |_| true) {
        assert_eq!((timer.generation, timer.kind()), (timer.entry ^ 0xffff_ffff, timer.entry as u8));
        entries.push(timer.entry);
    }
    entries
}

fn schedule(wheel: &mut TimerWheel, deadline: u64, entry: u32) {
    assert!(wheel.schedule(Timestamp(deadline), entry, entry ^ 0xffff_ffff, entry as u8));
}

fn wheel(now: u64) -> TimerWheel {
    TimerWheel::new(Timestamp(now), 1_000, MOST_NEW_TIMERS).expect("address space")
}

#[test]
fn timers_come_due_in_time_and_in_order() {
    let mut wheel = wheel(0);
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
    let mut wheel = wheel(1_000 * TICK_NS);
    schedule(&mut wheel, 0, 1);
    schedule(&mut wheel, 50 * 3600 * 1_000_000_000, 2);
    schedule(&mut wheel, u64::MAX, 3);
    schedule(&mut wheel, u64::MAX - 1, 4);
    assert_eq!(wheel.len(), 3);
    assert_eq!(due(&mut wheel, 1_001 * TICK_NS), [1]);
    let mut now = 1_001 * TICK_NS;
    let mut polls = 0;
    while wheel.len() == 2 {
        let next = wheel.next_deadline().expect("two timers are left").0;
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
    let mut wheel = wheel(0);
    for entry in 0..40 {
        schedule(&mut wheel, TICK_NS, entry);
    }
    let mut seen = 0;
    // Each timer is set again at once, for a time in the past: it waits for the next tick.
    while let Some(timer) = wheel.pop_due(Timestamp(TICK_NS), |_| true) {
        schedule(&mut wheel, 0, timer.entry);
        seen += 1;
        assert!(wheel.next_deadline().expect("timers are left").0 <= 2 * TICK_NS);
    }
    assert_eq!((seen, wheel.len()), (40, 40));
    assert_eq!(due(&mut wheel, 2 * TICK_NS), (0..40).collect::<Vec<_>>());
}

#[test]
fn memory_is_used_again() {
    let mut wheel = wheel(0);
    let mut now = 0;
    let mut memory_bytes = 0;
    for round in 0..50 {
        for entry in 0..20_000 {
            schedule(&mut wheel, now + 4_000_000_000 + u64::from(entry % 50) * TICK_NS, entry);
        }
        now += 5_000_000_000;
        assert_eq!(due(&mut wheel, now).len(), 20_000);
        if round == 0 {
            memory_bytes = wheel.chunks_made() * size_of::<Chunk>();
        }
        assert_eq!(wheel.memory_bytes(), 0);
    }
    assert_eq!(wheel.chunks_made() * size_of::<Chunk>(), memory_bytes);
    assert!(memory_bytes < 20_000 * 16 * 2);
}

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// An attack that requests existing Data with long lifetimes: every entry ends 20 ms after its timer was set, and the
/// timer is for ten days later.
#[test]
fn timers_of_ended_entries_do_not_wait_for_their_deadlines() {
    const PER_TICK: u32 = 1_000;
    const TICKS: u32 = 4_000;
    let mut wheel = wheel(0);
    let (mut most_timers, mut looks) = (0, 0);
    for tick in 0..TICKS {
        let now = u64::from(tick) * TICK_NS;
        // Entries are numbered in the order of their timers.
        let first_alive = tick.saturating_sub(20) * PER_TICK;
        let is_alive = |timer: &Timer| {
            looks += 1;
            timer.entry >= first_alive
        };
        assert_eq!(wheel.pop_due(Timestamp(now), is_alive), None);
        for entry in tick * PER_TICK..(tick + 1) * PER_TICK {
            schedule(&mut wheel, now + 10 * DAY_NS, entry);
        }
        most_timers = most_timers.max(wheel.len());
    }
    assert!(most_timers <= PER_TICK as usize * 2_049, "{most_timers} timers are kept");
    assert!(wheel.chunks_made() * size_of::<Chunk>() <= most_timers * 20, "{} chunks", wheel.chunks_made());
    // Each was checked once and then removed.
    assert_eq!(
        wheel.pop_due(Timestamp(7_000_000_000), |_| {
            looks += 1;
            false
        }),
        None
    );
    assert_eq!((looks, wheel.len(), wheel.memory_bytes(), wheel.next_deadline()), (TICKS * PER_TICK, 0, 0, None));
}

/// The bound in the module documentation, with entries that end just after a check of their timer.
#[test]
fn there_are_few_timers_whenever_entries_end() {
    const ENTRIES: u64 = 500;
    for lives_ticks in [1, 100, 129, 257, 513, 1_025, 2_049, 4_097, 8_200, 20_000] {
        let mut wheel = wheel(0);
        let mut most_timers = 0;
        // The maximum number of entries exists at all times. `begun` counts the entries so far.
        let mut begun: u64 = 0;
        for tick in 0..3 * lives_ticks + 10_000 {
            let first_alive = (begun.saturating_sub(ENTRIES)) as u32;
            let now = tick * TICK_NS;
            assert_eq!(wheel.pop_due(Timestamp(now), |timer| timer.entry >= first_alive), None);
            while begun < ENTRIES + tick * ENTRIES / lives_ticks {
                schedule(&mut wheel, now + 10 * DAY_NS, begun as u32);
                begun += 1;
            }
            most_timers = most_timers.max(wheel.len());
        }
        let fresh = ENTRIES * 2_049 / lives_ticks;
        let bound = fresh + 2 * ENTRIES;
        assert!(
            most_timers as u64 <= bound,
            "{most_timers} timers, at most {bound} expected, for entries of {lives_ticks} ticks"
        );
    }
}

#[test]
fn a_full_wheel_says_so_and_goes_on() {
    let mut wheel = TimerWheel { chunks: Arena::new(2, PageRequest::Ordinary).expect("memory"), ..wheel(0) };
    for entry in 0..30 {
        schedule(&mut wheel, TICK_NS, entry);
    }
    assert!(!wheel.schedule(Timestamp(TICK_NS), 30, 0, 0));
    assert_eq!(wheel.len(), 30);
    assert_eq!(due(&mut wheel, TICK_NS).len(), 30);
    schedule(&mut wheel, 2 * TICK_NS, 31);
    assert_eq!(due(&mut wheel, 2 * TICK_NS), [31]);
}

#[test]
fn a_timer_knows_its_deadline_to_a_tick() {
    let timer = Timer::new(Timestamp(7 * TICK_NS + 1), 0, 0, 255);
    let is_for = |timer: Timer, deadline| timer.is_for_mark(deadline_mark(deadline));
    assert!(is_for(timer, Timestamp(8 * TICK_NS)) && !is_for(timer, Timestamp(7 * TICK_NS)));
    let checked = (0..10).fold(timer, |timer, _| timer.checked());
    assert!(is_for(checked, Timestamp(8 * TICK_NS)) && checked.kind() == 255);
    assert!(!is_for(timer, Timestamp::NEVER));
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
        let mut wheel = wheel(start);
        let mut model: Vec<(u64, u32)> = Vec::new();
        let (mut now, mut latest) = (start, start);
        for (entry, step) in (0..).zip(steps) {
            match step {
                Step::Schedule(delay) => {
                    let deadline = now.saturating_add_signed(delay);
                    schedule(&mut wheel, deadline, entry);
                    // A timer for the past is due with the tick after the latest poll.
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
                prop_assert!(next.0 < first + TICK_NS, "the next deadline must not be late");
            }
            for entry in due(&mut wheel, now) {
                let position = model.iter().position(|&(_, other)| other == entry).expect("the timer was set");
                let (deadline, _) = model.swap_remove(position);
                prop_assert!(deadline <= now, "the timer is {} ns early", deadline - now);
            }
            latest = latest.max(now);
            for &(deadline, _) in &model {
                prop_assert!(deadline.div_ceil(TICK_NS) > now / TICK_NS, "the timer is {} ns late", now - deadline);
            }
            prop_assert_eq!(wheel.len(), model.len());
        }
    }
}
