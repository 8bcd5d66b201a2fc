//! A flood of unanswered Interests with deep names, and its effect on ordinary traffic.
//!
//! The names are random below prefixes of the FIB, so the Interests are forwarded and stay pending until they expire or
//! are evicted from the PIT. They come from a separate face, mixed evenly into every burst of ordinary packets.

use std::time::Instant;

use namehop_engine::engine::EngineConfig;
use namehop_packet::{BufferPool, PacketBuffer};
use namehop_wire::MAX_PACKET_SIZE;

use super::EngineBenchError;
use super::costs::Samples;
use super::frames::{LinkHeaders, Template, nonce_of};
use super::load::{HIGH_NONCE, Load};
use super::peers::{FLOOD_PEER, LINKS, port_address};
use super::turn::Turn;
use crate::median::median;
use crate::permutation::mix;
use crate::schedule::{Compared, EngineParameters, FloodFigures, FloodParameters, PacketKind, Traffic};
use crate::workload::{GENERIC_COMPONENT, HEADER_BYTES, MAX_COMPONENT_BYTES, Workload, WorkloadParameters, next_word};

/// Size of an Interest without its name, link headers included, in bytes.
const REST_OF_PACKET_BYTES: usize = 128;
/// Mixed bursts per burst of one kind, which measures the cost of that kind.
const MIXED_BURSTS: usize = 4;
/// Fraction of the measuring time that is spent without the flood.
const TIME_WITHOUT: f64 = 0.5;

/// The source of a flood.
pub(super) struct Flood {
    /// FIB prefixes for its names.
    prefixes: Workload,
    component_bytes: usize,
    /// Components of the shortest prefix.
    shortest: usize,
    /// Templates by number of components of the prefix, from the shortest on. There is one for each number of
    /// components after the prefix, which it holds, too.
    templates: Vec<Vec<(usize, Template)>>,
    packets_of_burst: usize,
    sent: u64,
    forwarded: u64,
    /// Scratch space for mixing frames.
    taken_out: Vec<PacketBuffer>,
}

impl Flood {
    pub(super) fn new(parameters: &EngineParameters, flood: &FloodParameters) -> Result<Self, EngineBenchError> {
        let prefixes = Workload::new(parameters.workload)?;
        let WorkloadParameters { prefix_components, prefix_spread, component_bytes, .. } = parameters.workload;
        let (shortest, longest) = (prefix_components - prefix_spread, prefix_components + prefix_spread);
        let bytes = |of_prefix: usize, further: usize| {
            of_prefix * (HEADER_BYTES + component_bytes) + further * (HEADER_BYTES + flood.component_bytes)
        };
        let packets_of_burst = (flood.share * parameters.burst as f64).round() as usize;
        let wrong = |what: String| Err(EngineBenchError::Flood(what));
        if parameters.traffic != Traffic::Sorted {
            return wrong("it needs sorted traffic".to_owned());
        }
        if flood.components <= longest || flood.component_bytes > MAX_COMPONENT_BYTES {
            return wrong(format!(
                "its names need more than {longest} components of at most {MAX_COMPONENT_BYTES} bytes"
            ));
        }
        let largest = bytes(longest, flood.components - longest).max(bytes(shortest, flood.components - shortest));
        if largest + REST_OF_PACKET_BYTES > MAX_PACKET_SIZE {
            return wrong(format!("names of {largest} bytes do not fit into packets"));
        }
        if packets_of_burst == 0 || packets_of_burst >= parameters.burst {
            return wrong(format!(
                "in bursts of {} packets it has {packets_of_burst}, but must have at least 1 and leave room for others",
                parameters.burst
            ));
        }
        let template = |of_prefix, further| {
            (further, Template::interest(bytes(of_prefix, further), flood.can_be_prefix, LinkHeaders::Token))
        };
        let templates = |of_prefix: usize| {
            let most = flood.components - of_prefix;
            // The depth of a name matters only to Interests with CanBePrefix.
            let least = if flood.can_be_prefix { 1 } else { most };
            (least..=most).map(|further| template(of_prefix, further)).collect()
        };
        Ok(Flood {
            prefixes,
            component_bytes: flood.component_bytes,
            shortest,
            templates: (shortest..=longest).map(templates).collect(),
            packets_of_burst,
            sent: 0,
            forwarded: 0,
            taken_out: Vec::new(),
        })
    }

    pub(super) fn packets_of_burst(&self) -> usize {
        self.packets_of_burst
    }

    /// Appends `count` frames of the flood.
    pub(super) fn fill(&mut self, count: usize, frames: &mut Vec<PacketBuffer>, pool: &BufferPool) {
        for _ in 0..count {
            frames.extend(self.frame(pool));
        }
    }

    fn frame(&mut self, pool: &BufferPool) -> Option<PacketBuffer> {
        self.sent += 1;
        let draw = mix(self.sent ^ u64::MAX);
        let templates = &mut self.templates[self.prefixes.prefix_components_of(draw) - self.shortest];
        let shape = (draw >> 32) as usize % templates.len();
        let (components, template) = &mut templates[shape];
        let (prefixes, component_bytes) = (&self.prefixes, self.component_bytes);
        let write = |out: &mut [u8]| {
            let mut at = prefixes.write_prefix(draw, out);
            let mut word = draw;
            for _ in 0..*components {
                out[at..at + HEADER_BYTES].copy_from_slice(&[GENERIC_COMPONENT, component_bytes as u8]);
                for byte in &mut out[at + HEADER_BYTES..][..component_bytes] {
                    word = next_word(word);
                    *byte = word as u8;
                }
                at += HEADER_BYTES + component_bytes;
            }
        };
        let frame = pool.allocate(template.bytes())?;
        template.fill((port_address(0), FLOOD_PEER), write, draw, Some(draw as u32 | HIGH_NONCE), frame)
    }

    /// Mixes the flood's packets of a burst evenly into `frames`.
    pub(super) fn join(&mut self, frames: &mut Vec<PacketBuffer>, pool: &BufferPool) {
        let (ordinary, flood) = (frames.len(), self.packets_of_burst);
        let mut mixed = std::mem::take(&mut self.taken_out);
        let mut frames_in = frames.drain(..);
        for position in 0..ordinary + flood {
            let total = ordinary + flood;
            if (position + 1) * flood / total > position * flood / total {
                mixed.extend(self.frame(pool));
            } else {
                mixed.extend(frames_in.next());
            }
        }
        drop(frames_in);
        frames.append(&mut mixed);
        self.taken_out = mixed;
    }

    /// Removes flood packets from the frames that the worker sent on each link. On the first link they are Nacks.
    pub(super) fn take_out(&mut self, sent: &mut [Vec<PacketBuffer>; LINKS]) {
        for (link, frames) in sent.iter_mut().enumerate() {
            let all = frames.len();
            frames.retain(|frame| nonce_of(frame) & HIGH_NONCE == 0);
            if link > 0 {
                self.forwarded += (all - frames.len()) as u64;
            }
        }
    }
}

impl Load<'_> {
    /// Runs a burst of one kind; returns ticks per packet.
    fn ticks_of(&mut self, kind: PacketKind) -> Result<f64, EngineBenchError> {
        self.step(kind).map(|step| step.per_packet())
    }

    /// Runs a burst of flood packets only; returns ticks per packet.
    fn flood_alone(&mut self) -> Result<f64, EngineBenchError> {
        let Some(mut flood) = self.flood.take() else { return Ok(0.0) };
        let count = self.parameters.burst;
        let mut turn = Turn::default();
        flood.fill(count, &mut turn.frames[0], &self.stock.pool);
        self.flood = Some(flood);
        Ok(self.perform(turn)?.ticks as f64 / count as f64)
    }

    /// Measures the cost of a flood and its effect on ordinary traffic. The load must be warm.
    pub(super) fn measure_flood(&mut self, flood: &FloodParameters) -> Result<FloodFigures, EngineBenchError> {
        let parameters = self.parameters;
        let mut samples = Samples::default();
        self.measure(parameters.time.mul_f64(TIME_WITHOUT), &mut samples)?;
        let without = samples.costs().medians;
        self.flood = Some(Flood::new(parameters, flood)?);
        // This number of flood packets fills the PIT.
        let enough = EngineConfig::default().pit_capacity.max(2 * parameters.in_flight);
        while self.flood.as_ref().is_some_and(|flood| (flood.sent as usize) < enough) {
            self.step(PacketKind::InterestMiss)?;
            self.step(PacketKind::Data)?;
        }
        let (mut pairs, mut interests, mut data, mut floods) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let started = Instant::now();
        while started.elapsed() < parameters.time {
            for _ in 0..MIXED_BURSTS {
                pairs.push(self.ticks_of(PacketKind::InterestMiss)? + self.ticks_of(PacketKind::Data)?);
            }
            floods.push(self.flood_alone()?);
            let flood = self.flood.take();
            interests.push(self.ticks_of(PacketKind::InterestMiss)?);
            data.push(self.ticks_of(PacketKind::Data)?);
            self.flood = flood;
        }
        let sender = self.flood.take();
        let flood_cycles = median(&mut floods);
        let pair = Compared { without: without.interest_miss + without.data, with: median(&mut pairs) };
        let mpps = |pair_cycles: f64| 2e-6 * namehop_table::clock::cycles_per_second() as f64 / pair_cycles;
        let ordinary_mpps = Compared { without: mpps(pair.without), with: mpps(pair.with) };
        let throughput_ratio = pair.without / pair.with;
        let share = sender.as_ref().map_or(0, Flood::packets_of_burst) as f64 / parameters.burst as f64;
        Ok(FloodFigures {
            flood: FloodParameters { share, ..*flood },
            imiss_cycles: Compared { without: without.interest_miss, with: median(&mut interests) },
            data_cycles: Compared { without: without.data, with: median(&mut data) },
            flood_cycles,
            flood_vs_ordinary: flood_cycles / (pair.without / 2.0),
            ordinary_mpps,
            throughput_ratio,
            slowdown_vs_share: (1.0 - throughput_ratio) / share,
            flood_forwarded: sender.map_or(0.0, |flood| flood.forwarded as f64 / flood.sent.max(1) as f64),
        })
    }
}
