//! The control socket of a running program: only the user who runs the program can open it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use namehop_port::drivers::memif::prepare_socket;
use nix::sys::stat::{Mode, umask};

/// The file of a control socket; removed on drop.
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Creates the socket. No other user can open it at any time.
    ///
    /// # Errors
    /// Fails if there is no permission for it, or if another program uses the socket.
    pub fn open(path: &Path) -> io::Result<(ControlSocket, UnixListener)> {
        let named = |error: io::Error| {
            io::Error::other(format!("cannot create the control socket {}: {error}", path.display()))
        };
        prepare_socket(path).map_err(named)?;
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(path);
        umask(before);
        let listener = listener.map_err(named)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(named)?;
        Ok((ControlSocket { path: path.to_owned() }, listener))
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // It may have been removed already.
        let _ = fs::remove_file(&self.path);
    }
}
