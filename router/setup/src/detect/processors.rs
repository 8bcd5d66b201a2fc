//! Processors: which share a core, which the scheduler leaves alone, and whether they save power by running slower.

use serde::Serialize;

use crate::System;
use crate::system::parse_list;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// One processor, as the kernel counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// Those that share its core, itself included.
    pub siblings: Vec<u32>,
    /// How its frequency is chosen; absent where the system does not choose.
    pub governor: Option<String>,
}

/// All that are switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Processors {
    /// By number.
    pub online: Vec<Processor>,
    /// Those that the scheduler gives to nobody who does not ask for them (`isolcpus`).
    pub isolated: Vec<u32>,
    /// Those without a regular tick when a single thread runs (`nohz_full`).
    pub tickless: Vec<u32>,
}

impl Processors {
    pub(super) fn read(system: &System) -> Self {
        let list = |file: &str| parse_list(&system.read(&format!("{PROCESSORS}/{file}")).unwrap_or_default());
        let online = list("online").into_iter().map(|number| {
            let own = |file: &str| system.read(&format!("{PROCESSORS}/cpu{number}/{file}"));
            let names = system.names(&format!("{PROCESSORS}/cpu{number}"));
            Processor {
                number,
                node: names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok()),
                siblings: own("topology/thread_siblings_list").map_or_else(|| vec![number], |text| parse_list(&text)),
                governor: own("cpufreq/scaling_governor"),
            }
        });
        Processors { online: online.collect(), isolated: list("isolated"), tickless: list("nohz_full") }
    }

    /// Cores: processors that share one count once.
    pub fn cores(&self) -> usize {
        let is_first =
            |processor: &&Processor| processor.siblings.first().is_none_or(|&first| first == processor.number);
        self.online.iter().filter(is_first).count()
    }

    /// Those whose governor lets them run slower than they could.
    pub fn slowed(&self) -> Vec<u32> {
        let is_slowed = |processor: &&Processor| processor.governor.as_ref().is_some_and(|name| name != "performance");
        self.online.iter().filter(is_slowed).map(|processor| processor.number).collect()
    }
}
