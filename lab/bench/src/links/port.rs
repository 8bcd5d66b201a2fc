//! Kinds of links, and ends of a link.

use std::fmt;

use serde::Serialize;

/// Kind of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Memory shared with another process.
    Memif,
    /// Network interfaces of the kernel, over packet sockets (AF_PACKET).
    Dev,
    /// Network interfaces of the kernel, over AF_XDP.
    Xdp,
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkKind::Memif => "memif",
            LinkKind::Dev => "dev",
            LinkKind::Xdp => "xdp",
        })
    }
}

/// End of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The end of the consumer or the producer.
    Generator,
    /// The end of the router or sink.
    Forwarder,
}
