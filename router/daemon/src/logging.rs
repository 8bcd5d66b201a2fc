//! Log output on standard error: levels per module, as readable text or as JSON.
//!
//! Lines go through `log_writer`, so that logging never blocks.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::Duration;

use namehop_config::log_filter::{LOG_VARIABLE, parse_filter};
use namehop_config::{Log, LogFormat};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::log_writer::LogWriter;

/// Longest time for which the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The writer of log lines, once logging has started.
static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The text of [`LOG_VARIABLE`], or of the setting `log.level`, is not a log filter.
    #[error("{origin}: {reason}")]
    Filter {
        /// The variable or setting.
        origin: &'static str,
        /// What is wrong with the text.
        reason: String,
    },
    /// The thread that writes log lines cannot be started.
    #[error("cannot start the log thread: {0}")]
    Thread(io::Error),
}

/// Starts logging for this process. A second call changes nothing.
///
/// # Errors
/// The filter is invalid, or the thread that writes log lines cannot be started.
pub fn start(config: &Log) -> Result<(), LogError> {
    let (origin, directives) = match env::var_os(LOG_VARIABLE) {
        Some(text) if !text.is_empty() => (LOG_VARIABLE, text.to_string_lossy().into_owned()),
        _ => ("log.level", config.level.clone()),
    };
    let filter = parse_filter(&directives).map_err(|reason| LogError::Filter { origin, reason })?;
    let writer = LogWriter::start(io::stderr()).map_err(LogError::Thread)?;
    let lines = fmt::layer().with_writer(writer.clone()).with_ansi(io::stderr().is_terminal());
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Fails if a subscriber is set already, as intended for a second call.
    if tracing_subscriber::registry().with(lines.with_filter(filter)).try_init().is_ok() {
        // First call, so `WRITER` is empty.
        let _ = WRITER.set(writer);
    }
    Ok(())
}

/// Waits until all lines are written, at most for [`FLUSH_TIMEOUT`], because standard error may have no reader.
pub fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush(FLUSH_TIMEOUT);
    }
}
