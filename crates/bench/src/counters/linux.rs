//! Counters through Linux's perf_event.

use std::io;

use perf_event::events::{Event, Hardware, Raw};
use perf_event::{Builder, Counter, ReadFormat};

use super::WhyNot;
use super::events::{Counts, EventSets, StageEvents};

/// Events that are counted at the same time.
struct EventGroup {
    leader: Counter,
    members: Vec<Counter>,
}

impl EventGroup {
    fn open<E: Event>(first: E, rest: impl IntoIterator<Item = E>) -> io::Result<Self> {
        let format =
            ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        let mut leader = Builder::new(first).read_format(format).build()?;
        let members = rest.into_iter().map(|event| Builder::new(event).build_with_group(&mut leader));
        let members = members.collect::<io::Result<_>>()?;
        Ok(EventGroup { leader, members })
    }

    /// Events by code; `None` if the processor does not have them after all.
    fn open_raw(codes: &[u64]) -> Option<Self> {
        let (&first, rest) = codes.split_first()?;
        Self::open(Raw::new(first), rest.iter().map(|&code| Raw::new(code))).ok()
    }

    fn start(&mut self) -> io::Result<()> {
        self.leader.reset_group()?;
        self.leader.enable_group()
    }

    /// Counts in the order of the codes, scaled up when the processor had not enough counters all the time.
    fn read<const EVENTS: usize>(&mut self) -> io::Result<[f64; EVENTS]> {
        let data = self.leader.read_group()?;
        let scale = match (data.time_enabled(), data.time_running()) {
            (Some(enabled), Some(running)) if !running.is_zero() => enabled.as_secs_f64() / running.as_secs_f64(),
            _ => 1.0,
        };
        let mut counts = [0.0; EVENTS];
        for (count, counter) in counts.iter_mut().zip(std::iter::once(&self.leader).chain(&self.members)) {
            *count = data.get(counter).map_or(0.0, |entry| entry.value() as f64 * scale);
        }
        Ok(counts)
    }
}

/// All groups of a processor.
pub(super) struct Groups {
    basic: EventGroup,
    metrics: Option<EventGroup>,
    slots: Option<EventGroup>,
    stalls: Option<EventGroup>,
    loads: Option<EventGroup>,
}

impl Groups {
    /// Opens what the processor offers; cycles and instructions it must.
    pub(super) fn open(events: EventSets) -> Result<Self, WhyNot> {
        let basic = EventGroup::open(Hardware::CPU_CYCLES, [Hardware::INSTRUCTIONS]);
        let basic = basic.map_err(|error| why_not(&error))?;
        let (metrics, slots) = match &events.stages {
            Some(StageEvents::Metrics(codes)) => (EventGroup::open_raw(codes), None),
            Some(StageEvents::Slots(codes)) => (None, EventGroup::open_raw(codes)),
            None => (None, None),
        };
        let stalls = events.stalls.and_then(|codes| EventGroup::open_raw(&codes));
        let loads = events.loads.and_then(|codes| EventGroup::open_raw(&codes));
        Ok(Groups { basic, metrics, slots, stalls, loads })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut EventGroup> {
        let Groups { basic, metrics, slots, stalls, loads } = self;
        [metrics, slots, stalls, loads].into_iter().flatten().chain([basic])
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        self.all().try_for_each(EventGroup::start)
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.all().try_for_each(|group| group.leader.disable_group())
    }

    pub(super) fn read(&mut self) -> io::Result<Counts> {
        Ok(Counts {
            basic: self.basic.read()?,
            metrics: self.metrics.as_mut().map(EventGroup::read).transpose()?,
            slots: self.slots.as_mut().map(EventGroup::read).transpose()?,
            stalls: self.stalls.as_mut().map(EventGroup::read).transpose()?,
            loads: self.loads.as_mut().map(EventGroup::read).transpose()?,
        })
    }
}

fn why_not(error: &io::Error) -> WhyNot {
    const NO_SUCH_EVENT: [i32; 4] =
        [2 /* ENOENT */, 19 /* ENODEV */, 22 /* EINVAL */, 95 /* EOPNOTSUPP */];
    match error.raw_os_error() {
        _ if error.kind() == io::ErrorKind::PermissionDenied => WhyNot::NotPermitted,
        Some(38 /* ENOSYS */) => WhyNot::UnsupportedSystem,
        Some(code) if NO_SUCH_EVENT.contains(&code) => WhyNot::NoHardwareCounters,
        _ => WhyNot::System(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let reason = |code| why_not(&io::Error::from_raw_os_error(code));
        assert_eq!(reason(2), WhyNot::NoHardwareCounters);
        assert_eq!(reason(13), WhyNot::NotPermitted);
        assert_eq!(reason(1), WhyNot::NotPermitted);
        assert_eq!(reason(38), WhyNot::UnsupportedSystem);
        assert!(matches!(reason(24), WhyNot::System(_)));
    }
}
