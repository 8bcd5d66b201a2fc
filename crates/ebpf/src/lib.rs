//! eBPF programs that run inside the router: object files, instructions, and the verifier.
//!
//! A program comes as an object file that a C compiler has made for the target `bpf` ([`object_file`]). It consists of
//! instructions ([`instruction`]; RFC 9669) and may call a fixed set of helper functions ([`Helper`]). Before it runs, [`verify`]
//! proves that it ends, that it accesses no memory but its own, and that it calls helpers with what they expect. Only
//! then there is a [`Verified`] program, which the crate `dpdk` compiles to instructions of the processor ([`Code`]).
//!
//! Nothing here runs a program.
#![deny(unsafe_code)]

pub mod instruction;
pub mod object_file;
mod program;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verify;

pub use program::{Argument, Code, Entry, Helper, HelperFunction, Interface, Memory, Returned};
pub use verify::{Refusal, Verified, verify};
