//! A server: chassis, CPUs, memory and network cards, its power under a load, and the TOML file that describes it.
//! Takemasa (2019), 6.3.1, equation 6.1.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::cpu::{Cpu, FurtherCore, PState};
use crate::{memory, nic};

/// Maximum number of CPUs, further cores of one CPU, and frequencies in a description.
const MOST_PARTS: usize = 1024;
/// Maximum power of any part in watts, and maximum energy of a byte or packet in joules.
const MOST_WATTS: f64 = 1e6;
/// Maximum frequency, in 10^9 cycles per second.
const MOST_GHZ: f64 = 1e3;
/// Maximum exponent of a load.
const MOST_SIGMA: f64 = 10.0;

/// A server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Name of the server.
    pub name: String,
    /// Power without load, of all devices, Φ_chassis, in watts.
    pub chassis_watts: f64,
    /// Energy of a byte read from or written to memory, Ψ_mem, in joules.
    pub memory_joules_per_byte: f64,
    /// Energy of a packet received and sent by network cards, Ψ_nic, in joules.
    pub nic_joules_per_packet: f64,
    /// CPUs.
    pub cpu: Cpu,
}

/// Load on a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Cycles of all cores together, c_ndn, per second.
    pub cycles_per_second: f64,
    /// Bytes read from and written to memory, r_mem, per second.
    pub memory_bytes_per_second: f64,
    /// IP packets forwarded, λ_ip, per second.
    pub packets_per_second: f64,
}

/// Power by device, in watts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Power {
    /// CPUs, above their power without load: φ_cpu.
    pub cpu_watts: f64,
    /// Memory, above its power without load: φ_mem.
    pub memory_watts: f64,
    /// Network cards, above their power without load: φ_nic.
    pub nic_watts: f64,
    /// Power of all devices without load: Φ_chassis.
    pub chassis_watts: f64,
}

impl Power {
    /// Equation 6.1: φ_router.
    pub fn total_watts(&self) -> f64 {
        self.cpu_watts + self.memory_watts + self.nic_watts + self.chassis_watts
    }
}

/// Why a description of a server is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The text is not TOML, or has other keys than a description.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A value is out of range.
    #[error("{key} is {value}; it must be {must}")]
    Value {
        /// Key of the value.
        key: String,
        /// The value in the description.
        value: f64,
        /// The allowed range.
        must: String,
    },
    /// The list of frequencies is empty, too long, unsorted, or has a frequency twice.
    #[error("cpu.p_states must have 1 to {MOST_PARTS} different frequencies, lowest first")]
    Frequencies,
    /// There are too many cores.
    #[error("cpu.further_cores has more than {MOST_PARTS} entries")]
    Cores,
}

impl Server {
    /// Equation 6.1 with equations 6.7, 6.9 and 6.10. `None` if the load exceeds the CPUs' capacity, or is negative.
    pub fn power(&self, load: &Load) -> Option<Power> {
        let Load { cycles_per_second, memory_bytes_per_second, packets_per_second } = *load;
        if !(memory_bytes_per_second >= 0.0 && packets_per_second >= 0.0) {
            return None;
        }
        Some(Power {
            cpu_watts: self.cpu.watts(cycles_per_second)?,
            memory_watts: memory::watts(self.memory_joules_per_byte, memory_bytes_per_second),
            nic_watts: nic::watts(self.nic_joules_per_packet, packets_per_second),
            chassis_watts: self.chassis_watts,
        })
    }

    /// Parses and checks a description.
    pub fn from_toml(text: &str) -> Result<Self, ServerError> {
        let server: Server = toml::from_str(text)?;
        server.check()?;
        Ok(server)
    }

    /// Writes the description with comments, preceded by `notes` as comments.
    pub fn to_toml(&self, notes: &[String]) -> String {
        let Server { name, chassis_watts, memory_joules_per_byte, nic_joules_per_packet, cpu } = self;
        let mut text = String::new();
        for note in notes.iter().flat_map(|note| note.lines()) {
            let _ = writeln!(text, "# {note}");
        }
        let name = toml::Value::from(name.as_str());
        let _ = write!(
            text,
            "# A server, for 'namehop power model --server FILE' and the router's [power] section.\n\
             name = {name}\n\
             # Power of the idle host, in watts.\n\
             chassis_watts = {chassis_watts:?}\n\
             # Energy per byte read from or written to memory.\n\
             memory_joules_per_byte = {memory_joules_per_byte:?}\n\
             # Energy per packet received and sent by network cards.\n\
             nic_joules_per_packet = {nic_joules_per_packet:?}\n\n\
             [cpu]\n\
             # Number of identical processors.\n\
             devices = {}\n\
             # Utilization at which the frequency is raised, 0 to 1.\n\
             threshold = {:?}\n\
             # Power of one busy core at each frequency; at a load of x (0 to 1) it is watts * x^sigma.\n\
             p_states = [\n",
            cpu.devices, cpu.threshold
        );
        for PState { ghz, watts, sigma } in &cpu.p_states {
            let _ = writeln!(text, "    {{ ghz = {ghz:?}, watts = {watts:?}, sigma = {sigma:?} }},");
        }
        text.push_str("]\n# Power of each further core of a processor, at the highest frequency.\nfurther_cores = [\n");
        for FurtherCore { watts, sigma } in &cpu.further_cores {
            let _ = writeln!(text, "    {{ watts = {watts:?}, sigma = {sigma:?} }},");
        }
        text.push_str("]\n");
        text
    }

    /// Returns an error for the first value that is out of range.
    pub fn check(&self) -> Result<(), ServerError> {
        let Server { name: _, chassis_watts, memory_joules_per_byte, nic_joules_per_packet, cpu } = self;
        let Cpu { devices, threshold, p_states, further_cores } = cpu;
        in_range("chassis_watts", *chassis_watts, MOST_WATTS)?;
        in_range("memory_joules_per_byte", *memory_joules_per_byte, MOST_WATTS)?;
        in_range("nic_joules_per_packet", *nic_joules_per_packet, MOST_WATTS)?;
        above_zero("cpu.devices", f64::from(*devices), MOST_PARTS as f64)?;
        above_zero("cpu.threshold", *threshold, 1.0)?;
        if !(1..=MOST_PARTS).contains(&p_states.len()) {
            return Err(ServerError::Frequencies);
        }
        for (place, PState { ghz, watts, sigma }) in p_states.iter().enumerate() {
            above_zero(&format!("ghz of entry {} of cpu.p_states", place + 1), *ghz, MOST_GHZ)?;
            in_range(&format!("watts of entry {} of cpu.p_states", place + 1), *watts, MOST_WATTS)?;
            above_zero(&format!("sigma of entry {} of cpu.p_states", place + 1), *sigma, MOST_SIGMA)?;
        }
        if !p_states.is_sorted_by(|one, next| one.ghz < next.ghz) {
            return Err(ServerError::Frequencies);
        }
        if further_cores.len() > MOST_PARTS {
            return Err(ServerError::Cores);
        }
        for (place, FurtherCore { watts, sigma }) in further_cores.iter().enumerate() {
            in_range(&format!("watts of entry {} of cpu.further_cores", place + 1), *watts, MOST_WATTS)?;
            above_zero(&format!("sigma of entry {} of cpu.further_cores", place + 1), *sigma, MOST_SIGMA)?;
        }
        Ok(())
    }
}

fn in_range(key: &str, value: f64, most: f64) -> Result<(), ServerError> {
    let must = || format!("0 to {most}");
    if (0.0..=most).contains(&value) {
        Ok(())
    } else {
        Err(ServerError::Value { key: key.to_owned(), value, must: must() })
    }
}

fn above_zero(key: &str, value: f64, most: f64) -> Result<(), ServerError> {
    let must = || format!("above 0 and at most {most}");
    if value > 0.0 && value <= most {
        Ok(())
    } else {
        Err(ServerError::Value { key: key.to_owned(), value, must: must() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::servers::{self, PUBLISHED};

    fn server_2() -> Server {
        servers::published("e3-1220").expect("published")
    }

    #[test]
    fn power_is_the_sum_of_its_devices() {
        let load = Load { cycles_per_second: 12.4e9, memory_bytes_per_second: 10e9, packets_per_second: 1e6 };
        let power = server_2().power(&load).expect("possible");
        // 10^10 bytes of 0.61 nJ each; 10^6 packets of 12.6 µJ each.
        assert!((power.memory_watts - 6.1).abs() < 1e-9 && (power.nic_watts - 12.6).abs() < 1e-9);
        assert!((power.cpu_watts - 28.21).abs() < 1e-9 && (power.chassis_watts - 34.20).abs() < 1e-9);
        assert!((power.total_watts() - (6.1 + 12.6 + 28.21 + 34.20)).abs() < 1e-9);
        assert_eq!(server_2().power(&Load { cycles_per_second: 12.5e9, ..load }), None);
        assert_eq!(server_2().power(&Load { packets_per_second: -1.0, ..load }), None);
        let idle = Load { cycles_per_second: 0.0, memory_bytes_per_second: 0.0, packets_per_second: 0.0 };
        assert!((server_2().power(&idle).expect("possible").total_watts() - 34.20).abs() < 1e-12);
    }

    #[test]
    fn descriptions_can_be_written_and_read() {
        for published in PUBLISHED {
            let server = Server { name: "my \"server\"\n#2".to_owned(), ..published.server() };
            let text = server.to_toml(&["two\nlines".to_owned()]);
            assert!(text.starts_with("# two\n# lines\n"));
            assert_eq!(Server::from_toml(&text).expect("valid"), server);
        }
    }

    #[test]
    fn wrong_descriptions_say_what_is_wrong() {
        let good = server_2().to_toml(&[]);
        for (from, to, complaint) in [
            ("chassis_watts = 34.2", "chassis_watts = -1.0", "chassis_watts is -1; it must be 0 to 1000000"),
            ("chassis_watts = 34.2", "chassis_watts = nan", "chassis_watts is NaN"),
            ("chassis_watts = 34.2", "chassis = 1", "unknown field `chassis`"),
            ("chassis_watts = 34.2", "", "missing field `chassis_watts`"),
            ("devices = 1", "devices = 0", "cpu.devices is 0; it must be above 0"),
            ("threshold = 0.8", "threshold = 1.5", "cpu.threshold is 1.5"),
            ("ghz = 1.6", "ghz = 0.0", "ghz of entry 1 of cpu.p_states is 0"),
            ("ghz = 1.6", "ghz = 1.8", "lowest first"),
            ("watts = 5.71, sigma = 0.59", "watts = 5.71, sigma = 0", "sigma of entry 1 of cpu.further_cores"),
            ("name = ", "name ", "expected"),
        ] {
            assert!(good.contains(from), "{from}");
            let message = Server::from_toml(&good.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(message.contains(complaint), "{message}");
        }
        let none = Server { cpu: Cpu { p_states: Vec::new(), ..server_2().cpu }, ..server_2() };
        assert!(matches!(none.check(), Err(ServerError::Frequencies)));
        let many = vec![FurtherCore { watts: 1.0, sigma: 1.0 }; MOST_PARTS + 1];
        let many = Server { cpu: Cpu { further_cores: many, ..server_2().cpu }, ..server_2() };
        assert!(matches!(many.check(), Err(ServerError::Cores)));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC*") {
            let _ = Server::from_toml(&text);
        }

        #[test]
        fn what_is_valid_has_a_finite_power(chassis in 0.0..=MOST_WATTS, share in 0.0..=1.0_f64, name in ".*") {
            let server = Server { name, chassis_watts: chassis, ..server_2() };
            prop_assert_eq!(&Server::from_toml(&server.to_toml(&[])).expect("valid"), &server);
            let load = Load {
                cycles_per_second: share * server.cpu.capacity_hz(),
                memory_bytes_per_second: 1e12,
                packets_per_second: 1e9,
            };
            prop_assert!(server.power(&load).expect("possible").total_watts().is_finite());
        }
    }
}
