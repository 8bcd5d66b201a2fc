//! What a long measurement says of itself while it runs.

/// What is being done, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub what: String,
    /// How much is done.
    pub done: u64,
    /// How much there is to do; 0 = unknown.
    pub total: u64,
}

impl Progress {
    /// Something begins that lasts for an unknown time.
    pub fn of(what: impl Into<String>) -> Self {
        Progress { what: what.into(), done: 0, total: 0 }
    }
}

/// Called by any thread when something begins, and now and then while it goes on.
pub type OnProgress<'a> = dyn Fn(Progress) + Sync + 'a;
