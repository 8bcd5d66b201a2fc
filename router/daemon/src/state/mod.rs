//! The state that survives a restart: permanent faces, static routes, strategy choices and Content Store settings.
//!
//! The file is a journal with one JSON object per line: a header, then one record per change in the order of the
//! changes. A change is saved before it is made, or undone if it cannot be saved; only then is its command answered. So
//! every change answered with status 200 survives the end of the process. A change that was not saved is never answered
//! with 200, even if the disk fails. Reading folds the records into a state. Opening writes the folded journal to a
//! temporary file and renames it over the old one, so a complete file exists at every moment. A long journal is
//! shortened in the same way while the router runs. If lines cannot be parsed, the whole old file is copied aside.
//!
//! With a full or read-only disk the router still starts, with the content of the file. Saving is not disabled then:
//! each change tries to write again.

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
