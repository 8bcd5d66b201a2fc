//! Log output on standard error: levels per module, as readable text or as JSON.
//!
//! Lines go through `log_writer`, so that logging never blocks.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Log, LogFormat};
use crate::log_writer::LogWriter;

/// Environment variable that overrides the configured level.
pub const LOG_VARIABLE: &str = "NAMEHOP_LOG";

/// Longest time for which the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The writer of log lines, once logging has started.
static WRITER: OnceLock<LogWriter> = OnceLock::new();

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// Libraries with modules that may be named in a filter, besides Namehop's own.
const LIBRARIES: [&str; 2] = ["tokio_tungstenite", "tungstenite"];

/// Starts logging for this process. A second call changes nothing.
///
/// # Errors
/// The text of [`LOG_VARIABLE`] is not a log filter.
pub fn start(config: &Log) -> Result<(), String> {
    let (source, directives) = match env::var_os(LOG_VARIABLE) {
        Some(text) if !text.is_empty() => (LOG_VARIABLE, text.to_string_lossy().into_owned()),
        _ => ("log.level", config.level.clone()),
    };
    let filter = parse_filter(&directives).map_err(|error| format!("{source}: {error}"))?;
    let writer = LogWriter::start(io::stderr()).map_err(|error| format!("cannot start the log thread: {error}"))?;
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

/// Parses `level,module=level,…`.
///
/// Stricter than the parser of the logging library, which takes any word for the name of a module: a misspelt level
/// would turn off all lines, even errors.
///
/// # Errors
/// Names the wrong part and the remedy.
pub fn parse_filter(directives: &str) -> Result<Targets, String> {
    let mut filter = Targets::new();
    for directive in directives.split(',').map(str::trim) {
        filter = match directive.split_once('=') {
            None => filter.with_default(level(directive)?),
            Some((module, word)) => {
                let library = module.split("::").next().unwrap_or_default();
                if !module.starts_with("namehop") && !LIBRARIES.contains(&library) {
                    return Err(format!(
                        "`{module}` is not a module that logs; write a module of Namehop, for example namehop_face or \
                         namehop_manage, or one of the libraries {}",
                        LIBRARIES.join(", ")
                    ));
                }
                filter.with_target(module, level(word)?)
            }
        };
    }
    Ok(filter)
}

fn level(word: &str) -> Result<LevelFilter, String> {
    let known = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    known.map(|(_, level)| *level).ok_or_else(|| {
        let names = LEVELS.map(|(name, _)| name).join(", ");
        format!("`{word}` is not a log level; the levels are {names}. Write for example \"info,namehop_face=debug\"")
    })
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    #[test]
    fn levels_and_modules_are_read() {
        for text in ["info", "OFF", "info,namehop_face=debug", " warn , tokio_tungstenite::compat=trace", "namehop=off"]
        {
            assert!(parse_filter(text).is_ok(), "{text}");
        }
        let filter = parse_filter("warn,namehop_face=trace").expect("valid");
        assert_eq!(filter.default_level(), Some(LevelFilter::WARN));
        assert!(filter.would_enable("namehop_face::socket", &tracing::Level::TRACE));
        assert!(!filter.would_enable("namehop_manage", &tracing::Level::INFO));
    }

    #[test]
    fn what_is_neither_is_refused_with_what_would_be_right() {
        for (text, reason) in [
            ("", "`` is not a log level"),
            ("blah", "`blah` is not a log level"),
            ("3", "off, error, warn, info, debug, trace"),
            ("info,", "`` is not a log level"),
            ("info,namehop_face", "`namehop_face` is not a log level"),
            ("namehop_face=loud", "`loud` is not a log level"),
            ("nfd=debug", "`nfd` is not a module"),
            ("tungstenite2=debug", "namehop_face"),
        ] {
            let error = parse_filter(text).expect_err(text);
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
