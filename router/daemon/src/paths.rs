//! Paths of the application socket and the state file if the configuration says "auto".

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use namehop_config::Auto;
use namehop_config::file_access::{folder_of, is_full_or_read_only, state_obstacle};
use nix::unistd::{AccessFlags, access, geteuid};

/// The socket path where NDN applications on Linux look for their forwarder.
const SYSTEM_SOCKET: &str = "/run/nfd/nfd.sock";
/// The state file of a system service.
const SYSTEM_STATE: &str = "/var/lib/namehop/state.json";

/// No path can be used; the text names the attempts and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoUsablePath(String);

/// Returns the path of the Unix socket, with its folder created.
///
/// # Errors
/// With `auto`, neither `/run/nfd` nor `$XDG_RUNTIME_DIR/nfd` is writable; or the folder of the configured path cannot
/// be created.
pub fn unix_socket(configured: &Auto<PathBuf>) -> Result<PathBuf, NoUsablePath> {
    if let Auto::Value(path) = configured {
        make_folder(path, "socket", "`path` in section [faces.unix]")?;
        return Ok(path.clone());
    }
    let system = PathBuf::from(SYSTEM_SOCKET);
    if folder_is_usable(&system) {
        return Ok(system);
    }
    let user = env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match user.map(|folder| folder.join("nfd/nfd.sock")) {
        Some(path) if folder_is_usable(&path) => Ok(path),
        Some(path) => Err(NoUsablePath(format!(
            "cannot create {SYSTEM_SOCKET} or {}: no write permission on their folders; set `path` in section \
             [faces.unix]",
            path.display()
        ))),
        None => Err(NoUsablePath(format!(
            "cannot create {SYSTEM_SOCKET} (no write permission) and XDG_RUNTIME_DIR is not set; run `mkdir /run/nfd; \
             chown $USER /run/nfd` once as root, set XDG_RUNTIME_DIR, or set `path` in section [faces.unix]"
        ))),
    }
}

/// Returns the path of the state file.
///
/// # Errors
/// With `auto`, there is neither a writable system folder nor a home; or this user may not use the file.
pub fn state_file(configured: &Auto<PathBuf>) -> Result<PathBuf, NoUsablePath> {
    const KEY: &str = "`file` in section [state]";
    let path = match configured {
        Auto::Value(path) => path.clone(),
        Auto::Auto => automatic_state_file()?,
    };
    match fs::create_dir_all(folder_of(&path)) {
        // The router then starts without saved state.
        Err(error) if is_full_or_read_only(&error) => return Ok(path),
        made => made.map_err(|error| no_folder(&path, "state file", KEY, &error))?,
    }
    match state_obstacle(&path) {
        None => Ok(path),
        Some(text) => Err(NoUsablePath(format!("state file {}: {text}; or choose another with {KEY}", path.display()))),
    }
}

fn automatic_state_file() -> Result<PathBuf, NoUsablePath> {
    // systemd sets this to the folder that it created for the service.
    if let Some(folder) = env::var_os("STATE_DIRECTORY").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder).join("state.json"));
    }
    if let Some(folder) = env::var_os("XDG_STATE_HOME").filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder).join("namehop/state.json"));
    }
    let system = PathBuf::from(SYSTEM_STATE);
    // A file of this user counts even if the file system is read-only for now.
    if folder_is_usable(&system) || is_own_file(&system) {
        return Ok(system);
    }
    match env::var_os("HOME").filter(|folder| !folder.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(".local/state/namehop/state.json")),
        None => Err(NoUsablePath(format!(
            "no path for the state file: {SYSTEM_STATE} cannot be written, and neither XDG_STATE_HOME nor HOME is set; \
             set `file` in section [state], or `enabled = false` there"
        ))),
    }
}

/// Creates the folder of a file. `role` and the configuration key `key` are for the message.
fn make_folder(file: &Path, role: &str, key: &str) -> Result<(), NoUsablePath> {
    fs::create_dir_all(folder_of(file)).map_err(|error| no_folder(file, role, key, &error))
}

fn no_folder(file: &Path, role: &str, key: &str, error: &io::Error) -> NoUsablePath {
    NoUsablePath(format!(
        "cannot create the folder {} for the {role} {}: {error}; set {key} to a path where user {} may write, or \
         create the folder and make this user its owner",
        folder_of(file).display(),
        file.display(),
        geteuid()
    ))
}

/// Returns whether this is a regular file of this user.
fn is_own_file(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file() && found.uid() == geteuid().as_raw())
}

/// Returns whether a file can be created there; creates its folder.
fn folder_is_usable(file: &Path) -> bool {
    let Some(folder) = file.parent() else { return false };
    fs::create_dir_all(folder).is_ok() && access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use namehop_config::file_access::{obstacle, unreadable};

    #[test]
    fn a_configured_path_is_taken_as_it_is_and_its_folder_made() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a/b.sock");
        assert_eq!(unix_socket(&Auto::Value(path.clone())).expect("given"), path);
        assert!(folder.path().join("a").is_dir());
        let path = folder.path().join("c/state.json");
        assert_eq!(state_file(&Auto::Value(path.clone())).expect("given"), path);
        assert_eq!(obstacle(&path), None);
        assert_eq!(unreadable(&path), None);
    }

    #[test]
    fn an_impossible_path_is_refused_with_its_key() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        let below = file.join("a/b.sock");
        let error = unix_socket(&Auto::Value(below.clone())).expect_err("a path below a file is refused").to_string();
        assert!(error.contains("`path` in section [faces.unix]"), "{error}");
        assert!(obstacle(&below).expect("a path below a file is refused").contains("not a folder"));
        let error = state_file(&Auto::Value(folder.path().to_owned())).expect_err("a folder").to_string();
        assert!(error.contains("is a folder; name a file") && error.contains("[state]"), "{error}");
    }

    #[test]
    fn a_folder_is_made_where_it_can_be() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(folder_is_usable(&folder.path().join("a/b/socket")));
        assert!(folder.path().join("a/b").is_dir());
        assert!(!folder_is_usable(Path::new("/proc/namehop/socket")));
    }
}
