//! Protection against replayed commands (NDN packet specification, signed-interest.rst; NFD command authentication).
//!
//! The signature time of a command must be near the present, and each command is accepted once. For each key, the guard
//! keeps a digest of every command accepted in the last hour. Commands of several programs with one key may therefore
//! arrive in any order (as in the anti-replay window of IPsec, RFC 4303). The memory is bounded: when it is full, the
//! command with the earliest signature time is forgotten, and commands signed up to that time are refused. Commands
//! signed before the start of the router are refused, too.
//!
//! When the time of day is set back, both limits are lowered to the present.

mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use namehop_wire::{Name, NameRef};
use ring::digest::{Context, SHA256};
use thiserror::Error;

use super::command::CommandSignature;
pub use record::TimeRecord;

/// Maximum difference between a SignatureTime and the present, in milliseconds.
pub const GRACE_MS: u64 = 120_000;
/// Maximum number of remembered commands per key.
pub const MAX_REMEMBERED: usize = 1024;
/// How long commands are remembered after their signature time, in milliseconds. A replay is also refused if the time
/// of day was set back by less than this.
const MEMORY_MS: u64 = 3_600_000;
/// The time of day counts as set back if it falls behind the monotonic clock by at least this much, in milliseconds.
const TOLERANCE_MS: u64 = 2000;

/// Why a command is refused by its signature time or as a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The signature has no time.
    #[error("the command has no SignatureTime")]
    NoTime,
    /// The signature time is this many seconds in the future.
    #[error(
        "the clock of the sender is {0} seconds ahead of this router's; at most {limit} are allowed",
        limit = GRACE_MS / 1000
    )]
    Ahead(u64),
    /// The signature time is this many seconds in the past.
    #[error(
        "the command was signed {0} seconds ago, or the clock of the sender is behind this router's; \
         at most {limit} are allowed",
        limit = GRACE_MS / 1000
    )]
    Behind(u64),
    /// The signature time is before the start of the router, so an earlier process may have accepted the command. Holds
    /// the seconds after which the sender can sign it again.
    #[error(
        "by the clock of the sender, the command was signed before this router started: sign it again in {0} seconds"
    )]
    BeforeStart(u64),
    /// This command was accepted before.
    #[error("this command was received before: sign a new one")]
    Repeated,
    /// Commands with this signature time may have been forgotten, so this one may have been accepted before.
    #[error("{MAX_REMEMBERED} commands of this key with later signature times were received: sign a new one")]
    Forgotten,
}

/// The present on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time of day, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// Monotonic clock, in milliseconds since an arbitrary fixed moment.
    pub monotonic_ms: u64,
}

/// Digest of the signed bytes; identifies a command.
type Fingerprint = [u8; 16];

/// The accepted commands of one key.
#[derive(Debug, Default)]
struct Window {
    /// Signature time and fingerprint of each command, ordered by time.
    seen: BTreeSet<(u64, Fingerprint)>,
    /// Commands signed up to this time that are not in `seen` may have been forgotten.
    forgotten_ms: u64,
}

/// Accepted commands of each key. Only keys of trusted certificates are recorded, so there are few.
#[derive(Debug)]
pub struct ReplayGuard {
    /// Commands signed before this time are refused.
    start_ms: u64,
    keys: HashMap<Name, Window>,
    record: Option<TimeRecord>,
    /// Time of day minus monotonic clock, in milliseconds, at the start or when the time of day was last set.
    offset_ms: i128,
    /// Time of day at the last command.
    latest_ms: u64,
}

impl ReplayGuard {
    /// Creates an empty guard at the start of the router. With a `record`, commands that an earlier process accepted
    /// are refused even if the time of day was set back since then, by up to ten minutes.
    pub fn new(now: Moment, record: Option<TimeRecord>) -> Self {
        let start_ms = record.as_ref().map_or(0, |record| record.start_ms(now.unix_ms)).max(now.unix_ms);
        ReplayGuard { start_ms, keys: HashMap::new(), record, offset_ms: now.offset_ms(), latest_ms: now.unix_ms }
    }

    /// Checks a command with a verified signature, and remembers it if it is accepted.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn accept(&mut self, key: NameRef<'_>, command: &CommandSignature<'_>, now: Moment) -> Result<(), ReplayError> {
        self.follow_clock(now);
        let time_ms = command.info.time_ms.ok_or(ReplayError::NoTime)?;
        let seconds = |ms: u64| ms.div_ceil(1000);
        if time_ms > now.unix_ms.saturating_add(GRACE_MS) {
            return Err(ReplayError::Ahead(seconds(time_ms - now.unix_ms)));
        }
        if time_ms.saturating_add(GRACE_MS) < now.unix_ms {
            return Err(ReplayError::Behind(seconds(now.unix_ms - time_ms)));
        }
        if time_ms < self.start_ms {
            return Err(ReplayError::BeforeStart(seconds(self.start_ms - time_ms)));
        }
        if !self.keys.contains_key(key.value()) {
            self.keys.insert(key.to_owned(), Window::default());
        }
        if let Some(window) = self.keys.get_mut(key.value()) {
            window.accept(time_ms, fingerprint(command), now.unix_ms)?;
        }
        if let Some(record) = &mut self.record {
            record.note(time_ms.max(now.unix_ms));
        }
        Ok(())
    }

    /// Detects that the time of day was set back, and lowers the time limits to the present. Otherwise commands would
    /// be refused until the clock catches up.
    fn follow_clock(&mut self, now: Moment) {
        let by_ms = now.offset_ms() - self.offset_ms;
        // The second test is for systems on which the monotonic clock is set back with the time of day.
        let is_set_back =
            by_ms <= -i128::from(TOLERANCE_MS) || now.unix_ms.saturating_add(TOLERANCE_MS) <= self.latest_ms;
        self.latest_ms = now.unix_ms;
        if by_ms.unsigned_abs() >= u128::from(TOLERANCE_MS) {
            self.offset_ms = now.offset_ms();
        }
        if is_set_back {
            self.start_ms = self.start_ms.min(now.unix_ms);
            for window in self.keys.values_mut() {
                window.forgotten_ms = window.forgotten_ms.min(now.unix_ms);
            }
        }
    }
}

impl Moment {
    fn offset_ms(self) -> i128 {
        i128::from(self.unix_ms) - i128::from(self.monotonic_ms)
    }
}

impl Window {
    fn accept(&mut self, time_ms: u64, fingerprint: Fingerprint, now_ms: u64) -> Result<(), ReplayError> {
        if self.seen.contains(&(time_ms, fingerprint)) {
            return Err(ReplayError::Repeated);
        }
        if time_ms <= self.forgotten_ms {
            return Err(ReplayError::Forgotten);
        }
        while self.seen.first().is_some_and(|(oldest_ms, _)| oldest_ms.saturating_add(MEMORY_MS) < now_ms) {
            self.seen.pop_first();
        }
        self.seen.insert((time_ms, fingerprint));
        if self.seen.len() > MAX_REMEMBERED
            && let Some((oldest_ms, _)) = self.seen.pop_first()
        {
            self.forgotten_ms = self.forgotten_ms.max(oldest_ms);
        }
        Ok(())
    }
}

/// Identifies a command by its signed bytes: they cannot be changed without the key, while the same bytes have many
/// valid signatures (ECDSA).
fn fingerprint(command: &CommandSignature<'_>) -> Fingerprint {
    let mut digest = Context::new(&SHA256);
    for portion in command.signed_portions {
        digest.update(portion);
    }
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&digest.finish().as_ref()[..16]);
    fingerprint
}
