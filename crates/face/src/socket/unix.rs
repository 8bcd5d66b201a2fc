//! Unix stream sockets: the socket file and accepted connections.
//!
//! A socket file survives a forwarder that crashed. It is removed only when nobody answers on it, and at the end only
//! if it is still the file this process made.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use namehop_packet::FaceScope;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixStream;

use super::config::UnixListenerConfig;
use super::connection::Connection;
use super::error::ListenError;
use super::shared::Shared;
use super::stream;
use crate::registry::{FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// A socket file of this process; removed when dropped.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have put another socket in its place, which is not ours to remove.
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "socket file not removed");
        }
    }
}

/// Opens a listening Unix socket.
pub(super) fn listen(config: &UnixListenerConfig, backlog: u32) -> Result<(Socket, SocketFile), ListenError> {
    let path = config.path.as_path();
    let failed = |error| ListenError::file(path, error);
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let address = SockAddr::unix(path).map_err(failed)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None).map_err(failed)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path, &address)?;
            socket.bind(&address).map_err(failed)?;
        }
        bound => bound.map_err(failed)?,
    }
    let made = fs::symlink_metadata(path).map_err(failed)?;
    let file = SocketFile { path: path.to_path_buf(), device: made.dev(), inode: made.ino() };
    fs::set_permissions(path, Permissions::from_mode(config.mode)).map_err(failed)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX)).map_err(failed)?;
    Ok((socket, file))
}

/// Removes the file at `path` if it is a socket on which nobody answers.
fn remove_stale(path: &Path, address: &SockAddr) -> Result<(), ListenError> {
    let failed = |error| ListenError::file(path, error);
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ListenError::NotASocket { path: path.to_path_buf() });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    // Not blocking: a live forwarder whose backlog is full would keep us waiting, and answers "would block" like this.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None).map_err(failed)?;
    match probe.connect(address).map_err(|error| error.kind()) {
        Err(io::ErrorKind::ConnectionRefused) => {
            tracing::info!(path = %path.display(), "removing the socket file of a forwarder that is gone");
            fs::remove_file(path).map_err(failed)
        }
        Err(io::ErrorKind::NotFound) => Ok(()),
        Err(io::ErrorKind::PermissionDenied) => Err(failed(io::ErrorKind::PermissionDenied.into())),
        _ => Err(ListenError::AnotherForwarder { path: path.to_path_buf() }),
    }
}

/// Makes an on-demand local face of an accepted connection.
pub(super) fn serve_accepted(shared: &Rc<Shared>, stream: UnixStream, local: &FaceUri) -> io::Result<()> {
    let number = u32::try_from(stream.as_raw_fd()).map_err(io::Error::other)?;
    let mut params = shared.params(FaceUri::FileDescriptor(number), local.clone());
    params.scope = FaceScope::Local;
    params.flags = shared.marking_flags();
    params.persistency = FacePersistency::OnDemand;
    params.allowed_persistencies = &[FacePersistency::OnDemand];
    let connection = Some(Connection::unix(stream)?);
    if let Err(error) = stream::adopt(shared, connection, params, &FaceUpdate::default(), None) {
        tracing::debug!(%error, "connection refused");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn config(directory: &Path) -> UnixListenerConfig {
        UnixListenerConfig { path: directory.join("below/namehop.sock"), mode: 0o640 }
    }

    #[test]
    fn the_file_has_its_mode_and_goes_with_the_listener() {
        let directory = tempfile::tempdir().expect("directory");
        let config = config(directory.path());
        let (_socket, file) = listen(&config, 4).expect("listen");
        let mode = fs::metadata(&config.path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        drop(file);
        assert!(!config.path.exists());
    }

    #[test]
    fn a_live_listener_is_left_alone_and_named() {
        let directory = tempfile::tempdir().expect("directory");
        let config = config(directory.path());
        let (_socket, _file) = listen(&config, 4).expect("listen");
        let error = listen(&config, 4).expect_err("taken");
        let expected = format!("another forwarder is listening on {}", config.path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(config.path.exists());
    }

    #[test]
    fn a_live_listener_with_a_full_backlog_counts_as_live() {
        let directory = tempfile::tempdir().expect("directory");
        let config = config(directory.path());
        let (_socket, _file) = listen(&config, 0).expect("listen");
        let address = SockAddr::unix(&config.path).expect("address");
        let waiting: Vec<Socket> = (0..4)
            .map(|_| {
                let client = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None).expect("socket");
                let _ = client.connect(&address);
                client
            })
            .collect();
        assert!(matches!(listen(&config, 4), Err(ListenError::AnotherForwarder { .. })));
        drop(waiting);
    }

    #[test]
    fn a_stale_file_is_replaced_and_an_ordinary_one_is_not() {
        let directory = tempfile::tempdir().expect("directory");
        let config = UnixListenerConfig { path: directory.path().join("stale.sock"), mode: 0o666 };
        drop(UnixListener::bind(&config.path).expect("first"));
        assert!(config.path.exists());
        let (_socket, file) = listen(&config, 4).expect("replaces the stale file");
        // Another process replaced the file: it stays.
        fs::remove_file(&config.path).expect("remove");
        fs::write(&config.path, b"not a socket").expect("write");
        drop(file);
        let error = listen(&config, 4).expect_err("an ordinary file");
        assert!(matches!(error, ListenError::NotASocket { .. }), "{error}");
        assert!(config.path.exists());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_an_error() {
        let directory = tempfile::tempdir().expect("directory");
        let config = UnixListenerConfig { path: directory.path().join("x".repeat(150)), mode: 0o666 };
        assert!(matches!(listen(&config, 4), Err(ListenError::File { .. })));
    }
}
