//! Properties of the host that matter to measurements.

use std::fs;

use namehop_table::clock::cycles_per_second;
use serde::Serialize;

/// The host that runs the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// CPU model.
    pub processor: String,
    /// Logical cores available to this process.
    pub cores: usize,
    /// Size of the whole last-level cache in bytes; `None` if unknown. On a virtual machine other guests may share it.
    pub last_level_cache_bytes: Option<u64>,
    /// Ticks of the time-stamp counter per second.
    pub cycles_hz: f64,
}

impl Machine {
    /// Detects the properties of this host.
    pub fn detect() -> Self {
        Machine {
            processor: processor_name(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            last_level_cache_bytes: last_level_cache_bytes(),
            cycles_hz: cycles_per_second() as f64,
        }
    }
}

fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn last_level_cache_bytes() -> Option<u64> {
    (0..8)
        .filter_map(|index| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
            parse_size(fs::read_to_string(path).ok()?.trim())
        })
        .max()
}

/// Parses a size in the kernel's format, such as `48K` or `2M`.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Memory in bytes that can be allocated without swapping or evicting caches; `None` if the system does not report it.
pub fn available_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_itself() {
        let machine = Machine::detect();
        assert!(machine.cores >= 1);
        assert!(!machine.processor.is_empty());
        assert!((1e6..1e11).contains(&machine.cycles_hz), "{}", machine.cycles_hz);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("266240K"), Some(266_240 << 10));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("17"), Some(17));
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size(""), None);
    }
}
