//! Log filters: levels of log lines per module, as text.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Environment variable that overrides the configured level.
pub const LOG_VARIABLE: &str = "NAMEHOP_LOG";

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
