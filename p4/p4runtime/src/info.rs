//! Messages of p4info (`p4.config.v1`): the objects of a program that a controller can access, and their ids. Only
//! fields that Namehop writes or reads are declared; others are skipped when a message is read.
#![expect(missing_docs, reason = "the specification of P4Runtime describes each field")]

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};

/// The highest byte of an id: the kind of object.
pub mod prefix {
    pub const ACTION: u32 = 1;
    pub const TABLE: u32 = 2;
    pub const VALUE_SET: u32 = 3;
    pub const CONTROLLER_HEADER: u32 = 4;
    pub const ACTION_PROFILE: u32 = 17;
    pub const COUNTER: u32 = 18;
    pub const DIRECT_COUNTER: u32 = 19;
    pub const METER: u32 = 20;
    pub const DIRECT_METER: u32 = 21;
    pub const REGISTER: u32 = 22;
    pub const DIGEST: u32 = 23;
}

#[derive(Clone, PartialEq, Message)]
pub struct P4Info {
    #[prost(message, optional, tag = "1")]
    pub pkg_info: Option<PkgInfo>,
    #[prost(message, repeated, tag = "2")]
    pub tables: Vec<Table>,
    #[prost(message, repeated, tag = "3")]
    pub actions: Vec<Action>,
    #[prost(message, repeated, tag = "4")]
    pub action_profiles: Vec<ActionProfile>,
    #[prost(message, repeated, tag = "5")]
    pub counters: Vec<Counter>,
    #[prost(message, repeated, tag = "6")]
    pub direct_counters: Vec<DirectResource>,
    #[prost(message, repeated, tag = "7")]
    pub meters: Vec<Meter>,
    #[prost(message, repeated, tag = "8")]
    pub direct_meters: Vec<DirectResource>,
    #[prost(message, repeated, tag = "9")]
    pub controller_packet_metadata: Vec<ControllerPacketMetadata>,
    #[prost(message, repeated, tag = "10")]
    pub value_sets: Vec<ValueSet>,
    #[prost(message, repeated, tag = "11")]
    pub registers: Vec<Register>,
    #[prost(message, repeated, tag = "12")]
    pub digests: Vec<Digest>,
    #[prost(message, optional, tag = "200")]
    pub type_info: Option<TypeInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PkgInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "5")]
    pub arch: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Preamble {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub alias: String,
    #[prost(string, repeated, tag = "4")]
    pub annotations: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum MatchType {
    Unspecified = 0,
    Exact = 2,
    Lpm = 3,
    Ternary = 4,
    Range = 5,
    Optional = 6,
}

#[derive(Clone, PartialEq, Message)]
pub struct MatchField {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "4")]
    pub bitwidth: i32,
    #[prost(enumeration = "MatchType", tag = "5")]
    pub match_type: i32,
}

/// A value set of a parser.
#[derive(Clone, PartialEq, Message)]
pub struct ValueSet {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, repeated, tag = "2")]
    pub fields: Vec<MatchField>,
    #[prost(int32, tag = "3")]
    pub size: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Scope {
    TableAndDefault = 0,
    TableOnly = 1,
    DefaultOnly = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct ActionRef {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(string, repeated, tag = "2")]
    pub annotations: Vec<String>,
    #[prost(enumeration = "Scope", tag = "3")]
    pub scope: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Table {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, repeated, tag = "2")]
    pub match_fields: Vec<MatchField>,
    #[prost(message, repeated, tag = "3")]
    pub action_refs: Vec<ActionRef>,
    #[prost(uint32, tag = "4")]
    pub const_default_action_id: u32,
    #[prost(uint32, tag = "6")]
    pub implementation_id: u32,
    #[prost(uint32, repeated, tag = "7")]
    pub direct_resource_ids: Vec<u32>,
    #[prost(int64, tag = "8")]
    pub size: i64,
    /// 1 if controllers are notified of entries that are not used.
    #[prost(int32, tag = "9")]
    pub idle_timeout_behavior: i32,
    #[prost(bool, tag = "10")]
    pub is_const_table: bool,
    #[prost(bool, tag = "11")]
    pub has_initial_entries: bool,
}

/// A parameter of an action, or a field of the header of packets from and to the controller.
#[derive(Clone, PartialEq, Message)]
pub struct Param {
    #[prost(uint32, tag = "1")]
    pub id: u32,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(int32, tag = "4")]
    pub bitwidth: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Action {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, repeated, tag = "2")]
    pub params: Vec<Param>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ActionProfile {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(uint32, repeated, tag = "2")]
    pub table_ids: Vec<u32>,
    #[prost(bool, tag = "3")]
    pub with_selector: bool,
    #[prost(int64, tag = "4")]
    pub size: i64,
}

/// What is counted or metered: `CounterSpec.Unit`; `MeterSpec.Unit` has the same first numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Unit {
    Unspecified = 0,
    Bytes = 1,
    Packets = 2,
    Both = 3,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Spec {
    #[prost(enumeration = "Unit", tag = "1")]
    pub unit: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Counter {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, optional, tag = "2")]
    pub spec: Option<Spec>,
    #[prost(int64, tag = "3")]
    pub size: i64,
}

/// Has the same fields.
pub type Meter = Counter;

/// A direct counter or meter: one cell for each entry of a table.
#[derive(Clone, PartialEq, Message)]
pub struct DirectResource {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, optional, tag = "2")]
    pub spec: Option<Spec>,
    #[prost(uint32, tag = "3")]
    pub direct_table_id: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ControllerPacketMetadata {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, repeated, tag = "2")]
    pub metadata: Vec<Param>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Register {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, optional, tag = "2")]
    pub type_spec: Option<DataType>,
    #[prost(int32, tag = "3")]
    pub size: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Digest {
    #[prost(message, required, tag = "1")]
    pub preamble: Preamble,
    #[prost(message, optional, tag = "2")]
    pub type_spec: Option<DataType>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TypeInfo {
    #[prost(btree_map = "string, message", tag = "1")]
    pub structs: BTreeMap<String, StructType>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StructType {
    #[prost(message, repeated, tag = "1")]
    pub members: Vec<Member>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Member {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub type_spec: Option<DataType>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataType {
    #[prost(oneof = "DataKind", tags = "1, 2, 3, 4")]
    pub kind: Option<DataKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum DataKind {
    #[prost(message, tag = "1")]
    Bitstring(BitstringType),
    #[prost(message, tag = "2")]
    Bool(BoolType),
    #[prost(message, tag = "3")]
    Tuple(TupleType),
    #[prost(message, tag = "4")]
    Struct(NamedType),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct BoolType {}

#[derive(Clone, PartialEq, Message)]
pub struct NamedType {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct TupleType {
    #[prost(message, repeated, tag = "1")]
    pub members: Vec<DataType>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct BitstringType {
    #[prost(oneof = "BitstringKind", tags = "1, 2")]
    pub kind: Option<BitstringKind>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum BitstringKind {
    #[prost(message, tag = "1")]
    Bit(Width),
    #[prost(message, tag = "2")]
    Int(Width),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Width {
    #[prost(int32, tag = "1")]
    pub bitwidth: i32,
}
