//! Power of CPUs with sleeping idle cores and a frequency that follows the load. Takemasa (2019), 6.3.3, equations 6.2
//! to 6.8.
//!
//! The load is packed: as few CPUs as possible have work, as few cores as possible of the last of these, and only the
//! last core is partly idle. With one active core, the frequency is the lowest that its load allows; with more, it is
//! the highest.

use serde::{Deserialize, Serialize};

use crate::least_squares::{Line, line};

/// One operating frequency (P-state p) of a CPU, as measured with one active core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PState {
    /// Frequency h_p in 10^9 cycles per second.
    pub ghz: f64,
    /// Power of the fully busy core, Φ_{1,p}, in watts.
    pub watts: f64,
    /// Exponent of power over the core's load, σ_{1,p}: 1 is proportional, below 1 power grows faster at low load.
    pub sigma: f64,
}

/// The second or a later core of a CPU (n), at the highest frequency, with all cores before it busy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FurtherCore {
    /// Power that this core adds when fully busy, Φ_{n,p0}, in watts.
    pub watts: f64,
    /// As [`PState::sigma`]: σ_{n,p0}.
    pub sigma: f64,
}

/// The CPUs of a server, all alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Number of CPUs, N_cpu.
    pub devices: u32,
    /// Utilization θ from which a higher frequency is selected, 0 to 1; 0.8 in Linux' "conservative" governor (6.3.3).
    pub threshold: f64,
    /// Frequencies, lowest first.
    pub p_states: Vec<PState>,
    /// Cores after the first.
    pub further_cores: Vec<FurtherCore>,
}

/// Distribution of a load over CPUs and cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Assignment {
    /// Active CPUs, n_cpu.
    pub devices: u32,
    /// Active cores of the last active CPU, n_core.
    pub cores: u32,
    /// Active cores of all CPUs.
    pub all_cores: u32,
    /// Frequency of the last active CPU, h_p, in 10^9 cycles per second.
    pub ghz: f64,
    /// Busy share of the last core, c_core / h_p: 0 to 1.
    pub utilization: f64,
    /// Index of the frequency in the P-states.
    p_state: usize,
}

impl Cpu {
    /// Cores per CPU, N_core.
    pub fn cores_per_device(&self) -> u32 {
        1 + self.further_cores.len() as u32
    }

    /// Highest frequency, h_{p0}, in cycles per second; 0 without any P-state.
    pub fn highest_hz(&self) -> f64 {
        self.p_states.last().map_or(0.0, |state| state.ghz * 1e9)
    }

    /// Cycles per second of all cores at the highest frequency: N_cpu · N_core · h_{p0}.
    pub fn capacity_hz(&self) -> f64 {
        f64::from(self.devices) * f64::from(self.cores_per_device()) * self.highest_hz()
    }

    /// Power of a CPU with all cores busy, Φ, in watts.
    pub fn device_watts(&self) -> f64 {
        self.busy_watts(self.cores_per_device())
    }

    /// Power of a CPU with `cores` busy cores at the highest frequency, in watts.
    fn busy_watts(&self, cores: u32) -> f64 {
        let first = self.p_states.last().filter(|_| cores > 0).map_or(0.0, |state| state.watts);
        let further = self.further_cores.iter().take(cores.saturating_sub(1) as usize);
        first + further.map(|core| core.watts).sum::<f64>()
    }

    /// Equations 6.2 to 6.6: distributes a load of `load_hz` cycles per second. `None` if the load exceeds the capacity
    /// of all cores, is negative or not finite, or if there are no P-states. Without load no core is active.
    pub fn assign(&self, load_hz: f64) -> Option<Assignment> {
        let (h0, cores) = (self.highest_hz(), f64::from(self.cores_per_device()));
        let lowest = self.p_states.first()?;
        if !(load_hz >= 0.0 && load_hz <= self.capacity_hz() && h0 > 0.0) {
            return None;
        }
        if load_hz == 0.0 {
            let idle = Assignment { devices: 0, cores: 0, all_cores: 0, ghz: lowest.ghz, utilization: 0.0, p_state: 0 };
            return Some(idle);
        }
        // Equation 6.2. Rounding may leave the quotient slightly above a whole number.
        let devices = (load_hz / (cores * h0)).ceil().clamp(1.0, f64::from(self.devices));
        // Equation 6.3.
        let device_hz = load_hz - (devices - 1.0) * cores * h0;
        // Equation 6.4.
        let active = (device_hz / h0).ceil().clamp(1.0, cores);
        // Equation 6.5.
        let core_hz = device_hz - (active - 1.0) * h0;
        // Equation 6.6. Loads above every threshold use the highest frequency.
        let is_enough = |state: &PState| device_hz / (state.ghz * 1e9) < self.threshold;
        let p_state = self.p_states.iter().position(is_enough).unwrap_or(self.p_states.len() - 1);
        let ghz = self.p_states[p_state].ghz;
        Some(Assignment {
            devices: devices as u32,
            cores: active as u32,
            all_cores: (devices as u32 - 1) * self.cores_per_device() + active as u32,
            ghz,
            utilization: (core_hz / (ghz * 1e9)).clamp(0.0, 1.0),
            p_state,
        })
    }

    /// Equation 6.7: power of all CPUs above their idle power, φ_cpu, in watts. `None` as for [`Cpu::assign`].
    pub fn watts(&self, load_hz: f64) -> Option<f64> {
        let Assignment { devices, cores, utilization, p_state, .. } = self.assign(load_hz)?;
        if devices == 0 {
            return Some(0.0);
        }
        let (watts, sigma) = match cores {
            1 => (self.p_states[p_state].watts, self.p_states[p_state].sigma),
            _ => (self.further_cores[cores as usize - 2].watts, self.further_cores[cores as usize - 2].sigma),
        };
        let last_core = watts * utilization.powf(sigma);
        Some(last_core + self.busy_watts(cores - 1) + self.device_watts() * f64::from(devices - 1))
    }

    /// Fits a line to the power of one CPU over its load in busy cores (c_ndn / h_{p0}), for two and more active cores;
    /// 6.3.3. The thesis does not state the loads it used. Loads from 1.25 cores on, in steps of a quarter, come
    /// closest to its printed line.
    pub fn linear_approximation(&self) -> Line {
        let quarters = 5..=4 * self.cores_per_device();
        let loads = quarters.map(|quarter| f64::from(quarter) / 4.0);
        let points = loads.filter_map(|load| Some((load, self.watts(load * self.highest_hz())?)));
        line(&points.collect::<Vec<_>>())
    }
}

/// Equation 6.8: power of one busy core as a function of its frequency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FrequencyCurve {
    /// Shape ν: 1 if only the frequency changes, 2 if only the voltage does, more if both do. All values above about
    /// 100 give nearly the same, geometric curve.
    pub nu: f64,
    /// Φ_amin: power at a frequency of 0, in watts.
    pub minimum_watts: f64,
    /// Φ_{1,p0}: power at the highest frequency, in watts.
    pub maximum_watts: f64,
}

impl FrequencyCurve {
    /// Power at `share` of the highest frequency, h_p / h_{p0}, in watts.
    pub fn watts(&self, share: f64) -> f64 {
        let root = |watts: f64| watts.powf(1.0 / self.nu);
        let (least, most) = (root(self.minimum_watts), root(self.maximum_watts));
        (least + (most - least) * share).powf(self.nu)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::servers::{self, PUBLISHED};

    fn published(name: &str) -> Cpu {
        servers::published(name).expect("published").cpu
    }

    #[test]
    fn equation_6_8_gives_the_tables() {
        for server in PUBLISHED {
            for (p_state, curve) in server.p_states.iter().map(|state| (state, server.curve())) {
                let watts = curve.watts(p_state.ghz / server.p_states.last().expect("some").ghz);
                // The E5620's frequencies are multiples of 133.3 MHz, printed as rounded: worth 0.03 W.
                let tolerance = if server.name == "e5620" { 0.03 } else { 0.006 };
                assert!((watts - p_state.watts).abs() < tolerance, "{}: {watts} {p_state:?}", server.name);
            }
        }
        // 6.3.3 prints 4.22 for the third server; its table 2.58. Only the table's value gives the table's watts.
        let of_text = FrequencyCurve { nu: 4.22, minimum_watts: 0.0, maximum_watts: 7.8 };
        assert!((of_text.watts(1.066 / 1.733) - 2.23).abs() > 1.0);
    }

    #[test]
    fn an_active_core_of_server_2_takes_as_much_as_6_3_4_says() {
        let cpu = published("e3-1220");
        assert!((cpu.watts(cpu.highest_hz()).expect("possible") - 10.40).abs() < 1e-9);
        assert!((cpu.device_watts() - (10.40 + 5.71 + 6.86 + 5.24)).abs() < 1e-9);
    }

    #[test]
    fn lines_are_near_those_of_6_3_3() {
        for (name, slope, intercept, r_squared) in
            [("e5620", 5.88, 23.58, 0.997), ("e3-1220", 5.85, 5.43, 0.979), ("itanium-9520", 1.65, 8.15, 0.943)]
        {
            let line = published(name).linear_approximation();
            assert!((line.slope / slope - 1.0).abs() < 0.03, "{name}: {line:?}");
            assert!((line.intercept / intercept - 1.0).abs() < 0.06, "{name}: {line:?}");
            assert!((line.r_squared - r_squared).abs() < 0.02, "{name}: {line:?}");
        }
    }

    #[test]
    fn the_e5620_has_seven_frequencies_from_1_6_to_2_4_ghz() {
        let cpu = published("e5620");
        let ghz: Vec<f64> = cpu.p_states.iter().map(|state| state.ghz).collect();
        assert_eq!((ghz.len(), ghz[0], ghz[6]), (7, 1.6, 2.4));
        assert_eq!((cpu.devices, cpu.cores_per_device(), cpu.threshold), (2, 4, 0.8));
    }

    #[test]
    fn frequencies_follow_the_load() {
        let cpu = published("e3-1220");
        // Load in 10^9 cycles per second, CPUs, cores, frequency.
        for (load, devices, cores, ghz) in [
            (0.0, 0, 0, 1.6),
            (1.0, 1, 1, 1.6),
            (1.27, 1, 1, 1.6),
            // 1.28 / 1.6 is the threshold, which requires more.
            (1.29, 1, 1, 1.8),
            (2.3, 1, 1, 3.1),
            (2.6, 1, 1, 3.1),
            (3.2, 1, 2, 3.1),
            (12.4, 1, 4, 3.1),
        ] {
            let assignment = cpu.assign(load * 1e9).expect("possible");
            assert_eq!((assignment.devices, assignment.cores, assignment.ghz), (devices, cores, ghz), "{load}");
        }
        for load in [12.5e9, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(cpu.assign(load), None, "{load}");
        }
        let two = published("e5620").assign(2.4e9 * 5.5).expect("possible");
        assert_eq!((two.devices, two.cores, two.all_cores), (2, 2, 6));
    }

    #[test]
    fn cpus_without_frequencies_do_nothing() {
        let cpu = Cpu { devices: 1, threshold: 0.8, p_states: Vec::new(), further_cores: Vec::new() };
        assert_eq!((cpu.watts(0.0), cpu.capacity_hz(), cpu.device_watts()), (None, 0.0, 0.0));
    }

    fn any_cpu() -> impl Strategy<Value = Cpu> {
        let states = prop::collection::vec((0.1..1.0_f64, 0.0..50.0_f64, 0.01..1.5_f64), 1..8);
        let cores = prop::collection::vec((0.0..50.0_f64, 0.01..1.5_f64), 0..8);
        (1..4_u32, 0.1..1.0_f64, states, cores).prop_map(|(devices, threshold, states, cores)| {
            let mut ghz = 0.5;
            let p_states = states.into_iter().map(|(step, watts, sigma)| {
                ghz += step;
                PState { ghz, watts, sigma }
            });
            let p_states = p_states.collect();
            let further_cores = cores.into_iter().map(|(watts, sigma)| FurtherCore { watts, sigma }).collect();
            Cpu { devices, threshold, p_states, further_cores }
        })
    }

    proptest! {
        /// Reference implementation: fills cores one after the other.
        #[test]
        fn filling_core_by_core_gives_the_same(cpu in any_cpu(), share in 0.0001..=1.0_f64) {
            let load = share * cpu.capacity_hz();
            let (mut left, mut watts, mut cores) = (load / cpu.highest_hz(), 0.0, 0);
            for _ in 0..cpu.devices {
                for core in 0..cpu.cores_per_device() {
                    if left <= 1e-9 {
                        break;
                    }
                    let busy = left.min(1.0);
                    left -= busy;
                    cores += 1;
                    watts += match core {
                        0 if busy < 1.0 => {
                            let hz = busy * cpu.highest_hz() / 1e9;
                            let fast = cpu.p_states.iter().find(|state| hz < cpu.threshold * state.ghz);
                            let state = fast.or(cpu.p_states.last()).expect("some");
                            state.watts * (hz / state.ghz).powf(state.sigma)
                        }
                        0 => cpu.p_states.last().expect("some").watts,
                        _ => {
                            let further = cpu.further_cores[core as usize - 1];
                            further.watts * busy.powf(further.sigma)
                        }
                    };
                }
            }
            // Close to a whole number of cores, rounding decides whether one more core is active.
            let whole = (load / cpu.highest_hz()).fract();
            prop_assume!((1e-6..=1.0 - 1e-6).contains(&whole));
            let modelled = cpu.watts(load).expect("possible");
            prop_assert!((modelled - watts).abs() <= 1e-6 * watts.max(1.0), "{} {}", modelled, watts);
            prop_assert_eq!(cpu.assign(load).expect("possible").all_cores, cores);
        }

        #[test]
        fn anything_is_answered(cpu in any_cpu(), load in prop::num::f64::ANY) {
            if let Some(watts) = cpu.watts(load) {
                prop_assert!(watts.is_finite() && watts >= 0.0);
            }
        }
    }
}
