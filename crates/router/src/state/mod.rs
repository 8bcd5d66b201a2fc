//! What outlives a restart: permanent faces, static routes, strategy choices and Content Store settings.
//!
//! The file is a journal, one JSON object a line: a header, then one record per change in the order of the changes, so
//! that a change is on file before its command is answered and a killed router loses nothing. Reading folds the
//! records; opening writes the folded journal anew to a temporary file and renames it over the old one, so there is
//! never a moment without a whole file. A journal that grows long is shortened in the same way while the router runs.
//! Lines that cannot be understood are set aside with the whole old file.

mod journal;
mod record;
mod shorten;

pub use journal::{Journal, StateError};
pub use record::{
    ContentStoreRecord, FaceRecord, Record, RouteKey, RouteRecord, RouteTerms, SavedState, StrategyRecord, identity,
};

#[cfg(test)]
mod tests;
