//! The announcer case by case, and against a slow model of the destination's knowledge.

mod model;
mod packets;

use namehop_wire::Name;

use super::announcer::{Action, Announcer, AnnouncerLimits, Outcome, RibCommand};

/// Limits of a routing daemon, with few prefixes.
const LIMITS: AnnouncerLimits =
    AnnouncerLimits { max_prefixes: 8, window: 4, refresh_ms: 3_600_000, timeout_ms: 4_000 };

pub(super) fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn available() -> Announcer {
    let mut announcer = Announcer::new(LIMITS);
    announcer.destination_began(0);
    announcer
}

/// Returns the commands that are due, as text.
fn take(announcer: &mut Announcer, now_ms: u64) -> Vec<(u64, String)> {
    std::iter::from_fn(|| announcer.next_command(now_ms)).map(|command| (command.id, words(&command))).collect()
}

fn words(command: &RibCommand) -> String {
    match command.action {
        Action::Announce(cost) => format!("+ {} {cost}", command.prefix),
        Action::Withdraw => format!("- {}", command.prefix),
    }
}

/// Ends all due commands with the same outcome; returns them as text.
fn exchange(announcer: &mut Announcer, now_ms: u64, outcome: Outcome) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let sent = take(announcer, now_ms);
        if sent.is_empty() {
            return all;
        }
        for (id, words) in sent {
            announcer.ended(id, outcome, now_ms);
            all.push(words);
        }
    }
}

#[test]
fn a_prefix_is_announced_and_withdrawn() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(7), 10);
    assert_eq!(announcer.next_due_ms(), Some(10));
    assert_eq!(exchange(&mut announcer, 10, Outcome::Accepted), ["+ /a 7"]);
    announcer.want(name("/a").as_ref(), None, 5_000);
    assert_eq!(exchange(&mut announcer, 5_000, Outcome::Accepted), ["- /a"]);
    assert_eq!((announcer.prefix_count(), announcer.next_due_ms()), (0, None), "the withdrawn prefix is forgotten");
    let counters = announcer.counters();
    assert_eq!((counters.announced, counters.withdrawn), (1, 1));
}

#[test]
fn a_changed_cost_is_announced_and_the_same_one_is_not() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(7), 0);
    exchange(&mut announcer, 0, Outcome::Accepted);
    announcer.want(name("/a").as_ref(), Some(7), 2_000);
    assert!(exchange(&mut announcer, 2_000, Outcome::Accepted).is_empty());
    announcer.want(name("/a").as_ref(), Some(6), 2_000);
    assert_eq!(exchange(&mut announcer, 2_000, Outcome::Accepted), ["+ /a 6"]);
}

#[test]
fn commands_wait_until_the_destination_is_available() {
    let mut announcer = Announcer::new(LIMITS);
    announcer.want(name("/a").as_ref(), Some(1), 0);
    announcer.want(name("/b").as_ref(), Some(2), 0);
    announcer.want(name("/b").as_ref(), None, 0);
    assert_eq!((announcer.next_due_ms(), announcer.next_command(1_000_000)), (None, None));
    announcer.destination_began(1_000_000);
    assert_eq!(exchange(&mut announcer, 1_000_000, Outcome::Accepted), ["+ /a 1"]);
    // Another daemon appears, and this one restarts.
    announcer.destination_began(1_000_001);
    assert_eq!(exchange(&mut announcer, 1_000_001, Outcome::Accepted), ["+ /a 1"]);
    announcer.destination_ended();
    announcer.want(name("/a").as_ref(), None, 1_000_002);
    assert_eq!(announcer.prefix_count(), 0, "a prefix is not withdrawn from an ended destination");
}

#[test]
fn a_late_answer_to_a_former_daemon_means_nothing() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(1), 0);
    let before = take(&mut announcer, 0);
    announcer.destination_began(1);
    assert_eq!(announcer.ended(before[0].0, Outcome::Accepted, 2), None);
    assert_eq!(exchange(&mut announcer, 2, Outcome::Accepted), ["+ /a 1"]);
}

#[test]
fn changes_of_one_prefix_are_sent_at_most_twice_a_second() {
    let mut announcer = available();
    let mut sent = 0;
    for now_ms in 0..10_000 {
        let wanted = now_ms % 2 == 0;
        announcer.want(name("/a").as_ref(), wanted.then_some(1), now_ms);
        sent += exchange(&mut announcer, now_ms, Outcome::Accepted).len();
    }
    assert!((10..=22).contains(&sent), "{sent} commands in ten seconds");
}

#[test]
fn a_million_changes_of_many_prefixes_stay_within_the_rate() {
    let mut announcer = Announcer::new(AnnouncerLimits { max_prefixes: 65_536, ..LIMITS });
    announcer.destination_began(0);
    let (mut sent, mut most) = (0, 0);
    for number in 0..1_000_000_u64 {
        // One hundred of them per millisecond, ten seconds in all.
        let now_ms = number / 100;
        let prefix = name("/flood").append_segment(number / 2);
        announcer.want(prefix.as_ref(), (number % 2 == 0).then_some(0), now_ms);
        sent += exchange(&mut announcer, now_ms, Outcome::Accepted).len();
        most = most.max(announcer.prefix_count());
    }
    assert!(sent <= 1_000 + 10 * 100 + 1, "{sent} commands in ten seconds");
    assert!(most <= 1_200, "{most} prefixes remembered, although at most two have a route at a time");
}

#[test]
fn commands_wait_for_answers() {
    let mut announcer = available();
    for number in 0..6 {
        announcer.want(name("/a").append_segment(number).as_ref(), Some(0), 0);
    }
    let sent = take(&mut announcer, 0);
    assert_eq!(sent.len(), 4, "the window limits commands in flight");
    assert_eq!(announcer.next_due_ms(), Some(4_000), "the first command times out then");
    announcer.ended(sent[2].0, Outcome::Accepted, 5);
    assert_eq!(take(&mut announcer, 5).len(), 1);
}

#[test]
fn unanswered_commands_are_repeated_soon_and_refused_ones_late() {
    for (outcome, expected_s) in [
        (Outcome::TimedOut, [1, 2, 4, 8, 16, 32, 60, 60]),
        (Outcome::Nacked, [1, 2, 4, 8, 16, 32, 60, 60]),
        (Outcome::Refused, [50, 100, 200, 400, 800, 1600, 3200, 3600]),
    ] {
        let mut announcer = available();
        announcer.want(name("/a").as_ref(), Some(1), 0);
        let mut now_ms = 0;
        for seconds in expected_s {
            let sent = take(&mut announcer, now_ms);
            assert_eq!(sent.len(), 1, "{outcome:?} {seconds}");
            announcer.ended(sent[0].0, outcome, now_ms);
            let next_ms = announcer.next_due_ms().expect("the command is repeated");
            let pause_ms = next_ms - now_ms;
            assert!((seconds * 900..=seconds * 1100).contains(&pause_ms), "{outcome:?}: {pause_ms} ms for {seconds} s");
            now_ms = next_ms;
        }
        exchange(&mut announcer, now_ms, Outcome::Accepted);
        announcer.want(name("/a").as_ref(), Some(2), now_ms + 1_000);
        let sent = take(&mut announcer, now_ms + 1_000);
        announcer.ended(sent[0].0, outcome, now_ms + 1_000);
        let pause_ms = announcer.next_due_ms().expect("the command is repeated") - now_ms - 1_000;
        assert!(pause_ms <= expected_s[0] * 1_100, "a success resets the pause");
    }
}

#[test]
fn a_command_without_an_answer_times_out() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(1), 0);
    let first = take(&mut announcer, 0);
    assert!(take(&mut announcer, 3_999).is_empty());
    assert!(take(&mut announcer, 4_000).is_empty(), "a timeout is followed by a pause");
    assert_eq!(announcer.counters().timed_out, 1);
    assert_eq!(announcer.ended(first[0].0, Outcome::Accepted, 4_001), None, "an answer after the timeout is ignored");
    let due_ms = announcer.next_due_ms().expect("the command is repeated");
    assert_eq!(take(&mut announcer, due_ms).len(), 1);
}

#[test]
fn what_may_have_arrived_is_withdrawn_and_that_is_given_up_after_some_tries() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(1), 0);
    let sent = take(&mut announcer, 0);
    announcer.want(name("/a").as_ref(), None, 1);
    announcer.ended(sent[0].0, Outcome::TimedOut, 4_000);
    let (mut tries, mut now_ms) = (0, 4_000);
    while let Some(due_ms) = announcer.next_due_ms() {
        now_ms = now_ms.max(due_ms);
        for (id, words) in take(&mut announcer, now_ms) {
            assert_eq!(words, "- /a");
            announcer.ended(id, Outcome::Refused, now_ms);
            tries += 1;
        }
    }
    assert_eq!((tries, announcer.prefix_count()), (8, 0));
}

#[test]
fn announcements_are_repeated_after_the_refresh_interval() {
    let mut announcer = available();
    announcer.want(name("/a").as_ref(), Some(1), 0);
    exchange(&mut announcer, 0, Outcome::Accepted);
    let due_ms = announcer.next_due_ms().expect("a refresh");
    assert!((3_240_000..=3_960_000).contains(&due_ms), "{due_ms}");
    assert!(take(&mut announcer, due_ms - 1).is_empty());
    assert_eq!(exchange(&mut announcer, due_ms, Outcome::Accepted), ["+ /a 1"]);
}

#[test]
fn prefixes_beyond_the_limit_are_omitted_until_there_is_room() {
    let mut announcer = available();
    for number in 0..9 {
        announcer.want(name("/a").append_segment(number).as_ref(), Some(0), 0);
    }
    assert_eq!((announcer.prefix_count(), announcer.counters().left_out), (8, 1));
    announcer.want(name("/a").append_segment(8).as_ref(), Some(1), 0);
    assert_eq!(announcer.counters().left_out, 1, "a prefix counts once");
    exchange(&mut announcer, 0, Outcome::Accepted);
    for number in 0..3 {
        assert!(!announcer.take_room_for_more(), "{number} of eight are withdrawn");
        announcer.want(name("/a").append_segment(number).as_ref(), None, 2_000);
        exchange(&mut announcer, 2_000, Outcome::Accepted);
    }
    assert!(announcer.take_room_for_more());
    assert!(!announcer.take_room_for_more(), "room is reported once");
}
