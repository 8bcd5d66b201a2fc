//! Consumers, producers, congestion control and load generation over a connection to a forwarder.
//!
//! This crate is the client side of NDN. It depends on packets (`namehop-wire`), on the sockets of forwarders and, for
//! the load generator, on ports with links to them, but not on the internals of any forwarder. It works with any
//! forwarder that speaks NDN packet format v0.3, NDNLPv2 and the NFD management protocol.
//!
//! ```
//! use namehop_traffic::endpoint::{Answer, Endpoint};
//! use namehop_wire::security::DigestSigner;
//! use namehop_wire::{DataBuilder, InterestBuilder, Name};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Applications use `Endpoint::connect`; here a stream joins a consumer and a producer without a forwarder.
//! let (left, right) = tokio::io::duplex(10_000);
//! let (consumer, producer) = (Endpoint::from_stream(left), Endpoint::from_stream(right));
//! let prefix: Name = "/example".parse()?;
//! producer.produce(&prefix, |request| {
//!     let data = DataBuilder::new(request.interest.name.to_owned()).content("Hello");
//!     data.sign(&DigestSigner).map_or(Answer::None, Answer::Data)
//! });
//! let response = consumer.request(InterestBuilder::new("/example/hello".parse::<Name>()?)).await?;
//! assert_eq!(response.data()?.content, b"Hello");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod client_conf;
pub mod endpoint;
pub mod fileserver;
pub mod loadgen;
pub mod ping;
pub mod relay;
mod rtt_histogram;
pub mod segmented;
pub mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transport;
pub mod workload;
