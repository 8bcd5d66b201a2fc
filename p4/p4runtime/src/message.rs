//! Requests, responses and stream messages of the gRPC service (`p4.v1.P4Runtime`).
#![expect(missing_docs, reason = "the specification of P4Runtime describes each field")]

use prost::{Enumeration, Message, Oneof};

use crate::entity::{Data, Entity, TableEntry};
use crate::info::P4Info;

/// A 128-bit number, ordered numerically.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Message)]
pub struct Uint128 {
    #[prost(uint64, tag = "1")]
    pub high: u64,
    #[prost(uint64, tag = "2")]
    pub low: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    #[prost(uint64, tag = "1")]
    pub device_id: u64,
    #[prost(uint64, tag = "2")]
    pub role_id: u64,
    #[prost(message, optional, tag = "3")]
    pub election_id: Option<Uint128>,
    #[prost(message, repeated, tag = "4")]
    pub updates: Vec<Update>,
    #[prost(enumeration = "Atomicity", tag = "5")]
    pub atomicity: i32,
    #[prost(string, tag = "6")]
    pub role: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Atomicity {
    ContinueOnError = 0,
    RollbackOnError = 1,
    DataplaneAtomic = 2,
}

#[derive(Clone, PartialEq, Message)]
pub struct Update {
    #[prost(enumeration = "UpdateType", tag = "1")]
    pub update_type: i32,
    #[prost(message, optional, tag = "2")]
    pub entity: Option<Entity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum UpdateType {
    Unspecified = 0,
    Insert = 1,
    Modify = 2,
    Delete = 3,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub struct ReadRequest {
    #[prost(uint64, tag = "1")]
    pub device_id: u64,
    #[prost(message, repeated, tag = "2")]
    pub entities: Vec<Entity>,
    #[prost(string, tag = "3")]
    pub role: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct ReadResponse {
    #[prost(message, repeated, tag = "1")]
    pub entities: Vec<Entity>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SetPipelineRequest {
    #[prost(uint64, tag = "1")]
    pub device_id: u64,
    #[prost(uint64, tag = "2")]
    pub role_id: u64,
    #[prost(message, optional, tag = "3")]
    pub election_id: Option<Uint128>,
    #[prost(enumeration = "PipelineAction", tag = "4")]
    pub action: i32,
    #[prost(message, optional, tag = "5")]
    pub config: Option<PipelineConfig>,
    #[prost(string, tag = "6")]
    pub role: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum PipelineAction {
    Unspecified = 0,
    Verify = 1,
    VerifyAndSave = 2,
    VerifyAndCommit = 3,
    Commit = 4,
    ReconcileAndCommit = 5,
}

#[derive(Clone, PartialEq, Message)]
pub struct PipelineConfig {
    #[prost(message, optional, tag = "1")]
    pub p4info: Option<P4Info>,
    #[prost(bytes = "vec", tag = "2")]
    pub p4_device_config: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub cookie: Option<Cookie>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct Cookie {
    #[prost(uint64, tag = "1")]
    pub cookie: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct GetPipelineRequest {
    #[prost(uint64, tag = "1")]
    pub device_id: u64,
    #[prost(enumeration = "PipelineParts", tag = "2")]
    pub parts: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum PipelineParts {
    All = 0,
    CookieOnly = 1,
    P4infoAndCookie = 2,
    DeviceConfigAndCookie = 3,
}

#[derive(Clone, PartialEq, Message)]
pub struct GetPipelineResponse {
    #[prost(message, optional, tag = "1")]
    pub config: Option<PipelineConfig>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Capabilities {
    #[prost(string, tag = "1")]
    pub p4runtime_api_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct StreamRequest {
    #[prost(oneof = "StreamUpdate", tags = "1, 2, 3")]
    pub update: Option<StreamUpdate>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum StreamUpdate {
    #[prost(message, tag = "1")]
    Arbitration(Arbitration),
    #[prost(message, tag = "2")]
    Packet(Packet),
    #[prost(message, tag = "3")]
    DigestAck(DigestAck),
}

#[derive(Clone, PartialEq, Message)]
pub struct StreamResponse {
    #[prost(oneof = "StreamEvent", tags = "1, 2, 3, 4, 6")]
    pub event: Option<StreamEvent>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum StreamEvent {
    #[prost(message, tag = "1")]
    Arbitration(Arbitration),
    #[prost(message, tag = "2")]
    Packet(Packet),
    #[prost(message, tag = "3")]
    Digest(DigestList),
    #[prost(message, tag = "4")]
    IdleTimeout(IdleTimeoutNotification),
    #[prost(message, tag = "6")]
    Error(StreamError),
}

#[derive(Clone, PartialEq, Message)]
pub struct Arbitration {
    #[prost(uint64, tag = "1")]
    pub device_id: u64,
    #[prost(message, optional, tag = "2")]
    pub role: Option<Role>,
    #[prost(message, optional, tag = "3")]
    pub election_id: Option<Uint128>,
    #[prost(message, optional, tag = "4")]
    pub status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Role {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(message, optional, tag = "2")]
    pub config: Option<Any>,
    #[prost(string, tag = "3")]
    pub name: String,
}

/// A packet from or to the controller, without the header that the metadata stand for.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(bytes = "vec", tag = "1")]
    pub payload: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub metadata: Vec<Metadata>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(uint32, tag = "1")]
    pub metadata_id: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DigestList {
    #[prost(uint32, tag = "1")]
    pub digest_id: u32,
    #[prost(uint64, tag = "2")]
    pub list_id: u64,
    #[prost(message, repeated, tag = "3")]
    pub data: Vec<Data>,
    #[prost(int64, tag = "4")]
    pub timestamp: i64,
}

/// Entries that no packet has used for their idle timeout.
#[derive(Clone, PartialEq, Message)]
pub struct IdleTimeoutNotification {
    #[prost(message, repeated, tag = "1")]
    pub table_entry: Vec<TableEntry>,
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub struct DigestAck {
    #[prost(uint32, tag = "1")]
    pub digest_id: u32,
    #[prost(uint64, tag = "2")]
    pub list_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct StreamError {
    #[prost(int32, tag = "1")]
    pub canonical_code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, optional, tag = "5")]
    pub packet_out: Option<PacketOutError>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PacketOutError {
    #[prost(message, optional, tag = "1")]
    pub packet_out: Option<Packet>,
}

/// `google.rpc.Status`
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// Result of one update of a request.
#[derive(Clone, PartialEq, Message)]
pub struct Error {
    #[prost(int32, tag = "1")]
    pub canonical_code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}
