//! Tests of the asf strategy.

use super::*;
use crate::strategy::tests::{A, Action, B, C, D, E, Mock, strategy};
use crate::strategy::{StrategyInstance, Trigger, parameter};

/// Runs one exchange; each face answers after its `rtt_ms`. Returns the actions for the Interest.
fn exchange(mock: &mut Mock, asf: &StrategyInstance, rtt_ms: impl Fn(FaceId) -> Option<u64>) -> Vec<Action> {
    mock.new_entry();
    let actions = mock.interest(asf, D);
    let mut answers: Vec<(u64, FaceId)> =
        mock.out_records.iter().filter_map(|(record, _)| Some((rtt_ms(record.face)?, record.face))).collect();
    answers.sort_unstable();
    let start = mock.now;
    for (delay, face) in answers {
        mock.now = start.plus_ms(delay);
        mock.data(asf, face);
    }
    actions
}

/// Gives a face a round-trip time by sending it an Interest.
fn measure(mock: &mut Mock, asf: &StrategyInstance, face: FaceId, rtt_ms: u64) {
    mock.new_entry();
    mock.ingress = D;
    assert!(send_measured(mock, face, Asf::default().measurements_lifetime_ms, false));
    mock.pass_ms(rtt_ms);
    mock.data(asf, face);
    mock.new_entry();
}

#[test]
fn parameters_are_read_into_their_fields() {
    let values = [
        ("measurements-lifetime", "60000"),
        ("probing-interval", "30000"),
        ("max-timeouts", "5"),
        ("retx-suppression-initial", "20"),
        ("retx-suppression-max", "500"),
        ("retx-suppression-multiplier", "1.5"),
    ];
    let expected = Asf {
        probing_interval_ms: 30_000,
        max_timeouts: 5,
        measurements_lifetime_ms: 60_000,
        suppression: ExponentialSuppression { initial_ms: 20, max_ms: 500, multiplier: 1.5 },
    };
    assert_eq!(parameter::read(&values), Ok(expected));
}

#[test]
fn the_fastest_measured_next_hop_is_used() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2), (C, 3)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A)], "unmeasured next hops are ranked by cost");
    measure(&mut mock, &asf, C, 80);
    assert_eq!(mock.interest(&asf, D), [Action::Interest(C)], "a working next hop precedes unmeasured ones");
    measure(&mut mock, &asf, B, 30);
    measure(&mut mock, &asf, A, 50);
    assert_eq!(mock.interest(&asf, D), [Action::Interest(B)], "working next hops are ranked by round-trip time");
    mock.new_entry();
    assert_eq!(mock.interest(&asf, B), [Action::Interest(A)], "an Interest must not return to its ingress");
}

#[test]
fn without_measurement_memory_the_cost_decides() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.measurements = None;
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A)]);
    assert_eq!(mock.data(&asf, A), [Action::Data]);
    let mut mock = Mock::new(&[(D, 2)]);
    assert_eq!(mock.interest(&asf, D), [Action::Nack(D, NackReason::NO_ROUTE), Action::Reject]);
}

#[test]
fn when_nothing_answers_next_hops_take_turns_until_one_works_again() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    for _ in 0..20 {
        exchange(&mut mock, &asf, |_| None);
        mock.pass_ms(2_000);
    }
    // B works again. A is cheaper and still dead.
    let mut asked = 0;
    while exchange(&mut mock, &asf, |face| (face == B).then_some(30))[0] != Action::Interest(B) {
        mock.pass_ms(2_000);
        asked += 1;
        assert!(asked < 3, "the failed next hop must be avoided");
    }
    mock.pass_ms(2_000);
    assert_eq!(exchange(&mut mock, &asf, |face| (face == B).then_some(30))[0], Action::Interest(B));
}

#[test]
fn a_cut_link_is_left_and_used_again_after_it_has_come_back() {
    let asf = strategy("asf/v=5/probing-interval~10000");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    let both_work = |face| Some(if face == A { 20 } else { 60 });
    for _ in 0..20 {
        exchange(&mut mock, &asf, both_work);
        mock.pass_ms(1_000);
    }
    // A is cut. Its time-out is 200 ms, so each Interest one second later counts one; the fourth goes elsewhere.
    let only_b = |face| (face == B).then_some(60);
    let mut first_asked = Vec::new();
    for _ in 0..6 {
        let actions = exchange(&mut mock, &asf, only_b);
        first_asked.push(actions[0]);
        mock.pass_ms(1_000);
    }
    assert_eq!(first_asked, [A, A, A, B, B, B].map(Action::Interest));
    // A works again: a probe detects it within one probing interval, and A is faster.
    let mut rounds = 0;
    while exchange(&mut mock, &asf, both_work)[0] != Action::Interest(A) {
        mock.pass_ms(1_000);
        rounds += 1;
        assert!(rounds < 12, "a probe must find that the link is up again");
    }
    assert!(rounds > 0);
}

#[test]
fn consumers_that_retransmit_get_through_a_cut_link_at_once() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    measure(&mut mock, &asf, A, 20);
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A)]);
    mock.pass_ms(300);
    assert_eq!(mock.interest(&asf, D), [Action::Interest(B)]);
}

#[test]
fn time_outs_are_noticed_when_entries_expire() {
    let asf = strategy("asf/v=5/max-timeouts~1");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    measure(&mut mock, &asf, A, 20);
    mock.interest(&asf, D);
    mock.pass_ms(4_000);
    assert_eq!(mock.event(&asf, Trigger::BeforeExpirePendingInterest), []);
    let now = mock.now;
    assert!(mock.measurements.as_mut().unwrap().next_hop(A, now, 300_000).unwrap().is_timed_out());
    mock.new_entry();
    assert_eq!(mock.interest(&asf, D), [Action::Interest(B)]);
}

#[test]
fn probes_start_at_a_random_time_and_follow_the_interval() {
    let asf = strategy("asf/v=5/probing-interval~1000");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = 300_000_000;
    let works = |face| Some(if face == A { 1 } else { 2 });
    let start = mock.now;
    let mut probes = Vec::new();
    while mock.now < start.plus_ms(5_000) {
        let at = mock.now;
        let actions = exchange(&mut mock, &asf, works);
        assert_eq!(actions[0], Action::Interest(A));
        if let Some(probe) = actions.get(1) {
            assert_eq!(*probe, Action::Probe(B));
            probes.push(at.since_ns(start) / 1_000_000);
        }
        mock.now = at.plus_ms(100);
    }
    // The random time: 300 ms after the first Interest.
    assert_eq!(probes, [300, 1_300, 2_300, 3_300, 4_300]);
}

#[test]
fn the_first_probe_comes_within_five_seconds() {
    let asf = strategy("asf");
    for random in [0, 1_234_567_890_123, u64::MAX - 10] {
        let mut mock = Mock::new(&[(A, 1), (B, 2)]);
        mock.random = random;
        let start = mock.now;
        while exchange(&mut mock, &asf, |_| Some(1)).len() < 2 {
            mock.pass_ms(100);
            assert!(mock.now <= start.plus_ms(5_200));
        }
    }
}

#[test]
fn an_entry_with_a_pending_probe_is_kept_for_its_late_data() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    // The mock draws 0: the first probe is due at once.
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A), Action::Probe(B)]);
    mock.pass_ms(20);
    assert_eq!(mock.data(&asf, A), [Action::Expiry(50), Action::Data]);
    mock.pass_ms(20);
    assert_eq!(mock.data(&asf, B), [Action::Data]);
    let now = mock.now;
    let measured = mock.measurements.as_mut().unwrap().next_hop(B, now, 300_000).unwrap();
    assert_eq!(measured.rtt().srtt_ns(), Some(40_000_000));
}

#[test]
fn data_for_several_entries_is_measured_and_not_sent() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&asf, D);
    mock.pass_ms(7);
    mock.ingress = A;
    assert_eq!(mock.trigger(&asf, Trigger::BeforeSatisfyInterest), []);
    let now = mock.now;
    let measured = mock.measurements.as_mut().unwrap().next_hop(A, now, 300_000).unwrap();
    assert_eq!(measured.rtt().srtt_ns(), Some(7_000_000));
}

#[test]
fn the_answer_to_an_interest_sent_twice_is_no_sample() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.interest(&asf, D);
    mock.pass_ms(100);
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A)]);
    mock.pass_ms(5);
    mock.data(&asf, A);
    let now = mock.now;
    let measured = mock.measurements.as_mut().unwrap().next_hop(A, now, 300_000).unwrap();
    assert_eq!(measured.rtt().srtt_ns(), None);
    assert_eq!(measured.timeouts(), 0);
}

#[test]
fn simultaneous_consumers_share_one_path() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    mock.interest(&asf, D);
    mock.pass_ms(5);
    assert_eq!(mock.interest(&asf, E), []);
}

#[test]
fn retransmissions_without_unused_next_hop_are_suppressed_per_upstream() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1)]);
    mock.lifetime_ms = 60_000;
    mock.interest(&asf, D);
    for interval_ms in [10, 20, 40, 80, 160, 250, 250] {
        mock.pass_ms(interval_ms - 1);
        assert_eq!(mock.interest(&asf, D), [], "before {interval_ms} ms");
        mock.pass_ms(1);
        assert_eq!(mock.interest(&asf, D), [Action::Interest(A)], "after {interval_ms} ms");
    }
}

#[test]
fn a_refusing_next_hop_is_left_at_once_but_not_for_a_duplicate() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    measure(&mut mock, &asf, A, 20);
    mock.interest(&asf, D);
    assert_eq!(mock.nack(&asf, A, NackReason::DUPLICATE), [Action::Nacks(NackReason::DUPLICATE), Action::Reject]);
    mock.new_entry();
    assert_eq!(mock.interest(&asf, D), [Action::Interest(A)]);
    mock.nack(&asf, A, NackReason::NO_ROUTE);
    mock.new_entry();
    assert_eq!(mock.interest(&asf, D), [Action::Interest(B)]);
}

#[test]
fn interests_the_link_gave_up_count_as_time_outs() {
    let asf = strategy("asf");
    let mut mock = Mock::new(&[(A, 1), (B, 2)]);
    mock.random = FIRST_PROBE_WITHIN_NS - 1;
    measure(&mut mock, &asf, A, 20);
    for _ in 0..3 {
        assert_eq!(mock.interest(&asf, D), [Action::Interest(A)]);
        mock.event(&asf, Trigger::OnDroppedInterest(A));
        mock.new_entry();
    }
    assert_eq!(mock.interest(&asf, D), [Action::Interest(B)]);
}

#[test]
fn probes_prefer_unmeasured_next_hops_and_then_better_ranks() {
    let ranked = |class, order, face| Ranked { class, order, position: 0, face };
    let candidates = [ranked(Class::Working, 5, A), ranked(Class::Unmeasured, 0, B), ranked(Class::TimedOut, 0, C)];
    for random in 0..10 {
        assert_eq!(choose_probe(&candidates, random), Some(B));
    }
    let candidates = [ranked(Class::Working, 5, A), ranked(Class::Working, 6, B), ranked(Class::TimedOut, 0, C)];
    let mut tickets = [0; 3];
    for random in 0..6 {
        let face = choose_probe(&candidates, random).expect("one candidate is chosen");
        tickets[candidates.iter().position(|candidate| candidate.face == face).expect("a candidate")] += 1;
    }
    assert_eq!(tickets, [3, 2, 1]);
    assert_eq!(choose_probe(&[], 7), None);
}
