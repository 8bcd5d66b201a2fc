//! Removal of a stale control socket of a memif server.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Removes a control socket that no process listens on any more. A socket with a listener stays, because several links
/// may share it. Every other kind of file stays too, including a symbolic link; creating the control socket then fails.
///
/// # Errors
/// Fails if the process may not remove the socket.
pub fn prepare_socket(socket: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket());
    // A memif listener would refuse this kind of socket with another error than "connection refused".
    let is_dead =
        is_socket && UnixStream::connect(socket).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_dead { fs::remove_file(socket) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_a_socket_without_listener_is_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let socket = folder.path().join("memif.sock");
        prepare_socket(&socket).expect("a missing socket is ignored");
        prepare_socket(&folder.path().join("missing/memif.sock")).expect("a missing folder is ignored");
        assert!(!folder.path().join("missing").exists(), "no folder may be created");
        let listener = UnixListener::bind(&socket).expect("the folder exists");
        prepare_socket(&socket).expect("a socket in use is ignored");
        assert!(socket.exists());
        drop(listener);
        prepare_socket(&socket).expect("removed");
        assert!(!socket.exists());
        fs::write(&socket, "a file").expect("written");
        prepare_socket(&socket).expect("a file is ignored");
        assert!(socket.exists());
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&socket, &link).expect("made");
        prepare_socket(&link).expect("a symbolic link is ignored");
        assert!(link.is_symlink());
    }
}
