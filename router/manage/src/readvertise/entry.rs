//! What an announcer keeps of one prefix, and how long it waits after a failure.

use super::announcer::Outcome;

/// First pause after a command without an answer, doubled with each further one: packets get lost.
const UNANSWERED_PAUSE_MS: u64 = 1_000;
/// Longest pause after a command without an answer.
const MAX_UNANSWERED_PAUSE_MS: u64 = 60_000;
/// First pause after a refusal, doubled with each further one: asking again soon will not help (NFD has the same two).
const REFUSED_PAUSE_MS: u64 = 50_000;
/// Longest pause after a refusal.
const MAX_REFUSED_PAUSE_MS: u64 = 3_600_000;

/// What the destination knows of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advertised {
    Nothing,
    /// There was a command whose effect is not known.
    Unknown,
    Cost {
        cost: u64,
        repeat_at_ms: u64,
    },
}

/// Place in the agenda: due time and a number that tells those of the same time apart.
pub(super) type Due = (u64, u64);

#[derive(Debug)]
pub(super) enum Progress {
    /// Nothing to do as long as nothing changes and the destination is there.
    Idle,
    Due(Due),
    UnderWay,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Cost with which the prefix should be known; `None` = it should not be.
    pub(super) wanted: Option<u64>,
    pub(super) advertised: Advertised,
    pub(super) progress: Progress,
    /// Commands that failed one after the other.
    pub(super) failures: u32,
    /// The last of them was refused.
    pub(super) is_refused: bool,
    /// No command before this time.
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

/// How long to wait after a command that failed, when so many before it had failed.
pub(super) fn pause_ms(outcome: Outcome, failures: u32) -> u64 {
    let (first_ms, longest_ms) = match outcome {
        Outcome::Refused => (REFUSED_PAUSE_MS, MAX_REFUSED_PAUSE_MS),
        _ => (UNANSWERED_PAUSE_MS, MAX_UNANSWERED_PAUSE_MS),
    };
    first_ms.saturating_mul(1 << failures.min(20)).min(longest_ms)
}
