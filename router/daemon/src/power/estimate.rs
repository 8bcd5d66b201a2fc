//! Estimates power with the model, from the work of the workers: for hosts without energy counters.

use namehop_client::nfd::WorkerStatus;
use namehop_power::memory::BYTES_PER_PACKET;
use namehop_power::server::{Load, Power, Server};

/// Bytes of memory traffic for each packet: the mean of an Interest that misses and a Data in the thesis (table 3.1).
/// The router does not measure its own; memory is a small part of the power.
const MEMORY_BYTES_PER_PACKET: f64 = (BYTES_PER_PACKET[0] + BYTES_PER_PACKET[2]) / 2.0;

/// The work of all workers since their start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Total busy time of all workers, in seconds.
    pub busy_s: f64,
    /// Number of packets that they forwarded.
    pub packets: u64,
}

impl Work {
    /// Sums up the work of all workers.
    pub fn of(workers: &[WorkerStatus]) -> Self {
        Work {
            busy_s: workers.iter().map(|worker| worker.busy.as_secs_f64()).sum(),
            packets: workers.iter().map(|worker| worker.packets).sum(),
        }
    }

    /// Returns the work since `before`; never negative.
    pub fn since(&self, before: &Work) -> Work {
        Work { busy_s: (self.busy_s - before.busy_s).max(0.0), packets: self.packets.saturating_sub(before.packets) }
    }
}

/// Returns the power while `work` was done in `elapsed_s` seconds; `None` if the model has no result. A busy worker
/// counts as a core busy at the highest frequency, at most as all cores of the server.
pub fn estimate(server: &Server, work: &Work, elapsed_s: f64) -> Option<Power> {
    let busy_cores = work.busy_s / elapsed_s;
    let packets_per_second = work.packets as f64 / elapsed_s;
    let load = Load {
        cycles_per_second: (busy_cores * server.cpu.highest_hz()).min(server.cpu.capacity_hz()),
        memory_bytes_per_second: packets_per_second * MEMORY_BYTES_PER_PACKET,
        packets_per_second,
    };
    server.power(&load)
}

/// Returns the energy of each device over `elapsed_s` seconds, in microjoules.
pub fn energies(power: &Power, elapsed_s: f64) -> [(&'static str, u64); 4] {
    let &Power { cpu_watts, memory_watts, nic_watts, chassis_watts } = power;
    // The cast saturates.
    [("cpu", cpu_watts), ("memory", memory_watts), ("nic", nic_watts), ("chassis", chassis_watts)]
        .map(|(name, watts)| (name, (watts * elapsed_s * 1e6).round() as u64))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use namehop_power::servers;

    use super::*;

    fn server() -> Server {
        servers::published("e3-1220").expect("published")
    }

    #[test]
    fn a_busy_worker_is_a_busy_core() {
        // Half a second with 0.75 s of busy time: 1.5 cores.
        let power = estimate(&server(), &Work { busy_s: 0.75, packets: 500_000 }, 0.5).expect("possible");
        assert!((power.cpu_watts - (10.40 + 5.71 * 0.5_f64.powf(0.59))).abs() < 1e-9, "{power:?}");
        assert!((power.nic_watts - 12.6).abs() < 1e-9 && (power.chassis_watts - 34.20).abs() < 1e-9, "{power:?}");
        assert!((power.memory_watts - 1e6 * 862.5 * 0.61e-9).abs() < 1e-9, "{power:?}");
        assert_eq!(energies(&power, 2.0)[3], ("chassis", 68_400_000));
    }

    #[test]
    fn idle_workers_take_what_the_chassis_does_and_too_many_what_all_cores_do() {
        let idle = estimate(&server(), &Work::default(), 1.0).expect("possible");
        assert!((idle.total_watts() - 34.20).abs() < 1e-9);
        let many = estimate(&server(), &Work { busy_s: 9.0, packets: 0 }, 1.0).expect("possible");
        assert!((many.cpu_watts - server().cpu.device_watts()).abs() < 1e-9);
    }

    #[test]
    fn work_is_summed_and_never_falls() {
        let worker = WorkerStatus { busy: Duration::from_millis(250), packets: 7, ..WorkerStatus::default() };
        let work = Work::of(&[worker.clone(), worker]);
        assert_eq!(work, Work { busy_s: 0.5, packets: 14 });
        assert_eq!(Work::default().since(&work), Work::default());
        assert_eq!(work.since(&Work { busy_s: 0.25, packets: 4 }), Work { busy_s: 0.25, packets: 10 });
    }
}
