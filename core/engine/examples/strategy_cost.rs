//! The cost of an exchange with a strategy as a program, compared with the same strategy built in: an Interest that
//! goes to an upstream and the Data that returns, through the whole engine. Tables are small and cached, so that the
//! strategy's share is largest.
//!
//!     clang -O2 -target bpf -I sdk -c sdk/strategies/random.c -o random.o
//!     cargo run --release -p namehop-engine --example strategy_cost -- random=random.o

use std::time::{Duration, Instant};

use namehop_engine::engine::CsConfig;
use namehop_engine::fib::{FibWriter, NextHop};
use namehop_engine::strategy::{StrategyInstance, StrategyProgram, StrategyRegistry, registry};
use namehop_engine::{Engine, EngineConfig};
use namehop_hash::HashKey;
use namehop_packet::{
    BufferPool, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Outgoing, PacketKind, Timestamp,
};
use namehop_wire::security::DigestSigner;
use namehop_wire::{DataBuilder, InterestBuilder, Name};

const CONSUMER: FaceId = FaceId(300);
const PRODUCERS: [FaceId; 4] = [FaceId(301), FaceId(302), FaceId(303), FaceId(304)];
/// Packets per burst.
const BURST: usize = 64;
/// Number of names, which repeat.
const NAMES: usize = 4096;
/// Placeholder for nonces.
const NONCE: u32 = 0xA5A5_A5A5;
/// Rounds of all names in one measurement, and measurements of each form.
const ROUNDS: usize = 16;
const RUNS: usize = 15;

struct Load {
    engine: Engine,
    pool: BufferPool,
    _fib: FibWriter<StrategyInstance>,
    now: Timestamp,
    interests: Vec<Vec<u8>>,
    /// Offsets of their nonces.
    nonces_at: Vec<usize>,
    data: Vec<Vec<u8>>,
    nonce: u32,
}

impl Load {
    fn new(strategy: StrategyInstance) -> Result<Self, Box<dyn std::error::Error>> {
        let (key, pool) = (HashKey::new(1, 2), BufferPool::new(10_000, 1_000));
        let mut fib = FibWriter::new(key, strategy)?;
        let prefix: Name = "/example".parse()?;
        let nexthops: Vec<NextHop> = PRODUCERS.iter().map(|&face| NextHop { face, cost: 1 }).collect();
        fib.set_nexthops(prefix.as_ref(), &nexthops)?;
        let config =
            EngineConfig { cs: CsConfig { capacity_packets: 0, ..CsConfig::default() }, ..EngineConfig::default() };
        let mut engine = Engine::new(config, fib.reader(), pool.clone(), key)?;
        for id in PRODUCERS.into_iter().chain([CONSUMER]) {
            engine.set_face(FaceInfo {
                id,
                scope: FaceScope::NonLocal,
                link_type: LinkType::PointToPoint,
                is_up: true,
            });
        }
        let names = (0..NAMES).map(|number| prefix.clone().append_generic("data").append_generic(number.to_string()));
        let (mut interests, mut nonces_at, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let interest = InterestBuilder::new(name.clone()).nonce(NONCE).build()?;
            let place = interest.windows(4).rposition(|bytes| bytes == NONCE.to_be_bytes());
            nonces_at.push(place.ok_or("the Interest has no nonce")?);
            interests.push(interest);
            data.push(DataBuilder::new(name).content([0; 100]).sign(&DigestSigner)?);
        }
        Ok(Load { engine, pool, _fib: fib, now: Timestamp(1_000_000_000), interests, nonces_at, data, nonce: 0 })
    }

    /// Requests and answers all names. Returns the time that the engine took.
    fn round(&mut self) -> Duration {
        let mut spent = Duration::ZERO;
        let (mut burst, mut out) = (Vec::with_capacity(BURST), Vec::with_capacity(4 * BURST));
        for start in (0..NAMES).step_by(BURST) {
            for number in start..start + BURST {
                self.nonce = self.nonce.wrapping_add(0x9E37_79B9);
                let bytes = &mut self.interests[number];
                let place = self.nonces_at[number];
                bytes[place..place + 4].copy_from_slice(&self.nonce.to_be_bytes());
                let buffer = self.pool.copy_of(bytes).expect("a buffer");
                burst.push(Incoming { face: CONSUMER, buffer, fields: LinkFields::default() });
            }
            spent += self.process(&mut burst, &mut out);
            for Outgoing { face, kind, fields, .. } in out.drain(..) {
                assert_eq!(kind, PacketKind::Interest);
                let number = start + burst.len();
                let buffer = self.pool.copy_of(&self.data[number]).expect("a buffer");
                burst.push(Incoming {
                    face,
                    buffer,
                    fields: LinkFields { pit_token: fields.pit_token, ..LinkFields::default() },
                });
            }
            spent += self.process(&mut burst, &mut out);
            assert_eq!(out.len(), BURST, "all Data must be returned");
            out.clear();
        }
        spent
    }

    fn process(&mut self, burst: &mut Vec<Incoming>, out: &mut Vec<Outgoing>) -> Duration {
        self.now = Timestamp(self.now.0 + 20_000);
        let started = Instant::now();
        self.engine.process(self.now, burst, out);
        let spent = started.elapsed();
        burst.clear();
        spent
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:<12} {:>14} {:>14} {:>7}", "STRATEGY", "BUILT IN (ns)", "PROGRAM (ns)", "RATIO");
    for argument in std::env::args().skip(1) {
        let (name, file) = argument.split_once('=').ok_or("usage: strategy_cost <strategy>=<object file>...")?;
        let program = StrategyProgram::load(&std::fs::read(file)?, None)?;
        let mut registry = StrategyRegistry::default();
        let program_name = program.versioned_name();
        registry.insert(program)?;
        let mut loads = [
            Load::new(StrategyInstance::parse(registry::full_name(name)?.as_ref())?)?,
            Load::new(registry.parse(program_name.as_ref())?)?,
        ];
        let mut best = [f64::INFINITY; 2];
        // The forms alternate, so that other load on the machine affects both.
        for _ in 0..RUNS {
            for (load, best) in loads.iter_mut().zip(&mut best) {
                let spent: Duration = (0..ROUNDS).map(|_| load.round()).sum();
                *best = best.min(spent.as_nanos() as f64 / (ROUNDS * NAMES) as f64);
            }
        }
        println!("{name:<12} {:>14.1} {:>14.1} {:>7.3}", best[0], best[1], best[1] / best[0]);
    }
    Ok(())
}
