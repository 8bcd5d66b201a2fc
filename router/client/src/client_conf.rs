//! Finds the forwarder a client should connect to.
//!
//! The order is: an explicit argument, the `NDN_CLIENT_TRANSPORT` environment variable, the `transport` setting of the
//! first `client.conf` found in `~/.ndn/`, `/usr/local/etc/ndn/` and `/etc/ndn/`, and last the well-known Unix socket
//! paths. ndn-cxx programs use the same order; the per-user socket is an addition. One setting thus serves all
//! applications on a host.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::target::{TransportUri, TransportUriError};

#[cfg(test)]
mod tests;

/// Name of the environment variable that overrides `client.conf`.
pub const TRANSPORT_VARIABLE: &str = "NDN_CLIENT_TRANSPORT";

/// Why a transport was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Given by the caller, for instance as `--transport`.
    Argument,
    /// Found in `NDN_CLIENT_TRANSPORT`.
    Environment,
    /// Found in this configuration file.
    File(PathBuf),
    /// Nothing was configured: this is one of the well-known socket paths.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument => f.write_str("given as an argument"),
            Self::Environment => write!(f, "from {TRANSPORT_VARIABLE}"),
            Self::File(path) => write!(f, "from {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// An address where a forwarder may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Address of the transport.
    pub uri: TransportUri,
    /// Why it is a candidate.
    pub origin: Origin,
}

/// Reason why there are no candidates.
#[derive(Debug, thiserror::Error)]
pub enum ClientConfError {
    /// A configured URI does not parse.
    #[error("transport {origin}: {source}")]
    BadUri {
        /// Origin of the text.
        origin: Origin,
        /// The parse error.
        source: TransportUriError,
    },
    /// A `client.conf` exists but cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// The settings in the process's environment that select a transport. Tests build their own.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Value of `NDN_CLIENT_TRANSPORT`.
    pub transport_variable: Option<String>,
    /// Paths of `client.conf` files; the first existing one is used.
    pub config_files: Vec<PathBuf>,
    /// The well-known sockets, in order of preference.
    pub default_sockets: Vec<PathBuf>,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn of_this_process() -> Self {
        let variable = |name: &str| -> Option<OsString> { std::env::var_os(name).filter(|value| !value.is_empty()) };
        let mut config_files = Vec::new();
        if let Some(home) = variable("HOME") {
            config_files.push(Path::new(&home).join(".ndn/client.conf"));
        }
        config_files.push(PathBuf::from("/usr/local/etc/ndn/client.conf"));
        config_files.push(PathBuf::from("/etc/ndn/client.conf"));
        let mut default_sockets = vec![PathBuf::from("/run/nfd/nfd.sock"), PathBuf::from("/var/run/nfd/nfd.sock")];
        if let Some(runtime) = variable("XDG_RUNTIME_DIR") {
            default_sockets.push(Path::new(&runtime).join("nfd/nfd.sock"));
        }
        Self {
            // A value that is not UTF-8 cannot name a forwarder; its replacement characters show in the error.
            transport_variable: variable(TRANSPORT_VARIABLE).map(|value| value.to_string_lossy().into_owned()),
            config_files,
            default_sockets,
        }
    }

    /// Returns the candidates in order of preference. They are empty only if nothing is configured and there are no
    /// default sockets.
    ///
    /// # Errors
    /// Fails if a configured transport does not parse or a configuration file cannot be read. Skipping it would
    /// silently connect to another forwarder.
    pub fn candidates(&self, argument: Option<&str>) -> Result<Vec<Candidate>, ClientConfError> {
        if let Some(text) = argument {
            return single(text, Origin::Argument);
        }
        if let Some(text) = &self.transport_variable {
            return single(text, Origin::Environment);
        }
        for path in &self.config_files {
            let text = match fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                Err(source) => return Err(ClientConfError::Unreadable { path: path.clone(), source }),
            };
            if let Some(uri) = transport_setting(&text) {
                return single(uri, Origin::File(path.clone()));
            }
            // ndn-cxx reads only the first file found, even when it has no transport line.
            break;
        }
        Ok(self
            .default_sockets
            .iter()
            .map(|path| Candidate { uri: TransportUri::Unix(path.clone()), origin: Origin::Default })
            .collect())
    }
}

/// Returns the candidates of this process, in order of preference.
///
/// # Errors
/// See [`Environment::candidates`].
pub fn candidates(argument: Option<&str>) -> Result<Vec<Candidate>, ClientConfError> {
    Environment::of_this_process().candidates(argument)
}

fn single(text: &str, origin: Origin) -> Result<Vec<Candidate>, ClientConfError> {
    match text.trim().parse() {
        Ok(uri) => Ok(vec![Candidate { uri, origin }]),
        Err(source) => Err(ClientConfError::BadUri { origin, source }),
    }
}

/// Returns the value of the `transport` line of a `client.conf`, if it exists and is not empty.
///
/// Lines are `key=value`; `;` and `#` start comment lines; section headers are skipped.
fn transport_setting(text: &str) -> Option<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with([';', '#', '[']))
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| key.trim() == "transport")
        .map(|(_, value)| value.trim().trim_matches('"'))
        .filter(|value| !value.is_empty())
}
