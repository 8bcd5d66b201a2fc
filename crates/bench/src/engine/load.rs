//! Which packets the worker gets when, and what they cost.
//!
//! Interests go in burst by burst, each with a name never seen before, until as many are pending as asked for; then the oldest
//! are answered, burst by burst. Interests that the Content Store answers ask for names that were answered before, drawn
//! from all that it still holds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use namehop_dpdk::Mbuf;
use namehop_forward::schedule::Schedule;
use namehop_forward::time::Timestamp;

use super::EngineBenchError;
use super::frames::{Template, Token, token_of};
use super::rig::{DOWNSTREAM_PEER, DOWNSTREAM_PORT, Rig, UPSTREAM_PEER, UPSTREAM_PORT};
use crate::median::median;
use crate::permutation::mix;
use crate::schedule::EngineParameters;
use crate::workload::Workload;

/// Names that one load may use before the next one's begin.
const NAMES_PER_LOAD: u64 = 1 << 34;
/// After this long without Interests with CanBePrefix the Content Store keeps no index by prefix any more.
const SETTLING: Duration = Duration::from_secs(61);
/// Turns that a burst may take.
const MAX_TURNS: usize = 4;
/// Of the packets that the Content Store can hold, those that are asked for again: the rest may be on its way out.
const ASKED_AGAIN: f64 = 0.75;
/// Bursts of cache hits for each burst of misses when only their cost is wanted.
const HITS_TO_MEASURE: f64 = 0.05;

/// Ticks per packet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Costs {
    pub(super) interest_miss: f64,
    pub(super) interest_hit: f64,
    pub(super) data: f64,
}

impl Costs {
    /// The mean of several workers.
    pub(super) fn mean(all: &[Costs]) -> Costs {
        let mean = |of: fn(&Costs) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        Costs {
            interest_miss: mean(|costs| costs.interest_miss),
            interest_hit: mean(|costs| costs.interest_hit),
            data: mean(|costs| costs.data),
        }
    }
}

/// One worker's load.
pub(super) struct Load<'a, S: Schedule> {
    rig: Rig<S>,
    workload: &'a Workload,
    parameters: &'a EngineParameters,
    interest: Template,
    data: Template,
    started: Instant,
    /// Added to the time since `started`.
    skipped: Duration,
    next_name: u64,
    last_name: u64,
    pending: VecDeque<(u64, Token)>,
    /// Names that were answered, oldest first.
    answered: VecDeque<u64>,
    frames: Vec<Mbuf>,
    draws: u64,
}

impl<'a, S: Schedule> Load<'a, S> {
    /// A load with names that no load of another number uses.
    pub(super) fn new(
        rig: Rig<S>,
        workload: &'a Workload,
        parameters: &'a EngineParameters,
        number: u64,
    ) -> Result<Self, EngineBenchError> {
        let first_name = number * NAMES_PER_LOAD % workload.name_capacity();
        let names = if parameters.names == 0 { NAMES_PER_LOAD } else { parameters.names };
        Ok(Load {
            rig,
            workload,
            parameters,
            interest: Template::interest(workload, &DOWNSTREAM_PORT, &DOWNSTREAM_PEER),
            data: Template::data(workload, parameters.payload_bytes, &UPSTREAM_PORT, &UPSTREAM_PEER),
            started: Instant::now(),
            skipped: Duration::from_secs(1),
            next_name: first_name,
            last_name: first_name + names,
            pending: VecDeque::new(),
            answered: VecDeque::new(),
            frames: Vec::new(),
            draws: number,
        })
    }

    /// Warms up and measures.
    pub(super) fn run(mut self) -> Result<Costs, EngineBenchError> {
        // The first exchange starts what runs for a minute after the start of a router; then that minute is over.
        self.ask()?;
        self.answer()?;
        self.skipped += SETTLING;
        let mut in_cache = 0;
        loop {
            self.ask()?;
            if self.pending.len() < self.parameters.in_flight {
                continue;
            }
            if in_cache >= self.parameters.cs_capacity {
                break;
            }
            in_cache += self.answer()?.1;
        }
        self.answer()?;
        let (mut misses, mut hits, mut data) = (Vec::new(), Vec::new(), Vec::new());
        // There is one burst of hits at least.
        let (mut hits_due, measured) = (1.0, Instant::now());
        let ratio = match self.parameters.hit_ratio {
            ratio if ratio > 0.0 => ratio.min(0.99) / (1.0 - ratio.min(0.99)),
            _ => HITS_TO_MEASURE,
        };
        while measured.elapsed() < self.parameters.time {
            let per_packet = |(ticks, packets): (u64, usize)| ticks as f64 / packets.max(1) as f64;
            misses.push(per_packet(self.ask()?));
            data.push(per_packet(self.answer()?));
            hits_due += ratio;
            while hits_due >= 1.0 && self.parameters.cs_capacity > 0 {
                hits.push(per_packet(self.ask_again()?));
                hits_due -= 1.0;
            }
        }
        let costs =
            Costs { interest_miss: median(&mut misses), interest_hit: median(&mut hits), data: median(&mut data) };
        self.check_leaks(costs)
    }

    fn check_leaks(self, costs: Costs) -> Result<Costs, EngineBenchError> {
        match self.rig.buffers_in_use() {
            0 => Ok(costs),
            left => Err(EngineBenchError::Rig(format!("{left} packet buffers were not returned"))),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp((self.started.elapsed() + self.skipped).as_nanos() as u64)
    }

    /// A burst of Interests for new names; ticks and packets.
    fn ask(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.parameters.burst;
        let first = self.next_name;
        for name in first..first + count as u64 {
            let frame = self.interest.fill(self.workload, name, name, Some(mix(name) as u32), &self.rig.pool);
            self.frames.extend(frame);
        }
        self.next_name += count as u64;
        if self.next_name >= self.last_name {
            self.next_name = self.last_name - self.parameters.names.max(count as u64);
        }
        self.rig.downstream.transmit(&mut self.frames);
        let ticks = self.forward(count, |rig, sent| rig.upstream.receive(sent))?;
        for (name, frame) in (first..).zip(&self.frames) {
            // Without a token the answer would find its entry by name; with one, as the protocol has it.
            self.pending.push_back((name, token_of(frame).unwrap_or(0)));
        }
        self.frames.clear();
        Ok((ticks, count))
    }

    /// Data for the oldest pending Interests; ticks and packets.
    fn answer(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.parameters.burst.min(self.pending.len());
        for _ in 0..count {
            let Some((name, token)) = self.pending.pop_front() else { break };
            self.frames.extend(self.data.fill(self.workload, name, token, None, &self.rig.pool));
            self.answered.push_back(name);
        }
        while self.answered.len() > (self.parameters.cs_capacity as f64 * ASKED_AGAIN) as usize {
            self.answered.pop_front();
        }
        self.rig.upstream.transmit(&mut self.frames);
        let ticks = self.forward(count, |rig, sent| rig.downstream.receive(sent))?;
        self.frames.clear();
        Ok((ticks, count))
    }

    /// A burst of Interests for names that were answered before; ticks and packets.
    fn ask_again(&mut self) -> Result<(u64, usize), EngineBenchError> {
        let count = self.parameters.burst.min(self.answered.len());
        for _ in 0..count {
            self.draws += 1;
            let draw = mix(self.draws);
            let place = ((u128::from(draw) * self.answered.len() as u128) >> 64) as usize;
            let name = self.answered[place];
            self.frames.extend(self.interest.fill(self.workload, name, draw, Some(draw as u32), &self.rig.pool));
        }
        self.rig.downstream.transmit(&mut self.frames);
        let ticks = self.forward(count, |rig, sent| rig.downstream.receive(sent))?;
        self.frames.clear();
        Ok((ticks, count))
    }

    /// Turns of the worker until `expected` frames have come out at the far end, into `frames`.
    fn forward(
        &mut self,
        expected: usize,
        mut receive: impl FnMut(&mut Rig<S>, &mut Vec<Mbuf>),
    ) -> Result<u64, EngineBenchError> {
        let now = self.now();
        self.frames.clear();
        let mut ticks = 0;
        for _ in 0..MAX_TURNS {
            ticks += self.rig.turn(now);
            receive(&mut self.rig, &mut self.frames);
            if self.frames.len() >= expected {
                return Ok(ticks);
            }
        }
        Err(EngineBenchError::Lost { got: self.frames.len(), expected })
    }
}
