//! P4Runtime: how controllers change a P4 program that runs.
//!
//! * [`info`]: p4info, which says what of a program can be reached, and [`text`], its text format. Messages are written here with the
//!   numbers of the specification, so that no compiler of Protocol Buffers is needed.
#![forbid(unsafe_code)]

pub mod info;
pub mod text;

pub use prost::Message;
