//! The control plane's description of a program: names, kinds and widths of all objects that it may change. The
//! compiler stores it in loadable programs as JSON.

use std::collections::BTreeSet;

use base64ct::{Base64, Encoding as _};
use namehop_p4runtime::info::P4Info;
use namehop_p4runtime::{DecodeError, Message as _};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::ir::{self, Id, Shape};

/// Maximum length of a digest, in bytes.
pub const MAX_DIGEST_BYTES: u16 = 248;

/// Identifies an entry within its table: its prefix length, key, mask, ranges and priority.
pub type Identity = Box<[u64]>;

/// All objects that can be changed, in the order of the compiled program.
#[derive(Serialize, Deserialize)]
pub struct Description {
    /// Tables; tables of group members follow all others.
    pub tables: Vec<TableDescription>,
    /// Counters, also of entries.
    pub counters: Vec<CounterDescription>,
    /// Registers.
    pub registers: Vec<RegisterDescription>,
    /// Meters, also of entries.
    pub meters: Vec<MeterDescription>,
    /// Action profiles and selectors.
    pub profiles: Vec<ProfileDescription>,
    /// Value sets of parsers.
    pub value_sets: Vec<ValueSetDescription>,
    /// Kinds of digests.
    pub digests: Vec<DigestDescription>,
    /// p4info in Protocol Buffers encoding, in Base64; objects are in the order of the lists above.
    pub p4info: String,
}

/// A table.
#[derive(Serialize, Deserialize)]
pub struct TableDescription {
    /// Its keys, actions and size.
    pub table: ir::Table,
    /// Its actions, in the order of `table.actions`.
    pub actions: Vec<ActionDescription>,
    /// True if neither the control plane nor the program changes its entries.
    pub entries_are_const: bool,
    /// Constant entries of a table that has other entries too.
    pub const_entries: BTreeSet<Identity>,
    /// True if the control plane cannot change its default action.
    pub default_is_const: bool,
}

impl TableDescription {
    /// The position of its action profile or selector in the description.
    pub fn profile(&self) -> Option<usize> {
        self.table.profile.map(Id::index)
    }

    /// With a selector: the position of the table of group members.
    pub fn members(&self) -> Option<usize> {
        self.table.members.map(Id::index)
    }
}

/// An action of a table.
#[derive(Serialize, Deserialize)]
pub struct ActionDescription {
    /// The full name.
    pub path: String,
    /// Parameters that the control plane sets; `ir::Action` has their widths.
    pub parameters: Vec<String>,
    /// True if it can only be the default action.
    pub default_only: bool,
    /// True if it cannot be the default action.
    pub table_only: bool,
}

/// A counter.
#[derive(Serialize, Deserialize)]
pub struct CounterDescription {
    /// The full name.
    pub path: String,
    /// Number of cells.
    pub size: u64,
    /// The table for which this is a direct counter: one cell per entry.
    pub table: Option<usize>,
}

/// A value set of a parser.
#[derive(Serialize, Deserialize)]
pub struct ValueSetDescription {
    /// The full name.
    pub path: String,
    /// Maximum number of members.
    pub size: u64,
    /// The fields of a member.
    pub fields: Vec<ir::Key>,
}

/// An action profile or selector.
#[derive(Serialize, Deserialize)]
pub struct ProfileDescription {
    /// The full name.
    pub path: String,
    /// Maximum number of members, and of the slots of all groups.
    pub size: u64,
    /// True for an action selector.
    pub selector: bool,
}

/// A register.
#[derive(Serialize, Deserialize)]
pub struct RegisterDescription {
    /// The full name.
    pub path: String,
    /// Number of cells.
    pub size: u64,
    /// `None` if the control plane cannot access the cells.
    pub shape: Option<Shape>,
}

/// A meter.
#[derive(Serialize, Deserialize)]
pub struct MeterDescription {
    /// The full name.
    pub path: String,
    /// Number of cells.
    pub size: u64,
    /// True if it meters bytes instead of packets.
    pub bytes: bool,
    /// The table for which this is a direct meter: one cell per entry.
    pub table: Option<usize>,
}

/// A kind of digest.
#[derive(Serialize, Deserialize)]
pub struct DigestDescription {
    /// The name of its type.
    pub name: String,
    /// Its parts.
    pub shape: Shape,
}

/// Why the p4info of a compiled program cannot be read.
#[derive(Debug, Error)]
pub enum DamagedP4Info {
    /// It is not Base64.
    #[error("its p4info is corrupt: {0}")]
    Base64(#[from] base64ct::Error),
    /// It is not a message.
    #[error("its p4info is corrupt: {0}")]
    Message(#[from] DecodeError),
}

impl Description {
    /// The objects that controllers can access through P4Runtime.
    ///
    /// # Errors
    /// Fails if the p4info is damaged.
    pub fn p4info(&self) -> Result<P4Info, DamagedP4Info> {
        Ok(P4Info::decode(&*Base64::decode_vec(&self.p4info)?)?)
    }
}
