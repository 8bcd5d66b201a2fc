//! The servers that the thesis measured. Takemasa (2019), tables 6.1 to 6.3, 6.3.1, 6.3.2 and 6.5.1.

use crate::cpu::{Cpu, FrequencyCurve, FurtherCore, PState};
use crate::memory::DDR3_JOULES_PER_BYTE;
use crate::nic::{X540_JOULES_PER_PACKET, XL710_JOULES_PER_PACKET};
use crate::server::Server;

/// Utilization from which a higher frequency is selected, θ (6.3.3).
pub const THRESHOLD: f64 = 0.8;

/// A server with its printed parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedServer {
    /// Name on the command line.
    pub name: &'static str,
    /// Description.
    pub title: &'static str,
    /// Table of the thesis that describes its CPUs.
    pub table: &'static str,
    /// Power without load, Φ_chassis, in watts.
    pub chassis_watts: f64,
    /// Number of CPUs, N_cpu.
    pub devices: u32,
    /// Frequencies with one active core.
    pub p_states: &'static [PState],
    /// Cores after the first.
    pub further_cores: &'static [FurtherCore],
    /// ν as printed in its table.
    pub nu: f64,
    /// Φ_amin, in watts.
    pub minimum_watts: f64,
    /// Ψ_nic, in joules per packet.
    pub nic_joules_per_packet: f64,
}

impl PublishedServer {
    /// Model of the server.
    pub fn server(&self) -> Server {
        Server {
            name: self.name.to_owned(),
            chassis_watts: self.chassis_watts,
            memory_joules_per_byte: DDR3_JOULES_PER_BYTE,
            nic_joules_per_packet: self.nic_joules_per_packet,
            cpu: Cpu {
                devices: self.devices,
                threshold: THRESHOLD,
                p_states: self.p_states.to_vec(),
                further_cores: self.further_cores.to_vec(),
            },
        }
    }

    /// Equation 6.8 with its printed parameters.
    pub fn curve(&self) -> FrequencyCurve {
        let maximum_watts = self.p_states.last().map_or(0.0, |state| state.watts);
        FrequencyCurve { nu: self.nu, minimum_watts: self.minimum_watts, maximum_watts }
    }
}

/// Returns the published server with this name, if any.
pub fn published(name: &str) -> Option<Server> {
    PUBLISHED.iter().find(|server| server.name == name).map(PublishedServer::server)
}

/// Server 1. For its power without load 6.3.2 prints 68.43 W (as the first mean) and 34.20 W (as the chosen value); the
/// latter belongs to server 2.
const E5620: PublishedServer = PublishedServer {
    name: "e5620",
    title: "server 1: 2 Intel Xeon E5620, 4 cores of 2.4 GHz each; X540-T2",
    table: "6.1",
    chassis_watts: 68.43,
    devices: 2,
    p_states: &[
        p_state(1.6, 24.33, 0.30),
        p_state(1.73, 25.08, 0.13),
        p_state(1.87, 25.88, 0.15),
        p_state(2.0, 26.66, 0.065),
        p_state(2.13, 27.49, 0.14),
        p_state(2.27, 28.36, 0.074),
        p_state(2.4, 29.22, 0.12),
    ],
    further_cores: &[further(5.94, 0.84), further(5.37, 0.74), further(6.51, 0.81)],
    nu: 1350.0,
    minimum_watts: 16.86,
    nic_joules_per_packet: X540_JOULES_PER_PACKET,
};

/// Server 2. Its table prints the last frequency in the column of active cores, where 1 belongs.
const E3_1220: PublishedServer = PublishedServer {
    name: "e3-1220",
    title: "server 2: Intel Xeon E3-1220, 4 cores of 3.1 GHz; X540-T2",
    table: "6.2",
    chassis_watts: 34.20,
    devices: 1,
    p_states: &[
        p_state(1.6, 6.25, 0.46),
        p_state(1.8, 6.69, 0.40),
        p_state(2.0, 7.16, 0.32),
        p_state(2.2, 7.66, 0.38),
        p_state(2.4, 8.20, 0.36),
        p_state(2.6, 8.78, 0.40),
        p_state(2.8, 9.39, 0.38),
        p_state(3.1, 10.40, 0.48),
    ],
    further_cores: &[further(5.71, 0.59), further(6.86, 0.69), further(5.24, 0.56)],
    nu: 1890.0,
    minimum_watts: 3.63,
    nic_joules_per_packet: X540_JOULES_PER_PACKET,
};

/// Server 2 with the network cards of the case study.
const CASE_STUDY: PublishedServer = PublishedServer {
    name: "e3-1220-xl710",
    title: "case study: server 2 with 2 XL710",
    nic_joules_per_packet: XL710_JOULES_PER_PACKET,
    ..E3_1220
};

/// Server 3. The energy of its network card was not measured; the thesis uses that of the X540.
const ITANIUM_9520: PublishedServer = PublishedServer {
    name: "itanium-9520",
    title: "server 3: Intel Itanium 9520, 4 cores of 1.73 GHz; its own NIC, modelled as X540-T2",
    table: "6.3",
    chassis_watts: 117.82,
    devices: 1,
    p_states: &[p_state(1.066, 2.23, 0.68), p_state(1.6, 6.35, 0.78), p_state(1.733, 7.80, 0.34)],
    further_cores: &[further(3.92, 0.55), further(1.39, 0.74), further(1.21, 0.34)],
    nu: 2.58,
    minimum_watts: 0.0,
    nic_joules_per_packet: X540_JOULES_PER_PACKET,
};

/// All published servers.
pub const PUBLISHED: [PublishedServer; 4] = [E5620, E3_1220, CASE_STUDY, ITANIUM_9520];

const fn p_state(ghz: f64, watts: f64, sigma: f64) -> PState {
    PState { ghz, watts, sigma }
}

const fn further(watts: f64, sigma: f64) -> FurtherCore {
    FurtherCore { watts, sigma }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_servers_are_valid_and_have_names_of_their_own() {
        for server in PUBLISHED {
            server.server().check().expect("valid");
            assert_eq!(PUBLISHED.iter().filter(|other| other.name == server.name).count(), 1);
            assert_eq!(published(server.name), Some(server.server()));
        }
        assert_eq!(published("abacus"), None);
    }

    /// 6.3.2 prints the means of servers 1, 2 and 3 as 68.43, 34.20 and 117.82 W, their 95 % confidence intervals in
    /// another order, and the chosen values as "34.20, 68.90, and 117.82".
    #[test]
    fn chassis_lie_in_the_confidence_intervals_of_their_servers() {
        let chassis = |name: &str| published(name).expect("published").chassis_watts;
        assert!((68.24..=68.62).contains(&chassis("e5620")) && !(68.24..=68.62).contains(&68.90));
        assert!((34.09..=34.30).contains(&chassis("e3-1220")));
        assert!((117.62..=118.02).contains(&chassis("itanium-9520")));
    }
}
