//! P4Runtime: how controllers change a P4 program that runs.
//!
//! * [`info`]: p4info, which says what of a program can be reached; [`text`] writes it as text, and `compare` compares two.
//! * [`entity`], [`message`]: what controllers and devices tell each other. Messages are written here with the numbers of the
//!   specification, so that no compiler of Protocol Buffers is needed.
//! * [`device`]: what a device has to do for the service.
//! * [`server`]: the gRPC server with its limits; `service` answers requests, `stream` those that go on, `arbitration` knows who may
//!   change something.
#![forbid(unsafe_code)]

mod arbitration;
mod compare;
pub mod device;
pub mod entity;
mod fates;
pub mod info;
mod large;
pub mod message;
mod places;
pub mod server;
mod service;
mod stream;
pub mod text;

pub use prost::Message;
pub use tonic::{Code, Status};
