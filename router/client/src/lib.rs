//! Connections to a forwarder, and the client side of the NFD management protocol.
//!
//! * [`transport`]: connections over Unix sockets, TCP and WebSocket; [`target`]: their URIs; [`client_conf`]: the
//!   forwarder that a host's applications use.
//! * [`endpoint`]: Interests, Data and registered prefixes over one connection.
//! * [`nfd`]: the messages of the management protocol, for clients and servers.
//! * [`controller`]: sends commands to a forwarder, fetches its datasets, and follows its events.
//! * [`testing`]: a forwarder in memory, for tests of applications.
//!
//! The crate works with any forwarder that speaks NDN packet format v0.3, NDNLPv2 and the NFD management protocol.
//!
//! ```
//! use namehop_client::endpoint::{Answer, Endpoint};
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
pub mod controller;
pub mod endpoint;
pub mod nfd;
pub mod target;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transport;
