//! Packet tests of programs: files in the format of p4c's "simple test framework" (STF).

pub(crate) mod command;
mod tables;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::entry_text::resolve;
use crate::interpret::table::{Match, RuntimeEntry, key_value};
use crate::interpret::{Object, Sent, Switch};
use crate::tree::{ExprKind, Program};
use crate::value::Value;
use command::Command;

/// An expected packet: nibbles, `None` for any, and whether the length must be exact.
type Pattern = (Vec<Option<u8>>, bool);

/// An operation of a test, with all names resolved.
pub enum Operation {
    /// Adds an entry to a table, given by its control and its index there.
    Add(usize, usize, RuntimeEntry),
    /// Sets the default action of a table (control and index): index of the action, and arguments.
    Default(usize, usize, usize, Vec<Value>),
    /// A packet and the packets that were sent for it.
    Packet {
        /// The port that it arrives at.
        port: u64,
        /// Its bytes.
        bytes: Vec<u8>,
        /// What was sent, in order.
        sent: Vec<Sent>,
    },
    /// Target of a mirroring session, and maximum length of its copies in bytes; 0 means no limit.
    Mirror {
        /// The session.
        session: u64,
        /// True if the copies go to a multicast group.
        is_group: bool,
        /// Number of the port or group.
        target: u64,
        /// Maximum length of a copy.
        longest_bytes: u32,
    },
    /// Removes the target of a session.
    MirrorDelete(u64),
    /// Makes a multicast group without members.
    Group(u64),
    /// Group, replication number and port.
    Member(u64, u64, u64),
    /// Instance, index and value.
    Register(usize, u64, Value),
    /// Sets all cells of a register to zero.
    RegisterReset(usize),
    /// Instance, index, packets and bytes.
    Counter(usize, u64, u64, u64),
    /// Parser, index of the value set in it, and members.
    ValueSet(usize, usize, Vec<Vec<Match>>),
}

/// Result of a test.
#[derive(Default)]
pub struct Outcome {
    /// Differences from the test file, as text.
    pub failures: Vec<String>,
    /// Number of packets that were sent.
    pub packets: usize,
    /// Number of packets that the test expects.
    pub expected: usize,
    /// Log output of the program.
    pub notes: Vec<String>,
    /// What the test did, for the compiled program.
    pub operations: Vec<Operation>,
}

struct Test<'p> {
    program: &'p Program,
    switch: Switch<'p>,
    /// Sent and expected packets, for all ports that the test file names.
    sent: BTreeMap<u64, Vec<Vec<u8>>>,
    expected: BTreeMap<u64, Vec<Pattern>>,
    nodes: Vec<(u64, Vec<u64>)>,
    outcome: Outcome,
}

/// Runs a test on the reference interpreter. Also returns the final state of the switch.
pub fn run<'p>(program: &'p Program, text: &str) -> Result<(Outcome, Switch<'p>), String> {
    let switch = Switch::new(program)?;
    let mut test = Test {
        program,
        switch,
        sent: BTreeMap::new(),
        expected: BTreeMap::new(),
        nodes: Vec::new(),
        outcome: Outcome::default(),
    };
    for (number, line) in text.lines().enumerate() {
        let command = command::parse(line).map_err(|reason| format!("line {}: {reason}", number + 1))?;
        if let Some(command) = command {
            test.command(command).map_err(|reason| format!("line {}: {reason}", number + 1))?;
        }
    }
    Ok(test.finish())
}

impl<'p> Test<'p> {
    fn command(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Add { table, priority, keys, action } => self.add(table, priority, &keys, &action)?,
            Command::SetDefault { table, action } => self.set_default(table, &action)?,
            Command::Packet { port, bytes } => {
                self.outcome.packets += 1;
                self.sent.entry(port).or_default();
                let sent = self.switch.process(port, &bytes);
                for packet in &sent {
                    self.sent.entry(packet.port).or_default().push(packet.bytes.clone());
                }
                self.record(Operation::Packet { port, bytes, sent });
            }
            Command::Expect { port, nibbles, exact } => {
                self.outcome.expected += 1;
                self.expected.entry(port).or_default().push((nibbles, exact));
            }
            Command::CheckCounter { name, index, bytes, operator, number } => {
                let (packets, length) = self.counter(name, index)?;
                let value = if bytes { length } else { packets };
                let holds = match operator {
                    "==" => value == number,
                    "!=" => value != number,
                    "<" => value < number,
                    "<=" => value <= number,
                    ">" => value > number,
                    _ => value >= number,
                };
                if !holds {
                    let what = if bytes { "bytes" } else { "packets" };
                    self.outcome
                        .failures
                        .push(format!("counter {name}({index}) has {value} {what}, not {operator} {number}"));
                }
            }
            Command::Mirror { session, is_group, target, longest_bytes } => {
                let of = &mut self.switch;
                let targets = if is_group { &mut of.mirror_groups } else { &mut of.mirror_ports };
                targets.insert(session, (target, longest_bytes.into()));
                self.record(Operation::Mirror { session, is_group, target, longest_bytes });
            }
            Command::MirrorDelete { session } => {
                self.switch.mirror_ports.remove(&session);
                self.switch.mirror_groups.remove(&session);
                self.record(Operation::MirrorDelete(session));
            }
            Command::GroupCreate { group } => {
                self.switch.groups.insert(group, Vec::new());
                self.record(Operation::Group(group));
            }
            Command::NodeCreate { replica, ports } => self.nodes.push((replica, ports)),
            Command::NodeAssociate { group, node } => {
                let node = usize::try_from(node).ok().and_then(|node| self.nodes.get(node));
                let (replica, ports) = node.ok_or("there is no node with this number")?.clone();
                let members = self.switch.groups.get_mut(&group).ok_or("there is no group with this number")?;
                members.extend(ports.iter().map(|port| (replica, *port)));
                for port in ports {
                    self.record(Operation::Member(group, replica, port));
                }
            }
            Command::RegisterWrite { name, index, value } => {
                let object = self.object(name)?;
                let Object::Register { element, values } = &mut self.switch.objects[object] else {
                    return Err(format!("{name} is not a register"));
                };
                let place = usize::try_from(index).unwrap_or(usize::MAX);
                let value = key_value(&self.program.types, &value, *element);
                *values.get_mut(place).ok_or("the index is out of range for the register")? = value.clone();
                self.record(Operation::Register(object, index, value));
            }
            Command::RegisterReset { name } => {
                let object = self.object(name)?;
                let Object::Register { element, values } = &mut self.switch.objects[object] else {
                    return Err(format!("{name} is not a register"));
                };
                values.fill(self.program.types.zero(*element));
                self.record(Operation::RegisterReset(object));
            }
            Command::CounterWrite { name, index, packets, bytes } => {
                let object = self.object(name)?;
                let place = usize::try_from(index).unwrap_or(usize::MAX);
                match &mut self.switch.objects[object] {
                    Object::Counter(cells) => {
                        *cells.get_mut(place).ok_or("the index is out of range for the counter")? = (packets, bytes);
                    }
                    _ => return Err(format!("{name} is not a counter")),
                }
                self.record(Operation::Counter(object, index, packets, bytes));
            }
            Command::ValueSetAdd { name, values } => self.add_member(name, &values)?,
            Command::Read => {}
        }
        Ok(())
    }

    fn record(&mut self, operation: Operation) {
        self.outcome.operations.push(operation);
    }

    /// An extern instance, by its name or the end of it.
    fn object(&self, name: &str) -> Result<usize, String> {
        let paths: Vec<(String, usize)> = self.switch.extern_paths();
        let found = resolve(name, paths.iter().map(|(path, _)| &**path))?;
        let place = paths[found].1;
        if self.switch.objects.get(place).is_some() { Ok(place) } else { Err(format!("there is no {name}")) }
    }

    /// The entries of the table of a direct counter.
    fn direct_counter(&self, object: usize) -> Option<&[RuntimeEntry]> {
        for (owner, found) in self.switch.objects.iter().enumerate() {
            let Object::Unit(unit) = found else { continue };
            let Some(control) = unit.control() else { continue };
            for (table, state) in self.program.controls[control].tables.iter().zip(&unit.tables) {
                if let Some(ExprKind::Instance(counter)) = table.counter.as_ref().map(|counter| &counter.kind)
                    && self.switch.instance(owner, *counter) == Some(object)
                {
                    return Some(&state.entries);
                }
            }
        }
        None
    }

    fn counter(&self, name: &str, index: u64) -> Result<(u64, u64), String> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match &self.switch.objects[self.object(name)?] {
            // A counter without cells is a direct counter: one cell per entry, in the order in which the entries were
            // added.
            Object::Counter(cells) if cells.is_empty() => {
                let entry = self.direct_counter(self.object(name)?).and_then(|entries| entries.get(index));
                entry.map(|entry| (entry.packets, entry.bytes)).ok_or_else(|| format!("{name} has no entry {index}"))
            }
            Object::Counter(cells) => {
                cells.get(index).copied().ok_or_else(|| "the index is out of range for the counter".into())
            }
            _ => Err(format!("{name} is not a counter")),
        }
    }

    fn finish(mut self) -> (Outcome, Switch<'p>) {
        let mut ports: Vec<u64> = self.sent.keys().chain(self.expected.keys()).copied().collect();
        ports.sort_unstable();
        ports.dedup();
        for port in ports {
            let sent = self.sent.remove(&port).unwrap_or_default();
            let expected = self.expected.remove(&port).unwrap_or_default();
            if sent.len() != expected.len() {
                let text = format!("port {port}: {} packets instead of {}", sent.len(), expected.len());
                self.outcome.failures.push(text);
            }
            for (number, (packet, pattern)) in sent.iter().zip(&expected).enumerate() {
                if !fits(packet, pattern) {
                    let text = format!("port {port}, packet {}:\n{}", number + 1, difference(packet, pattern));
                    self.outcome.failures.push(text);
                }
            }
            for packet in sent.iter().skip(expected.len()) {
                self.outcome.failures.push(format!("port {port}: not expected: {}", hexadecimal(packet)));
            }
            for pattern in expected.iter().skip(sent.len()) {
                self.outcome.failures.push(format!("port {port}: missing: {}", show(pattern)));
            }
        }
        self.outcome.notes = std::mem::take(&mut self.switch.notes);
        (self.outcome, self.switch)
    }
}

fn nibbles(packet: &[u8]) -> impl Iterator<Item = u8> {
    packet.iter().flat_map(|byte| [byte >> 4, byte & 15])
}

fn fits(packet: &[u8], (pattern, exact): &Pattern) -> bool {
    let length = packet.len() * 2;
    (length == pattern.len() || length > pattern.len() && !exact)
        && nibbles(packet).zip(pattern).all(|(nibble, wanted)| wanted.is_none_or(|wanted| wanted == nibble))
}

fn hexadecimal(packet: &[u8]) -> String {
    packet.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn show((pattern, exact): &Pattern) -> String {
    let mut text: String = pattern
        .iter()
        .map(|nibble| {
            nibble.and_then(|nibble| char::from_digit(u32::from(nibble), 16)).map_or('*', |c| c.to_ascii_uppercase())
        })
        .collect();
    if *exact {
        text.push('$');
    }
    text
}

/// Shows both packets, with marks under the digits that differ.
fn difference(packet: &[u8], pattern: &Pattern) -> String {
    let marks: String = nibbles(packet)
        .zip(&pattern.0)
        .map(|(nibble, wanted)| if wanted.is_none_or(|wanted| wanted == nibble) { ' ' } else { '^' })
        .collect();
    format!("  expected {}\n  sent     {}\n           {}", show(pattern), hexadecimal(packet), marks.trim_end())
}
