//! The v1model pipeline: parser, ingress, traffic manager, egress, deparser, and resubmission, recirculation and
//! cloning.

use std::collections::VecDeque;

use num_bigint::BigInt;

use super::bits::Bits;
use super::externs::DROP_PORT;
use super::{Object, Requests, Stop, Switch};
use crate::tree::Class;
use crate::types::{Ty, Types};
use crate::value::Value;

/// Maximum number of rounds of one packet, over all of its copies.
const MAX_ROUNDS: usize = 1000;

/// `instance_type`, with the numbers of the behavioural model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal = 0,
    IngressClone = 1,
    EgressClone = 2,
    Recirculated = 4,
    Replicated = 5,
    Resubmitted = 6,
}

/// A packet that waits to be processed.
enum Work {
    Ingress { packet: Bits, port: u64, kind: Kind, metadata: Option<Value> },
    Egress(Box<Flight>),
}

/// A packet between ingress and egress.
#[derive(Clone)]
struct Flight {
    packet: Bits,
    position: usize,
    grown: usize,
    headers: Value,
    metadata: Value,
    standard: Vec<Value>,
    port: u64,
    replica: u64,
    kind: Kind,
    /// Length to which ingress truncates it, in bytes.
    truncate: Option<u64>,
    /// Maximum length in bytes, for a copy made by egress.
    longest: Option<u64>,
}

/// A packet that has left the switch.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    /// The port that it leaves by.
    pub port: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl<'p> Switch<'p> {
    /// Processes a packet. Returns the packets that are sent.
    pub fn process(&mut self, port: u64, bytes: &[u8]) -> Vec<Sent> {
        let mut sent = Vec::new();
        let packet = Bits::from_bytes(bytes);
        let mut queue = VecDeque::from([Work::Ingress { packet, port, kind: Kind::Normal, metadata: None }]);
        let mut rounds = 0;
        while let Some(work) = queue.pop_front() {
            rounds += 1;
            if rounds > MAX_ROUNDS {
                self.notes.push(format!("a packet passes the pipeline more than {MAX_ROUNDS} times; it is dropped"));
                break;
            }
            self.steps = 0;
            self.calls = 0;
            self.requests = Requests::default();
            let result = match work {
                Work::Ingress { packet, port, kind, metadata } => {
                    self.ingress(packet, port, kind, metadata, &mut queue)
                }
                Work::Egress(flight) => self.egress(*flight, &mut queue, &mut sent),
            };
            if let Err(reason) = result {
                self.notes.push(format!("a packet is dropped: {reason}"));
            }
        }
        sent
    }

    /// The types of headers, metadata and standard metadata.
    pub fn pipeline_types(&self) -> [Ty; 3] {
        let mut types = [Types::UNKNOWN; 3];
        if let Some(Object::Unit(unit)) = self.objects.get(self.parts[0])
            && let Class::Parser(number) = unit.class
        {
            for (place, ty) in types.iter_mut().enumerate() {
                if let Some(parameter) = self.program.parsers[number].shell.parameters.get(place + 1) {
                    *ty = parameter.ty;
                }
            }
        }
        types
    }

    fn standard_place(&self, name: &str) -> Option<usize> {
        let info = self.program.types.structs.iter().find(|info| &*info.name == "standard_metadata_t")?;
        info.fields.iter().position(|(field, _)| &**field == name)
    }

    fn standard_field(&self, standard: &[Value], name: &str) -> u64 {
        self.standard_place(name).and_then(|place| standard.get(place)).map_or(0, Value::number)
    }

    /// Runs one part. `exit` ends it normally.
    fn part(&mut self, part: usize, values: Vec<Value>) -> Result<(Vec<Value>, Option<u32>), String> {
        self.part = part;
        match self.run_unit(self.parts[part], values) {
            (values, Ok(()) | Err(Stop::Exit)) => Ok((values, None)),
            (values, Err(Stop::Reject(error))) => Ok((values, Some(error))),
            (_, Err(Stop::Failure(reason))) => Err(reason),
        }
    }

    /// Parses a packet. Returns headers, metadata and standard metadata.
    fn parsed(
        &mut self,
        packet: &Bits,
        port: u64,
        kind: Kind,
        metadata: Option<Value>,
    ) -> Result<(Value, Value, Vec<Value>), String> {
        let [headers_ty, metadata_ty, standard_ty] = self.pipeline_types();
        self.input = packet.clone();
        self.position = 0;
        self.grown = 0;
        self.checksum_error = false;
        let Value::Struct(mut standard) = self.program.types.zero(standard_ty) else {
            return Err("the standard metadata is not a struct".into());
        };
        self.set_field(&mut standard, "ingress_port", BigInt::from(port & 511));
        self.set_field(&mut standard, "packet_length", BigInt::from(packet.len() / 8));
        self.set_field(&mut standard, "instance_type", BigInt::from(kind as u32));
        let metadata = metadata.unwrap_or_else(|| self.program.types.zero(metadata_ty));
        let headers = self.program.types.zero(headers_ty);
        let values = vec![Value::None, headers, metadata, Value::Struct(standard)];
        let (values, error) = self.part(0, values)?;
        let [_, headers, metadata, Value::Struct(mut standard)] =
            <[Value; 4]>::try_from(values).map_err(|_| "a parser with four parameters")?
        else {
            return Err("the standard metadata is not a struct".into());
        };
        if let (Some(error), Some(place)) = (error, self.standard_place("parser_error")) {
            standard[place] = Value::Member(error);
        }
        Ok((headers, metadata, standard))
    }

    fn two(values: Vec<Value>) -> Result<(Value, Value), String> {
        let [first, second] = <[Value; 2]>::try_from(values).map_err(|_| "a control with two parameters")?;
        Ok((first, second))
    }

    fn three(values: Vec<Value>) -> Result<(Value, Value, Vec<Value>), String> {
        match <[Value; 3]>::try_from(values) {
            Ok([first, second, Value::Struct(third)]) => Ok((first, second, third)),
            _ => Err("a control with three parameters".into()),
        }
    }

    fn ingress(
        &mut self,
        packet: Bits,
        port: u64,
        kind: Kind,
        preserved: Option<Value>,
        queue: &mut VecDeque<Work>,
    ) -> Result<(), String> {
        let (headers, metadata, mut standard) = self.parsed(&packet, port, kind, preserved)?;
        let (values, _) = self.part(1, vec![headers, metadata])?;
        let (headers, metadata) = Self::two(values)?;
        if self.checksum_error {
            self.set_field(&mut standard, "checksum_error", 1.into());
        }
        let (values, _) = self.part(2, vec![headers, metadata, Value::Struct(standard)])?;
        let (headers, metadata, standard) = Self::three(values)?;
        let requests = std::mem::take(&mut self.requests);
        let (position, grown) = (self.position, self.grown);
        // Ingress clones and resubmitted packets have the content of the received packet.
        let processed = self.input.clone();
        if let Some((session, list)) = requests.clone {
            let preserved = self.preserved(&metadata, list);
            let mut packet = packet.clone();
            if let Some(bytes) = self.longest_copy(session) {
                packet.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
            }
            let (headers, metadata, mut standard) = self.parsed(&packet, port, Kind::IngressClone, Some(preserved))?;
            self.set_field(&mut standard, "instance_type", BigInt::from(Kind::IngressClone as u32));
            let clone = Flight {
                packet,
                position: self.position,
                grown: 0,
                headers,
                metadata,
                standard,
                port: 0,
                replica: 0,
                kind: Kind::IngressClone,
                truncate: requests.truncate,
                longest: None,
            };
            self.mirrored(session, &clone, queue);
        }
        if let Some(list) = requests.resubmit {
            let metadata = Some(self.preserved(&metadata, list));
            queue.push_back(Work::Ingress { packet, port, kind: Kind::Resubmitted, metadata });
            return Ok(());
        }
        let group = self.standard_field(&standard, "mcast_grp");
        let out = self.standard_field(&standard, "egress_spec");
        let flight = Flight {
            packet: processed,
            position,
            grown,
            headers,
            metadata,
            standard,
            port: out,
            replica: 0,
            kind,
            truncate: requests.truncate,
            longest: None,
        };
        if group != 0 {
            self.replicated(group, &flight, queue);
        } else if out != u64::from(DROP_PORT) {
            queue.push_back(Work::Egress(Box::new(flight)));
        }
        Ok(())
    }

    fn replicated(&mut self, group: u64, flight: &Flight, queue: &mut VecDeque<Work>) {
        for (replica, port) in self.groups.get(&group).cloned().unwrap_or_default() {
            queue.push_back(Work::Egress(Box::new(Flight { port, replica, kind: Kind::Replicated, ..flight.clone() })));
        }
    }

    fn mirrored(&mut self, session: u64, flight: &Flight, queue: &mut VecDeque<Work>) {
        if let Some((port, _)) = self.mirror_ports.get(&session) {
            queue.push_back(Work::Egress(Box::new(Flight { port: *port, ..flight.clone() })));
        }
        if let Some((group, _)) = self.mirror_groups.get(&session) {
            for (replica, port) in self.groups.get(group).cloned().unwrap_or_default() {
                queue.push_back(Work::Egress(Box::new(Flight { port, replica, ..flight.clone() })));
            }
        }
    }

    /// Maximum length of copies of a session, in bytes.
    fn longest_copy(&self, session: u64) -> Option<u64> {
        let targets = [self.mirror_ports.get(&session), self.mirror_groups.get(&session)];
        targets.into_iter().flatten().map(|(_, bytes)| *bytes).filter(|bytes| *bytes > 0).min()
    }

    /// The initial metadata of a copy: the fields of a field list, or none.
    fn preserved(&self, metadata: &Value, list: Option<u64>) -> Value {
        let ty = self.pipeline_types()[1];
        self.only_listed(metadata, ty, list)
    }

    fn only_listed(&self, value: &Value, ty: Ty, list: Option<u64>) -> Value {
        let types = &self.program.types;
        let (Value::Struct(fields), Some(info)) = (value, types.structure(ty)) else { return types.zero(ty) };
        let kept = fields.iter().enumerate().map(|(place, field)| {
            let listed =
                list.is_some_and(|list| info.field_lists.get(place).is_some_and(|lists| lists.contains(&list)));
            if listed { field.clone() } else { self.only_listed(field, info.fields[place].1, list) }
        });
        Value::Struct(kept.collect())
    }

    fn egress(&mut self, flight: Flight, queue: &mut VecDeque<Work>, sent: &mut Vec<Sent>) -> Result<(), String> {
        let mut standard = flight.standard;
        let Flight { packet, position, grown, headers, metadata, port, replica, kind, truncate, longest, .. } = flight;
        self.input = packet;
        self.position = position;
        self.grown = grown;
        self.set_field(&mut standard, "egress_port", BigInt::from(port & 511));
        self.set_field(&mut standard, "egress_spec", 0.into());
        self.set_field(&mut standard, "egress_rid", BigInt::from(replica & 0xffff));
        self.set_field(&mut standard, "instance_type", BigInt::from(kind as u32));
        let (values, _) = self.part(3, vec![headers, metadata, Value::Struct(standard)])?;
        let (headers, metadata, standard) = Self::three(values)?;
        if let Some((session, list)) = self.requests.clone.take() {
            let metadata = self.preserved(&metadata, list);
            let clone = Flight {
                packet: self.input.clone(),
                position,
                grown: self.grown,
                headers: headers.clone(),
                metadata,
                standard: standard.clone(),
                port: 0,
                replica: 0,
                kind: Kind::EgressClone,
                truncate,
                longest: longest.into_iter().chain(self.longest_copy(session)).min(),
            };
            self.mirrored(session, &clone, queue);
        }
        if self.standard_field(&standard, "egress_spec") == u64::from(DROP_PORT) {
            return Ok(());
        }
        let (values, _) = self.part(4, vec![headers, metadata])?;
        let (headers, metadata) = Self::two(values)?;
        self.output = Bits::default();
        self.part(5, vec![Value::None, headers])?;
        let mut output = std::mem::take(&mut self.output);
        output.append(&self.input, position);
        for bytes in [self.requests.truncate.or(truncate), longest].into_iter().flatten() {
            output.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        if let Some(list) = self.requests.recirculate.take() {
            let metadata = Some(self.preserved(&metadata, list));
            let port = self.standard_field(&standard, "ingress_port");
            queue.push_back(Work::Ingress { packet: output, port, kind: Kind::Recirculated, metadata });
            return Ok(());
        }
        sent.push(Sent { port, bytes: output.bytes().to_vec() });
        Ok(())
    }
}
