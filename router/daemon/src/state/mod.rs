//! What outlives a restart: permanent faces, static routes, strategy choices and Content Store settings.
//!
//! The file is a journal, one JSON object a line: a header, then one record per change in the order of the changes. A
//! change is saved before it is made, or undone if it cannot be saved; only then is its command answered. So what was
//! answered with 200 survives the end of the process, and what was not saved was not answered with 200, whatever the disk
//! does. Reading folds the records; opening writes the folded journal anew to a temporary file and renames it over the old
//! one, so there is never a moment without a whole file. A long journal is shortened in the same way while the router runs.
//! Lines that cannot be understood are set aside with the whole old file.
//!
//! A disk that is full or read-only does not keep the router from starting with what the file holds. Nothing is given up
//! then: each change tries again.

mod files;
mod format;
mod journal;
mod record;
mod rewrite;
mod shorten;

pub(crate) use files::{open, open_own, sibling};
pub use format::StateError;
pub use journal::Journal;
pub use record::{
    ContentStoreRecord, FaceRecord, LoadedStrategyRecord, Record, RouteKey, RouteRecord, RouteTerms, SavedState,
    StrategyRecord, identity,
};

#[cfg(test)]
mod tests;
