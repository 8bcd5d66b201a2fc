//! Compiled P4 programs between two rings, in several runs.

use std::error::Error;

use super::Measured;

/// What a packet cost one way.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct WayFigures {
    /// What the way is.
    pub way: String,
    /// Packets taken from the ring at a time, and of these through a stage together.
    pub burst: u32,
    /// As above.
    pub batch: u32,
    /// The median of all turns.
    pub cycles: f64,
}

/// What the model of batches says: equations 1 to 6 of the paper.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ModelFigures {
    /// Υ and Θ.
    pub program: ModelTerms,
    /// The best batch by the model.
    pub batch: u32,
    /// The best one when measured.
    pub measured_batch: u32,
    /// By how much the former was dearer when measured.
    pub loss_percent: f64,
}

/// The functions of the model.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ModelTerms {
    /// Υ
    pub input_output: InputOutputTerms,
    /// Θ
    pub processing: ProcessingTerms,
}

/// Υ(B) = each + burst / B + …, in cycles.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct InputOutputTerms {
    /// For each packet.
    pub each: f64,
    /// For each burst.
    pub burst: f64,
}

/// Parts of Θ, in cycles unless it is said.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ProcessingTerms {
    /// Δnecessary
    pub necessary: f64,
    /// Δshared
    pub shared: f64,
    /// Δfetch
    pub fetch: f64,
    /// How many other packets of the batch hide half of it.
    pub others: f64,
}

/// What `namehop p4 bench --json` says of one program.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ProgramFigures {
    /// Entries of its tables.
    pub entries: u64,
    /// Ticks of the clock in a second.
    pub tsc_hz: f64,
    /// All ways.
    pub ways: Vec<WayFigures>,
    /// The model, where it could be fitted.
    pub model: Option<ModelFigures>,
}

/// What measuring one program gave.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramOutcome {
    /// Its figures.
    Measured(ProgramFigures),
    /// It needs something that is not installed here and that the other programs do not need: what.
    Missing(String),
}

/// Measures compiled P4 programs.
pub trait ProgramMeasurements {
    /// Measures one program once; 0 entries are those of the paper.
    ///
    /// # Errors
    /// What all programs need and is missing.
    fn measure(&mut self, program: &str, entries: u64) -> Result<ProgramOutcome, Box<dyn Error + Send + Sync>>;
}

/// All runs of one program.
#[derive(Debug, Clone)]
pub(crate) struct ProgramRuns {
    runs: Vec<ProgramFigures>,
    /// Why there are none.
    missing: Option<String>,
}

impl ProgramRuns {
    pub(crate) fn measure(
        programs: &mut dyn ProgramMeasurements,
        program: &str,
        entries: u64,
        runs: usize,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut measured = ProgramRuns { runs: Vec::new(), missing: None };
        for _ in 0..runs.max(1) {
            match programs.measure(program, entries)? {
                ProgramOutcome::Measured(figures) => measured.runs.push(figures),
                ProgramOutcome::Missing(what) => return Ok(ProgramRuns { runs: Vec::new(), missing: Some(what) }),
            }
        }
        Ok(measured)
    }

    /// Why the program was not measured.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    fn of(run: &ProgramFigures, way: &str, burst: Option<u32>, batch: Option<u32>) -> Option<f64> {
        let is = |figures: &&WayFigures| {
            figures.way == way
                && burst.is_none_or(|burst| burst == figures.burst)
                && batch.is_none_or(|batch| batch == figures.batch)
        };
        run.ways.iter().find(is).map(|figures| figures.cycles)
    }

    /// Cycles per packet of a way with batches of one size.
    pub(crate) fn cycles(&self, way: &str, batch: Option<u32>) -> Option<Measured> {
        self.each(|run| Self::of(run, way, None, batch))
    }

    /// By how many per cent more packets one way takes than another: what the paper calls a gain.
    pub(crate) fn gain_percent(&self, before: (&str, u32), after: (&str, u32)) -> Option<Measured> {
        self.each(|run| {
            let before = Self::of(run, before.0, None, Some(before.1))?;
            Some(100.0 * (before / Self::of(run, after.0, None, Some(after.1))? - 1.0))
        })
    }

    /// 10^6 packets per second of a way; with bursts of one size where it has several.
    pub(crate) fn mpps(&self, way: &str, burst: Option<u32>, batch: Option<u32>) -> Option<Measured> {
        self.each(|run| Some(run.tsc_hz / Self::of(run, way, burst, batch)? / 1e6))
    }

    /// A number of the model.
    pub(crate) fn model(&self, of: impl Fn(&ModelFigures) -> f64) -> Option<Measured> {
        self.each(|run| run.model.as_ref().map(&of))
    }

    fn each(&self, of: impl Fn(&ProgramFigures) -> Option<f64>) -> Option<Measured> {
        let values: Option<Vec<f64>> = self.runs.iter().map(of).collect();
        Measured::of_runs(values?)
    }

    pub(crate) fn entries(&self) -> u64 {
        self.runs.first().map_or(0, |run| run.entries)
    }
}
