//! P4Runtime: the protocol by which controllers change a running P4 program.
//!
//! * [`info`]: p4info, which describes the objects of a program; [`text`] writes it as text, and `compare` compares
//!   two.
//! * [`entity`], [`message`]: messages between controllers and devices, declared here with the field numbers of the
//!   specification, so that no Protocol Buffers compiler is needed.
//! * [`device`]: the interface that a device implements for the service.
//! * [`server`]: the gRPC server with its limits. `service` answers unary requests, `stream` answers streams, and
//!   `arbitration` decides which controllers may make changes.
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
