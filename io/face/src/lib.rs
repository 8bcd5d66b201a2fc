//! Faces and links: what joins the forwarding engine to the outside.
//!
//! * [`uri`]: the textual addresses of faces.
//! * [`registry`]: the faces that exist, with their properties and [`counters`], shared by all threads.
//! * [`ring`] and [`wake`]: how frames travel between the threads that do input and output and the worker.
//! * [`link_service`]: NDNLPv2 on one face: between frames and network-layer packets.
//! * [`socket`]: faces over UDP, TCP, Unix and WebSocket sockets.
//! * [`port`]: faces over links that the worker polls by itself.
//! * [`encapsulation`]: what stands around NDN packets on those links.
//! * [`capture`]: copies of frames, for files.
//! * [`latency`]: how long packets stay in the router.
//! * [`wait_watch`]: how long frames wait in receive queues.
//! * [`log_limit`]: how often a line is logged that other computers can cause.
#![forbid(unsafe_code)]

pub mod capture;
pub mod counters;
pub mod encapsulation;
pub mod latency;
pub mod link_service;
mod list;
pub mod log_limit;
mod peers;
pub mod port;
pub mod registry;
pub mod ring;
pub mod sampling;
pub mod silence;
pub mod socket;
mod strangers;
pub mod uri;
pub mod wait_watch;
pub mod wake;

pub use counters::{FaceCounters, LinkDrop};
pub use latency::{LatencyHistograms, LatencyRecorder};
pub use link_service::{DroppedInterest, LinkOptions, LinkService};
pub use log_limit::LogLimit;
pub use registry::{Face, FaceFlags, FaceParams, FacePersistency, FaceTable, FaceTableError};
pub use ring::{Frame, FrameInlet, FrameRing, SocketInlets};
pub use uri::{FaceUri, FaceUriError};
pub use wake::Waker;
