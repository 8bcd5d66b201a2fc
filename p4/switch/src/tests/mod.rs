//! Tests of the whole crate, with compiled programs.

mod entries;
mod entry_changes;
mod entry_forms;
mod entry_model;
mod entry_profile;
