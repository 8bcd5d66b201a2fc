//! How a worker chose the size of its batches, and what the model of batches says to that.

use namehop_model::batch::{Processing, cheapest};
use serde::Serialize;

/// What a packet cost with batches of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Packets in a batch.
    pub batch: u32,
    /// Cycles per packet of the clock that the processor counts by: the median of bursts.
    pub cycles: f64,
}

/// How a worker chose the size of its batches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchReport {
    /// Packets in a batch now, at most.
    pub batch: u32,
    /// How often it was chosen by measuring; 0 as long as there were too few packets at a time.
    pub choices: u32,
    /// What was measured last.
    pub measured: Vec<Measured>,
    /// The best batch of the model that is fitted to every second size that was measured: see `namehop_model::batch`.
    pub model_batch: Option<u32>,
    /// By how many per cent it was dearer than the cheapest one when measured.
    pub model_loss_percent: Option<f64>,
}

impl BatchReport {
    pub(crate) fn new(batch: u32, choices: u32, points: &[(u32, f64)]) -> Self {
        let measured = points.iter().map(|&(batch, cycles)| Measured { batch, cycles }).collect();
        // What the model is to predict, it does not know.
        let known: Vec<(u32, f64)> = points.iter().copied().step_by(2).collect();
        let sizes: Vec<u32> = points.iter().map(|point| point.0).collect();
        let model_batch = Processing::fit(&known).and_then(|fit| cheapest(&sizes, |batch| fit.cycles(batch)));
        let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let of_model = points.iter().find(|point| Some(point.0) == model_batch);
        let model_loss_percent = of_model.map(|point| 100.0 * (point.1 / least - 1.0));
        BatchReport { batch, choices, measured, model_batch, model_loss_percent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_compared_with_what_it_did_not_see() {
        let points = [(1, 300.0), (2, 200.0), (4, 150.0), (8, 120.0), (16, 110.0), (32, 104.0), (64, 106.0)];
        let report = BatchReport::new(32, 1, &points);
        assert_eq!(report.measured.len(), 7);
        assert!(report.model_batch.is_some_and(|batch| batch >= 16));
        assert!(report.model_loss_percent.is_some_and(|loss| (0.0..=6.0).contains(&loss)));
    }

    #[test]
    fn nothing_measured_is_nothing_predicted() {
        let report = BatchReport::new(32, 0, &[]);
        assert_eq!((report.model_batch, report.model_loss_percent), (None, None));
        assert!(report.measured.is_empty());
    }
}
