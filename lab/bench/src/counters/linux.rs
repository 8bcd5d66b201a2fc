//! Counters through Linux perf_event.

use std::io;
use std::time::Duration;

use perf_event::events::{Event as SystemEvent, Hardware, Raw};
use perf_event::{Builder, Counter, ReadFormat};

use super::CountersUnavailable;
use super::events::{Event, Events, Role};
use super::tally::Tally;

fn builder(event: Event) -> Builder<'static> {
    fn of(event: impl SystemEvent) -> Builder<'static> {
        Builder::new(event)
    }
    match event {
        Event::Cycles => of(Hardware::CPU_CYCLES),
        Event::Instructions => of(Hardware::INSTRUCTIONS),
        Event::Code(code) => of(Raw::new(code)),
        #[cfg(test)]
        Event::TaskClock => of(perf_event::events::Software::TASK_CLOCK),
        #[cfg(test)]
        Event::PageFaults => of(perf_event::events::Software::PAGE_FAULTS),
    }
}

/// Counts of a group since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Reading {
    counts: [u64; Role::MOST_EVENTS],
    /// Time for which the group was enabled, and for which it had hardware counters.
    enabled: Duration,
    running: Duration,
}

impl Reading {
    /// Returns the counts between two readings, scaled to the whole enabled time; `None` if the group never ran.
    pub(super) fn since(&self, earlier: &Reading) -> Option<[f64; Role::MOST_EVENTS]> {
        let running = self.running.saturating_sub(earlier.running);
        if running.is_zero() {
            return None;
        }
        let scale = self.enabled.saturating_sub(earlier.enabled).as_secs_f64() / running.as_secs_f64();
        let mut counts = [0.0; Role::MOST_EVENTS];
        for (count, (now, before)) in counts.iter_mut().zip(self.counts.iter().zip(earlier.counts)) {
            *count = now.saturating_sub(before) as f64 * scale;
        }
        Some(counts)
    }
}

/// Events that count simultaneously: a group of [`Events`] or a part of one.
struct EventGroup {
    role: Role,
    /// Index of the first event in the whole group.
    first: usize,
    leader: Counter,
    members: Vec<Counter>,
    last: Reading,
}

impl EventGroup {
    fn open(role: Role, first: usize, events: &[Event]) -> io::Result<Self> {
        let Some((&leading, others)) = events.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let format =
            ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        let mut leader = builder(leading).read_format(format).build()?;
        // Members are enabled from the start and count whenever their leader does. If they were enabled and disabled
        // too, they would start only at the system's next tick.
        let members = others.iter().map(|&event| builder(event).enabled(true).build_with_group(&mut leader));
        let members = members.collect::<io::Result<_>>()?;
        Ok(EventGroup { role, first, leader, members, last: Reading::default() })
    }

    /// Opens the group, or its halves if the CPU has too few counters for the whole group.
    fn open_in_parts(role: Role, first: usize, events: &[Event]) -> io::Result<Vec<Self>> {
        let opened = Self::open(role, first, events).and_then(|mut group| match group.ever_counts()? {
            true => Ok(group),
            false => Err(io::Error::from_raw_os_error(nix::errno::Errno::EINVAL as i32)),
        });
        match opened {
            Ok(group) => Ok(vec![group]),
            // The stage counters work only as a complete group.
            Err(error) if events.len() <= 1 || role == Role::Metrics => Err(error),
            Err(_) => {
                let (front, back) = events.split_at(events.len() / 2);
                let mut parts = Self::open_in_parts(role, first, front)?;
                parts.extend(Self::open_in_parts(role, first + front.len(), back)?);
                Ok(parts)
            }
        }
    }

    /// True if the group counts. Opening can succeed while other users hold the counters.
    fn ever_counts(&mut self) -> io::Result<bool> {
        self.leader.enable()?;
        self.leader.disable()?;
        self.last = self.read()?;
        Ok(!self.last.running.is_zero())
    }

    fn read(&mut self) -> io::Result<Reading> {
        let data = self.leader.read_group()?;
        let mut counts = [0; Role::MOST_EVENTS];
        for (count, counter) in counts.iter_mut().zip(std::iter::once(&self.leader).chain(&self.members)) {
            *count = data.get(counter).map_or(0, |entry| entry.value());
        }
        Ok(Reading {
            counts,
            enabled: data.time_enabled().unwrap_or_default(),
            running: data.time_running().unwrap_or_default(),
        })
    }
}

/// All groups that the CPU supports.
pub(super) struct Groups(Vec<EventGroup>);

impl Groups {
    /// Opens all groups, disabled. Fails if cycles and instructions are not available; skips other groups.
    pub(super) fn open(events: &Events) -> Result<Self, CountersUnavailable> {
        let mut groups = Vec::new();
        for (role, events) in events.groups() {
            match EventGroup::open_in_parts(role, 0, events) {
                Ok(parts) => groups.extend(parts),
                Err(error) if role == Role::Basic => return Err(why_not(&error)),
                Err(_) => {}
            }
        }
        Ok(Groups(groups))
    }

    /// Enables the next group in turn, runs `work`, and adds the group's counts to `tally`.
    pub(super) fn count<R>(&mut self, tally: &mut Tally, things: usize, work: impl FnOnce() -> R) -> io::Result<R> {
        let turn = tally.next_turn() % self.0.len();
        let group = &mut self.0[turn];
        group.leader.enable()?;
        let result = work();
        group.leader.disable()?;
        let reading = group.read()?;
        if let Some(counts) = reading.since(&group.last) {
            tally.add(group.role, group.first, &counts[..=group.members.len()], things);
        }
        group.last = reading;
        Ok(result)
    }
}

fn why_not(error: &io::Error) -> CountersUnavailable {
    const NO_SUCH_EVENT: [i32; 4] =
        [2 /* ENOENT */, 19 /* ENODEV */, 22 /* EINVAL */, 95 /* EOPNOTSUPP */];
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::PermissionDenied => CountersUnavailable::NotPermitted,
        Some(38 /* ENOSYS */) => CountersUnavailable::UnsupportedSystem,
        Some(code) if NO_SUCH_EVENT.contains(&code) => CountersUnavailable::NoHardwareCounters,
        _ => CountersUnavailable::System(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let reason = |code| why_not(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(2), CountersUnavailable::NoHardwareCounters);
        assert_eq!(reason(13), CountersUnavailable::NotPermitted);
        assert_eq!(reason(1), CountersUnavailable::NotPermitted);
        assert_eq!(reason(38), CountersUnavailable::UnsupportedSystem);
        assert!(matches!(reason(24), CountersUnavailable::System(_)));
    }

    #[test]
    fn readings_are_scaled_by_the_time_that_counters_were_there() {
        let at = |count, enabled, running| Reading {
            counts: [count; Role::MOST_EVENTS],
            enabled: Duration::from_micros(enabled),
            running: Duration::from_micros(running),
        };
        let before = at(1_000, 50, 40);
        assert_eq!(at(1_300, 90, 80).since(&before), Some([300.0; Role::MOST_EVENTS]));
        assert_eq!(at(1_300, 90, 50).since(&before), Some([1_200.0; Role::MOST_EVENTS]));
        assert_eq!(at(1_000, 90, 40).since(&before), None);
    }

    #[test]
    fn groups_that_do_not_fit_are_divided_and_others_left_out() {
        let open = |role, events: &[Event]| EventGroup::open_in_parts(role, 0, events);
        let whole =
            open(Role::Stalls, &[Event::TaskClock, Event::PageFaults]).expect("the kernel supports these events");
        assert_eq!(whole.iter().map(|part| (part.first, part.members.len())).collect::<Vec<_>>(), [(0, 1)]);
        // No CPU has an event with this code; the group fails because of it.
        let impossible = Event::Code(u64::MAX);
        assert!(open(Role::Stalls, &[Event::TaskClock, impossible]).is_err());
        assert!(open(Role::Metrics, &[Event::TaskClock, impossible]).is_err());
        assert!(open(Role::Basic, &[]).is_err());
    }
}
