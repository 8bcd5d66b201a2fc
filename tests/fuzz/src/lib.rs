//! What every fuzz target checks. Each function takes any bytes and panics only when Namehop is wrong.
//!
//! The fuzzer (`make fuzz`) calls them with inputs it evolves; the test beside this crate calls them with the kept corpus
//! and a fixed number of mutations of it, so that every test run repeats what fuzzing has found.

#![forbid(unsafe_code)]

mod engine;
mod link;
mod packets;
mod script;
mod text;

/// What a target does with its input.
pub type Check = fn(&[u8]);

/// Name and check of every target.
pub const TARGETS: &[(&str, Check)] = &[
    ("name", packets::name),
    ("interest", packets::interest),
    ("data", packets::data),
    ("link_packet", packets::link_packet),
    ("certificate", packets::certificate),
    ("control_parameters", packets::control_parameters),
    ("link_service", link::link_service),
    ("engine", engine::engine),
    ("face_uri", text::face_uri),
    ("name_uri", text::name_uri),
    ("configuration", text::configuration),
];

/// Runs the check of one target.
///
/// # Panics
/// When Namehop is wrong, or there is no such target.
pub fn run(target: &str, bytes: &[u8]) {
    let (_, check) = TARGETS.iter().find(|(name, _)| *name == target).expect("a known target");
    check(bytes);
}
