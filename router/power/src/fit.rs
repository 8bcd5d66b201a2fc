//! Fits the parameters of a server to measurements of it, by least squares. Takemasa (2019), 6.3.3 to 6.3.5.
//!
//! The method is the thesis's. Power without load is the mean of the idle rows. The power of a busy core is the mean of
//! the rows with a load of 1. With one active core and at least three frequencies, equation 6.8 is fitted to these
//! means, and gives the power at each frequency except the highest. Then the only unknown of each frequency and of each
//! further core is σ. The parameters Ψ_mem and Ψ_nic are slopes of lines through the origin, fitted to the power that
//! the CPU does not explain.

use serde::Serialize;

use crate::cpu::{Cpu, FrequencyCurve, FurtherCore, PState};
use crate::least_squares::{Line, least_of, line_through_origin, r_squared, squared_error};
use crate::measurements::Measurement;
use crate::memory;
use crate::server::{Server, ServerError};

/// Search range of σ.
const SIGMAS: (f64, f64) = (0.01, 2.0);
/// Search range of ν; larger values give the same curve.
const NUS: (f64, f64) = (1.0, 5000.0);
/// Minimum number of frequencies for equation 6.8: it has two unknowns, and passes through the highest frequency in any
/// case.
const FREQUENCIES_OF_CURVE: usize = 3;
/// Minimum number of rows at loads between 0 and 1 for σ.
const PARTIAL_ROWS: usize = 2;
/// Minimum number of rows for the energy of a byte or of a packet.
const ENERGY_ROWS: usize = 2;

/// Parameters that measurements do not give.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Name of the server.
    pub name: String,
    /// Number of CPUs; measurements are of one CPU.
    pub devices: u32,
    /// Utilization from which a higher frequency is selected, 0 to 1.
    pub threshold: f64,
    /// Ψ_mem in joules per byte if no row has a memory rate.
    pub memory_joules_per_byte: f64,
    /// Ψ_nic in joules per packet if no row has a packet rate.
    pub nic_joules_per_packet: f64,
}

/// Fit of one frequency with one active core, or of one further core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoreFit {
    /// Active cores, n.
    pub active_cores: u32,
    /// Frequency in 10^9 cycles per second.
    pub ghz: f64,
    /// Number of rows.
    pub rows: usize,
    /// Φ_{n,p}, in watts.
    pub watts: f64,
    /// σ_{n,p}.
    pub sigma: f64,
    /// R² over all rows; NaN (null in JSON) if all have the same power.
    pub r_squared: f64,
}

/// Equation 6.8 and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurveFit {
    /// The curve.
    #[serde(flatten)]
    pub curve: FrequencyCurve,
    /// R².
    pub r_squared: f64,
}

/// A server fitted to measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The server's model.
    pub server: Server,
    /// Number of idle rows.
    pub idle_rows: usize,
    /// Equation 6.8; `None` with fewer than three frequencies.
    pub frequency_curve: Option<CurveFit>,
    /// Fits of frequencies and further cores.
    pub cores: Vec<CoreFit>,
    /// Ψ_mem; `None` if it was not measured.
    pub memory: Option<Line>,
    /// Ψ_nic; `None` if it was not measured.
    pub nic: Option<Line>,
}

/// Why measurements do not determine a server.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// No row without load.
    #[error("there is no idle row: measure the host without load, with active_cores and load 0")]
    NoIdle,
    /// No row with one active core.
    #[error("there is no row with one active core and no rate of memory or packets")]
    NoCores,
    /// A number of active cores is missing between others.
    #[error("line {line}: {active_cores} cores are active here, but there are no rows with {missing}")]
    MissingCores {
        /// Line in the file.
        line: u64,
        /// Active cores in that line.
        active_cores: u32,
        /// Number of active cores that no row has.
        missing: u32,
    },
    /// Several cores are active below the highest frequency.
    #[error(
        "line {line}: {active_cores} cores are active at {ghz} GHz, but with more than one core the model covers only \
         the highest frequency, {highest_ghz} GHz"
    )]
    LowFrequency {
        /// Line in the file.
        line: u64,
        /// Active cores in that line.
        active_cores: u32,
        /// Frequency in that line, in 10^9 cycles per second.
        ghz: f64,
        /// The highest frequency of all rows.
        highest_ghz: f64,
    },
    /// A frequency or core has too few rows to fit its parameters.
    #[error(
        "active_cores {active_cores} at {ghz} GHz (from line {line}): needs a row with load 1 and at least \
         {PARTIAL_ROWS} with loads between 0 and 1; there are {full} and {partial}"
    )]
    TooFew {
        /// First line of these rows.
        line: u64,
        /// Active cores.
        active_cores: u32,
        /// Frequency in 10^9 cycles per second.
        ghz: f64,
        /// Rows with load 1.
        full: usize,
        /// Rows with loads between 0 and 1.
        partial: usize,
    },
    /// A busy core adds no power.
    #[error(
        "active_cores {active_cores} at {ghz} GHz (from line {line}): at load 1 this core adds {watts:.2} W, but must \
         add more than 0; check active_cores and watts (of the whole host)"
    )]
    NoPower {
        /// First line of these rows.
        line: u64,
        /// Active cores.
        active_cores: u32,
        /// Frequency in 10^9 cycles per second.
        ghz: f64,
        /// Power that the core adds, in watts.
        watts: f64,
    },
    /// A row with a rate has active cores and a frequency that no row without a rate has.
    #[error(
        "line {line}: {active_cores} active cores at {ghz} GHz are not among the rows without a rate of memory or \
         packets, so the power of the CPU is unknown"
    )]
    UnknownState {
        /// Line in the file.
        line: u64,
        /// Active cores.
        active_cores: u32,
        /// Frequency in 10^9 cycles per second.
        ghz: f64,
    },
    /// Too few rows have a rate.
    #[error("line {line}: {what} needs at least {ENERGY_ROWS} rows")]
    TooFewRates {
        /// First line with a rate.
        line: u64,
        /// Name of the column.
        what: &'static str,
    },
    /// Power does not grow with the rate.
    #[error("line {line}: watts do not grow with {what}: {joules:.3e} J per unit")]
    NoEnergy {
        /// First line with a rate.
        line: u64,
        /// Name of the column.
        what: &'static str,
        /// Fitted energy per byte or packet, in joules.
        joules: f64,
    },
    /// A fitted or given parameter is out of range.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// The rows of one frequency with one active core, or of one further core.
struct Group<'a> {
    active_cores: u32,
    ghz: f64,
    rows: Vec<&'a Measurement>,
}

impl Group<'_> {
    /// Mean power at load 1 above `base_watts`.
    fn busy_watts(&self, base_watts: f64) -> Result<f64, FitError> {
        let Group { active_cores, ghz, ref rows } = *self;
        let line = rows[0].line;
        let full: Vec<f64> = rows.iter().filter(|row| row.load == 1.0).map(|row| row.watts).collect();
        let partial = rows.iter().filter(|row| row.load > 0.0 && row.load < 1.0).count();
        if full.is_empty() || partial < PARTIAL_ROWS {
            return Err(FitError::TooFew { line, active_cores, ghz, full: full.len(), partial });
        }
        let watts = mean(&full) - base_watts;
        if watts > 0.0 { Ok(watts) } else { Err(FitError::NoPower { line, active_cores, ghz, watts }) }
    }

    /// Fits σ of equation 6.7 for a core that adds `watts` when busy, above `base_watts`.
    fn fit(&self, watts: f64, base_watts: f64) -> CoreFit {
        let pairs = |sigma: f64| -> Vec<(f64, f64)> {
            self.rows.iter().map(|row| (row.watts - base_watts, watts * row.load.powf(sigma))).collect()
        };
        let sigma = least_of(SIGMAS, |sigma| squared_error(&pairs(sigma)));
        CoreFit {
            active_cores: self.active_cores,
            ghz: self.ghz,
            rows: self.rows.len(),
            watts,
            sigma,
            r_squared: r_squared(&pairs(sigma)),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Fits a server to measurements.
pub fn fit(measurements: &[Measurement], options: &FitOptions) -> Result<Fit, FitError> {
    let has_rate = |row: &Measurement| row.memory_bytes_per_second > 0.0 || row.packets_per_second > 0.0;
    let (with_rate, without): (Vec<&Measurement>, Vec<&Measurement>) =
        measurements.iter().partition(|row| has_rate(row));
    let idle: Vec<f64> = without.iter().filter(|row| row.active_cores == 0).map(|row| row.watts).collect();
    if idle.is_empty() {
        return Err(FitError::NoIdle);
    }
    let chassis_watts = mean(&idle);
    let groups = groups(&without)?;
    let (of_one, of_more): (Vec<Group<'_>>, Vec<Group<'_>>) =
        groups.into_iter().partition(|group| group.active_cores == 1);

    let busy = of_one.iter().map(|group| group.busy_watts(chassis_watts)).collect::<Result<Vec<f64>, _>>()?;
    let ghz: Vec<f64> = of_one.iter().map(|group| group.ghz).collect();
    let highest_ghz = ghz.last().copied().ok_or(FitError::NoCores)?;
    let frequency_curve = fit_curve(&ghz, &busy);
    let mut cores: Vec<CoreFit> = Vec::new();
    for (group, &measured) in of_one.iter().zip(&busy) {
        let watts = frequency_curve.map_or(measured, |fit| fit.curve.watts(group.ghz / highest_ghz));
        cores.push(group.fit(watts, chassis_watts));
    }
    let p_states = cores.iter().map(|&CoreFit { ghz, watts, sigma, .. }| PState { ghz, watts, sigma }).collect();
    let mut further_cores = Vec::new();
    let mut base_watts = chassis_watts + cores.last().map_or(0.0, |core| core.watts);
    for group in of_more {
        let core = group.fit(group.busy_watts(base_watts)?, base_watts);
        base_watts += core.watts;
        further_cores.push(FurtherCore { watts: core.watts, sigma: core.sigma });
        cores.push(core);
    }
    let FitOptions { name, devices, threshold, memory_joules_per_byte, nic_joules_per_packet } = options.clone();
    let cpu = Cpu { devices, threshold, p_states, further_cores };
    let mut server = Server { name, chassis_watts, memory_joules_per_byte, nic_joules_per_packet, cpu };

    let of_memory: Vec<&Measurement> = with_rate.iter().copied().filter(|row| row.packets_per_second == 0.0).collect();
    let memory = fit_energy(&of_memory, &server, "memory_bytes_per_second", |row| row.memory_bytes_per_second)?;
    server.memory_joules_per_byte = memory.map_or(server.memory_joules_per_byte, |line| line.slope);
    let of_nic: Vec<&Measurement> = with_rate.iter().copied().filter(|row| row.packets_per_second > 0.0).collect();
    let nic = fit_energy(&of_nic, &server, "packets_per_second", |row| row.packets_per_second)?;
    server.nic_joules_per_packet = nic.map_or(server.nic_joules_per_packet, |line| line.slope);
    server.check()?;
    Ok(Fit { server, idle_rows: idle.len(), frequency_curve, cores, memory, nic })
}

/// Groups rows by active cores and frequency, fewest cores and lowest frequency first; leaves out idle rows.
fn groups<'a>(rows: &[&'a Measurement]) -> Result<Vec<Group<'a>>, FitError> {
    let mut active: Vec<&Measurement> = rows.iter().copied().filter(|row| row.active_cores > 0).collect();
    active.sort_by(|a, b| a.active_cores.cmp(&b.active_cores).then(a.ghz.total_cmp(&b.ghz)));
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in active {
        match groups.last_mut() {
            Some(group) if (group.active_cores, group.ghz) == (row.active_cores, row.ghz) => group.rows.push(row),
            _ => groups.push(Group { active_cores: row.active_cores, ghz: row.ghz, rows: vec![row] }),
        }
    }
    let highest_ghz = groups.iter().filter(|group| group.active_cores == 1).map(|group| group.ghz).next_back();
    let highest_ghz = highest_ghz.ok_or(FitError::NoCores)?;
    for (group, expected) in groups.iter().filter(|group| group.active_cores > 1).zip(2..) {
        let Group { active_cores, ghz, ref rows } = *group;
        let line = rows[0].line;
        if ghz != highest_ghz {
            return Err(FitError::LowFrequency { line, active_cores, ghz, highest_ghz });
        }
        if active_cores != expected {
            return Err(FitError::MissingCores { line, active_cores, missing: expected });
        }
    }
    Ok(groups)
}

/// Fits equation 6.8 to the power of a busy core at each frequency, lowest first. `None` for too few frequencies.
fn fit_curve(ghz: &[f64], busy_watts: &[f64]) -> Option<CurveFit> {
    let (&highest_ghz, &maximum_watts) = (ghz.last()?, busy_watts.last()?);
    if ghz.len() < FREQUENCIES_OF_CURVE {
        return None;
    }
    let pairs = |nu: f64, minimum_watts: f64| -> Vec<(f64, f64)> {
        let curve = FrequencyCurve { nu, minimum_watts, maximum_watts };
        ghz.iter().zip(busy_watts).map(|(ghz, &watts)| (watts, curve.watts(ghz / highest_ghz))).collect()
    };
    let least = busy_watts.iter().copied().fold(f64::INFINITY, f64::min);
    let best_minimum = |nu: f64| least_of((0.0, least), |minimum| squared_error(&pairs(nu, minimum)));
    let error = |log_nu: f64| squared_error(&pairs(log_nu.exp(), best_minimum(log_nu.exp())));
    let nu = least_of((NUS.0.ln(), NUS.1.ln()), error).exp();
    let minimum_watts = best_minimum(nu);
    let r_squared = r_squared(&pairs(nu, minimum_watts));
    Some(CurveFit { curve: FrequencyCurve { nu, minimum_watts, maximum_watts }, r_squared })
}

/// Fits the energy of one unit of `rate` to the power that `server` does not explain: equations 6.9 and 6.10.
fn fit_energy(
    rows: &[&Measurement],
    server: &Server,
    what: &'static str,
    rate: fn(&Measurement) -> f64,
) -> Result<Option<Line>, FitError> {
    let Some(first) = rows.first() else { return Ok(None) };
    if rows.len() < ENERGY_ROWS {
        return Err(FitError::TooFewRates { line: first.line, what });
    }
    let mut points = Vec::new();
    for row in rows {
        let explained = explained_watts(row, server).ok_or(FitError::UnknownState {
            line: row.line,
            active_cores: row.active_cores,
            ghz: row.ghz,
        })?;
        // Ψ_mem is already fitted when packets are fitted; when memory is fitted, it is the unknown.
        let of_memory = memory::watts(server.memory_joules_per_byte, row.memory_bytes_per_second);
        let of_memory = if row.packets_per_second > 0.0 { of_memory } else { 0.0 };
        points.push((rate(row), row.watts - explained - of_memory));
    }
    let line = line_through_origin(&points);
    if line.slope > 0.0 {
        Ok(Some(line))
    } else {
        Err(FitError::NoEnergy { line: first.line, what, joules: line.slope })
    }
}

/// Power of chassis and CPU for the active cores, frequency and load of a row, in watts.
fn explained_watts(row: &Measurement, server: &Server) -> Option<f64> {
    let Cpu { p_states, further_cores, .. } = &server.cpu;
    let of_cpu = match row.active_cores {
        0 => 0.0,
        1 => {
            let state = p_states.iter().find(|state| state.ghz == row.ghz)?;
            state.watts * row.load.powf(state.sigma)
        }
        cores => {
            let last = further_cores.get(cores as usize - 2)?;
            let first = p_states.last().filter(|state| state.ghz == row.ghz)?;
            let between = further_cores.iter().take(cores as usize - 2).map(|core| core.watts).sum::<f64>();
            first.watts + between + last.watts * row.load.powf(last.sigma)
        }
    };
    Some(server.chassis_watts + of_cpu)
}

#[cfg(test)]
mod tests;
