//! The compiler of P4 programs: from a checked program to C.
//!
//! The typed tree is lowered to an intermediate representation (`lower`, `ir`), simplified (`optimise`; [`passes`]
//! lists the steps) and emitted as C code ([`emit`]). [`compile()`] does all of it. The control plane of a compiled
//! program knows it by [`description`], which has its p4info (`p4info`), and by [`layout`].
#![forbid(unsafe_code)]

mod compile;
mod describe;
pub mod description;
pub mod emit;
mod ir;
pub mod layout;
mod lower;
mod optimise;
mod p4info;
pub mod passes;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;

pub use compile::{Compiled, compile};
