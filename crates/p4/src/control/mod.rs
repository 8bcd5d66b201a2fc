//! The control of a program that runs: what it has (`describe`), entries as text (`entry`), what is in its tables (`state`), and
//! requests over a socket (`server`, `client`).

pub mod cells;
pub mod client;
pub mod describe;
mod entry;
pub mod server;
mod state;
#[cfg(test)]
mod tests;
