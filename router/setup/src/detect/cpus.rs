//! CPUs: which share a core, which are isolated from the scheduler, and whether they save power at lower frequencies.

use serde::Serialize;

use crate::System;
use crate::system::parse_list;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// One CPU, as numbered by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Number of the CPU.
    pub number: u32,
    /// NUMA node of the CPU.
    pub node: Option<u32>,
    /// CPUs of the same core, including this one.
    pub siblings: Vec<u32>,
    /// Frequency governor; `None` if the system does not control the frequency.
    pub governor: Option<String>,
}

/// All CPUs that are online.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpus {
    /// The CPUs, by number.
    pub online: Vec<Cpu>,
    /// CPUs on which the scheduler runs only threads that request them (`isolcpus`).
    pub isolated: Vec<u32>,
    /// CPUs without a regular tick while a single thread runs (`nohz_full`).
    pub tickless: Vec<u32>,
}

impl Cpus {
    pub(super) fn read(system: &System) -> Self {
        let list = |file: &str| parse_list(&system.read(&format!("{PROCESSORS}/{file}")).unwrap_or_default());
        let online = list("online").into_iter().map(|number| {
            let own = |file: &str| system.read(&format!("{PROCESSORS}/cpu{number}/{file}"));
            let names = system.names(&format!("{PROCESSORS}/cpu{number}"));
            Cpu {
                number,
                node: names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok()),
                siblings: own("topology/thread_siblings_list").map_or_else(|| vec![number], |text| parse_list(&text)),
                governor: own("cpufreq/scaling_governor"),
            }
        });
        Cpus { online: online.collect(), isolated: list("isolated"), tickless: list("nohz_full") }
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        let is_first = |cpu: &&Cpu| cpu.siblings.first().is_none_or(|&first| first == cpu.number);
        self.online.iter().filter(is_first).count()
    }

    /// Returns the CPUs with a governor that allows lower frequencies.
    pub fn slowed(&self) -> Vec<u32> {
        let is_slowed = |cpu: &&Cpu| cpu.governor.as_ref().is_some_and(|name| name != "performance");
        self.online.iter().filter(is_slowed).map(|cpu| cpu.number).collect()
    }
}
