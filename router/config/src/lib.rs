//! The configuration of a router: a file in TOML, its settings, and their check against this host.
//!
//! A file may hold any subset of the keys; missing keys have their defaults. Unknown keys and wrong values are errors
//! that name the file, line, column and the remedy. Certificates, folders and network interfaces that this host does
//! not have are errors too. Each key is declared once (module `settings`); `default.toml` follows from the
//! declarations, and `namehop config show` prints it.
//!
//! | module | what |
//! |---|---|
//! | `sections`, `faces`, `ports`, `routing`, `strategies`, `trust` | the sections of the file |
//! | `values`, `automatic` | types of values |
//! | `settings` | the macro that declares a section |
//! | `check`, `environment` | checks of values that depend on each other, and on this host |
//! | `fault` | an error and its position |
//! | `reference` | writes `default.toml` and `docs/settings.md` |
//! | [`token_file`] | files that hold the token of the HTTP API |
//! | [`file_access`] | whether this user can read and create files |
//! | [`log_filter`] | levels of log lines per module, as text |
//!
//! ```
//! use std::path::Path;
//!
//! use namehop_config::Config;
//!
//! let text = "[content_store]\ncapacity_packets = 1000\n";
//! let config = Config::parse(text, Path::new("namehop.toml"))?;
//! assert!(config.to_toml().contains("capacity_packets = 1000"));
//! let error = Config::parse("[content_store]\ncapacity_packets = \"many\"\n", Path::new("namehop.toml")).unwrap_err();
//! assert!(error.to_string().contains("namehop.toml"));
//! # Ok::<(), namehop_config::ConfigError>(())
//! ```

#![forbid(unsafe_code)]

mod automatic;
mod check;
mod environment;
mod faces;
mod fault;
pub mod file_access;
pub mod log_filter;
mod ports;
#[cfg(test)]
mod reference;
mod routing;
mod sections;
mod settings;
mod strategies;
pub mod token_file;
mod trust;
mod values;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fault::Fault;
use settings::settings;

pub use automatic::Auto;
pub use faces::{Faces, Multicast, Tcp, Udp, Unix, WebSocket};
pub use ports::{Ports, StaticPort};
pub use routing::{Routing, RoutingDaemon, RoutingGateway};
pub use sections::{
    Api, Authorization, ContentStore, ContentStoreDisk, Fib, Forwarding, Log, LogFormat, Management, Memory, Metrics,
    Power, State, StaticFace, StaticRoute, Trust,
};
pub use strategies::{LoadedStrategy, StaticStrategy};
pub use trust::TrustAnchor;
pub use values::{ByteSize, IpText, NameText, OriginText, PortAddressText, PortText, StrategyText, UriText};

/// The documented default file: every key with its default and its meaning.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

const WHOLE_NUMBER: &str = "a whole number, 0 or more";

settings! {
    /// Namehop's configuration. Every key is here with its default; `namehop run` without a file uses exactly these
    /// values. Your own file needs only the keys that differ. Check it with `namehop config check FILE`.
    pub section Config {
        one log: Log;
        one forwarding: Forwarding;
        one fib: Fib;
        one content_store: ContentStore;
        one memory: Memory;
        one faces: Faces;
        one ports: Ports;
        one management: Management;
        one routing: Routing;
        one metrics: Metrics;
        one api: Api;
        one power: Power;
        one state: State;
        many port: StaticPort;
        many face: StaticFace;
        many route: StaticRoute;
        many loaded_strategy: LoadedStrategy;
        many strategy: StaticStrategy;
    }
}

/// An error in a configuration file.
#[derive(Debug)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Line and column, both from 1, where known.
    pub position: Option<(usize, usize)>,
    /// The error and its remedy.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file and checks it, also against this host: the certificates, folders and network interfaces that it
    /// names must exist and be usable by this user.
    ///
    /// # Errors
    /// The first error, with its position in the file.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        let text = read_text(file)?;
        let config = Config::parse(&text, file)?;
        match config.environment_fault() {
            None => Ok(config),
            Some(fault) => Err(fault_at(fault, &text, file)),
        }
    }

    /// Reads a file and checks it without regard to this host, for example a file for another host.
    ///
    /// # Errors
    /// The first error, with its position in the file.
    pub fn read(file: &Path) -> Result<Config, ConfigError> {
        Config::parse(&read_text(file)?, file)
    }

    /// Parses and checks the text of a configuration; `file` is for messages only.
    ///
    /// # Errors
    /// The first error, with its position in the text.
    pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
        let config: Config =
            toml::from_str(text).map_err(|error| error_at(error.span(), with_remedy(error.message()), text, file))?;
        match config.first_fault() {
            None => Ok(config),
            Some(fault) => Err(fault_at(fault, text, file)),
        }
    }

    /// Returns the configuration as TOML, with every key.
    pub fn to_toml(&self) -> String {
        // Serializing plain structs of strings, numbers and lists cannot fail.
        toml::to_string_pretty(self).unwrap_or_default()
    }
}

impl Unix {
    /// Returns the permission bits of the socket file; `None` if `mode` is not octal.
    pub fn mode_bits(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o777)
    }
}

fn read_text(file: &Path) -> Result<String, ConfigError> {
    let bytes = std::fs::read(file).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => ", or write one, starting from the output of `namehop config show`",
            _ => "",
        };
        let message = format!("cannot read the configuration: {}{remedy}", environment::unreadable(file, &error));
        ConfigError { file: file.to_owned(), position: None, message }
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid_bytes = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let message = "this is not UTF-8 text; save the file as UTF-8".to_owned();
        error_at(Some(valid_bytes..valid_bytes), message, &text, file)
    })
}

fn error_at(span: Option<Range<usize>>, message: String, text: &str, file: &Path) -> ConfigError {
    let position = span.map(|span| line_and_column(text, span.start));
    ConfigError { file: file.to_owned(), position, message }
}

fn fault_at(fault: Fault, text: &str, file: &Path) -> ConfigError {
    error_at(fault.locate(text), fault.into_message(), text, file)
}

/// Adds the remedy that the messages of the TOML reader lack, and explains number types.
fn with_remedy(message: &str) -> String {
    let message = message.trim_end();
    for (expected, meaning) in [
        ("u8", "a whole number from 0 to 255"),
        ("u16", "a whole number from 0 to 65535"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u64", WHOLE_NUMBER),
        ("usize", WHOLE_NUMBER),
    ] {
        if let Some(start) = message.strip_suffix(expected).filter(|start| start.ends_with("expected ")) {
            return format!("{start}{meaning}");
        }
    }
    if message.starts_with("unknown field") || message.starts_with("missing field") {
        format!("{message}; `namehop config show` prints every key")
    } else {
        message.to_owned()
    }
}

/// Returns line and column, both from 1, of a byte offset.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests;
