//! Progress reports of long measurements.

/// A step of a measurement, and how much of it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Description of the step.
    pub what: String,
    /// Units of work done.
    pub done: u64,
    /// Units of work in total; 0 if unknown.
    pub total: u64,
}

impl Progress {
    /// Reports the start of a step of unknown duration.
    pub fn of(what: impl Into<String>) -> Self {
        Progress { what: what.into(), done: 0, total: 0 }
    }
}

/// Callback for progress reports. Any thread may call it, at the start of a step and repeatedly during it.
pub type OnProgress<'a> = dyn Fn(Progress) + Sync + 'a;
