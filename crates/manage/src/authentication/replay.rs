//! Protection against replayed commands (NDN packet specification, signed-interest.rst; NFD command authentication).
//!
//! For each key the newest SignatureTime is kept, with the nonces seen at that time and the highest sequence number. An
//! older time is refused. The same time is accepted only with a nonce not seen at that time, or a higher sequence number,
//! so that a program may send several commands within one millisecond. The first command of a key must be near the
//! present.

#[cfg(test)]
mod tests;

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
