//! Passes over the intermediate representation; `passes` lists them in their order.

pub mod fold;
pub mod forward;
pub mod fuse;
pub mod hashes;
pub mod in_place;
pub mod live;
pub mod paths;
mod settle;
pub mod split;
pub mod unused;
pub mod visit;
