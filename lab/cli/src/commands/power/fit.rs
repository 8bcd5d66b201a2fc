//! `namehop power fit`: derives the description of a server from measurements.

use std::path::PathBuf;

use clap::Args;
use namehop_power::fit::{CoreFit, Fit, FitOptions, fit};
use namehop_power::least_squares::Line;
use namehop_power::memory::DDR3_JOULES_PER_BYTE;
use namehop_power::nic::XL710_JOULES_PER_PACKET;
use namehop_power::servers::THRESHOLD;
use namehop_power::{fit::FitError, measurements};

use namehop_cli::failure::Failure;
use namehop_cli::output;

/// Derive the description of a server from measurements of its power
///
/// FILE is CSV; its first line names the columns, lines that start with '#' are skipped.
///
///   load           busy share of the last active core, 0 to 1; the other active cores are always busy
///   frequency_ghz  frequency of the active processor
///   active_cores   cores with work, all of one processor; 0 for the idle host
///   watts          power of the whole host
///   memory_bytes_per_second, packets_per_second
///                  optional: rates of memory accesses and of forwarded packets
///
/// Required are an idle row, and rows with load 1 and at least two smaller loads: for each frequency with
/// one active core, and for each further core at the highest frequency. Prints TOML for 'namehop power
/// model --server', with the coefficients of determination (R²) as comments. The method is least squares,
/// as in Takemasa's thesis (2019), 6.3.3 to 6.3.5.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  namehop power fit measured.csv > my-server.toml
  namehop power fit measured.csv --name rack-3 --devices 2 --json"
)]
pub struct FitArgs {
    /// Measurements
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the server [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Number of processors of the server; one of them was measured
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    devices: u32,
    /// Utilization from which a higher frequency is selected, above 0 and at most 1
    #[arg(long, value_name = "SHARE", default_value_t = THRESHOLD)]
    threshold: f64,
    /// Energy per byte of memory, if no row has a rate; the default is that of DDR3 memory in the thesis
    #[arg(long, value_name = "J", default_value_t = DDR3_JOULES_PER_BYTE)]
    memory_joules_per_byte: f64,
    /// Energy per packet, if no row has a rate; the default is that of the XL710 network card in the thesis
    #[arg(long, value_name = "J", default_value_t = XL710_JOULES_PER_PACKET)]
    nic_joules_per_packet: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FitArgs {
    pub fn run(self) -> Result<(), Failure> {
        let in_file = |failure: Failure| failure.context(self.file.display());
        let content = std::fs::read(&self.file).map_err(|error| in_file(error.into()))?;
        let rows = measurements::parse(&content).map_err(|error| in_file(Failure::failed(error)))?;
        let of_file = || self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let options = FitOptions {
            name: self.name.clone().or_else(of_file).unwrap_or_default(),
            devices: self.devices,
            threshold: self.threshold,
            memory_joules_per_byte: self.memory_joules_per_byte,
            nic_joules_per_packet: self.nic_joules_per_packet,
        };
        let fit = fit(&rows, &options).map_err(|error| match error {
            FitError::Server(error) => Failure::usage(error),
            error => in_file(Failure::failed(error)),
        })?;
        if self.json { output::json(&fit) } else { output::print(&fit.server.to_toml(&notes(&fit, rows.len()))) }
    }
}

/// Returns comments on the quality of the fit.
fn notes(fit: &Fit, rows: usize) -> Vec<String> {
    let Fit { server: _, idle_rows, frequency_curve, cores, memory, nic } = fit;
    let mut notes = vec![
        format!("Derived from {rows} rows, {idle_rows} of the idle host, by 'namehop power fit'."),
        "Quality of each fit (R², 1 is exact):".to_owned(),
    ];
    for CoreFit { active_cores, ghz, rows, r_squared, .. } in cores {
        notes.push(format!("  active_cores {active_cores}, {ghz} GHz: {} ({rows} rows)", show(*r_squared)));
    }
    match frequency_curve {
        Some(fit) => notes.push(format!(
            "  power of a busy core by frequency (equation 6.8): {}, with nu {:.4} and {:.4} W at a frequency of 0",
            show(fit.r_squared),
            fit.curve.nu,
            fit.curve.minimum_watts
        )),
        None => notes.push(
            "  power of a busy core by frequency: as measured, because fewer than three frequencies were measured"
                .to_owned(),
        ),
    }
    let energy = |line: &Option<Line>, what: &str, option: &str| match line {
        Some(line) => format!("  {what}: {}", show(line.r_squared)),
        None => format!("  {what}: not measured, taken from {option}"),
    };
    notes.push(energy(memory, "energy per byte of memory", "--memory-joules-per-byte"));
    notes.push(energy(nic, "energy per packet", "--nic-joules-per-packet"));
    notes
}

/// Formats R², if it is defined.
fn show(r_squared: f64) -> String {
    if r_squared.is_finite() { format!("{r_squared:.3}") } else { "undefined, the power is constant".to_owned() }
}

#[cfg(test)]
mod tests {
    use namehop_power::server::Server;

    use super::*;

    /// Rows as in an operator's file: idle power is 30 W, the first core takes up to 10 W and the second up to 5 W,
    /// both proportional to the load.
    const ROWS: &str = "load,frequency_ghz,active_cores,watts\n0,2,0,30\n0.25,2,1,32.5\n0.5,2,1,35\n1,2,1,40\n\
                        0.25,2,2,41.25\n0.5,2,2,42.5\n1,2,2,45\n";

    #[test]
    fn notes_and_description_are_one_toml_file() {
        let rows = measurements::parse(ROWS.as_bytes()).expect("valid");
        let options = FitOptions {
            name: "x".to_owned(),
            devices: 2,
            threshold: THRESHOLD,
            memory_joules_per_byte: DDR3_JOULES_PER_BYTE,
            nic_joules_per_packet: XL710_JOULES_PER_PACKET,
        };
        let fit = fit(&rows, &options).expect("complete");
        let text = fit.server.to_toml(&notes(&fit, rows.len()));
        assert!(text.contains("# Derived from 7 rows, 1 of the idle host"), "{text}");
        assert!(text.contains("#   active_cores 2, 2 GHz: 1.000 (3 rows)"), "{text}");
        assert!(text.contains("not measured, taken from --nic-joules-per-packet"), "{text}");
        let server = Server::from_toml(&text).expect("valid");
        assert_eq!((server.cpu.devices, server.cpu.cores_per_device()), (2, 2));
        assert!((server.cpu.watts(6e9).expect("possible") - 25.0).abs() < 1e-3);
    }
}
