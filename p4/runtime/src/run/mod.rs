//! Runs compiled programs in a separate process and compares them with the reference interpreter.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use namehop_p4_compile::Compiled;
use namehop_p4_compile::emit::lines;
use namehop_p4_compile::layout::{initial, pack_member};
use namehop_p4_lang::interpret::{Object, Sent, Switch};
use namehop_p4_lang::stf::Operation;
use namehop_p4_lang::types::Types;

use crate::workshop::Workshop;

/// Time limit of a compiled program for one test.
const PATIENCE: Duration = Duration::from_secs(120);
/// Variants that programs are tested with: the batch size; `n` for no prefetching; `d` for straight through in one
/// function.
pub const VARIANTS: [&str; 11] = ["1", "8", "32", "64", "1n", "8n", "32n", "64n", "1d", "32d", "32ds"];
/// Maximum number of differences that are shown per variant.
const SHOWN: usize = 5;

/// What the interpreter did, and the final state of its switch.
pub struct Played<'a, 'p> {
    /// The operations of the test.
    pub operations: &'a [Operation],
    /// The interpreter after the test.
    pub switch: &'a Switch<'p>,
    /// The types of the program.
    pub types: &'a Types,
}

/// The operations of a test as commands for the player.
fn script(compiled: &Compiled, types: &Types, operations: &[Operation]) -> String {
    let ir = &compiled.ir;
    let table = |object: usize, number: usize| {
        // A table that is never applied is not in the compiled program.
        ir.tables.find(|table| table.owner == (object, number))
    };
    let register = |object: usize| ir.registers.find(|register| register.object == object);
    let mut text = String::new();
    for operation in operations {
        let line = match operation {
            Operation::Add(object, number, entry) => {
                table(*object, *number).map(|number| lines::add(number, &ir.tables[number], entry))
            }
            Operation::Default(object, number, action, values) => {
                table(*object, *number).map(|number| lines::default(number, &ir.tables[number], *action, values))
            }
            Operation::Packet { port, bytes, .. } => Some(format!("packet {port} {}", lines::hexadecimal(bytes))),
            Operation::Mirror { session, is_group, target, longest_bytes } => {
                Some(format!("mirror {session} {} {target} {longest_bytes}", u8::from(*is_group)))
            }
            Operation::MirrorDelete(session) => Some(format!("unmirror {session}")),
            Operation::Group(group) => Some(format!("group {group}")),
            Operation::Member(group, replica, port) => Some(format!("member {group} {replica} {port}")),
            Operation::Register(object, index, value) => register(*object).and_then(|number| {
                let cell = lines::cell(types, ir.registers[number].ty, value)?;
                Some(format!("register {number} {index} {cell}"))
            }),
            Operation::ValueSet(object, place, members) => {
                let found = ir.value_sets.find(|set| set.owner == (*object, *place));
                found.map(|number| {
                    let fields = &ir.value_sets[number].fields;
                    let rows: Vec<u8> = members
                        .iter()
                        .flat_map(|member| pack_member(fields, member))
                        .flat_map(u64::to_le_bytes)
                        .collect();
                    format!("valueset {number} {} {}", members.len(), lines::hexadecimal(&rows))
                })
            }
            Operation::RegisterReset(object) => register(*object).map(|number| format!("clear {number}")),
            Operation::Counter(object, index, packets, bytes) => ir
                .counters
                .find(|counter| counter.object == *object)
                .map(|number| format!("counter {number} {index} {packets} {bytes}")),
        };
        if let Some(line) = line {
            text += &line;
            text.push('\n');
        }
    }
    text
}

/// The registers and counters that the player should print at the end.
fn final_state(compiled: &Compiled, types: &Types, switch: &Switch<'_>) -> Vec<String> {
    let is_zero = |text: &str| text.bytes().all(|digit| digit == b'0');
    let mut list = Vec::new();
    for (number, register) in compiled.ir.registers.enumerated() {
        let Some(Object::Register { values, .. }) = switch.objects.get(register.object) else { continue };
        for (index, value) in values.iter().enumerate() {
            if let Some(cell) = lines::cell(types, register.ty, value).filter(|cell| !is_zero(cell)) {
                list.push(format!("register {number} {index} {cell}"));
            }
        }
    }
    for (number, counter) in compiled.ir.counters.enumerated() {
        let cells: Vec<(u64, u64)> = match (counter.table, switch.objects.get(counter.object)) {
            (Some(table), _) => {
                let state = initial(switch, &compiled.ir.tables[table]);
                state.into_iter().flat_map(|state| &state.entries).map(|entry| (entry.packets, entry.bytes)).collect()
            }
            (None, Some(Object::Counter(cells))) => cells.clone(),
            _ => continue,
        };
        for (index, (packets, bytes)) in cells.iter().enumerate().filter(|(_, cell)| **cell != (0, 0)) {
            let mut memory = packets.to_le_bytes().to_vec();
            memory.extend(bytes.to_le_bytes());
            list.push(format!("counter {number} {index} {}", lines::hexadecimal(&memory)));
        }
    }
    list
}

/// Runs the player. Returns its output.
fn play(
    workshop: &Workshop,
    name: &str,
    program: &Path,
    script: &str,
    variants: &[&str],
) -> io::Result<Result<String, String>> {
    let file = |end: &str| workshop.folder().join(format!("{name}.{end}"));
    let (commands, output, errors) = (file("commands"), file("output"), file("errors"));
    fs::write(&commands, script)?;
    let mut child = Command::new(workshop.player())
        .arg(program)
        .arg(&commands)
        .args(variants)
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(&errors)?)
        .spawn()?;
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let said = String::from_utf8_lossy(&fs::read(&errors)?).into_owned();
    let said: Vec<&str> = said.lines().take(20).collect();
    Ok(match status {
        None => Err(format!("the compiled program did not end within {} s", PATIENCE.as_secs())),
        Some(status) if !status.success() => {
            Err(format!("the compiled program failed ({status})\n{}", said.join("\n")))
        }
        Some(_) => Ok(String::from_utf8_lossy(&fs::read(&output)?).into_owned()),
    })
}

/// Compares the compiled program with the interpreter's result. `name` must be unique within the workshop. Returns the
/// differences as text.
///
/// # Errors
///
/// Fails if the program cannot be built, or if no process can be started.
pub fn compare(
    workshop: &Workshop,
    name: &str,
    compiled: &Compiled,
    played: &Played<'_, '_>,
    variants: &[&str],
) -> io::Result<Vec<String>> {
    let Played { operations, switch, types } = played;
    let program = workshop.folder().join(format!("{name}.so"));
    workshop.program(&compiled.emitted, name, &program)?;
    let output = match play(workshop, name, &program, &script(compiled, types, operations), variants)? {
        Ok(output) => output,
        Err(reason) => return Ok(vec![reason]),
    };
    let packets: Vec<(u64, &[u8], &[Sent])> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Packet { port, bytes, sent } => Some((*port, &**bytes, &**sent)),
            _ => None,
        })
        .collect();
    let mut expected_state = final_state(compiled, types, switch);
    expected_state.sort();
    let mut failures = Vec::new();
    for run in output.split("run ").skip(1) {
        let mut lines_of_run = run.lines();
        let variant = lines_of_run.next().unwrap_or("");
        let how = format!(
            "batches of {}{}{}{}",
            variant.trim_end_matches(['n', 'd', 's']),
            if variant.contains('n') { " without prefetching" } else { "" },
            if variant.contains('d') { ", without stages" } else { "" },
            if variant.contains('s') { ", with small tables" } else { "" },
        );
        let mut sent: BTreeMap<usize, Vec<(&str, &str)>> = BTreeMap::new();
        let mut state = Vec::new();
        let mut ended = false;
        for line in lines_of_run {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("sent"), Some(number), Some(port), bytes) => {
                    sent.entry(number.parse().unwrap_or(usize::MAX)).or_default().push((port, bytes.unwrap_or("")));
                }
                (Some("register" | "counter"), ..) => state.push(line.to_owned()),
                (Some("end"), ..) => ended = true,
                _ => {}
            }
        }
        if !ended {
            failures.push(format!("{how}: the compiled program ended early"));
            continue;
        }
        let differing = packets.iter().enumerate().filter_map(|(number, (port, bytes, wanted))| {
            let wanted: Vec<(String, String)> =
                wanted.iter().map(|sent| (sent.port.to_string(), digits(&sent.bytes))).collect();
            let none = Vec::new();
            let got = sent.get(&number).unwrap_or(&none);
            let same = got.len() == wanted.len()
                && got.iter().zip(&wanted).all(|((port, bytes), wanted)| *port == wanted.0 && *bytes == wanted.1);
            (!same).then(|| {
                format!(
                    "{how}, packet {} ({} on port {port}):\n  interpreter: {}\n  compiled:    {}",
                    number + 1,
                    lines::hexadecimal(bytes),
                    listed(wanted.iter().map(|(port, bytes)| (&**port, &**bytes))),
                    listed(got.iter().copied()),
                )
            })
        });
        failures.extend(differing.take(SHOWN));
        state.sort();
        if state != expected_state {
            failures.push(format!(
                "{how}: registers and counters\n  interpreter: {}\n  compiled:    {}",
                expected_state.join("; "),
                state.join("; ")
            ));
        }
    }
    Ok(failures)
}

fn digits(bytes: &[u8]) -> String {
    if bytes.is_empty() { String::new() } else { lines::hexadecimal(bytes) }
}

fn listed<'s>(sent: impl Iterator<Item = (&'s str, &'s str)>) -> String {
    let list: Vec<String> = sent.map(|(port, bytes)| format!("{bytes} on port {port}")).collect();
    if list.is_empty() { "nothing".into() } else { list.join(", ") }
}
