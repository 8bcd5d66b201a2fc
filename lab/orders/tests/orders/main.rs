//! All orders of the engine's steps: on the router's path they send the same bytes, and so does the engine's own
//! schedule; on the stripped path packets go there and back. The engine's tests provide packets and reference model.

mod floods;
#[path = "../../../../core/engine/tests/model/mod.rs"]
mod model;
#[allow(dead_code, reason = "the engine's tests use the rest")]
#[path = "../../../../core/engine/tests/pipelines/packets.rs"]
mod packets;
mod same_bytes;
mod stripped_path;

/// Faces to other hosts.
const CONSUMER: u32 = 256;
const CONSUMER2: u32 = 257;
const PRODUCER: u32 = 300;
const PRODUCER2: u32 = 301;
