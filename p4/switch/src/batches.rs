//! How a worker chose its batch size, compared with the batch model's prediction.

use serde::Serialize;

use crate::batch_model::{Processing, cheapest};

/// Measured cost of a packet for one batch size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Packets per batch.
    pub batch: u32,
    /// Cycles per packet, in ticks of the CPU's time-stamp counter: the median over bursts.
    pub cycles: f64,
}

/// How a worker chose its batch size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchReport {
    /// Current maximum number of packets per batch.
    pub batch: u32,
    /// How often a size was chosen by measuring; 0 while bursts have been too small.
    pub choices: u32,
    /// Results of the last measurement.
    pub measured: Vec<Measured>,
    /// Best batch size according to the model fitted to every second measured size: see `crate::batch_model`.
    pub model_batch: Option<u32>,
    /// How many per cent more the model's choice cost, when measured, than the cheapest size.
    pub model_loss_percent: Option<f64>,
}

impl BatchReport {
    pub(crate) fn new(batch: u32, choices: u32, points: &[(u32, f64)]) -> Self {
        let measured = points.iter().map(|&(batch, cycles)| Measured { batch, cycles }).collect();
        // Fit to every second size only, so that the model predicts the other sizes.
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
