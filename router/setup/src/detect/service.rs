//! The installed service: its memory lock limit and its privileges.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::System;

/// Folders of units, in descending precedence: systemd.unit(5).
const UNITS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const UNIT: &str = "namehop.service";
const PROCESSES: &str = "/sys/fs/cgroup/system.slice/namehop.service/cgroup.procs";
/// The capability for packet sockets, with which a process uses network interfaces directly: packet(7).
const CAP_NET_RAW: u32 = 13;

/// The limits of the unit `namehop.service`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Path of the unit file.
    pub unit: String,
    /// Process id; `None` if it does not run.
    pub process: Option<u32>,
    /// Memory that it may lock, in bytes; `None` for no limit.
    pub memory_lock_bytes: Option<u64>,
    /// Whether it may open ports on network interfaces (`dev://`).
    pub may_use_interfaces: bool,
}

impl Service {
    /// Reads the limits of the running process, or else of the unit with its drop-in files.
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
                // The default of systemd.
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

/// Returns the lines of a unit and of its drop-in files, in the order in which systemd reads them: by file name over
/// all folders. Of files of the same name, only the one in the folder of the highest precedence is read.
fn settings(system: &System, unit: &str) -> Vec<String> {
    let mut drop_ins = BTreeMap::new();
    for folder in UNITS.iter().rev() {
        let folder = format!("{folder}/{UNIT}.d");
        let names = system.names(&folder).into_iter().filter(|name| name.ends_with(".conf"));
        drop_ins.extend(names.map(|name| (name.clone(), format!("{folder}/{name}"))));
    }
    let files = std::iter::once(unit).chain(drop_ins.values().map(String::as_str));
    let texts = files.filter_map(|file| system.read(file));
    texts.flat_map(|text| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// Parses a size in the format of units, such as `64M`.
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

/// Returns the soft limit of locked memory from `/proc/PID/limits`, in bytes; `None` for no limit.
pub(super) fn memory_lock_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns a field of `/proc/PID/status`.
pub(super) fn status_field<'t>(status: &'t str, field: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}
