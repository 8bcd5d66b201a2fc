//! P4Runtime: the protocol by which controllers change a running P4 program.
//!
//! * [`message`]: messages between controllers and devices, and [`info`]: p4info, which describes the objects of a
//!   program. The build script generates both from `proto/`. [`text`] writes p4info as text, and `compare` compares
//!   two.
//! * `shape`: the fields of any message in its encoded form.
//! * [`device`]: the interface that a device implements for the service.
//! * [`server`]: the gRPC server with its limits. `dispatch` passes requests on, `codec` refuses messages that would
//!   take too much memory, `service` answers unary requests, `stream` answers streams, and `arbitration` decides which
//!   controllers may make changes.
//! * [`Client`]: the operator's client. [`operator`] has the requests for which P4Runtime has no message.
//!
//! ```
//! use namehop_p4runtime::Message;
//! use namehop_p4runtime::message::{Uint128, WriteRequest};
//!
//! let request = WriteRequest { device_id: 1, election_id: Some(Uint128 { high: 0, low: 7 }), ..Default::default() };
//! assert_eq!(WriteRequest::decode(request.encode_to_vec().as_slice())?, request);
//! # Ok::<(), namehop_p4runtime::DecodeError>(())
//! ```
#![forbid(unsafe_code)]

mod arbitration;
mod client;
mod codec;
mod compare;
pub mod device;
mod dispatch;
mod fates;
#[expect(missing_docs, reason = "the specification of P4Runtime describes each field")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}
pub mod info;
mod large;
mod places;
pub mod server;
mod service;
mod shape;
mod stream;
pub mod text;

pub use client::{Client, WriteError};
pub use generated::namehop::p4::v1 as operator;
pub use generated::p4::v1 as message;
pub use prost::{DecodeError, Message};
pub use tonic::{Code, Status};
