//! Faces and links: the connection of the forwarding engine to the network. Faces over links that workers poll are in
//! the crate `port`.
//!
//! * [`uri`]: the textual addresses of faces, and [`address`]: addresses on links.
//! * [`registry`]: the faces that exist, with their properties and [`counters`], shared by all threads.
//! * [`ring`] and [`wake`]: transport of frames between the input/output threads and the workers.
//! * [`link_service`]: NDNLPv2 on one face: between frames and network-layer packets.
//! * [`socket`]: faces over UDP, TCP, Unix and WebSocket sockets.
//! * [`peers`]: finds the face of a remote address; [`unsolicited`]: the slots of unsolicited peers.
//! * [`capture`]: copies of frames, for files.
//! * [`latency`]: time that packets stay in the router.
//! * [`wait_watch`]: time that frames wait in receive queues.
//! * [`log_limit`]: rate limit for log lines that other hosts can cause.
//!
//! ```
//! use namehop_face::FaceUri;
//!
//! let uri: FaceUri = "udp4://192.0.2.7:6363".parse()?;
//! assert_eq!(uri.to_string(), "udp4://192.0.2.7:6363");
//! let error = "udp4://192.0.2.7:99999".parse::<FaceUri>().expect_err("a port has at most 16 bits");
//! println!("{error}");
//! # Ok::<(), namehop_face::FaceUriError>(())
//! ```
#![forbid(unsafe_code)]

pub mod address;
pub mod capture;
pub mod counters;
pub mod latency;
pub mod link_service;
mod list;
pub mod log_limit;
pub mod peers;
pub mod registry;
pub mod ring;
pub mod sampling;
pub mod silence;
pub mod socket;
pub mod unsolicited;
pub mod uri;
pub mod wait_watch;
pub mod wake;

pub use counters::{FaceCounters, LinkDrop};
pub use latency::{LatencyHistograms, LatencyRecorder};
pub use link_service::{DroppedInterest, LinkService};
pub use log_limit::LogLimit;
pub use registry::{Face, FaceFlags, FaceParams, FacePersistency, FaceTable, FaceTableError, LinkOptions};
pub use ring::{Frame, FrameInlet, FrameRing, SocketInlets};
pub use uri::{FaceUri, FaceUriError};
pub use wake::Waker;
