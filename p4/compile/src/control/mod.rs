//! The control of a program that runs: what it has (`describe`), entries as text (`entry`), what is in its tables (`state`, `rows`, `loading`) and action profiles (`profiles`, `groups`), what keys
//! without an entry get (`defaults`), where copies go (`replication`), and requests over a socket (`server`, `client`).

pub mod cells;
pub mod client;
pub mod defaults;
pub mod describe;
pub mod entry;
mod groups;
pub mod live;
mod loading;
pub mod profile_client;
mod profile_requests;
pub mod profiles;
pub mod replication;
pub mod rows;
pub mod server;
pub mod state;
#[cfg(test)]
pub mod tests;
