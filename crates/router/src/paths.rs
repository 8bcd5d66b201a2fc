//! Where the application socket and the state file go when the configuration says "auto".

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::config::AutoPath;

/// Where NDN applications on Linux look for their forwarder.
const SYSTEM_SOCKET: &str = "/run/nfd/nfd.sock";
/// Where system services keep state.
const SYSTEM_STATE: &str = "/var/lib/namehop/state.json";

/// No place could be found; the text says what was tried and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoPlace(String);

/// Path of the Unix socket.
///
/// # Errors
/// `auto`, and neither `/run/nfd` nor `$XDG_RUNTIME_DIR/nfd` can be written.
pub fn unix_socket(configured: &AutoPath) -> Result<PathBuf, NoPlace> {
    if let AutoPath::Path(path) = configured {
        return Ok(path.clone());
    }
    let system = PathBuf::from(SYSTEM_SOCKET);
    if folder_is_usable(&system) {
        return Ok(system);
    }
    let user = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match user.map(|folder| folder.join("nfd/nfd.sock")) {
        Some(path) if folder_is_usable(&path) => Ok(path),
        Some(path) => Err(NoPlace(format!(
            "cannot make {SYSTEM_SOCKET} nor {}: no write permission on their folders; set `path` in section [faces.unix]",
            path.display()
        ))),
        None => Err(NoPlace(format!(
            "cannot make {SYSTEM_SOCKET} (no write permission) and XDG_RUNTIME_DIR is not set; run as root once with \
             `mkdir /run/nfd; chown $USER /run/nfd`, set XDG_RUNTIME_DIR, or set `path` in section [faces.unix]"
        ))),
    }
}

/// Path of the state file.
///
/// # Errors
/// `auto`, and there is neither a writable system folder nor a home.
pub fn state_file(configured: &AutoPath) -> Result<PathBuf, NoPlace> {
    if let AutoPath::Path(path) = configured {
        return Ok(path.clone());
    }
    // systemd names the folder that it made for the service.
    if let Some(folder) = env::var_os("STATE_DIRECTORY").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder).join("state.json"));
    }
    let system = PathBuf::from(SYSTEM_STATE);
    if folder_is_usable(&system) {
        return Ok(system);
    }
    let base = match env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => match env::var_os("HOME").filter(|folder| !folder.is_empty()) {
            Some(home) => PathBuf::from(home).join(".local/state"),
            None => {
                return Err(NoPlace(format!(
                    "no place for the state file: {SYSTEM_STATE} cannot be written and HOME is not set; set `file` in \
                     section [state], or `enabled = false` there"
                )));
            }
        },
    };
    Ok(base.join("namehop/state.json"))
}

/// Whether a file can be made there; makes its folder.
fn folder_is_usable(file: &Path) -> bool {
    let Some(folder) = file.parent() else { return false };
    fs::create_dir_all(folder).is_ok() && access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_path_is_taken_as_it_is() {
        let path = PathBuf::from("/nonexistent/a.sock");
        assert_eq!(unix_socket(&AutoPath::Path(path.clone())).expect("given"), path);
        assert_eq!(state_file(&AutoPath::Path(path.clone())).expect("given"), path);
    }

    #[test]
    fn a_folder_is_made_where_it_can_be() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(folder_is_usable(&folder.path().join("a/b/socket")));
        assert!(folder.path().join("a/b").is_dir());
        assert!(!folder_is_usable(Path::new("/proc/namehop/socket")));
    }
}
