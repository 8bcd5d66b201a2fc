//! What is accepted again and what is not, against bounds and clocks.

use super::*;

const NOW: u64 = 1_800_000_000_000;

fn info(time_ms: u64, nonce: Option<&[u8]>, sequence: Option<u64>) -> SignatureInfo<'_> {
    SignatureInfo { time_ms: Some(time_ms), nonce, sequence, ..SignatureInfo::default() }
}

fn key(number: usize) -> Name {
    Name::new().append_generic("key").append_generic(number.to_string())
}

#[test]
fn the_first_time_must_be_near_the_present() {
    for (time, expected) in [
        (NOW - GRACE_MS, Ok(())),
        (NOW + GRACE_MS, Ok(())),
        (NOW - GRACE_MS - 1, Err(ReplayError::OutsideGrace)),
        (NOW + GRACE_MS + 1, Err(ReplayError::OutsideGrace)),
    ] {
        assert_eq!(ReplayGuard::new().accept(key(1).as_ref(), &info(time, None, None), NOW), expected);
    }
    let untimed = SignatureInfo { nonce: Some(b"n"), ..SignatureInfo::default() };
    assert_eq!(ReplayGuard::new().accept(key(1).as_ref(), &untimed, NOW), Err(ReplayError::NoTime));
}

#[test]
fn later_times_must_be_newer() {
    let mut guard = ReplayGuard::new();
    let mut accept = |time| guard.accept(key(1).as_ref(), &info(time, None, None), NOW);
    assert_eq!(accept(NOW), Ok(()));
    assert_eq!(accept(NOW), Err(ReplayError::TimeNotNewer));
    assert_eq!(accept(NOW - 1), Err(ReplayError::TimeNotNewer));
    assert_eq!(accept(NOW + 1), Ok(()));
    assert_eq!(accept(NOW), Err(ReplayError::TimeNotNewer));
}

#[test]
fn nonces_tell_commands_of_one_millisecond_apart() {
    let mut guard = ReplayGuard::new();
    let mut accept = |time, nonce: &[u8]| guard.accept(key(1).as_ref(), &info(time, Some(nonce), None), NOW);
    assert_eq!(accept(NOW, b"a"), Ok(()));
    assert_eq!(accept(NOW, b"b"), Ok(()));
    assert_eq!(accept(NOW, b"a"), Err(ReplayError::RepeatedNonce));
    assert_eq!(accept(NOW, b"b"), Err(ReplayError::RepeatedNonce));
    assert_eq!(accept(NOW + 1, b"a"), Ok(()), "the time tells them apart");
    assert_eq!(accept(NOW, b"c"), Err(ReplayError::TimeNotNewer));
}

#[test]
fn nonces_of_one_millisecond_take_bounded_memory() {
    let mut guard = ReplayGuard::new();
    let mut accept = |number: u64, sequence| {
        let nonce = [number.to_be_bytes(); 1000].concat();
        guard.accept(key(1).as_ref(), &info(NOW, Some(&nonce), sequence), NOW)
    };
    let room = (MAX_NONCE_BYTES / 8000) as u64;
    assert!((0..room).all(|number| accept(number, None).is_ok()));
    assert_eq!(accept(room, None), Err(ReplayError::TimeNotNewer));
    assert!((0..100).all(|number| accept(room + number, Some(number)).is_ok()));
    assert_eq!(accept(room + 100, Some(99)), Err(ReplayError::SequenceNotHigher));
    assert!(guard.keys.values().all(|record| record.nonces.len() as u64 == room));
}

#[test]
fn sequence_numbers_tell_commands_of_one_millisecond_apart() {
    let mut guard = ReplayGuard::new();
    let mut accept = |time, sequence| guard.accept(key(1).as_ref(), &info(time, None, sequence), NOW);
    assert_eq!(accept(NOW, Some(5)), Ok(()));
    assert_eq!(accept(NOW, Some(6)), Ok(()));
    assert_eq!(accept(NOW, Some(6)), Err(ReplayError::SequenceNotHigher));
    assert_eq!(accept(NOW + 1, Some(6)), Err(ReplayError::SequenceNotHigher));
    assert_eq!(accept(NOW, None), Err(ReplayError::TimeNotNewer));
    assert_eq!(accept(NOW + 1, None), Ok(()));
    assert_eq!(accept(NOW + 2, Some(6)), Err(ReplayError::SequenceNotHigher), "remembered across others");
}

#[test]
fn a_refused_command_changes_nothing() {
    let mut guard = ReplayGuard::new();
    let mut accept =
        |time, nonce: &[u8], sequence| guard.accept(key(1).as_ref(), &info(time, Some(nonce), sequence), NOW);
    assert_eq!(accept(NOW, b"a", Some(5)), Ok(()));
    assert_eq!(accept(NOW + 9, b"b", Some(5)), Err(ReplayError::SequenceNotHigher));
    assert_eq!(accept(NOW + 1, b"b", Some(6)), Ok(()));
}

#[test]
fn unused_keys_are_forgotten_after_an_hour() {
    let mut guard = ReplayGuard::new();
    assert_eq!(guard.accept(key(1).as_ref(), &info(NOW + GRACE_MS, None, None), NOW), Ok(()));
    let later = NOW + KEY_LIFETIME_MS - 1;
    assert_eq!(
        guard.accept(key(1).as_ref(), &info(NOW, None, None), later),
        Err(ReplayError::TimeNotNewer),
        "still remembered"
    );
    let later = NOW + KEY_LIFETIME_MS;
    assert_eq!(guard.accept(key(1).as_ref(), &info(NOW, None, None), later), Err(ReplayError::OutsideGrace));
    assert_eq!(guard.accept(key(1).as_ref(), &info(later - 1, None, None), later), Ok(()));
}

#[test]
fn the_key_used_longest_ago_makes_room() {
    let mut guard = ReplayGuard::new();
    for number in 0..MAX_KEYS {
        let now = NOW + number as u64;
        assert_eq!(guard.accept(key(number).as_ref(), &info(now, None, None), now), Ok(()));
    }
    let now = NOW + MAX_KEYS as u64;
    assert_eq!(guard.accept(key(0).as_ref(), &info(now, None, None), now), Ok(()));
    assert_eq!(guard.accept(key(MAX_KEYS).as_ref(), &info(now, None, None), now), Ok(()));
    assert_eq!(guard.keys.len(), MAX_KEYS);
    assert_eq!(
        guard.accept(key(0).as_ref(), &info(now, None, None), now),
        Err(ReplayError::TimeNotNewer),
        "the one just used was kept"
    );
    assert_eq!(guard.accept(key(1).as_ref(), &info(NOW, None, None), now), Ok(()), "the oldest was forgotten");
}
