//! Schedules take turns over the same tables and packets: each has the worker for a short piece of time, until every
//! schedule has had its time.
//!
//! The speed of a host varies over seconds or minutes with its other load. Schedules measured one after the other would
//! be compared across such changes; taking turns spreads them over all schedules.

use std::sync::Barrier;
use std::time::Duration;

use namehop_engine::schedule::{Burst, Schedule, ScheduleKind, ScheduleTask, Stripped};

use super::EngineBenchError;
use super::costs::Samples;
use super::figures::Measured;
use super::load::Load;
use crate::counters::{Counters, Tally};
use crate::schedule::{ByPacket, FloodFigures, FloodParameters};

/// Length of a turn: some ten thousand exchanges, so that the cache contents left by the previous schedule do not
/// matter.
pub(super) const PIECE: Duration = Duration::from_millis(25);

/// A load under any schedule. `B` is a schedule of the same path that the load can always be changed to.
trait AnyLoad<'a, B: Schedule> {
    /// Returns the load under `B`.
    fn based(self: Box<Self>) -> Load<'a, B>;
    /// See [`Load::measure`].
    fn measure(&mut self, time: Duration, samples: &mut Samples) -> Result<(), EngineBenchError>;
    /// See [`Load::count`].
    fn count(&mut self, counters: Counters) -> Result<ByPacket<Tally>, EngineBenchError>;
    /// See [`Load::measure_flood`].
    fn measure_flood(&mut self, flood: &FloodParameters) -> Result<FloodFigures, EngineBenchError>;
}

impl<'a, S: Schedule, B: Schedule> AnyLoad<'a, B> for Load<'a, S> {
    fn based(self: Box<Self>) -> Load<'a, B> {
        (*self).with_schedule()
    }

    fn measure(&mut self, time: Duration, samples: &mut Samples) -> Result<(), EngineBenchError> {
        Load::measure(self, time, samples)
    }

    fn count(&mut self, counters: Counters) -> Result<ByPacket<Tally>, EngineBenchError> {
        Load::count(self, counters)
    }

    fn measure_flood(&mut self, flood: &FloodParameters) -> Result<FloodFigures, EngineBenchError> {
        Load::measure_flood(self, flood)
    }
}

/// Changes the schedule of a load.
struct Change<'a, B: Schedule>(Load<'a, B>);

impl<'a, B: Schedule> ScheduleTask for Change<'a, B> {
    type Output = Box<dyn AnyLoad<'a, B> + 'a>;

    fn run<S: Schedule>(self) -> Self::Output {
        if B::IS_STRIPPED {
            Box::new(self.0.with_schedule::<Stripped<S>>())
        } else {
            Box::new(self.0.with_schedule::<S>())
        }
    }
}

/// A warm load that changes between schedules.
pub(super) struct Rotation<'a, B: Schedule = Burst> {
    /// `None` only while the schedule is changed.
    load: Option<Box<dyn AnyLoad<'a, B> + 'a>>,
}

impl<'a, B: Schedule> Rotation<'a, B> {
    /// Creates a rotation from a warm load.
    pub(super) fn new(load: Load<'a, B>) -> Self {
        Rotation { load: Some(Box::new(load)) }
    }

    /// Returns the load under this schedule.
    fn under(&mut self, schedule: ScheduleKind) -> Result<&mut (dyn AnyLoad<'a, B> + 'a), EngineBenchError> {
        let load = self.load.take().ok_or_else(|| EngineBenchError::Rig("the load is missing".to_owned()))?;
        Ok(&mut **self.load.insert(schedule.call(Change(load.based()))))
    }

    /// Counts hardware events under each schedule. `open` opens the counters.
    pub(super) fn count(
        &mut self,
        schedules: &[ScheduleKind],
        measured: &mut [Measured],
        open: impl Fn() -> Option<Counters>,
    ) -> Result<(), EngineBenchError> {
        for (&schedule, measured) in schedules.iter().zip(measured) {
            if let Some(counters) = open() {
                measured.counted = Some(self.under(schedule)?.count(counters)?);
            }
        }
        Ok(())
    }

    /// Measures a flood under one schedule; afterwards the tables are full of its entries.
    pub(super) fn measure_flood(
        &mut self,
        schedule: ScheduleKind,
        flood: &FloodParameters,
    ) -> Result<Measured, EngineBenchError> {
        Ok(Measured { flood: Some(self.under(schedule)?.measure_flood(flood)?), ..Measured::default() })
    }

    /// Ends the load.
    pub(super) fn finish(self) -> Result<(), EngineBenchError> {
        self.load.map_or(Ok(()), |load| load.based().finish())
    }
}

/// Measures each schedule for `time`. Several workers, each with its own load, meet at `start` before every piece, so
/// that all run the same schedule. A worker that failed keeps meeting the others.
pub(super) fn take_turns<'a, B: Schedule>(
    mut rotation: Result<Rotation<'a, B>, EngineBenchError>,
    schedules: &[ScheduleKind],
    time: Duration,
    start: &Barrier,
) -> Result<(Rotation<'a, B>, Vec<Measured>), EngineBenchError> {
    let piece = time.min(PIECE);
    let rounds = time.as_nanos().div_ceil(piece.as_nanos().max(1));
    let mut samples: Vec<Samples> = schedules.iter().map(|_| Samples::default()).collect();
    for _ in 0..rounds {
        for (&schedule, samples) in schedules.iter().zip(&mut samples) {
            start.wait();
            rotation = rotation.and_then(|mut rotation| {
                rotation.under(schedule)?.measure(piece, samples)?;
                Ok(rotation)
            });
        }
    }
    let measured = samples.iter().map(|samples| Measured { costs: samples.costs(), ..Measured::default() });
    Ok((rotation?, measured.collect()))
}
