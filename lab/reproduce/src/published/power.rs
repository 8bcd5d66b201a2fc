//! Published values on the power of routers: Takemasa (2019), chapter 6.
//!
//! The parameters of tables 6.1 to 6.3 and the constants of 6.3.4, 6.3.5 and 6.5.1 are in `namehop_power`,
//! because the model uses them. [`PublishedCore`] returns them as published values.

use namehop_power::servers::PublishedServer;
use namehop_power::{memory, nic};

use super::{Published, printed};

/// A row of tables 6.1 to 6.3.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedCore {
    /// Active cores, n_core.
    pub active_cores: u32,
    /// Frequency h_p in 10^9 Hz.
    pub ghz: f64,
    /// σ.
    pub sigma: Published,
    /// Φ in watts.
    pub watts: Published,
}

impl PublishedCore {
    /// Returns the rows of a server's table.
    pub fn of(server: &PublishedServer) -> Vec<Self> {
        let highest_ghz = server.p_states.last().map_or(0.0, |state| state.ghz);
        let core = |active_cores, ghz, sigma, watts| PublishedCore {
            active_cores,
            ghz,
            sigma: printed(sigma),
            watts: printed(watts),
        };
        let first = server.p_states.iter().map(|state| core(1, state.ghz, state.sigma, state.watts));
        let further = server.further_cores.iter().zip(2..);
        first.chain(further.map(|(further, cores)| core(cores, highest_ghz, further.sigma, further.watts))).collect()
    }
}

/// Values that the thesis prints about a server outside its table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerText {
    /// The server's name in `namehop_power::servers`.
    pub name: &'static str,
    /// CPU model.
    pub processor: &'static str,
    /// Mean power without load, in watts. 6.3.2.
    pub chassis_mean_watts: Published,
    /// 95 % confidence interval of that mean, in the order of the text. 6.3.2.
    pub chassis_interval_watts: [Published; 2],
    /// Value chosen for the power without load, in watts. 6.3.2.
    pub chassis_chosen_watts: Published,
    /// ν. 6.3.3.
    pub nu: Published,
    /// Slope in watts per busy core, intercept in watts and R² of the line for two and more active cores. 6.3.3.
    pub line: [Published; 3],
    /// R² of the fits of figure 6.1 (one active core), lowest frequency first; empty for server 1: its values are only
    /// drawn.
    pub r_squared_by_frequency: &'static [Published],
    /// R² of the fits of figure 6.2, with 2, 3 and 4 active cores; empty for server 1.
    pub r_squared_by_cores: &'static [Published],
    /// R² of equation 6.8 (figure 6.3); `None` for server 1.
    pub r_squared_of_curve: Option<Published>,
}

/// Servers 1, 2 and 3.
pub const SERVERS: [ServerText; 3] = [
    ServerText {
        name: "e5620",
        processor: "E5620",
        chassis_mean_watts: printed(68.43),
        chassis_interval_watts: [printed(34.09), printed(34.30)],
        chassis_chosen_watts: printed(34.20),
        nu: printed(1350.0),
        line: [printed(5.88), printed(23.58), printed(0.997)],
        r_squared_by_frequency: &[],
        r_squared_by_cores: &[],
        r_squared_of_curve: None,
    },
    ServerText {
        name: "e3-1220",
        processor: "E3-1220",
        chassis_mean_watts: printed(34.20),
        chassis_interval_watts: [printed(68.24), printed(68.62)],
        chassis_chosen_watts: printed(68.90),
        nu: printed(1890.0),
        line: [printed(5.85), printed(5.43), printed(0.979)],
        r_squared_by_frequency: &[
            printed(0.934),
            printed(0.946),
            printed(0.856),
            printed(0.922),
            printed(0.978),
            printed(0.981),
            printed(0.945),
            printed(0.954),
        ],
        r_squared_by_cores: &[printed(0.891), printed(0.870), printed(0.699)],
        r_squared_of_curve: Some(printed(0.951)),
    },
    ServerText {
        name: "itanium-9520",
        processor: "9520",
        chassis_mean_watts: printed(117.82),
        chassis_interval_watts: [printed(117.62), printed(118.02)],
        chassis_chosen_watts: printed(117.82),
        nu: printed(4.22),
        line: [printed(1.65), printed(8.15), printed(0.943)],
        r_squared_by_frequency: &[printed(0.911), printed(0.899), printed(0.919)],
        r_squared_by_cores: &[printed(0.929), printed(0.998), printed(0.913)],
        r_squared_of_curve: Some(printed(0.995)),
    },
];

/// Ψ_mem in 10^-9 joules per byte. 6.3.4.
pub const MEMORY_NANOJOULES: Published = printed(memory::DDR3_JOULES_PER_BYTE * 1e9);
/// Ψ_nic of X540 and XL710 in 10^-6 joules per packet. 6.3.5 and 6.5.1.
pub const NIC_MICROJOULES: [Published; 2] =
    [printed(nic::X540_JOULES_PER_PACKET * 1e6), printed(nic::XL710_JOULES_PER_PACKET * 1e6)];
/// Bytes that the FIB lookup (B6) accesses in the naive and in the optimised router. 6.4.4.
pub const FIB_LOOKUP_BYTES: [Published; 2] = [printed(89.0), printed(281.0)];
/// Hit rates of the naive and of the optimised router. 6.5.2.
pub const HIT_RATES: [Published; 2] = [printed(0.238), printed(0.341)];
/// Insertion rates of these routers. 6.5.2.
pub const INSERTION_RATES: [Published; 2] = [printed(1.0), printed(0.03)];
/// Bytes of a Data packet. 6.5.2.
pub const DATA_BYTES: Published = printed(1024.0);
/// Highest rate of Data packets in the case study, in 10^9 bits per second ("about"). 6.5.3.
pub const HIGHEST_GIGABITS: Published = printed(58.0);
/// Power that the optimised router saves at that rate, in per cent. 6.5.3.
pub const REDUCTION_PERCENT: Published = printed(11.3);
