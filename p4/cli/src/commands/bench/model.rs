//! Applies the batch model (`namehop_switch::batch_model`, equations 1 to 6 of the paper) to a measurement: fitted to
//! some burst and batch sizes, it predicts the best ones.

use namehop_switch::batch_model::{InputOutput, Processing, Program, cheapest};
use serde::Serialize;
use serde_json::Value;

/// Batch sizes that are left out of the fit. The others are 1, 4, 16 and 64.
const UNSEEN: [u32; 3] = [2, 8, 32];

/// The model of one program with one table size.
#[derive(Debug, Serialize)]
pub struct Prediction {
    /// Υ and Θ, fitted.
    pub program: Program,
    /// B_opt of equation 1, among the measured sizes.
    pub burst: u32,
    pub batch: u32,
    /// T of equation 2 at these sizes, in packets per second.
    pub packets_per_second: f64,
    /// The cheapest measured batch size, in bursts of one size, and by how many per cent the predicted one cost more.
    pub measured_batch: u32,
    pub loss_percent: f64,
    /// Mean deviation of predicted from measured cycles, for the sizes left out of the fit.
    pub error_percent: f64,
}

fn points(ways: &[Value], way: &str, size: &str) -> Vec<(u32, f64)> {
    let of = |found: &&Value| found["way"] == way;
    let number = |found: &Value| Some((u32::try_from(found[size].as_u64()?).ok()?, found["cycles"].as_f64()?));
    ways.iter().filter(of).filter_map(number).collect()
}

/// Fits the model to a measurement. `None` if too little was measured.
pub fn predict(ways: &[Value], tsc_hz: f64) -> Option<Prediction> {
    let rings = points(ways, "rings alone", "burst");
    let batches = points(ways, "batches, prefetch", "batch");
    let input_output = InputOutput::fit(&rings)?;
    // All batches were measured with the same burst size, so subtracting the cost of the rings leaves Θ.
    let burst = ways.iter().find(|way| way["way"] == "batches, prefetch")?["burst"].as_u64()?;
    let around = rings.iter().find(|(size, _)| u64::from(*size) == burst)?.1;
    let processing: Vec<(u32, f64)> = batches.iter().map(|(batch, cycles)| (*batch, cycles - around)).collect();
    let seen: Vec<(u32, f64)> = processing.iter().copied().filter(|(batch, _)| !UNSEEN.contains(batch)).collect();
    let program = Program { input_output, processing: Processing::fit(&seen)? };
    let sizes = |points: &[(u32, f64)]| points.iter().map(|(size, _)| *size).collect::<Vec<_>>();
    let (best_burst, best_batch) = program.best(&sizes(&rings), &sizes(&batches))?;
    let measured = |batch: u32| batches.iter().find(|point| point.0 == batch).map(|point| point.1);
    let least = batches.iter().map(|(_, cycles)| *cycles).fold(f64::INFINITY, f64::min);
    let errors: Vec<f64> = processing
        .iter()
        .filter(|(batch, _)| UNSEEN.contains(batch))
        .map(|(batch, cycles)| ((program.processing.cycles(*batch) - cycles) / (cycles + around)).abs())
        .collect();
    Some(Prediction {
        burst: best_burst,
        batch: best_batch,
        packets_per_second: program.throughput(tsc_hz, best_burst, best_batch),
        measured_batch: cheapest(&sizes(&batches), |batch| measured(batch).unwrap_or(f64::INFINITY))?,
        loss_percent: 100.0 * (measured(best_batch)? / least - 1.0),
        error_percent: 100.0 * errors.iter().sum::<f64>() / errors.len() as f64,
        program,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_measured_is_predicted_from_half_of_it() {
        let mut ways = Vec::new();
        for burst in [1, 8, 64] {
            ways.push(json!({"way": "rings alone", "burst": burst, "cycles": 16.0 + 10.0 / f64::from(burst)}));
        }
        let processing = Processing {
            necessary: 80.0,
            shared: 30.0,
            fetch: 700.0,
            others: 4.0,
            room: 64.0,
            ..Processing::default()
        };
        for batch in [1, 2, 4, 8, 16, 32, 64] {
            let cycles = 16.0 + 10.0 / 64.0 + processing.cycles(batch);
            ways.push(json!({"way": "batches, prefetch", "burst": 64, "batch": batch, "cycles": cycles}));
        }
        let prediction = predict(&ways, 1e9).expect("a prediction");
        assert!(prediction.loss_percent < 1.0 && prediction.error_percent < 1.0, "{prediction:?}");
        assert_eq!(prediction.burst, 64);
        assert!(predict(&ways[..4], 1e9).is_none());
    }
}
