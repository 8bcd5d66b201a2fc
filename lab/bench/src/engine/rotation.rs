//! Schedules take turns over the same tables and packets: each has the worker for a short piece of time, until every
//! schedule has had its time.
//!
//! The speed of a host varies over seconds or minutes with its other load. Schedules measured one after the other would
//! be compared across such changes; taking turns spreads them over all schedules.

use std::sync::Barrier;
use std::time::Duration;

use namehop_orders::ScheduleKind;

use super::EngineBenchError;
use super::costs::Samples;
use super::figures::Measured;
use super::load::Load;
use crate::counters::Counters;
use crate::schedule::FloodParameters;

/// Length of a turn: some ten thousand exchanges, so that the cache contents left by the previous schedule do not
/// matter.
pub(super) const PIECE: Duration = Duration::from_millis(25);

/// A warm load that changes between schedules.
pub(super) struct Rotation<'a> {
    load: Load<'a>,
}

impl<'a> Rotation<'a> {
    /// Creates a rotation from a warm load.
    pub(super) fn new(load: Load<'a>) -> Self {
        Rotation { load }
    }

    /// Returns the load under this schedule.
    fn under(&mut self, schedule: ScheduleKind) -> &mut Load<'a> {
        self.load.change_order(schedule);
        &mut self.load
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
                measured.counted = Some(self.under(schedule).count(counters)?);
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
        Ok(Measured { flood: Some(self.under(schedule).measure_flood(flood)?), ..Measured::default() })
    }

    /// Ends the load.
    pub(super) fn finish(self) -> Result<(), EngineBenchError> {
        self.load.finish()
    }
}

/// Measures each schedule for `time`. Several workers, each with its own load, meet at `start` before every piece, so
/// that all run the same schedule. A worker that failed keeps meeting the others.
pub(super) fn take_turns<'a>(
    mut rotation: Result<Rotation<'a>, EngineBenchError>,
    schedules: &[ScheduleKind],
    time: Duration,
    start: &Barrier,
) -> Result<(Rotation<'a>, Vec<Measured>), EngineBenchError> {
    let piece = time.min(PIECE);
    let rounds = time.as_nanos().div_ceil(piece.as_nanos().max(1));
    let mut samples: Vec<Samples> = schedules.iter().map(|_| Samples::default()).collect();
    for _ in 0..rounds {
        for (&schedule, samples) in schedules.iter().zip(&mut samples) {
            start.wait();
            rotation = rotation.and_then(|mut rotation| {
                rotation.under(schedule).measure(piece, samples)?;
                Ok(rotation)
            });
        }
    }
    let measured = samples.iter().map(|samples| Measured { costs: samples.costs(), ..Measured::default() });
    Ok((rotation?, measured.collect()))
}
