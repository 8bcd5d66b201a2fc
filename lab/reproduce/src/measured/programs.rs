//! Compiled P4 programs between two rings, in several runs.

use std::error::Error;

use super::Measured;

/// Cost of a packet in one way of execution.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct WayFigures {
    /// Name of the way.
    pub way: String,
    /// Packets dequeued from the ring at a time.
    pub burst: u32,
    /// Packets of a burst processed together in a stage.
    pub batch: u32,
    /// Median cycles per packet over all turns.
    pub cycles: f64,
}

/// Results of the batch model: equations 1 to 6 of the paper.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ModelFigures {
    /// Fitted terms of Υ and Θ.
    pub program: ModelTerms,
    /// Best batch size by the model.
    pub batch: u32,
    /// Best batch size when measured.
    pub measured_batch: u32,
    /// Measured extra cost of `batch` over `measured_batch`, in per cent.
    pub loss_percent: f64,
}

/// Fitted functions of the model.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ModelTerms {
    /// Υ
    pub input_output: InputOutputTerms,
    /// Θ
    pub processing: ProcessingTerms,
}

/// Terms of Υ(B) = each + burst / B + …, in cycles.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct InputOutputTerms {
    /// Cycles per packet.
    pub each: f64,
    /// Cycles per burst.
    pub burst: f64,
}

/// Terms of Θ, in cycles unless stated otherwise.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ProcessingTerms {
    /// Δnecessary
    pub necessary: f64,
    /// Δshared
    pub shared: f64,
    /// Δfetch
    pub fetch: f64,
    /// Number of other packets of the batch that hide half of `fetch`.
    pub others: f64,
}

/// Output of `namehop p4 bench --json` for one program.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct ProgramFigures {
    /// Entries of the program's tables.
    pub entries: u64,
    /// Ticks of the time-stamp counter per second.
    pub tsc_hz: f64,
    /// Figures of all ways.
    pub ways: Vec<WayFigures>,
    /// The fitted model; `None` if it could not be fitted.
    pub model: Option<ModelFigures>,
}

/// Result of measuring one program.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgramOutcome {
    /// Figures of the program.
    Measured(ProgramFigures),
    /// The program needs something that is not installed and that other programs do not need; the text says what.
    Missing(String),
}

/// Measures compiled P4 programs.
pub trait ProgramMeasurements {
    /// Measures one program once; 0 entries select the paper's number.
    ///
    /// # Errors
    /// Fails if something that all programs need is missing.
    fn measure(&mut self, program: &str, entries: u64) -> Result<ProgramOutcome, Box<dyn Error + Send + Sync>>;
}

/// Figures of one program over all runs.
#[derive(Debug, Clone)]
pub(crate) struct ProgramRuns {
    runs: Vec<ProgramFigures>,
    /// Why the program was not measured.
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

    /// Returns why the program was not measured, if so.
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

    /// Cycles per packet of a way, with the given batch size.
    pub(crate) fn cycles(&self, way: &str, batch: Option<u32>) -> Option<Measured> {
        self.each(|run| Self::of(run, way, None, batch))
    }

    /// Throughput gain of `after` over `before`, in per cent: what the paper calls a gain.
    pub(crate) fn gain_percent(&self, before: (&str, u32), after: (&str, u32)) -> Option<Measured> {
        self.each(|run| {
            let before = Self::of(run, before.0, None, Some(before.1))?;
            Some(100.0 * (before / Self::of(run, after.0, None, Some(after.1))? - 1.0))
        })
    }

    /// 10^6 packets per second of a way, with the given burst and batch size if it has several.
    pub(crate) fn mpps(&self, way: &str, burst: Option<u32>, batch: Option<u32>) -> Option<Measured> {
        self.each(|run| Some(run.tsc_hz / Self::of(run, way, burst, batch)? / 1e6))
    }

    /// A value of the model, by run.
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
