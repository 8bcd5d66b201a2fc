//! The configuration file: TOML, read once at start.
//!
//! A file may hold any part of the keys; what it leaves out keeps its default. Unknown keys and wrong values are errors
//! that name file, line, column and what would be right. `default.toml` documents every key and is what
//! `namehop config show` starts from.

mod sections;
mod values;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use namehop_store::PolicyKind;

pub use sections::*;
pub use values::{AutoPath, ByteSize, NameText, StrategyText, UriText};

/// Every key with its default and what it means.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// Modules of the management protocol that an authorization can name.
pub const MANAGEMENT_MODULES: [&str; 5] = ["faces", "fib", "cs", "strategy-choice", "rib"];

/// A complete configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Log output.
    pub log: Log,
    /// The forwarding engine.
    pub forwarding: Forwarding,
    /// The cache.
    pub content_store: ContentStore,
    /// Listeners and limits of faces.
    pub faces: Faces,
    /// Who may command.
    pub management: Management,
    /// Prometheus metrics.
    pub metrics: Metrics,
    /// What survives a restart.
    pub state: State,
    /// Faces to create at start.
    pub face: Vec<StaticFace>,
    /// Routes to add at start.
    pub route: Vec<StaticRoute>,
    /// Strategies to choose at start.
    pub strategy: Vec<StaticStrategy>,
}

/// What is wrong with a configuration file.
#[derive(Debug)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Line and column, both from 1, where known.
    pub position: Option<(usize, usize)>,
    /// What is wrong and what would be right.
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
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the file.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError {
            file: file.to_owned(),
            position: None,
            message: format!("cannot read the configuration: {error}"),
        })?;
        Config::parse(&text, file)
    }

    /// Checks the text of a configuration; `file` is for messages only.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the text.
    pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
        let fail = |span: Option<Range<usize>>, message: String| ConfigError {
            file: file.to_owned(),
            position: span.map(|span| line_and_column(text, span.start)),
            message,
        };
        let config: Config = toml::from_str(text).map_err(|error| fail(error.span(), with_remedy(error.message())))?;
        match config.first_fault() {
            None => Ok(config),
            Some(fault) => Err(fail(find_key(text, fault.section, fault.key), fault.message)),
        }
    }

    /// The configuration as TOML, every key written out.
    pub fn to_toml(&self) -> String {
        // Serializing plain structs of strings, numbers and lists cannot fail.
        toml::to_string_pretty(self).unwrap_or_default()
    }

    /// What the types cannot express: ranges, and values that refer to each other.
    fn first_fault(&self) -> Option<Fault> {
        let range = |section, key, value: u64, low: u64, high: u64| {
            (!(low..=high).contains(&value)).then(|| Fault {
                section,
                key,
                message: format!("`{key}` is {value}; it must be from {low} to {high}"),
            })
        };
        let text = |section, key, message: String| Some(Fault { section, key, message });
        let forwarding = &self.forwarding;
        range("forwarding", "pit_capacity", forwarding.pit_capacity as u64, 64, 1 << 28)
            .or_else(|| {
                range("forwarding", "dead_nonce_list_lifetime_ms", forwarding.dead_nonce_list_lifetime_ms, 50, 600_000)
            })
            .or_else(|| {
                range("forwarding", "max_interest_lifetime_ms", forwarding.max_interest_lifetime_ms, 1, 864_000_000)
            })
            .or_else(|| {
                range("forwarding", "measurement_capacity", forwarding.measurement_capacity as u64, 64, 1 << 24)
            })
            .or_else(|| range("forwarding", "small_buffers", forwarding.small_buffers as u64, 256, 1 << 24))
            .or_else(|| range("forwarding", "large_buffers", forwarding.large_buffers as u64, 64, 1 << 24))
            .or_else(|| {
                range("content_store", "capacity_packets", self.content_store.capacity_packets as u64, 0, 1 << 28)
            })
            .or_else(|| range("faces", "max_faces", self.faces.max_faces as u64, 4, 65_280))
            .or_else(|| range("faces", "send_queue_bytes", self.faces.send_queue_bytes.0, 16_384, 1 << 30))
            .or_else(|| range("faces.udp", "mtu", self.faces.udp.mtu as u64, 64, 8_800))
            .or_else(|| range("faces.udp", "idle_timeout_s", self.faces.udp.idle_timeout_s, 1, 1 << 32))
            .or_else(|| match self.content_store.policy.parse::<PolicyKind>() {
                Ok(_) => None,
                Err(error) => text("content_store", "policy", error.to_string()),
            })
            .or_else(|| match self.faces.unix.mode_bits() {
                Some(_) => None,
                None => text(
                    "faces.unix",
                    "mode",
                    format!(
                        "`{}` is not a file mode; write octal digits, for example \"0666\" or \"0660\"",
                        self.faces.unix.mode
                    ),
                ),
            })
            .or_else(|| match self.log.level.parse::<tracing_subscriber::filter::Targets>() {
                Ok(_) => None,
                Err(error) => text(
                    "log",
                    "level",
                    format!(
                        "`{}` is not a log filter ({error}); write for example \"info\" or \"info,namehop_face=debug\"",
                        self.log.level
                    ),
                ),
            })
            .or_else(|| {
                self.metrics.enabled.then_some(())?;
                (!self.metrics.listen.ip().is_loopback() && self.metrics.listen.port() == 0).then(|| Fault {
                    section: "metrics",
                    key: "listen",
                    message: "port 0 is for loopback addresses only; choose a port".to_owned(),
                })
            })
            .or_else(|| {
                self.management
                    .authorizations
                    .iter()
                    .flat_map(|rule| &rule.modules)
                    .find(|module| !MANAGEMENT_MODULES.contains(&module.as_str()))
                    .map(|module| Fault {
                        section: "management.authorizations",
                        key: "modules",
                        message: format!(
                            "`{module}` is not a management module; the modules are {}",
                            MANAGEMENT_MODULES.join(", ")
                        ),
                    })
            })
    }
}

impl Unix {
    /// The socket file's permission bits, `None` when `mode` is not octal.
    pub fn mode_bits(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o777)
    }
}

struct Fault {
    section: &'static str,
    key: &'static str,
    message: String,
}

/// Adds where to look to the messages of the TOML reader, which say what but not where to read on.
fn with_remedy(message: &str) -> String {
    let message = message.trim_end();
    if message.starts_with("unknown field") {
        format!("{message}; `namehop config show` prints every key")
    } else {
        message.to_owned()
    }
}

/// Line and column, both from 1, of a byte offset.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Where a key of a section stands in the text, for faults found after parsing.
fn find_key(text: &str, section: &str, key: &str) -> Option<Range<usize>> {
    let mut current = String::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            current = trimmed.split('#').next().unwrap_or("").trim().trim_matches(['[', ']']).trim().to_owned();
        } else if current == section && trimmed.split('=').next().map(str::trim) == Some(key) {
            let start = offset + line.len() - line.trim_start().len();
            return Some(start..offset + line.len());
        }
        offset += line.len();
    }
    None
}

#[cfg(test)]
mod tests;
