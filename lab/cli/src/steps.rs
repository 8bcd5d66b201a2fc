//! Steps of measurements as progress on standard error.

use namehop_bench::progress::Progress as Step;
use namehop_cli::progress::Progress;

/// Shows a step of a measurement.
pub fn show(progress: &Progress, step: Step) {
    progress.show(step.what, step.done, step.total);
}
