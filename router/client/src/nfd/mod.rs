//! The messages of the NFD management protocol as owned structs, with their TLV codecs in both directions.
//!
//! Server and clients use the same types. One TYPE number has different meanings in different messages, so each message
//! has its own decoder. Decoders accept fields in any order, use the first of each type, and ignore unknown fields.
//! Encoders write the field order of the NFD management protocol and the shortest numbers.

mod capture;
mod codec;
mod command;
mod content_store;
mod cs_disk;
mod dispatch;
mod drops;
mod faces;
mod latency;
mod loaded_strategy;
pub mod names;
pub mod numbers;
mod parameters;
mod power;
mod readvertise;
mod record;
mod response;
mod status;
mod tables;
mod trace;
mod workers;

#[cfg(test)]
mod tests;

pub use capture::{CaptureStream, CapturedFrame, encode_frame, encode_piece};
pub use codec::{CodecError, decode_items, encode_items};
pub use command::{CommandOptions, build_command};
pub use content_store::{CsInfo, CsPolicyCounters};
pub use cs_disk::{CsDisk, DiskState};
pub use dispatch::DispatchEntry;
pub use drops::DropCount;
pub use faces::{ChannelStatus, FaceEventNotification, FaceQueryFilter, FaceStatus};
pub use latency::{LatencyCounts, LatencyStatus};
pub use loaded_strategy::{LoadedStrategy, StrategyParameter};
pub use numbers::{Code, FaceEventKind};
pub use parameters::{ControlParameters, FieldSet};
pub use power::{PowerPart, PowerStatus};
pub use readvertise::{ReadvertiseCounters, ReadvertiseError, ReadvertiseStatus};
pub use record::{Element, Record};
pub use response::ControlResponse;
pub use status::GeneralStatus;
pub use tables::{FibEntry, NextHopRecord, RibEntry, Route, StrategyChoice};
pub use trace::{TracedPacket, TracedStep};
pub use workers::{HandoverCounters, QueueStatus, WorkerStatus};
