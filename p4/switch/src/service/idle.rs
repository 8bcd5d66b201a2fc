//! Idle entries: polls the counters of entries with an idle timeout, and notifies the controller once when a counter
//! has not changed for that time.

use std::collections::{HashMap, VecDeque};
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use namehop_p4_compile::description::Identity;
use namehop_p4_compile::layout::Id;
use namehop_p4runtime::message::{IdleTimeoutNotification, TableEntry};

use super::Running;
use super::direct::key_of;
use super::tables::Table;

/// Interval between two polls of all counters.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of entries in one message.
const MOST_IN_MESSAGE: usize = 256;

/// State of an entry with an idle timeout.
struct Watched {
    /// `Extra::since` of the entry.
    entry: u64,
    packets: u64,
    since: Instant,
    is_told: bool,
    /// The poll in which it was last seen.
    look: u64,
}

/// State of all entries with an idle timeout.
#[derive(Default)]
pub struct Idle {
    watched: HashMap<(usize, Identity), Watched>,
    look: u64,
    looked: Option<Instant>,
    due: VecDeque<TableEntry>,
}

impl Running {
    /// Entries that have become idle since the controller was last notified.
    pub(super) fn idle_entries(&self) -> Option<IdleTimeoutNotification> {
        if self.info.tables.iter().all(|table| table.idle_timeout_behavior == 0) {
            return None;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.due.is_empty() && idle.looked.is_none_or(|looked| looked.elapsed() >= PAUSE) {
            idle.looked = Some(Instant::now());
            self.look(&mut idle);
        }
        let count = idle.due.len().min(MOST_IN_MESSAGE);
        let table_entry: Vec<TableEntry> = idle.due.drain(..count).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (count > 0).then_some(IdleTimeoutNotification { table_entry, timestamp: now.as_nanos() as i64 })
    }

    fn look(&self, idle: &mut Idle) {
        let state = self.objects.state();
        let now = Instant::now();
        idle.look += 1;
        let Idle { watched, look, due, .. } = idle;
        for (number, info) in self.info.tables.iter().enumerate().filter(|(_, info)| info.idle_timeout_behavior != 0) {
            let described = &state.description.tables[number];
            let table = Table { info, described };
            let Some(counter) = described.table.cells.counter else { continue };
            for (identity, extra) in state.timeouts(number) {
                let Some(entry) = state.entry(number, identity) else { continue };
                let Some(cell) = state.cell(number, &entry) else { continue };
                let (packets, _) =
                    self.objects.live.program.counter(counter.index(), cell as usize).unwrap_or_default();
                let fresh = || Watched { entry: extra.since, packets, since: now, is_told: false, look: *look };
                let known = watched.entry((number, identity.clone())).or_insert_with(fresh);
                known.look = *look;
                if known.packets != packets || known.entry != extra.since {
                    *known = fresh();
                } else if !known.is_told && (now - known.since).as_nanos() >= extra.timeout_ns as u128 {
                    known.is_told = true;
                    let shown = table.show(&entry, Some(extra), &self.info.actions);
                    let TableEntry { idle_timeout_ns, controller_metadata, .. } = shown;
                    let metadata = shown.metadata.clone();
                    due.push_back(TableEntry { idle_timeout_ns, controller_metadata, metadata, ..key_of(shown) });
                }
            }
        }
        watched.retain(|_, known| known.look == *look);
    }

    /// Time since a packet was last known to use an entry, in nanoseconds.
    pub(super) fn idle_time(&self, table: usize, identity: &[u64]) -> Option<i64> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.watched.get(&(table, identity.into()))?;
        Some(known.since.elapsed().as_nanos() as i64)
    }
}
