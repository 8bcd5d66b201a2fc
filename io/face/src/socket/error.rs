//! Errors of the socket service: why a listener cannot start, and why a face cannot be created.
//!
//! Each message names the cause and the remedy, because users read it when they start the router.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::registry::Face;

/// A listener that cannot be opened.
#[derive(Debug, Error)]
pub enum ListenError {
    /// A live process answers on the socket file.
    #[error(
        "another forwarder is listening on {}: stop it first, or configure a different Unix socket path", path.display()
    )]
    AnotherForwarder {
        /// The socket file.
        path: PathBuf,
    },
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket: remove it, or configure a different Unix socket path", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// File permissions do not allow the socket file.
    #[error(
        "no permission for the Unix socket {} ({source}): this user needs write permission on directory {}; run as its \
         owner or as root, or configure a path this user may write to", path.display(), directory.display()
    )]
    FilePermission {
        /// The socket file.
        path: PathBuf,
        /// The directory it is in.
        directory: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// The socket file cannot be created for another reason.
    #[error("cannot listen on the Unix socket {}: {source}", path.display())]
    File {
        /// The socket file.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// The port is in use.
    #[error(
        "{protocol} port {} on {} is in use by another program (perhaps another forwarder): stop it, or configure a \
         different port", address.port(), address.ip()
    )]
    PortInUse {
        /// `TCP`, `UDP` or `WebSocket`.
        protocol: &'static str,
        /// The requested address.
        address: SocketAddr,
    },
    /// The port is privileged.
    #[error(
        "no permission for {protocol} port {} on {}: ports below 1024 need the capability CAP_NET_BIND_SERVICE (or \
         root); grant it, or configure a port of 1024 or higher", address.port(), address.ip()
    )]
    PortPermission {
        /// `TCP`, `UDP` or `WebSocket`.
        protocol: &'static str,
        /// The requested address.
        address: SocketAddr,
    },
    /// No interface has the address.
    #[error(
        "cannot listen on {protocol} {address}: no network interface of this host has that address, and the kernel \
         does not let the router wait for it; configure one that it has, or a wildcard address"
    )]
    NoSuchAddress {
        /// `TCP`, `UDP` or `WebSocket`.
        protocol: &'static str,
        /// The requested address.
        address: SocketAddr,
    },
    /// Any other failure of an Internet socket.
    #[error("cannot listen on {protocol} {address}: {source}")]
    Socket {
        /// `TCP`, `UDP`, `WebSocket` or `UDP multicast`.
        protocol: &'static str,
        /// The requested address.
        address: SocketAddr,
        /// The error of the system call.
        source: io::Error,
    },
    /// The operating system refused an operation that concerns no single listener.
    #[error("cannot {action}: {source}")]
    System {
        /// The operation, as a verb phrase.
        action: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

impl ListenError {
    /// Returns the error for an Internet listener on `address`.
    pub(super) fn internet(protocol: &'static str, address: SocketAddr, source: io::Error) -> ListenError {
        match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::PortInUse { protocol, address },
            io::ErrorKind::PermissionDenied => ListenError::PortPermission { protocol, address },
            io::ErrorKind::AddrNotAvailable => ListenError::NoSuchAddress { protocol, address },
            _ => ListenError::Socket { protocol, address, source },
        }
    }

    /// Returns the error for the Unix listener on `path`.
    pub(super) fn file(path: &Path, source: io::Error) -> ListenError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                let directory = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
                ListenError::FilePermission { path, directory, source }
            }
            _ => ListenError::File { path, source },
        }
    }
}

/// Why a face was not created. Each variant is one status code of the NFD management protocol.
#[derive(Debug, Clone, Error)]
pub enum CreateError {
    /// 400: the URI is not canonical, or does not parse.
    #[error("{0}")]
    Malformed(String),
    /// 406: the protocol is not supported, or cannot do what the parameters ask for.
    #[error("{0}")]
    NotAcceptable(String),
    /// 409: a face with this remote URI exists.
    #[error("face {} with this remote URI already exists", .0.id())]
    Exists(Arc<Face>),
    /// 504: the peer did not answer in time, or no socket of this address family is open.
    #[error("{0}")]
    Unreachable(String),
}

impl CreateError {
    /// Status code of the NFD management protocol.
    pub fn status_code(&self) -> u64 {
        match self {
            CreateError::Malformed(_) => 400,
            CreateError::NotAcceptable(_) => 406,
            CreateError::Exists(_) => 409,
            CreateError::Unreachable(_) => 504,
        }
    }
}
