//! Commands that control a running program. Each sends one request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand};
use namehop_switch::MeterRates;
use namehop_switch::server::Request;
use serde_json::Value;

/// Polling interval for digests.
const DIGEST_PAUSE: Duration = Duration::from_millis(20);

/// Where to send requests, and how to print responses.
#[derive(Args)]
pub struct To {
    /// The control socket of 'namehop p4 run'
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Write JSON to the standard output
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum TableCommand {
    /// Add an entry: TABLE [PRIORITY] KEY:VALUE… ACTION(NAME:VALUE,…)
    ///
    /// Values are decimal, 0x…, 0b… or IPv4 addresses; IPv6 and hardware addresses are in double quotes. /LENGTH makes
    /// a prefix, &&&MASK selects bits, FIRST..LAST is a range. The largest priority wins; the default is 1.
    Add(EntryArgs),
    /// Replace the action of an entry
    Modify(EntryArgs),
    /// Delete an entry: TABLE [PRIORITY] KEY:VALUE…
    Delete(EntryArgs),
    /// Set the action for keys that match no entry: TABLE ACTION(NAME:VALUE,…)
    Default(EntryArgs),
    /// Add all entries of a file, one per line as 'list' prints them, or none if one fails
    Load {
        /// The file; - is the standard input
        file: PathBuf,
        #[command(flatten)]
        to: To,
    },
    /// Show all entries of a table, or of all tables
    List {
        /// The table, by its name or the end of it
        table: Option<String>,
        #[command(flatten)]
        to: To,
    },
    /// Write all entries to a file that 'load' can read
    Dump {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        to: To,
    },
}

#[derive(Args)]
pub struct EntryArgs {
    /// The entry; quote it, because it contains parentheses
    #[arg(required = true, value_name = "ENTRY")]
    words: Vec<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Subcommand)]
pub enum CounterCommand {
    /// Show cells that are not zero
    Read(CounterArgs),
    /// Set cells to zero
    Reset(CounterArgs),
}

#[derive(Args)]
pub struct CounterArgs {
    /// The counter, by its name or the end of it
    counter: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

#[derive(Subcommand)]
pub enum RegisterCommand {
    /// Show cells that are not zero
    Read(RegisterArgs),
    /// Write a cell
    Write {
        /// The register, by its name or the end of it
        register: String,
        /// The cell
        index: u64,
        /// Its value, as in table entries; PART:VALUE for cells that are structs, where the other parts stay unchanged
        #[arg(required = true, value_name = "VALUE")]
        values: Vec<String>,
        #[command(flatten)]
        to: To,
    },
    /// Set cells to zero
    Reset(RegisterArgs),
}

#[derive(Args)]
pub struct RegisterArgs {
    /// The register, by its name or the end of it
    register: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

#[derive(Subcommand)]
pub enum MeterCommand {
    /// Show cells that are set
    Read(MeterArgs),
    /// Set the rates of a cell, in packets or bytes, depending on the meter
    ///
    /// Packets above the peak rate are red, packets above the committed rate yellow, all others green (RFC 2698). A
    /// burst size limits the packets or bytes that may come at once; for a meter of bytes, it must be at least the
    /// longest packet.
    Set {
        /// The meter, by its name or the end of it
        meter: String,
        /// The cell
        index: u64,
        #[command(flatten)]
        rates: MeterRates,
        #[command(flatten)]
        to: To,
    },
    /// Remove the limits of cells, as at the start: all packets are green
    Reset(MeterArgs),
}

#[derive(Args)]
pub struct MeterArgs {
    /// The meter, by its name or the end of it
    meter: String,
    /// Only this cell
    index: Option<u64>,
    #[command(flatten)]
    to: To,
}

#[derive(Args)]
pub struct DigestArgs {
    /// Wait until this many digests were printed; 0 never stops
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    to: To,
}

#[derive(Args)]
pub struct MulticastArgs {
    /// The group, 1 to 65535
    group: u64,
    /// Its members, each PORT or REPLICATION:PORT; without members, the group is deleted
    #[arg(value_name = "MEMBER", value_parser = member)]
    members: Vec<(u64, u64)>,
    #[command(flatten)]
    to: To,
}

fn member(text: &str) -> Result<(u64, u64), String> {
    let (replica, port) = text.split_once(':').unwrap_or(("0", text));
    match (replica.parse(), port.parse()) {
        (Ok(replica), Ok(port)) => Ok((replica, port)),
        _ => Err("a member must be PORT or REPLICATION:PORT".to_owned()),
    }
}

#[derive(Args)]
pub struct MirrorArgs {
    /// The mirroring session
    session: u64,
    /// The port that copies go to; without a port or group, there are no copies
    #[arg(long)]
    port: Option<u64>,
    /// The multicast group that copies go to
    #[arg(long, conflicts_with = "port")]
    group: Option<u64>,
    /// Maximum length of a copy, in bytes; 0 means no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    length: u32,
    #[command(flatten)]
    to: To,
}

pub fn table(command: TableCommand) -> io::Result<bool> {
    let text = |args: EntryArgs| (args.words.join(" "), args.to);
    match command {
        TableCommand::Add(args) => {
            let (entry, to) = text(args);
            ask(&to, &Request::TableAdd { entry })
        }
        TableCommand::Modify(args) => {
            let (entry, to) = text(args);
            ask(&to, &Request::TableModify { entry })
        }
        TableCommand::Delete(args) => {
            let (entry, to) = text(args);
            ask(&to, &Request::TableDelete { entry })
        }
        TableCommand::Default(args) => {
            let (action, to) = text(args);
            ask(&to, &Request::TableDefault { action })
        }
        TableCommand::Load { file, to } => {
            let mut text = String::new();
            let read = if file == Path::new("-") {
                io::stdin().read_to_string(&mut text)
            } else {
                std::fs::File::open(&file).and_then(|mut from| from.read_to_string(&mut text))
            };
            read.map_err(|error| io::Error::other(format!("cannot read {}: {error}", file.display())))?;
            ask(&to, &Request::TableLoad { text })
        }
        TableCommand::List { table, to } => ask(&to, &Request::TableList { table }),
        TableCommand::Dump { file, to } => {
            let answer = answer(&to.control, &Request::TableList { table: None })?;
            std::fs::write(&file, lines(&answer))
                .map_err(|error| io::Error::other(format!("cannot write {}: {error}", file.display())))?;
            Ok(true)
        }
    }
}

pub fn counter(command: CounterCommand) -> io::Result<bool> {
    match command {
        CounterCommand::Read(CounterArgs { counter, index, to }) => ask(&to, &Request::CounterRead { counter, index }),
        CounterCommand::Reset(CounterArgs { counter, index, to }) => {
            ask(&to, &Request::CounterReset { counter, index })
        }
    }
}

pub fn register(command: RegisterCommand) -> io::Result<bool> {
    match command {
        RegisterCommand::Read(RegisterArgs { register, index, to }) => {
            ask(&to, &Request::RegisterRead { register, index })
        }
        RegisterCommand::Write { register, index, values, to } => {
            ask(&to, &Request::RegisterWrite { register, index, values })
        }
        RegisterCommand::Reset(RegisterArgs { register, index, to }) => {
            ask(&to, &Request::RegisterReset { register, index })
        }
    }
}

pub fn meter(command: MeterCommand) -> io::Result<bool> {
    match command {
        MeterCommand::Read(MeterArgs { meter, index, to }) => ask(&to, &Request::MeterRead { meter, index }),
        MeterCommand::Set { meter, index, rates, to } => ask(&to, &Request::MeterSet { meter, index, rates }),
        MeterCommand::Reset(MeterArgs { meter, index, to }) => ask(&to, &Request::MeterReset { meter, index }),
    }
}

/// Prints waiting digests, one per line; waits for more if a count is given.
pub fn digest(args: DigestArgs) -> io::Result<bool> {
    let (mut taken, mut dropped) = (0, 0);
    loop {
        let left = args.count.filter(|count| *count > 0).map_or(u64::MAX, |count| count - taken);
        let answer = answer(&args.to.control, &Request::DigestTake { most: left })?;
        let list: Vec<&Value> = answer["digests"].as_array().into_iter().flatten().collect();
        let mut output = io::stdout().lock();
        for digest in &list {
            if args.to.json {
                serde_json::to_writer(&mut output, digest)?;
                writeln!(output)?;
            } else {
                let name = digest["digest"].as_str().unwrap_or_default();
                writeln!(output, "{name}: {}", value_text(&digest["value"]))?;
            }
        }
        output.flush()?;
        let lost = answer["dropped"].as_u64().unwrap_or(0);
        if lost > dropped {
            writeln!(
                io::stderr(),
                "{lost} reports were dropped since the program started, because their queue was full"
            )?;
            dropped = lost;
        }
        taken += list.len() as u64;
        match args.count {
            None if list.is_empty() => return Ok(true),
            Some(count) if count > 0 && taken >= count => return Ok(true),
            _ if list.is_empty() => thread::sleep(DIGEST_PAUSE),
            _ => {}
        }
    }
}

/// Formats a value or its parts.
fn value_text(value: &Value) -> String {
    match value {
        Value::Object(parts) => {
            let part = |(name, value): (&String, &Value)| format!("{name}:{}", value_text(value));
            parts.iter().map(part).collect::<Vec<_>>().join(" ")
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub fn multicast(args: MulticastArgs) -> io::Result<bool> {
    ask(&args.to, &Request::Multicast { group: args.group, members: args.members })
}

pub fn mirror(args: MirrorArgs) -> io::Result<bool> {
    let MirrorArgs { session, port, group, length, to } = args;
    ask(&to, &Request::Mirror { session, port, group, longest_bytes: length })
}

pub(crate) fn ask(to: &To, request: &Request) -> io::Result<bool> {
    let answer = answer(&to.control, request)?;
    let mut output = io::stdout().lock();
    if to.json {
        serde_json::to_writer_pretty(&mut output, &answer)?;
        writeln!(output)?;
    } else {
        output.write_all(lines(&answer).as_bytes())?;
    }
    Ok(true)
}

/// Formats a response: one line per entry or cell.
fn lines(answer: &Value) -> String {
    let list = |name: &str| answer[name].as_array().into_iter().flatten();
    let entries = list("entries").filter_map(Value::as_str).map(|entry| format!("{entry}\n"));
    let counters = list("cells").filter(|_| answer["counter"].is_string()).map(|cell| {
        let counter = answer["counter"].as_str().unwrap_or_default();
        format!("{}: {} packets, {} bytes\n", cell_name(counter, cell), cell["packets"], cell["bytes"])
    });
    let registers = list("cells").filter(|_| answer["register"].is_string()).map(|cell| {
        let register = answer["register"].as_str().unwrap_or_default();
        format!("{register}({}): {}\n", cell["index"], value_text(&cell["value"]))
    });
    let meters = list("cells").filter(|_| answer["meter"].is_string()).map(|cell| {
        let (meter, unit) = (answer["meter"].as_str().unwrap_or_default(), answer["unit"].as_str().unwrap_or_default());
        let rates = &cell["rates"];
        format!(
            "{}: committed {} {unit}/s, burst {}; peak {} {unit}/s, burst {}\n",
            cell_name(meter, cell),
            rates["committed_rate"],
            rates["committed_burst"],
            rates["peak_rate"],
            rates["peak_burst"]
        )
    });
    let members =
        list("members").map(|member| format!("{}: {}\n", member["id"], member["action"].as_str().unwrap_or_default()));
    let groups = list("groups").map(|group| {
        let shares = group["members"].as_array().into_iter().flatten();
        let shares: Vec<String> = shares.map(|share| format!("{}:{}", share[0], share[1])).collect();
        format!("{}: {}\n", group["id"], shares.join(" "))
    });
    let values = list("values").filter_map(Value::as_str).map(|member| format!("{member}\n"));
    let loaded = answer["loaded"].as_u64().map(|count| format!("{count} entries loaded\n"));
    entries
        .chain(counters)
        .chain(registers)
        .chain(meters)
        .chain(members)
        .chain(groups)
        .chain(values)
        .chain(loaded)
        .collect()
}

/// Names a cell by its index, or by its entry.
fn cell_name(of: &str, cell: &Value) -> String {
    match cell["entry"].as_str() {
        Some(entry) => format!("{of}: {entry}"),
        None => format!("{of}({})", cell["index"]),
    }
}

/// Sends a request and waits for the response.
fn answer(socket: &Path, request: &Request) -> io::Result<Value> {
    let named = |error: io::Error| {
        io::Error::other(format!(
            "cannot reach the control socket {}: {error}; is 'namehop p4 run --control' running?",
            socket.display()
        ))
    };
    let mut stream = UnixStream::connect(socket).map_err(named)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(named)?;
    let mut text = String::new();
    BufReader::new(&stream).read_line(&mut text).map_err(named)?;
    let mut answer: Value = serde_json::from_str(&text).map_err(|_| named(io::Error::other("no answer")))?;
    match answer["error"].as_str() {
        Some(reason) => Err(io::Error::other(reason.to_owned())),
        None => Ok(answer["answer"].take()),
    }
}
