//! Measures compiled programs between two DPDK rings: `namehop p4 bench`.

mod model;
mod swx;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use namehop_p4_compile::compile;
use namehop_p4_compile::emit::Options;
use namehop_p4_lang::load;
use namehop_p4_runtime::files::{BENCH, programs};
use namehop_p4_runtime::workshop::{Build, Missing, Workshop, pkg_config};
use serde_json::{Value, json};

use crate::common::print_json;

/// Programs that can be measured: name and source. One that encrypts is measured with packets of three lengths.
const PROGRAMS: [(&str, &str); 9] = [
    ("l2", programs::L2),
    ("ipv4", programs::IPV4),
    ("ipv6", programs::IPV6),
    ("ndn", programs::NDN),
    ("l2fwd", programs::L2FWD),
    ("flows", programs::FLOWS),
    ("crypto", programs::CRYPTO),
    ("crypto-256", programs::CRYPTO),
    ("crypto-1024", programs::CRYPTO),
];

/// Memory for DPDK's tables without huge pages, in MiB.
const ORDINARY_MIB: &str = "4096";

/// Exit code of the benchmark if something that it needs is not installed; see `bench.h`.
const EXIT_MISSING: i32 = 3;

/// Arguments of the command.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// The programs; by default all programs for which everything is installed
    programs: Vec<String>,
    /// Number of table entries; 0 for the paper's number
    #[arg(long, value_name = "N", default_value_t = 0)]
    entries: u64,
    /// How often each variant is measured, with 4096 packets each time; at least twice the number of variants, so
    /// that no variant gets packets that another one has just used
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Skip DPDK's tables and its P4 engine
    #[arg(long)]
    no_dpdk: bool,
    /// Source folder of the installed DPDK, to measure the C code that its P4 engine generates
    #[arg(long, value_name = "FOLDER", conflicts_with = "no_dpdk")]
    dpdk_sources: Option<PathBuf>,
    /// Write JSON to the standard output
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Fails as [`measure`] does, also for a program that was named and cannot be measured for lack of a dependency.
pub(crate) fn run(args: &BenchArgs) -> io::Result<bool> {
    let all = PROGRAMS.map(|(name, _)| name.to_owned());
    let (mut results, mut failed) = (Vec::new(), None);
    for name in if args.programs.is_empty() { &all[..] } else { &args.programs } {
        let result = match measure(name, args) {
            Ok(result) => result,
            Err(error) => {
                let Some(missing) = Missing::reason(&error) else { return Err(error) };
                let result = left_out(name, missing);
                // A missing dependency is an error for a program that was named.
                failed = failed.or(Some(error).filter(|_| !args.programs.is_empty()));
                result
            }
        };
        if !args.json {
            io::stdout().lock().write_all(table(&result).as_bytes())?;
        }
        results.push(result);
    }
    if args.json {
        print_json(&results.into())?;
    }
    failed.map_or(Ok(true), Err)
}

/// Builds a shared object of a program in the workshop and returns its path. With DPDK's tables, the program processes
/// packets one by one.
fn build(workshop: &Workshop, name: &str, text: &str, dpdk: bool) -> io::Result<PathBuf> {
    let mut loaded = load::text_of(Path::new(name), text.into(), &[]);
    let program = loaded.program.as_mut().ok_or_else(|| io::Error::other(format!("the program {name} has errors")))?;
    let options = if dpdk {
        Options { batch: 1, staged: false, prefetch: false, ..Options::default() }
    } else {
        Options { in_turns: true, ..Options::default() }
    };
    let compiled = compile(program, name, &options).map_err(|failure| io::Error::other(failure.to_string()))?;
    let mut flags = Vec::new();
    if dpdk {
        flags = pkg_config("--cflags")?;
        flags.push("-DP4_DPDK_TABLES".into());
    }
    // The names must not replace a file of the benchmark, such as crypto.c.
    let file = if dpdk { "dpdk" } else { "ours" };
    let to = workshop.folder().join(file).with_extension("so");
    workshop.program_with(&compiled.emitted, file, &flags, &to)?;
    Ok(to)
}

/// Measures one program. Returns the result as JSON: the tables, and the cycles per packet of each variant.
///
/// # Errors
///
/// Fails if DPDK or a C compiler is missing, if there is too little memory, or if variants output different packets.
/// Returns [`Missing`] if something is not installed that only this program needs.
fn measure(name: &str, args: &BenchArgs) -> io::Result<Value> {
    let (_, text) = PROGRAMS.iter().find(|(other, _)| *other == name).ok_or_else(|| {
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        io::Error::other(format!("unknown program '{name}'; the programs are {}", names.join(", ")))
    })?;
    let workshop = Workshop::new(Build { native: true, ..Build::default() })?;
    for (file, text) in BENCH {
        fs::write(workshop.folder().join(file), text)?;
    }
    let ours = build(&workshop, name, text, false)?;
    let theirs = if !args.no_dpdk { Some(build(&workshop, name, text, true)?) } else { None };
    let path = |file: &str| workshop.folder().join(file);
    let files = ["workloads.c", "examples.c", "crypto.c", "names.c", "gopt.c", "swx.c"];
    let mut arguments: Vec<String> = files.map(|file| path(file).to_string_lossy().into_owned()).into();
    arguments.extend(swx::libraries()?);
    arguments.extend(["-rdynamic", "-ldl"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    workshop.executable("bench.c", &arguments, &path("bench"))?;
    let mut left_out = Vec::new();
    let mut engine = None;
    if !args.no_dpdk {
        match swx::prepare(&workshop, name, args.entries, args.dpdk_sources.as_deref())? {
            Some(Ok(library)) => engine = Some(library),
            Some(Err(why)) => left_out.push(why),
            None => {}
        }
    }
    let pages = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").unwrap_or_default();
    let huge = pages.trim().parse::<u64>().is_ok_and(|pages| pages > 0);
    let mut command = Command::new(path("bench"));
    command.arg(name).args([args.entries.to_string(), args.rounds.to_string()]).arg(ours);
    for file in [theirs, engine] {
        command.arg(file.unwrap_or_else(|| "-".into()));
    }
    command.args(["--no-pci", "--no-telemetry", "-l", "0", "--log-level", "4"]);
    if huge {
        command.arg("--in-memory");
    } else {
        command.args(["--no-huge", "--no-shconf", "-m", ORDINARY_MIB]);
    }
    let output = command.output()?;
    if !output.status.success() {
        let said = format!("cannot measure {name}: {}", String::from_utf8_lossy(&output.stderr).trim());
        let is_missing = output.status.code() == Some(EXIT_MISSING);
        return Err(if is_missing { Missing::error(said) } else { io::Error::other(said) });
    }
    let mut lines = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('{')) {
        lines.push(serde_json::from_str::<Value>(line)?);
    }
    let mut lines = lines.into_iter();
    let mut result = lines.next().ok_or_else(|| io::Error::other("the measurement printed no results"))?;
    if result["swx_memory_missing"] == true {
        left_out.push("DPDK's P4 engine with tables of this size: not enough memory".into());
    }
    result["left_out"] = left_out.into();
    result["program"] = name.into();
    result["huge_pages"] = huge.into();
    let ways: Vec<Value> = lines.collect();
    result["model"] = serde_json::to_value(model::predict(&ways, result["tsc_hz"].as_f64().unwrap_or_default()))?;
    result["ways"] = ways.into();
    Ok(result)
}

/// The result of a program that was not measured because something that it needs is not installed.
fn left_out(name: &str, missing: &Missing) -> Value {
    json!({ "program": name, "missing": missing.to_string(), "ways": [] })
}

/// Formats a result as a table.
fn table(result: &Value) -> String {
    if let Some(missing) = result["missing"].as_str() {
        return format!("{}: skipped: {missing}\n", result["program"].as_str().unwrap_or_default());
    }
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let ways: Vec<&Value> = result["ways"].as_array().into_iter().flatten().collect();
    let base = ways.iter().find(|way| way["way"] == "per packet").map_or(f64::NAN, |way| number(&way["cycles"]));
    let mut text = format!(
        "{}: {} entries, {:.0} MiB, loaded in {:.2} s\n",
        result["program"].as_str().unwrap_or_default(),
        result["entries"],
        number(&result["footprint_bytes"]) / f64::from(1 << 20),
        number(&result["load_seconds"]),
    );
    text += "  way                            burst   batch   prefetch   cycles per packet (10 % to 90 %)   speed\n";
    for way in ways {
        let cycles = number(&way["cycles"]);
        text += &format!(
            "  {:<30} {:>5}   {:>5}   {:<8}   {cycles:>8.1} ({:.1} to {:.1}){:>w$}{:.2}\n",
            way["way"].as_str().unwrap_or_default(),
            way["burst"],
            way["batch"],
            way["prefetch"].as_str().unwrap_or_default(),
            number(&way["low"]),
            number(&way["high"]),
            "",
            base / cycles,
            w = 6,
        );
    }
    for what in result["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text += &format!("  skipped: {what}\n");
    }
    let model = &result["model"];
    if !model.is_null() {
        text += &format!(
            "  the model predicts bursts of {} and batches of {}: measured {:.1} % slower than the best batch size, \
             {}\n",
            model["burst"],
            model["batch"],
            number(&model["loss_percent"]),
            model["measured_batch"],
        );
    }
    text
}
