//! Protection against replayed commands (NDN packet specification, signed-interest.rst; NFD command authentication).
//!
//! A command must be signed near the present, and each is accepted once. Of each key the accepted commands of the last hour are remembered by a
//! digest of what was signed, so that commands of several programs with one key may arrive in any order (as in the anti-replay window of
//! IPsec, RFC 4303). The memory is bounded: when it is full, the command that was signed first is forgotten, and those signed up to then
//! are refused. So are commands signed before the router was started.
//!
//! Both times move with the time of day: when it is set back, none of them is later than the present.

mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use namehop_wire::{Name, NameRef};
use ring::digest::{Context, SHA256};
use thiserror::Error;

use super::command::CommandSignature;
pub use record::TimeRecord;

/// How far a SignatureTime may be from the present, in milliseconds.
pub const GRACE_MS: u64 = 120_000;
/// Commands of one key that are remembered at most.
pub const MAX_REMEMBERED: usize = 1024;
/// Commands are remembered for this long after they were signed, in milliseconds: a replay is refused also when the time of day is set
/// back by less.
const MEMORY_MS: u64 = 3_600_000;
/// The time of day counts as set back if it falls behind the monotonic clock by at least this much, in milliseconds.
const TOLERANCE_MS: u64 = 2000;

/// Why a command is refused because of its time, or as a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The signature has no time.
    #[error("the command has no SignatureTime")]
    NoTime,
    /// It is too far in the future, by this many seconds.
    #[error("the clock of the sender is {0} seconds ahead of this router's; at most {limit} are allowed", limit = GRACE_MS / 1000)]
    Ahead(u64),
    /// It is too far in the past, by this many seconds.
    #[error(
        "the command was signed {0} seconds ago, or the clock of the sender is behind this router's; at most {limit} are allowed",
        limit = GRACE_MS / 1000
    )]
    Behind(u64),
    /// The router may have taken it before it was started.
    #[error(
        "the command was signed before this router was started, by the clock of the sender: sign it again in {0} seconds"
    )]
    BeforeStart(u64),
    /// This very command was accepted before.
    #[error("this command was seen before: sign a new one")]
    Repeated,
    /// Too many commands that were signed later were accepted to know whether this one was.
    #[error("{MAX_REMEMBERED} commands of this key that were signed later were seen: sign a new one")]
    Forgotten,
}

/// The present, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time of day, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// In milliseconds since any fixed moment.
    pub monotonic_ms: u64,
}

/// What tells a command from all others: a digest of what was signed.
type Fingerprint = [u8; 16];

/// The accepted commands of one key.
#[derive(Debug, Default)]
struct Window {
    /// By SignatureTime.
    seen: BTreeSet<(u64, Fingerprint)>,
    /// Of the commands signed up to this time, those that are not in `seen` may have been forgotten.
    forgotten_ms: u64,
}

/// What was accepted of each key. Keys are those of certificates, so there are few.
#[derive(Debug)]
pub struct ReplayGuard {
    /// Commands signed before this time are refused.
    start_ms: u64,
    keys: HashMap<Name, Window>,
    record: Option<TimeRecord>,
    /// Time of day minus monotonic clock, at the start and whenever the time of day was set.
    offset_ms: i128,
    /// Time of day at the last command.
    latest_ms: u64,
}

impl ReplayGuard {
    /// A guard that has seen nothing, at the start of the router. With a `record`, commands that an earlier process accepted are refused
    /// also if the time of day was set back by up to ten minutes since then.
    pub fn new(now: Moment, record: Option<TimeRecord>) -> Self {
        let start_ms = record.as_ref().map_or(0, |record| record.start_ms(now.unix_ms)).max(now.unix_ms);
        ReplayGuard { start_ms, keys: HashMap::new(), record, offset_ms: now.offset_ms(), latest_ms: now.unix_ms }
    }

    /// Decides on a command with a verified signature, and remembers it if it is accepted.
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

    /// When the time of day was set back, what is behind it must not keep commands out until it has caught up.
    fn follow_clock(&mut self, now: Moment) {
        let by_ms = now.offset_ms() - self.offset_ms;
        // The second is for systems on which the monotonic clock is set back with the time of day.
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

/// What was signed identifies a command: nothing in it can be changed without the key, while one content has many valid signatures (ECDSA).
fn fingerprint(command: &CommandSignature<'_>) -> Fingerprint {
    let mut digest = Context::new(&SHA256);
    for portion in command.signed_portions {
        digest.update(portion);
    }
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&digest.finish().as_ref()[..16]);
    fingerprint
}
