//! The token of the HTTP API: read from the configured file, or created by the router.
//!
//! A token that the router creates survives a restart, so that programs need not read it again. Only the router's own
//! user can read its file. If no token can be created, for example on a full disk, the router still runs, and nothing
//! can be changed over HTTP.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use namehop_config::token_file::{TokenError, TokenFile, read, token_in};
use namehop_config::{Auto, Config};
use namehop_manage::http::ApiToken;
use nix::unistd::geteuid;
use ring::rand::{SecureRandom, SystemRandom};
use tracing::{info, warn};

use crate::paths;
use crate::state::{open, sibling};

/// Extension of the created file, appended to the path of the state file.
const ENDING: &str = "api-token";
/// Permissions of that file: access for the owner only.
const MODE: u32 = 0o600;
/// Random bytes of a created token; the file holds them as hexadecimal digits.
const RANDOM_BYTES: usize = 32;

/// Returns the configured token, or a created one. `None` if the router should create one and cannot.
///
/// # Errors
/// The configured file cannot be used.
pub fn of(config: &Config) -> Result<Option<TokenFile>, TokenError> {
    if let Auto::Value(path) = &config.api.token_file {
        let token = ApiToken::new(&read(path)?);
        if fs::metadata(path).is_ok_and(|found| found.mode() & 0o007 != 0) {
            warn!(file = %path.display(), "every user of this host can access the API token; restrict its permissions");
        }
        return Ok(Some(TokenFile { token, path: path.clone() }));
    }
    let state = match paths::state_file(&config.state.file) {
        Ok(state) => state,
        Err(error) => {
            warn!(%error, "no folder for an API token: changes over HTTP are refused");
            return Ok(None);
        }
    };
    let path = sibling(&state, ENDING);
    match kept_or_made(&path) {
        Ok(secret) => Ok(Some(TokenFile { token: ApiToken::new(&secret), path })),
        Err(error) => {
            warn!(file = %path.display(), %error, "cannot create the API token: changes over HTTP are refused");
            Ok(None)
        }
    }
}

/// Returns the token that the router created earlier, if it is still secret; else a new one.
fn kept_or_made(path: &Path) -> io::Result<String> {
    match kept(path) {
        Ok(Some(token)) => return Ok(token),
        Ok(None) => info!(file = %path.display(), "creating a new API token"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Replaces any file at the path, even a symbolic link.
        Err(error) => info!(file = %path.display(), %error, "creating a new API token"),
    }
    let mut random = [0; RANDOM_BYTES];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| io::Error::other("the system's random number generator failed"))?;
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    // Written to a temporary file first, so that a full disk leaves no partial token.
    let unfinished = sibling(path, "new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&unfinished)?;
    let written = file.write_all(format!("{token}\n").as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&unfinished, path)) {
        // The file may be gone already; report the first error.
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    Ok(token)
}

/// Returns the token of an earlier start; `None` if other users can access its file, or if it holds no valid token.
fn kept(path: &Path) -> io::Result<Option<String>> {
    let file = open(path, false)?;
    let found = file.metadata()?;
    let is_ours_alone = found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_ours_alone { token_in(file) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, Path::new("test.toml")).expect("a configuration")
    }

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state.json");
        let config = config(&format!("[state]\nfile = \"{}\"\n", state.display()));
        let path = of(&config).expect("made").expect("made").path;
        assert_eq!(path, folder.path().join("state.json.api-token"));
        let first = fs::read_to_string(&path).expect("readable");
        assert_eq!((first.len(), first.ends_with('\n')), (2 * RANDOM_BYTES + 1, true));
        assert_eq!(fs::metadata(&path).expect("exists").permissions().mode() & 0o777, MODE);
        of(&config).expect("kept").expect("kept");
        assert_eq!(fs::read_to_string(&path).expect("readable"), first, "a restart keeps the token");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_token_readable_by_others_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let first = kept_or_made(&path).expect("made");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("changed");
        let second = kept_or_made(&path).expect("made");
        assert_ne!(first, second);
        assert_eq!(kept_or_made(&path).expect("kept"), second);
        for broken in ["", "short", "\n", &"x".repeat(5000)] {
            fs::write(&path, broken).expect("written");
            assert_eq!(kept_or_made(&path).expect("made").len(), 2 * RANDOM_BYTES, "{broken:?}");
        }
        // A link could lead to a file of another user.
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "x".repeat(64)).expect("written");
        fs::remove_file(&path).expect("removed");
        symlink(&foreign, &path).expect("linked");
        assert_ne!(kept_or_made(&path).expect("made"), "x".repeat(64));
        assert_eq!(fs::read_to_string(&foreign).expect("readable"), "x".repeat(64));
        assert!(fs::symlink_metadata(&path).expect("exists").is_file());
    }

    #[test]
    fn the_configuration_can_name_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let config = config(&format!("[api]\ntoken_file = \"{}\"\n", path.display()));
        let error = of(&config).expect_err("a missing token file is an error").to_string();
        assert!(error.contains("No such file") && error.contains("token"), "{error}");
        for broken in ["", "too-short", "two words of some length", &"x".repeat(2000), "line of length\nline of length"]
        {
            fs::write(&path, broken).expect("written");
            assert!(
                of(&config).expect_err("an invalid token is an error").to_string().contains("openssl rand"),
                "{broken:?}"
            );
        }
        fs::write(&path, "0123456789abcdef\n").expect("written");
        assert_eq!(of(&config).expect("a token").expect("a token").path, path);
    }

    #[test]
    fn without_a_path_there_is_no_token() {
        let config = config("[state]\nfile = \"/proc/nowhere/state.json\"\n");
        assert!(of(&config).expect("the router starts without a token").is_none());
    }
}
