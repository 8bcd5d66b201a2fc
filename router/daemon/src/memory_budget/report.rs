//! Reports the fitted settings, in the log and for `namehop config check`.

use std::fmt;

use tracing::{info, warn};

use super::{Budget, Shrunk, Unit};

/// Number of the largest needs that a warning names.
const NAMED_NEEDS: usize = 3;

impl Unit {
    /// Formats a value for people.
    fn show(self, value: usize) -> String {
        const MEBIBYTE: f64 = (1 << 20) as f64;
        match self {
            Unit::Number => value.to_string(),
            Unit::Bytes if value.is_multiple_of(1 << 20) => format!("{} MiB", value >> 20),
            Unit::Bytes => format!("{:.1} MiB", value as f64 / MEBIBYTE),
        }
    }
}

impl fmt::Display for Shrunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shrunk { section, key, unit, usual, value } = self;
        write!(f, "[{section}] {key}: {} instead of {}", unit.show(*value), unit.show(*usual))
    }
}

impl Budget {
    /// Logs which settings got less than usual, and warns if the configured settings exceed the available memory.
    pub fn log(&self) {
        if !self.shrunk.is_empty() {
            warn!("{}", self.heading());
            for shrunk in &self.shrunk {
                info!("{shrunk}");
            }
        }
        if let Some(warning) = self.warning() {
            warn!("{warning}");
        }
    }

    /// Returns the same as text of several lines, with the maximum memory by purpose.
    pub fn describe(&self) -> String {
        let mebibytes = |bytes: usize| bytes.div_ceil(1 << 20);
        let mut text = match self.limit_bytes {
            Some(limit) => format!("memory: {} MiB for the router, {}\n", limit >> 20, self.source),
            None => format!("memory: {}\n", self.source),
        };
        for need in &self.needs {
            text += &format!("  {:>6} MiB at most for {} ({})\n", mebibytes(need.bytes), need.purpose, need.settings);
        }
        if !self.shrunk.is_empty() {
            text += &format!("{}:\n", self.heading());
            for shrunk in &self.shrunk {
                text += &format!("  {shrunk}\n");
            }
        }
        if let Some(warning) = self.warning() {
            text += &format!("warning: {warning}\n");
        }
        text
    }

    fn heading(&self) -> String {
        format!(
            "the router may use {} MiB of memory ({}), so settings that are \"auto\" get smaller values than usual; to \
             override, write values for them, or for `limit` in section [memory]",
            self.limit_bytes.unwrap_or_default() >> 20,
            self.source,
        )
    }

    fn warning(&self) -> Option<String> {
        let limit = self.limit_bytes.filter(|limit| self.needed_bytes > *limit)?;
        let largest: Vec<String> = self
            .needs
            .iter()
            .take(NAMED_NEEDS)
            .map(|need| format!("{} MiB for {} ({})", need.bytes.div_ceil(1 << 20), need.purpose, need.settings))
            .collect();
        Some(format!(
            "the settings allow the router {} MiB of memory, but only {} MiB are available ({}): under load the system \
             may kill the router; the largest parts are {}",
            self.needed_bytes.div_ceil(1 << 20),
            limit >> 20,
            self.source,
            largest.join(", "),
        ))
    }
}
