//! Accepted and refused commands, at the limits and with changing clocks.

use namehop_wire::SignatureInfo;

use super::*;

const NOW: u64 = 1_800_000_000_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn at(unix_ms: u64, monotonic_ms: u64) -> Moment {
    Moment { unix_ms, monotonic_ms }
}

/// Creates the guard of a router that was started two hours ago.
fn guard() -> ReplayGuard {
    ReplayGuard::new(at(NOW - 2 * HOUR, 0), None)
}

fn key(number: usize) -> Name {
    Name::new().append_generic("key").append_generic(number.to_string())
}

/// Offers a command that was signed at this time, with content that makes it unique.
fn accept_of(guard: &mut ReplayGuard, key: &Name, time_ms: u64, content: &str, now: Moment) -> Result<(), ReplayError> {
    let info = SignatureInfo { time_ms: Some(time_ms), ..SignatureInfo::default() };
    // The signature covers the time.
    let time = time_ms.to_be_bytes();
    guard.accept(
        key.as_ref(),
        &CommandSignature { info, value: b"", signed_portions: [&time, content.as_bytes(), b""] },
        now,
    )
}

fn accept(guard: &mut ReplayGuard, time_ms: u64, content: &str, now: Moment) -> Result<(), ReplayError> {
    accept_of(guard, &key(1), time_ms, content, now)
}

#[test]
fn the_time_must_be_near_the_present() {
    let now = at(NOW, 2 * HOUR);
    let mut guard = guard();
    // The first command of a key, and another one.
    for content in ["a", "b"] {
        for (time, expected) in [
            (NOW - GRACE_MS, Ok(())),
            (NOW + GRACE_MS, Ok(())),
            (NOW - GRACE_MS - 1, Err(ReplayError::Behind(121))),
            (NOW + GRACE_MS + 1, Err(ReplayError::Ahead(121))),
            (NOW + 20 * DAY, Err(ReplayError::Ahead(20 * 24 * 3600))),
        ] {
            assert_eq!(accept(&mut guard, time, content, now), expected);
        }
    }
    let untimed = CommandSignature { info: SignatureInfo::default(), value: b"", signed_portions: [b"", b"", b""] };
    assert_eq!(guard.accept(key(1).as_ref(), &untimed, now), Err(ReplayError::NoTime));
    assert!(ReplayError::Ahead(20).to_string().contains("clock of the sender is 20 seconds ahead"));
}

#[test]
fn commands_in_any_order_are_accepted_once() {
    let mut guard = guard();
    let now = at(NOW, 2 * HOUR);
    for pair in 0..20 {
        let time = NOW + pair * 10;
        assert_eq!(accept(&mut guard, time + 5, "later", now), Ok(()));
        assert_eq!(accept(&mut guard, time, "earlier", now), Ok(()), "an earlier command may arrive later");
        for (time, content) in [(time + 5, "later"), (time, "earlier")] {
            assert_eq!(accept(&mut guard, time, content, now), Err(ReplayError::Repeated));
        }
    }
    assert_eq!(accept(&mut guard, NOW, "other", now), Ok(()), "commands may have the same signature time");
    assert_eq!(accept_of(&mut guard, &key(2), NOW, "other", now), Ok(()), "keys have separate records");
}

#[test]
fn memory_is_bounded_and_what_is_forgotten_is_refused() {
    let mut guard = guard();
    let now = at(NOW, 2 * HOUR);
    for number in 0..2 * MAX_REMEMBERED as u64 {
        assert_eq!(accept(&mut guard, NOW + number, "a", now), Ok(()));
    }
    assert_eq!(guard.keys[&key(1)].seen.len(), MAX_REMEMBERED);
    let last_forgotten = NOW + MAX_REMEMBERED as u64 - 1;
    for content in ["a", "never seen"] {
        assert_eq!(accept(&mut guard, last_forgotten, content, now), Err(ReplayError::Forgotten));
    }
    assert_eq!(accept(&mut guard, last_forgotten + 1, "a", now), Err(ReplayError::Repeated));
    assert_eq!(accept(&mut guard, last_forgotten + 1, "b", now), Ok(()));
    // An hour later there is room for new commands.
    let later = at(NOW + HOUR + GRACE_MS, 3 * HOUR + GRACE_MS);
    assert_eq!(accept(&mut guard, later.unix_ms, "a", later), Ok(()));
    assert_eq!(guard.keys[&key(1)].seen.len(), 1);
}

#[test]
fn commands_signed_before_the_start_are_refused() {
    let mut guard = ReplayGuard::new(at(NOW, 50), None);
    let now = at(NOW + 1000, 1050);
    assert_eq!(accept(&mut guard, NOW - 1, "a", now), Err(ReplayError::BeforeStart(1)));
    assert_eq!(accept(&mut guard, NOW - GRACE_MS / 2, "a", now), Err(ReplayError::BeforeStart(60)));
    assert_eq!(accept(&mut guard, NOW, "a", now), Ok(()));
}

#[test]
fn a_clock_that_is_set_back_locks_no_key_out_and_lets_no_replay_in() {
    for back in [5000, 60_000, HOUR / 2] {
        let mut guard = guard();
        let mut now = at(NOW, 2 * HOUR);
        for number in 0..3 * MAX_REMEMBERED as u64 {
            now = at(NOW + number, 2 * HOUR + number);
            assert_eq!(accept(&mut guard, now.unix_ms, "a", now), Ok(()));
        }
        let newest = now.unix_ms;
        let now = at(newest - back, now.monotonic_ms);
        assert_eq!(accept(&mut guard, now.unix_ms + 1, "new", now), Ok(()), "{back}");
        // This command was recorded before. A remembered command is refused even when the clock reaches its time again.
        for later in [0, back, 2 * back] {
            let now = at(now.unix_ms + later, now.monotonic_ms + later);
            assert!(accept(&mut guard, newest, "a", now).is_err(), "{back} {later}");
        }
    }
}

#[test]
fn a_clock_that_is_set_back_by_days_locks_no_key_out() {
    // Also if the clock was wrong at the start.
    let mut guard = ReplayGuard::new(at(NOW, 0), None);
    assert_eq!(accept(&mut guard, NOW + 10, "a", at(NOW + 10, 10)), Ok(()));
    let corrected = at(NOW - 3 * DAY, 1000);
    assert_eq!(accept(&mut guard, corrected.unix_ms, "b", corrected), Ok(()));
    assert_eq!(accept(&mut guard, corrected.unix_ms, "b", corrected), Err(ReplayError::Repeated));
    let before = corrected.unix_ms - 1;
    assert_eq!(accept(&mut guard, before, "b", corrected), Err(ReplayError::BeforeStart(1)));
}

#[test]
fn clocks_that_are_set_back_together_lock_no_key_out() {
    let mut guard = ReplayGuard::new(at(NOW, 5 * DAY), None);
    assert_eq!(accept(&mut guard, NOW + 10, "a", at(NOW + 10, 5 * DAY + 10)), Ok(()));
    let corrected = at(NOW - 3 * DAY, 2 * DAY);
    assert_eq!(accept(&mut guard, corrected.unix_ms, "b", corrected), Ok(()));
}

#[test]
fn a_command_from_a_clock_that_is_ahead_locks_no_key_out() {
    let mut guard = guard();
    let now = at(NOW, 2 * HOUR);
    assert_eq!(accept(&mut guard, NOW + 20 * DAY, "a", now), Err(ReplayError::Ahead(20 * 24 * 3600)));
    assert_eq!(accept(&mut guard, NOW + GRACE_MS, "a", now), Ok(()));
    assert_eq!(accept(&mut guard, NOW, "b", now), Ok(()));
    assert_eq!(accept(&mut guard, NOW - 1, "c", now), Ok(()));
}

#[test]
fn what_an_earlier_process_accepted_is_refused() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let record = || TimeRecord::read(file.reopen().expect("opened")).expect("read");
    let mut first = ReplayGuard::new(at(NOW - HOUR, 0), Some(record()));
    // The clock of the sender is ahead.
    assert_eq!(accept(&mut first, NOW + 100_000, "a", at(NOW, HOUR)), Ok(()));
    assert_eq!(accept(&mut first, NOW + 1, "b", at(NOW + 1, HOUR + 1)), Ok(()));
    drop(first);
    // For a clock that continued, and for clocks that were set back.
    for start in [NOW + 2000, NOW - 60_000, NOW - 400_000] {
        let mut second = ReplayGuard::new(at(start, 0), Some(record()));
        for now_ms in [start, NOW, NOW + 90_000, NOW + 100_000] {
            let now = at(now_ms.max(start), now_ms.max(start) - start);
            assert!(accept(&mut second, NOW + 100_000, "a", now).is_err(), "{start} {now_ms}");
            assert!(accept(&mut second, NOW + 1, "b", now).is_err(), "{start} {now_ms}");
        }
    }
    // If the clock of the first run was days ahead, no key is locked out.
    let start = NOW - 3 * DAY;
    let mut second = ReplayGuard::new(at(start, 0), Some(record()));
    assert_eq!(accept(&mut second, start + 1, "a", at(start + 1, 1)), Ok(()));
    drop(second);
    assert_eq!(record().newest_ms, start + 1, "the wrong time is forgotten");
    std::fs::write(file.path(), "malformed").expect("written");
    assert_eq!(record().newest_ms, 0);
}
