//! Objects that controllers write and read: entries of tables, cells of counters, meters and registers, multicast
//! groups and mirroring sessions (`p4.v1`).
#![expect(missing_docs, reason = "the specification of P4Runtime describes each field")]

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct Entity {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Kind {
    #[prost(message, tag = "1")]
    Extern(Unknown),
    #[prost(message, tag = "2")]
    Table(TableEntry),
    #[prost(message, tag = "3")]
    Member(ProfileMember),
    #[prost(message, tag = "4")]
    Group(ProfileGroup),
    #[prost(message, tag = "5")]
    Meter(MeterEntry),
    #[prost(message, tag = "6")]
    DirectMeter(DirectMeterEntry),
    #[prost(message, tag = "7")]
    Counter(CounterEntry),
    #[prost(message, tag = "8")]
    DirectCounter(DirectCounterEntry),
    #[prost(message, tag = "9")]
    Replication(ReplicationEntry),
    #[prost(message, tag = "10")]
    ValueSet(ValueSetEntry),
    #[prost(message, tag = "11")]
    Register(RegisterEntry),
    #[prost(message, tag = "12")]
    Digest(DigestEntry),
}

/// A message with contents that are ignored.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Unknown {}

#[derive(Clone, PartialEq, Message)]
pub struct TableEntry {
    #[prost(uint32, tag = "1")]
    pub table_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub matches: Vec<FieldMatch>,
    #[prost(message, optional, tag = "3")]
    pub action: Option<TableAction>,
    #[prost(int32, tag = "4")]
    pub priority: i32,
    #[prost(uint64, tag = "5")]
    pub controller_metadata: u64,
    #[prost(message, optional, tag = "6")]
    pub meter_config: Option<MeterConfig>,
    #[prost(message, optional, tag = "7")]
    pub counter_data: Option<CounterData>,
    #[prost(bool, tag = "8")]
    pub is_default_action: bool,
    #[prost(int64, tag = "9")]
    pub idle_timeout_ns: i64,
    #[prost(message, optional, tag = "10")]
    pub time_since_last_hit: Option<IdleTime>,
    #[prost(bytes = "vec", tag = "11")]
    pub metadata: Vec<u8>,
    #[prost(message, optional, tag = "12")]
    pub meter_counter_data: Option<Unknown>,
    #[prost(bool, tag = "13")]
    pub is_const: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct IdleTime {
    #[prost(int64, tag = "1")]
    pub elapsed_ns: i64,
}

/// A member of an action profile.
#[derive(Clone, PartialEq, Message)]
pub struct ProfileMember {
    #[prost(uint32, tag = "1")]
    pub action_profile_id: u32,
    #[prost(uint32, tag = "2")]
    pub member_id: u32,
    #[prost(message, optional, tag = "3")]
    pub action: Option<Action>,
}

/// A group of members.
#[derive(Clone, PartialEq, Message)]
pub struct ProfileGroup {
    #[prost(uint32, tag = "1")]
    pub action_profile_id: u32,
    #[prost(uint32, tag = "2")]
    pub group_id: u32,
    #[prost(message, repeated, tag = "3")]
    pub members: Vec<GroupMember>,
    #[prost(int32, tag = "4")]
    pub max_size: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct GroupMember {
    #[prost(uint32, tag = "1")]
    pub member_id: u32,
    #[prost(int32, tag = "2")]
    pub weight: i32,
    #[prost(int32, tag = "3")]
    pub watch: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub watch_port: Vec<u8>,
}

/// All members of a value set.
#[derive(Clone, PartialEq, Message)]
pub struct ValueSetEntry {
    #[prost(uint32, tag = "1")]
    pub value_set_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<ValueSetMember>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueSetMember {
    #[prost(message, repeated, tag = "1")]
    pub matches: Vec<FieldMatch>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DirectCounterEntry {
    #[prost(message, optional, tag = "1")]
    pub table_entry: Option<TableEntry>,
    #[prost(message, optional, tag = "2")]
    pub data: Option<CounterData>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DirectMeterEntry {
    #[prost(message, optional, tag = "1")]
    pub table_entry: Option<TableEntry>,
    #[prost(message, optional, tag = "2")]
    pub config: Option<MeterConfig>,
    #[prost(message, optional, tag = "3")]
    pub counter_data: Option<Unknown>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FieldMatch {
    #[prost(uint32, tag = "1")]
    pub field_id: u32,
    #[prost(oneof = "FieldKind", tags = "2, 3, 4, 6, 7")]
    pub kind: Option<FieldKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum FieldKind {
    #[prost(message, tag = "2")]
    Exact(Single),
    #[prost(message, tag = "3")]
    Ternary(Pair),
    #[prost(message, tag = "4")]
    Lpm(Prefix),
    #[prost(message, tag = "6")]
    Range(Pair),
    #[prost(message, tag = "7")]
    Optional(Single),
}

#[derive(Clone, PartialEq, Message)]
pub struct Single {
    #[prost(bytes = "vec", tag = "1")]
    pub value: Vec<u8>,
}

/// A value and its mask, or the first and last of a range.
#[derive(Clone, PartialEq, Message)]
pub struct Pair {
    #[prost(bytes = "vec", tag = "1")]
    pub first: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub second: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Prefix {
    #[prost(bytes = "vec", tag = "1")]
    pub value: Vec<u8>,
    #[prost(int32, tag = "2")]
    pub length: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TableAction {
    #[prost(oneof = "TableActionKind", tags = "1, 2, 3, 4")]
    pub kind: Option<TableActionKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum TableActionKind {
    #[prost(message, tag = "1")]
    Action(Action),
    #[prost(uint32, tag = "2")]
    MemberId(u32),
    #[prost(uint32, tag = "3")]
    GroupId(u32),
    #[prost(message, tag = "4")]
    Set(ActionSet),
}

#[derive(Clone, PartialEq, Message)]
pub struct Action {
    #[prost(uint32, tag = "1")]
    pub action_id: u32,
    #[prost(message, repeated, tag = "4")]
    pub params: Vec<Field>,
}

/// A value with the id of what it is for.
#[derive(Clone, PartialEq, Message)]
pub struct Field {
    #[prost(uint32, tag = "2")]
    pub id: u32,
    #[prost(bytes = "vec", tag = "3")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ActionSet {
    #[prost(message, repeated, tag = "1")]
    pub actions: Vec<WeightedAction>,
    #[prost(int32, tag = "2")]
    pub action_selection_mode: i32,
    #[prost(int32, tag = "3")]
    pub size_semantics: i32,
    #[prost(message, optional, tag = "5")]
    pub group_action: Option<Unknown>,
}

#[derive(Clone, PartialEq, Message)]
pub struct WeightedAction {
    #[prost(message, optional, tag = "1")]
    pub action: Option<Action>,
    #[prost(int32, tag = "2")]
    pub weight: i32,
    #[prost(int32, tag = "3")]
    pub watch: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub watch_port: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Index {
    #[prost(int64, tag = "1")]
    pub index: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct MeterEntry {
    #[prost(uint32, tag = "1")]
    pub meter_id: u32,
    #[prost(message, optional, tag = "2")]
    pub index: Option<Index>,
    #[prost(message, optional, tag = "3")]
    pub config: Option<MeterConfig>,
    #[prost(message, optional, tag = "4")]
    pub counter_data: Option<Unknown>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct MeterConfig {
    #[prost(int64, tag = "1")]
    pub cir: i64,
    #[prost(int64, tag = "2")]
    pub cburst: i64,
    #[prost(int64, tag = "3")]
    pub pir: i64,
    #[prost(int64, tag = "4")]
    pub pburst: i64,
    #[prost(int64, tag = "5")]
    pub eburst: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct CounterEntry {
    #[prost(uint32, tag = "1")]
    pub counter_id: u32,
    #[prost(message, optional, tag = "2")]
    pub index: Option<Index>,
    #[prost(message, optional, tag = "3")]
    pub data: Option<CounterData>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct CounterData {
    #[prost(int64, tag = "1")]
    pub byte_count: i64,
    #[prost(int64, tag = "2")]
    pub packet_count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReplicationEntry {
    #[prost(oneof = "ReplicationKind", tags = "1, 2")]
    pub kind: Option<ReplicationKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum ReplicationKind {
    #[prost(message, tag = "1")]
    Multicast(MulticastGroupEntry),
    #[prost(message, tag = "2")]
    Clone(CloneSessionEntry),
}

#[derive(Clone, PartialEq, Message)]
pub struct Replica {
    #[prost(uint32, tag = "2")]
    pub instance: u32,
    #[prost(oneof = "PortKind", tags = "1, 3")]
    pub port: Option<PortKind>,
    #[prost(message, repeated, tag = "4")]
    pub backup_replicas: Vec<Unknown>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum PortKind {
    #[prost(uint32, tag = "1")]
    Number(u32),
    #[prost(bytes = "vec", tag = "3")]
    Bytes(Vec<u8>),
}

#[derive(Clone, PartialEq, Message)]
pub struct MulticastGroupEntry {
    #[prost(uint32, tag = "1")]
    pub multicast_group_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub replicas: Vec<Replica>,
    #[prost(bytes = "vec", tag = "3")]
    pub metadata: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CloneSessionEntry {
    #[prost(uint32, tag = "1")]
    pub session_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub replicas: Vec<Replica>,
    #[prost(uint32, tag = "3")]
    pub class_of_service: u32,
    #[prost(int32, tag = "4")]
    pub packet_length_bytes: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct RegisterEntry {
    #[prost(uint32, tag = "1")]
    pub register_id: u32,
    #[prost(message, optional, tag = "2")]
    pub index: Option<Index>,
    #[prost(message, optional, tag = "3")]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Data {
    #[prost(oneof = "DataValue", tags = "1, 3, 4, 5")]
    pub value: Option<DataValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum DataValue {
    #[prost(bytes = "vec", tag = "1")]
    Bitstring(Vec<u8>),
    #[prost(bool, tag = "3")]
    Bool(bool),
    #[prost(message, tag = "4")]
    Tuple(StructLike),
    #[prost(message, tag = "5")]
    Struct(StructLike),
}

#[derive(Clone, PartialEq, Message)]
pub struct StructLike {
    #[prost(message, repeated, tag = "1")]
    pub members: Vec<Data>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DigestEntry {
    #[prost(uint32, tag = "1")]
    pub digest_id: u32,
    #[prost(message, optional, tag = "2")]
    pub config: Option<DigestConfig>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct DigestConfig {
    #[prost(int64, tag = "1")]
    pub max_timeout_ns: i64,
    #[prost(int32, tag = "2")]
    pub max_list_size: i32,
    #[prost(int64, tag = "3")]
    pub ack_timeout_ns: i64,
}
