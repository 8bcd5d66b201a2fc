//! The control plane's description of a program: names, kinds and widths of all objects that it may change. The
//! compiler stores it in loadable programs as JSON.

use std::collections::BTreeSet;

use base64ct::{Base64, Encoding as _};
use namehop_p4runtime::info::P4Info;
use namehop_p4runtime::{DecodeError, Message as _};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::rows::Identity;
use crate::ir::{self, Id, Shape};

/// All objects that can be changed, in the order of the compiled program.
#[derive(Serialize, Deserialize)]
pub struct Description {
    pub tables: Vec<TableDescription>,
    pub counters: Vec<CounterDescription>,
    pub registers: Vec<RegisterDescription>,
    pub meters: Vec<MeterDescription>,
    pub profiles: Vec<ProfileDescription>,
    pub value_sets: Vec<ValueSetDescription>,
    pub digests: Vec<DigestDescription>,
    /// p4info in Protocol Buffers encoding, in Base64; objects are in the order of the lists above.
    pub p4info: String,
}

#[derive(Serialize, Deserialize)]
pub struct TableDescription {
    pub table: ir::Table,
    pub actions: Vec<ActionDescription>,
    pub entries_are_const: bool,
    /// Constant entries of a table that has other entries too.
    pub const_entries: BTreeSet<Identity>,
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

#[derive(Serialize, Deserialize)]
pub struct ActionDescription {
    /// The full name.
    pub path: String,
    /// Parameters that the control plane sets; `ir::Action` has their widths.
    pub parameters: Vec<String>,
    pub default_only: bool,
    pub table_only: bool,
}

#[derive(Serialize, Deserialize)]
pub struct CounterDescription {
    pub path: String,
    pub size: u64,
    /// The table for which this is a direct counter: one cell per entry.
    pub table: Option<usize>,
}

/// A value set of a parser.
#[derive(Serialize, Deserialize)]
pub struct ValueSetDescription {
    pub path: String,
    pub size: u64,
    pub fields: Vec<ir::Key>,
}

/// An action profile or selector.
#[derive(Serialize, Deserialize)]
pub struct ProfileDescription {
    pub path: String,
    pub size: u64,
    pub selector: bool,
}

#[derive(Serialize, Deserialize)]
pub struct RegisterDescription {
    pub path: String,
    pub size: u64,
    /// `None` if the control plane cannot access the cells.
    pub shape: Option<Shape>,
}

#[derive(Serialize, Deserialize)]
pub struct MeterDescription {
    pub path: String,
    pub size: u64,
    /// True if it meters bytes instead of packets.
    pub bytes: bool,
    /// The table for which this is a direct meter: one cell per entry.
    pub table: Option<usize>,
}

#[derive(Serialize, Deserialize)]
pub struct DigestDescription {
    pub name: String,
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
