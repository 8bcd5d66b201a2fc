//! Decides which command a destination gets next, from the wanted and the announced prefixes.
//!
//! A prefix has at most one unanswered command. However often it changes, it gets at most two commands a second:
//! intermediate changes are not sent. The unanswered commands of all prefixes are limited in number, and all commands
//! in rate, because a routing daemon passes each on to the whole network. The number of prefixes is limited as well.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;

use namehop_client::nfd::ReadvertiseCounters;
use namehop_wire::{Name, NameRef};

use super::entry::{Advertised, Due, Entry, Progress, pause_ms};

/// Maximum burst of commands to one destination.
const BURST_COMMANDS: u64 = 1_000;
/// Long-term rate of commands to one destination, per second.
const COMMANDS_PER_S: u64 = 100;
/// Allowance that a command uses; each millisecond adds [`COMMANDS_PER_S`].
const COMMAND_ALLOWANCE: u64 = 1_000;
/// Minimum time between two commands for a prefix in milliseconds, unless it was withdrawn or the destination restarted
/// in between.
const HOLD_MS: u64 = 1_000;
/// Failed attempts to withdraw a prefix before it is regarded as withdrawn.
const MAX_WITHDRAWALS: u32 = 8;

/// Limits of a destination.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnnouncerLimits {
    /// Maximum number of prefixes; further ones are not announced.
    pub(super) max_prefixes: usize,
    /// Maximum number of unanswered commands.
    pub(super) window: usize,
    /// Interval at which announcements are repeated, in milliseconds.
    pub(super) refresh_ms: u64,
    /// Timeout of a command, in milliseconds.
    pub(super) timeout_ms: u64,
}

/// Number of prefixes by state. Each prefix counts in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PrefixCounts {
    /// Announced with the wanted cost.
    pub(super) announced: u64,
    /// Waiting to be announced, or announced with a new cost.
    pub(super) waiting: u64,
    /// Refused at the last announcement.
    pub(super) refused: u64,
    /// Waiting to be withdrawn.
    pub(super) withdrawing: u64,
}

/// The last command that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedCommand {
    pub(super) prefix: Name,
    pub(super) outcome: Outcome,
    pub(super) at_ms: u64,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The destination accepted the command.
    Accepted,
    /// The destination refused the command.
    Refused,
    /// The command came back as a Nack.
    Nacked,
    /// The command was not answered in time.
    TimedOut,
}

/// The action of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Announce the prefix with this cost.
    Announce(u64),
    /// Withdraw the prefix.
    Withdraw,
}

/// A command that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RibCommand {
    /// Identifies the command when its answer arrives.
    pub(super) id: u64,
    pub(super) prefix: Name,
    pub(super) action: Action,
}

#[derive(Debug)]
struct UnderWay {
    prefix: Name,
    action: Action,
    deadline_ms: u64,
}

/// The prefixes of one destination.
#[derive(Debug)]
pub(super) struct Announcer {
    limits: AnnouncerLimits,
    is_available: bool,
    entries: HashMap<Name, Entry>,
    agenda: BTreeMap<Due, Name>,
    /// By id, which is the order of sending and so the order of deadlines.
    under_way: BTreeMap<u64, UnderWay>,
    next_number: u64,
    /// Remaining allowance of the rate limit; a command uses [`COMMAND_ALLOWANCE`].
    allowance: u64,
    /// Time to which `allowance` refers.
    allowance_at_ms: u64,
    counters: ReadvertiseCounters,
    last_failure: Option<FailedCommand>,
    /// Wanted prefixes beyond the limit.
    left_out: HashSet<Name>,
    /// True if `left_out` may hold prefixes for which [`take_room_for_more`](Self::take_room_for_more) has not reported
    /// room.
    is_incomplete: bool,
    random: RandomState,
}

impl Announcer {
    pub(super) fn new(limits: AnnouncerLimits) -> Self {
        Announcer {
            limits,
            is_available: false,
            entries: HashMap::new(),
            agenda: BTreeMap::new(),
            under_way: BTreeMap::new(),
            next_number: 0,
            allowance: BURST_COMMANDS * COMMAND_ALLOWANCE,
            allowance_at_ms: 0,
            counters: ReadvertiseCounters::default(),
            last_failure: None,
            left_out: HashSet::new(),
            is_incomplete: false,
            random: RandomState::new(),
        }
    }

    pub(super) fn counters(&self) -> ReadvertiseCounters {
        self.counters
    }

    /// Returns the last command that failed.
    pub(super) fn last_failure(&self) -> Option<&FailedCommand> {
        self.last_failure.as_ref()
    }

    pub(super) fn is_available(&self) -> bool {
        self.is_available
    }

    /// Returns the number of prefixes, announced or waiting.
    pub(super) fn prefix_count(&self) -> usize {
        self.entries.len()
    }

    /// Counts the prefixes by state. Visits every prefix.
    pub(super) fn prefix_counts(&self) -> PrefixCounts {
        let mut counts = PrefixCounts::default();
        for entry in self.entries.values() {
            *match (entry.wanted, entry.advertised) {
                (None, _) => &mut counts.withdrawing,
                (Some(wanted), Advertised::Cost { cost, .. }) if wanted == cost => &mut counts.announced,
                (Some(_), _) if entry.is_refused => &mut counts.refused,
                (Some(_), _) => &mut counts.waiting,
            } += 1;
        }
        counts
    }

    /// Sets the cost with which a prefix shall be announced; `None` = not at all.
    pub(super) fn want(&mut self, prefix: NameRef<'_>, cost: Option<u64>, now_ms: u64) {
        if !self.entries.contains_key(prefix.value()) {
            if cost.is_none() {
                self.left_out.remove(prefix.value());
                return;
            }
            if self.entries.len() >= self.limits.max_prefixes {
                self.leave_out(prefix);
                return;
            }
            self.left_out.remove(prefix.value());
            self.entries.insert(prefix.to_owned(), Entry::new());
        }
        let Some(entry) = self.entries.get_mut(prefix.value()) else { return };
        if entry.wanted == cost {
            return;
        }
        entry.wanted = cost;
        // Failures of earlier commands do not count against the new cost.
        entry.failures = 0;
        entry.is_refused = false;
        entry.not_before_ms = entry.last_sent_ms.map_or(0, |at_ms| at_ms + HOLD_MS);
        self.plan(prefix, now_ms);
    }

    /// Counts a prefix beyond the limit, unless it was counted before.
    fn leave_out(&mut self, prefix: NameRef<'_>) {
        self.counters.left_out += u64::from(self.left_out.insert(prefix.to_owned()));
        self.is_incomplete = true;
    }

    /// Returns true, once, when there is room for prefixes that were left out. The caller then calls
    /// [`want`](Self::want) for all prefixes again.
    pub(super) fn take_room_for_more(&mut self) -> bool {
        // The search for a prefix that was left out visits all routes, so it does not start for every free slot.
        let has_room = self.is_incomplete && self.entries.len() < self.limits.max_prefixes / 4 * 3;
        self.is_incomplete &= !has_room;
        has_room
    }

    /// Handles a destination that has become available or was restarted, and so knows no prefixes.
    pub(super) fn destination_began(&mut self, now_ms: u64) {
        self.forget_advertised();
        self.is_available = true;
        let prefixes: Vec<Name> = self.entries.keys().cloned().collect();
        for prefix in &prefixes {
            self.plan(prefix.as_ref(), now_ms);
        }
    }

    /// Handles a destination that has become unavailable, and so has lost all prefixes.
    pub(super) fn destination_ended(&mut self) {
        self.is_available = false;
        self.forget_advertised();
    }

    fn forget_advertised(&mut self) {
        self.agenda.clear();
        self.under_way.clear();
        self.entries.retain(|_, entry| entry.wanted.is_some());
        for entry in self.entries.values_mut() {
            *entry = Entry { wanted: entry.wanted, ..Entry::new() };
        }
    }

    /// Returns the earliest time at which [`next_command`](Self::next_command) may have a command or a command times
    /// out.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        let timeout = self.under_way.first_key_value().map(|(_, command)| command.deadline_ms);
        let command = self.agenda.first_key_value().filter(|_| self.under_way.len() < self.limits.window);
        let missing = COMMAND_ALLOWANCE.saturating_sub(self.allowance);
        let allowed_ms = self.allowance_at_ms + missing.div_ceil(COMMANDS_PER_S);
        let command = command.map(|(&(due_ms, _), _)| due_ms.max(allowed_ms));
        [timeout, command].into_iter().flatten().min()
    }

    /// Returns the next command if one is due. The caller sends it.
    pub(super) fn next_command(&mut self, now_ms: u64) -> Option<RibCommand> {
        self.time_out(now_ms);
        let gained = now_ms.saturating_sub(self.allowance_at_ms).saturating_mul(COMMANDS_PER_S);
        self.allowance = self.allowance.saturating_add(gained).min(BURST_COMMANDS * COMMAND_ALLOWANCE);
        self.allowance_at_ms = now_ms;
        if self.under_way.len() >= self.limits.window || self.allowance < COMMAND_ALLOWANCE {
            return None;
        }
        let first = self.agenda.first_entry().filter(|first| first.key().0 <= now_ms)?;
        let prefix = first.remove();
        let entry = self.entries.get_mut(prefix.value())?;
        let action = match entry.wanted {
            Some(cost) => Action::Announce(cost),
            None => Action::Withdraw,
        };
        entry.advertised = Advertised::Unknown;
        entry.progress = Progress::UnderWay;
        entry.last_sent_ms = Some(now_ms);
        entry.not_before_ms = now_ms + HOLD_MS;
        self.allowance -= COMMAND_ALLOWANCE;
        let id = self.number();
        let deadline_ms = now_ms + self.limits.timeout_ms;
        self.under_way.insert(id, UnderWay { prefix: prefix.clone(), action, deadline_ms });
        Some(RibCommand { id, prefix, action })
    }

    /// Ends a command; returns its prefix. Does nothing if it has ended already.
    pub(super) fn ended(&mut self, id: u64, outcome: Outcome, now_ms: u64) -> Option<Name> {
        let UnderWay { prefix, action, .. } = self.under_way.remove(&id)?;
        match outcome {
            Outcome::Accepted if action == Action::Withdraw => self.counters.withdrawn += 1,
            Outcome::Accepted => self.counters.announced += 1,
            Outcome::Refused => self.counters.refused += 1,
            Outcome::Nacked => self.counters.nacked += 1,
            Outcome::TimedOut => self.counters.timed_out += 1,
        }
        if outcome != Outcome::Accepted {
            self.last_failure = Some(FailedCommand { prefix: prefix.clone(), outcome, at_ms: now_ms });
        }
        let refresh_ms = self.spread(self.limits.refresh_ms);
        let pause_ms = self.entries.get(prefix.value()).map_or(0, |entry| pause_ms(outcome, entry.failures));
        let pause_ms = self.spread(pause_ms);
        let entry = self.entries.get_mut(prefix.value())?;
        entry.progress = Progress::Idle;
        entry.is_refused = false;
        match (outcome, action) {
            (Outcome::Accepted, Action::Announce(cost)) => {
                entry.failures = 0;
                entry.advertised = Advertised::Cost { cost, repeat_at_ms: now_ms + refresh_ms };
            }
            (Outcome::Accepted, Action::Withdraw) => {
                entry.failures = 0;
                entry.advertised = Advertised::Nothing;
            }
            (_, action) => {
                // If a different state is wanted meanwhile, the failure does not count against it.
                let is_same = (entry.wanted.is_none()) == (action == Action::Withdraw);
                if is_same {
                    entry.failures += 1;
                    entry.is_refused = outcome == Outcome::Refused;
                    entry.not_before_ms = entry.not_before_ms.max(now_ms + pause_ms);
                }
                if entry.wanted.is_none() && entry.failures >= MAX_WITHDRAWALS {
                    entry.advertised = Advertised::Nothing;
                }
            }
        }
        self.plan(prefix.as_ref(), now_ms);
        Some(prefix)
    }

    fn time_out(&mut self, now_ms: u64) {
        while let Some((&id, command)) = self.under_way.first_key_value()
            && command.deadline_ms <= now_ms
        {
            self.ended(id, Outcome::TimedOut, now_ms);
        }
    }

    /// Schedules the next command of the prefix, or removes the prefix if nothing is left to do.
    fn plan(&mut self, prefix: NameRef<'_>, now_ms: u64) {
        let Some(entry) = self.entries.get_mut(prefix.value()) else { return };
        if let Progress::Due(due) = entry.progress {
            self.agenda.remove(&due);
            entry.progress = Progress::Idle;
        }
        if matches!(entry.progress, Progress::UnderWay) {
            return;
        }
        let due_ms = match (entry.wanted, entry.advertised) {
            (None, Advertised::Nothing) => {
                self.entries.remove(prefix.value());
                return;
            }
            (None, _) if !self.is_available => {
                self.entries.remove(prefix.value());
                return;
            }
            (Some(wanted), Advertised::Cost { cost, repeat_at_ms }) if wanted == cost => repeat_at_ms,
            _ => now_ms.max(entry.not_before_ms),
        };
        if self.is_available {
            let due = (due_ms, self.next_number);
            self.next_number += 1;
            entry.progress = Progress::Due(due);
            self.agenda.insert(due, prefix.to_owned());
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Returns the duration, varied at random by up to a tenth, so that prefixes and routers do not synchronize.
    fn spread(&mut self, duration_ms: u64) -> u64 {
        let tenth_ms = duration_ms / 10;
        let number = self.number();
        duration_ms - tenth_ms + self.random.hash_one(number) % (2 * tenth_ms + 1)
    }
}
