//! State that an announcer keeps for one prefix, and the pauses after failures.

use super::announcer::Outcome;

/// First pause after an unanswered command; doubled with each further one, because the cause may be packet loss.
const UNANSWERED_PAUSE_MS: u64 = 1_000;
/// Longest pause after an unanswered command.
const MAX_UNANSWERED_PAUSE_MS: u64 = 60_000;
/// First pause after a refusal; doubled with each further one, because an early retry rarely helps (same two pauses as
/// NFD).
const REFUSED_PAUSE_MS: u64 = 50_000;
/// Longest pause after a refusal.
const MAX_REFUSED_PAUSE_MS: u64 = 3_600_000;

/// Knowledge of the destination about a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advertised {
    Nothing,
    /// A command was sent and its effect is not known.
    Unknown,
    Cost {
        cost: u64,
        repeat_at_ms: u64,
    },
}

/// Key in the agenda: due time, and a number that makes keys with the same time unique.
pub(super) type Due = (u64, u64);

#[derive(Debug)]
pub(super) enum Progress {
    /// Nothing to do until something changes or the destination becomes available.
    Idle,
    Due(Due),
    UnderWay,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Cost with which the prefix should be announced; `None` = it should not be announced.
    pub(super) wanted: Option<u64>,
    pub(super) advertised: Advertised,
    pub(super) progress: Progress,
    /// Number of consecutive failed commands.
    pub(super) failures: u32,
    /// True if the last of them was refused.
    pub(super) is_refused: bool,
    /// Earliest time of the next command.
    pub(super) not_before_ms: u64,
    pub(super) last_sent_ms: Option<u64>,
}

impl Entry {
    pub(super) fn new() -> Self {
        Entry {
            wanted: None,
            advertised: Advertised::Nothing,
            progress: Progress::Idle,
            failures: 0,
            is_refused: false,
            not_before_ms: 0,
            last_sent_ms: None,
        }
    }
}

/// Returns the pause after a failed command, given the number of consecutive failures before it.
pub(super) fn pause_ms(outcome: Outcome, failures: u32) -> u64 {
    let (first_ms, longest_ms) = match outcome {
        Outcome::Refused => (REFUSED_PAUSE_MS, MAX_REFUSED_PAUSE_MS),
        _ => (UNANSWERED_PAUSE_MS, MAX_UNANSWERED_PAUSE_MS),
    };
    first_ms.saturating_mul(1 << failures.min(20)).min(longest_ms)
}
