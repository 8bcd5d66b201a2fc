//! Unix stream sockets: the socket file and accepted connections.
//!
//! A socket file outlives a forwarder that has crashed. It is removed only if no program answers on it. At the end it
//! is removed only if it is still the file that this process created. If the file is removed while the router runs, it
//! is created again.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use namehop_packet::FaceScope;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::config::UnixListenerConfig;
use super::connection::Connection;
use super::error::ListenError;
use super::shared::ServiceState;
use super::{stream, tcp};
use crate::registry::{FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

/// Interval between checks whether the socket file still exists.
const FILE_LOOK: Duration = Duration::from_secs(2);

/// A socket file created by this process; removed on drop.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have replaced it by a socket of its own, which must stay.
        if self.is_there()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the socket file");
        }
    }
}

impl SocketFile {
    /// Whether the file at the path is still the one that this process created.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }
}

/// A listening socket with its file.
#[derive(Debug)]
pub(super) struct Bound<S = Socket> {
    socket: S,
    config: UnixListenerConfig,
    file: SocketFile,
}

impl<S> Bound<S> {
    /// Returns the URI of the listener.
    pub(super) fn local_uri(&self) -> FaceUri {
        local_uri(&self.config)
    }
}

impl Bound {
    /// Registers the socket with the runtime.
    pub(super) fn watch(self) -> io::Result<Bound<UnixListener>> {
        Ok(Bound { socket: UnixListener::from_std(self.socket.into())?, config: self.config, file: self.file })
    }
}

/// Accepts connections as long as the service runs. If the socket file is removed, creates it again and accepts there.
pub(super) async fn keep(shared: Rc<ServiceState>, bound: Bound<UnixListener>) {
    let uri = bound.local_uri();
    let Bound { socket: mut listener, config, mut file } = bound;
    loop {
        let serve = |shared: &Rc<ServiceState>, stream| serve_accepted(shared, stream, &uri);
        tokio::select! {
            () = tcp::accept(Rc::clone(&shared), listener, serve) => return,
            () = removed(&file) => {}
        }
        tracing::warn!(path = %config.path.display(), "socket file was removed: creating it again");
        drop(file);
        Bound { socket: listener, file, .. } = listen_again(&config, shared.config.backlog).await;
        tracing::info!(path = %config.path.display(), "socket file created again");
    }
}

/// Waits until the file is gone.
async fn removed(file: &SocketFile) {
    while file.is_there() {
        sleep(FILE_LOOK).await;
    }
}

/// Listens at the path as soon as that is possible.
async fn listen_again(config: &UnixListenerConfig, backlog: u32) -> Bound<UnixListener> {
    let mut problem = String::new();
    loop {
        let error = match listen(config, backlog).map(Bound::watch) {
            Ok(Ok(bound)) => return bound,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        if error != problem {
            tracing::warn!(%error, "applications cannot connect");
            problem = error;
        }
        sleep(FILE_LOOK).await;
    }
}

/// Checks that a socket can be created at the path. Fails like [`listen`] if another forwarder listens there.
pub(super) fn check(config: &UnixListenerConfig) -> Result<(), ListenError> {
    let path = config.path.as_path();
    let failed = |error| ListenError::file(path, error);
    make_directory(path).map_err(failed)?;
    remove_stale(path, &SockAddr::unix(path).map_err(failed)?)
}

/// Creates the directory of a socket file.
fn make_directory(path: &Path) -> io::Result<()> {
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => fs::create_dir_all(directory),
        None => Ok(()),
    }
}

/// Returns the URI of a listener.
pub(super) fn local_uri(config: &UnixListenerConfig) -> FaceUri {
    FaceUri::Unix(config.path.to_string_lossy().into_owned())
}

/// Opens a listening Unix socket.
pub(super) fn listen(config: &UnixListenerConfig, backlog: u32) -> Result<Bound, ListenError> {
    let path = config.path.as_path();
    let failed = |error| ListenError::file(path, error);
    make_directory(path).map_err(failed)?;
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
    Ok(Bound { socket, config: config.clone(), file })
}

/// Removes the file at `path` if it is a socket on which no program answers.
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
    // Non-blocking, because a live forwarder with a full backlog would block this call. "Would block" then counts as an
    // answer.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None).map_err(failed)?;
    match probe.connect(address).map_err(|error| error.kind()) {
        Err(io::ErrorKind::ConnectionRefused) => {
            tracing::info!(path = %path.display(), "removing the stale socket file of a stopped forwarder");
            fs::remove_file(path).map_err(failed)
        }
        Err(io::ErrorKind::NotFound) => Ok(()),
        Err(io::ErrorKind::PermissionDenied) => Err(failed(io::ErrorKind::PermissionDenied.into())),
        _ => Err(ListenError::AnotherForwarder { path: path.to_path_buf() }),
    }
}

/// Creates an on-demand local face for an accepted connection.
pub(super) fn serve_accepted(shared: &Rc<ServiceState>, stream: UnixStream, local: &FaceUri) -> io::Result<()> {
    let number = u32::try_from(stream.as_raw_fd()).map_err(io::Error::other)?;
    let mut params = shared.params(FaceUri::FileDescriptor(number), local.clone());
    params.scope = FaceScope::Local;
    params.flags = params.flags.union(shared.marking_flags());
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
        let Bound { socket: _socket, file, .. } = listen(&config, 4).expect("listen");
        let mode = fs::metadata(&config.path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        drop(file);
        assert!(!config.path.exists());
    }

    #[test]
    fn a_live_listener_is_left_alone_and_named() {
        let directory = tempfile::tempdir().expect("directory");
        let config = config(directory.path());
        let _bound = listen(&config, 4).expect("listen");
        let error = listen(&config, 4).expect_err("taken");
        let expected = format!("another forwarder is listening on {}", config.path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(config.path.exists());
    }

    #[test]
    fn a_live_listener_with_a_full_backlog_counts_as_live() {
        let directory = tempfile::tempdir().expect("directory");
        let config = config(directory.path());
        let _bound = listen(&config, 0).expect("listen");
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
        let Bound { socket: _socket, file, .. } = listen(&config, 4).expect("the stale file is replaced");
        // Another process replaced the file: it stays.
        fs::remove_file(&config.path).expect("remove");
        fs::write(&config.path, b"not a socket").expect("write");
        drop(file);
        let error = listen(&config, 4).expect_err("a regular file is refused");
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
