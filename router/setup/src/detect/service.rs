//! The installed service: how much memory it may lock, and which privileges it has.

use serde::Serialize;

use crate::System;

/// Where units are, those that count most first.
const UNITS: [&str; 4] =
    ["/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];
const UNIT: &str = "namehop.service";
const PROCESSES: &str = "/sys/fs/cgroup/system.slice/namehop.service/cgroup.procs";
/// The capability to use network interfaces without the kernel's protocols: packet(7).
const CAP_NET_RAW: u32 = 13;

/// What the unit `namehop.service` may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Its file.
    pub unit: String,
    /// Number of its process, when it runs.
    pub process: Option<u32>,
    /// Memory that it may lock, in bytes; absent when there is no limit.
    pub memory_lock_bytes: Option<u64>,
    /// Whether it may open ports on network interfaces (`dev://`).
    pub may_use_interfaces: bool,
}

impl Service {
    /// Asks the running process; otherwise the unit with what was added to it.
    pub(super) fn read(system: &System) -> Option<Service> {
        let unit = UNITS.iter().map(|folder| format!("{folder}/{UNIT}")).find(|file| system.exists(file))?;
        let process = system.read(PROCESSES).and_then(|list| list.lines().next()?.parse::<u32>().ok());
        let limits = process.and_then(|process| system.read(&format!("/proc/{process}/limits")));
        let status = process.and_then(|process| system.read(&format!("/proc/{process}/status")));
        let settings = settings(system, &unit);
        let last =
            |key: &str| settings.iter().rev().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim);
        Some(Service {
            memory_lock_bytes: match (limits, last("LimitMEMLOCK")) {
                (Some(limits), _) => memory_lock_limit(&limits),
                (None, Some("infinity")) => None,
                // What systemd gives otherwise.
                (None, text) => Some(text.and_then(parse_size).unwrap_or(8 << 20)),
            },
            may_use_interfaces: match status.as_deref().and_then(|status| status_field(status, "CapEff")) {
                Some(set) => u64::from_str_radix(set, 16).is_ok_and(|set| set & (1 << CAP_NET_RAW) != 0),
                None => last("AmbientCapabilities").is_some_and(|set| set.contains("CAP_NET_RAW")),
            },
            unit,
            process,
        })
    }
}

/// Lines of a unit, and of the files that add to it.
fn settings(system: &System, unit: &str) -> Vec<String> {
    let mut files = vec![unit.to_owned()];
    for folder in UNITS.iter().rev() {
        let folder = format!("{folder}/{UNIT}.d");
        files.extend(
            system
                .names(&folder)
                .into_iter()
                .filter(|name| name.ends_with(".conf"))
                .map(|name| format!("{folder}/{name}")),
        );
    }
    let texts = files.iter().filter_map(|file| system.read(file));
    texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// A size as units write it: `64M`.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// From `/proc/PID/limits`: the soft limit, in bytes; `None` for none.
pub(super) fn memory_lock_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// From `/proc/PID/status`.
pub(super) fn status_field<'t>(status: &'t str, field: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}
