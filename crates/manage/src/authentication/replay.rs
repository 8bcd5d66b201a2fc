//! Protection against replayed commands (NDN packet specification, signed-interest.rst; NFD command authentication).
//!
//! For each key the newest SignatureTime is kept, with the nonces seen at that time and the highest sequence number. An
//! older time is refused. The same time is accepted only with a nonce not seen at that time, or a higher sequence number,
//! so that a program may send several commands within one millisecond. The first command of a key must be near the
//! present.

use std::collections::{HashMap, HashSet};

use namehop_wire::{Name, NameRef, SignatureInfo};
use thiserror::Error;

/// Keys remembered at most; the one used longest ago is forgotten first.
pub const MAX_KEYS: usize = 1000;
/// A key that was not used for so long is forgotten, in milliseconds.
pub const KEY_LIFETIME_MS: u64 = 3_600_000;
/// How far the first time of a key may be from the present, in milliseconds.
pub const GRACE_MS: u64 = 120_000;
/// Nonces kept for one time of one key: enough for 65536 of the usual length. A further command within that millisecond
/// is refused, unless it has a sequence number.
const MAX_NONCE_BYTES: usize = 65_536 * 8;

/// Why a command is taken for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The signature has no time.
    #[error("the command has no SignatureTime")]
    NoTime,
    /// The first command of the key is too far from the present.
    #[error("the SignatureTime is more than 120 seconds from the present")]
    OutsideGrace,
    /// A newer command of the key was seen.
    #[error("a newer command of this key was seen")]
    TimeNotNewer,
    /// The same nonce was seen at this time.
    #[error("the SignatureNonce was seen before")]
    RepeatedNonce,
    /// A sequence number at least as high was seen.
    #[error("the SignatureSeqNum is not higher than the last one")]
    SequenceNotHigher,
}

#[derive(Debug)]
struct KeyRecord {
    last_used_ms: u64,
    time_ms: u64,
    nonces: HashSet<Box<[u8]>>,
    nonce_bytes: usize,
    sequence: Option<u64>,
}

/// What was seen of each key.
#[derive(Debug, Default)]
pub struct ReplayGuard {
    keys: HashMap<Name, KeyRecord>,
}

impl ReplayGuard {
    /// A guard that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides on a command whose signature was verified, and remembers it when it is accepted.
    ///
    /// `now_ms` is in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// Why it is taken for a replay.
    pub fn accept(&mut self, key: NameRef<'_>, info: &SignatureInfo<'_>, now_ms: u64) -> Result<(), ReplayError> {
        let time_ms = info.time_ms.ok_or(ReplayError::NoTime)?;
        if let Some(record) = self.keys.get_mut(key.value())
            && record.last_used_ms.saturating_add(KEY_LIFETIME_MS) > now_ms
        {
            return record.accept(info, time_ms, now_ms);
        }
        if time_ms.abs_diff(now_ms) > GRACE_MS {
            return Err(ReplayError::OutsideGrace);
        }
        self.make_room(now_ms);
        let nonces = info.nonce.map(Box::from).into_iter().collect();
        let nonce_bytes = info.nonce.map_or(0, <[u8]>::len);
        let record = KeyRecord { last_used_ms: now_ms, time_ms, nonces, nonce_bytes, sequence: info.sequence };
        self.keys.insert(key.to_owned(), record);
        Ok(())
    }

    fn make_room(&mut self, now_ms: u64) {
        if self.keys.len() < MAX_KEYS {
            return;
        }
        self.keys.retain(|_, record| record.last_used_ms.saturating_add(KEY_LIFETIME_MS) > now_ms);
        if self.keys.len() >= MAX_KEYS {
            let oldest = self.keys.iter().min_by_key(|(_, record)| record.last_used_ms).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.keys.remove(&oldest);
            }
        }
    }
}

impl KeyRecord {
    fn accept(&mut self, info: &SignatureInfo<'_>, time_ms: u64, now_ms: u64) -> Result<(), ReplayError> {
        if time_ms < self.time_ms {
            return Err(ReplayError::TimeNotNewer);
        }
        let is_higher = match (info.sequence, self.sequence) {
            (Some(new), Some(last)) if new <= last => return Err(ReplayError::SequenceNotHigher),
            (Some(_), _) => true,
            (None, _) => false,
        };
        if time_ms == self.time_ms {
            match info.nonce {
                Some(nonce) if self.nonces.contains(nonce) => return Err(ReplayError::RepeatedNonce),
                Some(nonce) if self.has_room_for(nonce) => {}
                _ if is_higher => {}
                _ => return Err(ReplayError::TimeNotNewer),
            }
        } else {
            self.nonces.clear();
            self.nonce_bytes = 0;
        }
        self.time_ms = time_ms;
        self.last_used_ms = now_ms;
        self.sequence = info.sequence.or(self.sequence);
        // Without room the sequence number alone protects.
        if let Some(nonce) = info.nonce.filter(|nonce| self.has_room_for(nonce)) {
            self.nonces.insert(nonce.into());
            self.nonce_bytes += nonce.len();
        }
        Ok(())
    }

    fn has_room_for(&self, nonce: &[u8]) -> bool {
        self.nonce_bytes + nonce.len() <= MAX_NONCE_BYTES
    }
}

#[cfg(test)]
mod tests {
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
}
