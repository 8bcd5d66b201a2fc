//! Log output: levels per module, for people or as JSON, on standard error.

use std::env;
use std::str::FromStr;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Log, LogFormat};

/// Environment variable that goes before the configured level.
pub const LOG_VARIABLE: &str = "NAMEHOP_LOG";

/// Starts logging for this process. A second call changes nothing.
///
/// # Errors
/// The text of [`LOG_VARIABLE`] is not a log filter.
pub fn start(config: &Log) -> Result<(), String> {
    let (source, directives) = match env::var(LOG_VARIABLE) {
        Ok(text) if !text.is_empty() => (LOG_VARIABLE, text),
        _ => ("log.level", config.level.clone()),
    };
    let filter = Targets::from_str(&directives).map_err(|error| {
        format!("{source}: `{directives}` is not a log filter ({error}); write for example \"info,namehop_face=debug\"")
    })?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Failing means that a subscriber is set already, which is what the caller wants.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    Ok(())
}
