//! `namehop p4 compile`: writes a loadable program, an intermediate result, or p4info.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use namehop_p4_compile::Compiled;
use namehop_p4_compile::emit::{Options, USUAL_BATCH};
use namehop_p4_compile::passes::{self, Dump, PASSES};
use namehop_p4_lang::load::{self, Loaded};
use namehop_p4_lang::tree::Program;
use namehop_p4_runtime::workshop::{Build, Workshop};
use namehop_p4runtime::Message as _;
use namehop_p4runtime::info::P4Info;
use serde_json::json;

use crate::common::{Common, print_json, report};

/// Arguments of the command.
#[derive(Args)]
pub(crate) struct CompileArgs {
    /// The program
    file: PathBuf,
    /// Output file; with --emit and --dump-after, the default is the standard output
    #[arg(long, short, value_name = "OUT", required_unless_present_any = ["emit", "dump_after", "p4info"])]
    output: Option<PathBuf>,
    /// Batch size in packets: 1 to 64, or auto
    ///
    /// With auto, the running program measures the cost of its packets in batches of 1 to 64, and uses the size that is
    /// best for its tables and this host.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = batch)]
    batch: Batch,
    /// Do not prefetch tables into the cache
    #[arg(long)]
    no_prefetch: bool,
    /// Process packets one by one, without stages
    #[arg(long)]
    per_packet: bool,
    /// Optimize for this host's CPU only
    #[arg(long)]
    native: bool,
    /// Write p4info to this file, for controllers that use P4Runtime: as text, or in binary if the name ends in .bin
    #[arg(long, value_name = "FILE")]
    p4info: Option<PathBuf>,
    /// Write the intermediate representation or the C code instead
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Write the intermediate representation after this pass of the compiler instead
    #[arg(long, value_name = "PASS", value_parser = pass_names(), conflicts_with_all = ["emit", "p4info"])]
    dump_after: Option<Dump>,
    #[command(flatten)]
    common: Common,
}

/// Parses the name of a pass, or `all`. Help texts and error messages list the names.
fn pass_names() -> impl TypedValueParser<Value = Dump> {
    let names = PASSES.iter().map(|pass| PossibleValue::new(pass.name).help(pass.about));
    let all = PossibleValue::new("all").help("Write it after every pass");
    PossibleValuesParser::new(names.chain([all])).map(|name| if name == "all" { Dump::All } else { Dump::After(name) })
}

/// Output other than a loadable program.
#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// The intermediate representation
    Ir,
    /// C
    C,
}

/// Batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// The size that is measured to be best.
    Auto,
    /// 1 to 64
    Fixed(u32),
}

pub fn batch(text: &str) -> Result<Batch, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Batch::Auto),
        Ok(batch @ 1..=64) => Ok(Batch::Fixed(batch)),
        _ => Err("a batch must have 1 to 64 packets, or be auto".into()),
    }
}

/// Compiles a program to C, or reports why that is not possible.
pub fn compiled(loaded: &mut Loaded, file: &Path, options: &Options) -> Option<Compiled> {
    let title = file.file_name().unwrap_or_default().to_string_lossy();
    match namehop_p4_compile::compile(loaded.program.as_mut()?, &title, options) {
        Ok(compiled) => Some(compiled),
        Err(failure) => {
            loaded.diagnostics.error("compile", failure.span(), failure.to_string());
            None
        }
    }
}

/// Runs the command. Returns false if there are errors in the program.
pub fn run(args: &CompileArgs) -> io::Result<bool> {
    if let Some(wanted) = &args.dump_after {
        return dump(args, wanted);
    }
    let options = Options {
        batch: if let Batch::Fixed(batch) = args.batch { batch } else { USUAL_BATCH },
        automatic: args.batch == Batch::Auto,
        staged: !args.per_packet && args.batch != Batch::Fixed(1),
        prefetch: !args.no_prefetch,
        in_turns: false,
    };
    let (file, common) = (&*args.file, &args.common);
    let mut loaded = load::file(file, &common.include).map_err(io::Error::other)?;
    let compiled = compiled(&mut loaded, file, &options);
    report_all(&loaded, common, compiled.as_ref().map(|compiled| &*compiled.emitted.notes))?;
    let (Some(compiled), Some(program)) = (compiled, &loaded.program) else { return Ok(false) };
    if !common.json {
        for note in &compiled.emitted.notes {
            writeln!(io::stderr(), "note: {note}")?;
        }
    }
    if let Some(path) = &args.p4info {
        write_p4info(path, &compiled.p4info)?;
    }
    let written = write_output(args, compiled, program);
    if let (Err(_), Some(path)) = (&written, &args.p4info) {
        // Remove the p4info of the failed output. If it cannot be removed, it stays.
        let _ = std::fs::remove_file(path);
    }
    written.map(|()| true)
}

/// Reports errors and warnings. `notes` are those about the compiled program.
fn report_all(loaded: &Loaded, common: &Common, notes: Option<&[String]>) -> io::Result<()> {
    if !common.json {
        return report(loaded);
    }
    print_json(&json!({
        "errors": loaded.diagnostics.errors(),
        "warnings": loaded.diagnostics.warnings(),
        "diagnostics": loaded.diagnostics.json(&loaded.sources),
        "notes": notes,
    }))
}

/// Writes the program after passes of the compiler. Returns false if there are errors in the program.
fn dump(args: &CompileArgs, wanted: &Dump) -> io::Result<bool> {
    let mut loaded = load::file(&args.file, &args.common.include).map_err(io::Error::other)?;
    let mut text = String::new();
    let done = loaded.program.as_mut().map(|program| passes::dump(program, wanted, &mut text));
    if let Some(Err(failure)) = &done {
        loaded.diagnostics.error("compile", failure.span(), failure.to_string());
    }
    report_all(&loaded, &args.common, None)?;
    write_text(args.output.as_deref(), &text)?;
    Ok(matches!(done, Some(Ok(()))))
}

fn write_output(args: &CompileArgs, compiled: Compiled, program: &Program) -> io::Result<()> {
    let output = args.output.as_deref();
    let text = match args.emit {
        Some(Emit::Ir) => {
            let fused = compiled.fused.as_ref().map(|fused| fused.program.show_parts(&program.types));
            compiled.ir.show(&program.types) + &fused.unwrap_or_default()
        }
        Some(Emit::C) => compiled.emitted.text,
        // Only p4info was requested.
        None if output.is_none() => return Ok(()),
        None => {
            let workshop = Workshop::new(Build { native: args.native, ..Build::default() })?;
            let output = output.unwrap_or(Path::new("program.so"));
            // Build in the workshop first, so that a failed build leaves no file behind.
            let made = workshop.folder().join("result.so");
            workshop.loadable(&compiled.emitted, &made)?;
            std::fs::copy(&made, output).map_err(|error| cannot_write(output, &error))?;
            return Ok(());
        }
    };
    write_text(output, &text)
}

/// Writes a text to a file, or to the standard output.
fn write_text(output: Option<&Path>, text: &str) -> io::Result<()> {
    match output {
        Some(output) => std::fs::write(output, text).map_err(|error| cannot_write(output, &error)),
        None => io::stdout().lock().write_all(text.as_bytes()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot write {}: {error}", path.display()))
}

fn write_p4info(path: &Path, info: &P4Info) -> io::Result<()> {
    let is_binary = path.extension().is_some_and(|extension| extension == "bin");
    let bytes = if is_binary { info.encode_to_vec() } else { namehop_p4runtime::text::text(info).into_bytes() };
    std::fs::write(path, bytes).map_err(|error| cannot_write(path, &error))
}
