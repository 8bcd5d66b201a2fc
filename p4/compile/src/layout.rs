//! How compiled programs hold entries of tables, action data, members of value sets, and cells: what the control plane
//! needs to know of the compiler.

pub use crate::ir::{
    Action, Cells, CounterId, Id, Key, Leaf, Match, MeterId, ProfileId, Shape, Table, TableId, TableKind,
};
pub use crate::lower::{Packed, identity, initial, pack, pack_member, pack_values};
