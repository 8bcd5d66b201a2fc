//! Parsing and formatting of numbers with units.

use std::time::Duration;

use namehop_config::ByteSize;

/// Parses a duration: a number with one of the units `us`, `ms`, `s`, `m` (or `min`), `h`, `d`, or several of them, as
/// in `1h30m`. `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration; write, for example, 500ms, 10s, 5m, 2h or 1d");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let value: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let after = &rest[digits..];
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let seconds = match &after[..letters] {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let part = Duration::try_from_secs_f64(value * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        rest = &after[letters..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

/// Parses a number of seconds, or a duration with a unit.
pub fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| format!("'{text}': {error}")),
        Err(_) => parse_duration(text),
    }
}

/// Parses `on` or `off`.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "yes" | "true" => Ok(true),
        "off" | "no" | "false" => Ok(false),
        _ => Err(format!("'{text}' must be 'on' or 'off'")),
    }
}

/// Formats a switch so that [`parse_switch`] can read it.
pub fn show_switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// Parses a number of bytes as in the configuration file: plain, or with a unit as in `512 MiB` or `2 GB`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>().map(|size| size.0)
}

/// Parses bits per second with a metric prefix, as in `100Mbit` or `1.5 Gbit`; plain numbers are bits per second.
pub fn parse_bit_rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a rate; write, for example, 100Mbit, 1Gbit or 64kbit");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let scale = match text[digits..].trim().trim_end_matches("/s") {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        _ => return Err(wrong()),
    };
    let rate = value * scale;
    if (1.0..=1e15).contains(&rate) { Ok(rate as u64) } else { Err(wrong()) }
}

/// Parses a share: a number from 0 to 1, or per cent, as in `0.01` or `1%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let share = number.parse::<f64>().ok().map(|number| number / scale).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share; write, for example, 1% or 0.01"))
}

/// Formats a number of bytes in the largest unit that fits, as in `4.0 GiB`.
pub fn show_bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|&(unit, _)| bytes >= unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Converts a duration to milliseconds, for protocol fields.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Formats a duration in its two largest units, as in `1h 5m` or `3.2s`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{:.1}ms", duration.as_secs_f64() * 1e3),
        (0, 0, 0) => format!("{:.1}s", duration.as_secs_f64()),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// Formats the time until an expiry in milliseconds. Some programs write the largest number for "never".
pub fn show_expiry(after_ms: u64) -> String {
    const CENTURY_MS: u64 = 36_525 * 86_400_000;
    if after_ms < CENTURY_MS { show_duration(Duration::from_millis(after_ms)) } else { "never".to_owned() }
}

/// Formats bits per second with a metric prefix.
pub fn show_bit_rate(bits_per_second: f64) -> String {
    match bits_per_second {
        rate if rate >= 1e9 => format!("{:.2} Gbit/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.2} Mbit/s", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.2} kbit/s", rate / 1e3),
        rate => format!("{rate:.0} bit/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for text in ["", "10", "s", "1x", "-1s", "1s2", "1..2s", "1e999s", "9999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_and_rates_are_shown_short() {
        assert_eq!(show_duration(Duration::from_micros(2500)), "2.5ms");
        assert_eq!(show_duration(Duration::from_millis(3210)), "3.2s");
        assert_eq!(show_duration(Duration::from_secs(65)), "1m 5s");
        assert_eq!(show_duration(Duration::from_secs(3900)), "1h 5m");
        assert_eq!(show_duration(Duration::from_secs(90_000)), "1d 1h");
        assert_eq!((show_expiry(3_900_000), show_expiry(1 << 63)), ("1h 5m".to_owned(), "never".to_owned()));
        assert_eq!(show_bit_rate(12.0), "12 bit/s");
        assert_eq!(show_bit_rate(2.5e9), "2.50 Gbit/s");
    }

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(parse_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_bytes("100"), Ok(100));
        for (text, bytes) in [("512 MiB", 512 << 20), ("4GB", 4_000_000_000), ("64 KiB", 65_536), ("1_000", 1000)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "4 PiB", "-1", "1.5GiB", "99999999999999GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(show_bytes(1536), "1.5 KiB");
        assert_eq!(show_bytes(4 << 30), "4.0 GiB");
        assert_eq!(show_bytes(17), "17 bytes");
    }

    #[test]
    fn rates_and_shares_are_read() {
        let rates = [("100Mbit", 100_000_000), ("1.5 Gbit/s", 1_500_000_000), ("64kbit", 64_000), ("9600", 9600)];
        for (text, rate) in rates {
            assert_eq!(parse_bit_rate(text), Ok(rate), "{text}");
        }
        for text in ["", "Mbit", "0", "-1Mbit", "1MB", "1e30", "9999999999Gbit"] {
            assert!(parse_bit_rate(text).is_err(), "{text}");
        }
        for (text, share) in [("1%", 0.01), ("0.5", 0.5), ("0", 0.0), ("100 %", 1.0)] {
            assert_eq!(parse_share(text), Ok(share), "{text}");
        }
        for text in ["", "%", "1.1", "101%", "-1%", "NaN"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn switches() {
        assert_eq!((parse_switch("on"), parse_switch("off")), (Ok(true), Ok(false)));
        assert!(parse_switch("maybe").is_err());
    }
}
