//! Control of a running program: its description (`description`), entries as text (`entry`), table contents (`state`,
//! `rows`, `loading`), action profiles (`profiles`, `groups`), default actions (`defaults`), packet replication
//! (`replication`), and requests over a socket (`server`, `intake`, `client`).

pub mod cells;
pub mod defaults;
pub mod entry;
mod groups;
mod intake;
pub mod live;
mod loading;
mod profile_requests;
pub mod profiles;
pub mod replication;
pub mod rows;
pub mod server;
pub mod state;
#[cfg(test)]
pub mod tests;
