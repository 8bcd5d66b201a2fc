//! What one exchange of Interest and Data costs the engine alone. Run it in release:
//! `cargo test --release -p namehop-forward --test pipelines -- --ignored --nocapture cost`.

use std::time::Instant;

use namehop_forward::buffer::{BufferPool, HeapPool};
use namehop_forward::face::FaceId;
use namehop_forward::fib::NextHop;
use namehop_forward::packet::{Incoming, LinkFields, Outgoing};
use namehop_forward::{CsConfig, CsSettings, EngineConfig};
use namehop_wire::lp::PitToken;

use crate::router::*;

const BURST: usize = 64;
const NAMES: usize = 50_000;
const ROUNDS: usize = 20;

type Buffer = <HeapPool as BufferPool>::Buffer;

struct Bench {
    router: Router,
    burst: Vec<Incoming<Buffer>>,
    out: Vec<Outgoing<Buffer>>,
}

impl Bench {
    fn push(&mut self, face: u32, packet: &[u8], pit_token: PitToken) {
        let buffer = self.router.pool.copy_of(packet).expect("buffer");
        let fields = LinkFields { pit_token, ..LinkFields::default() };
        self.burst.push(Incoming { face: FaceId(face), buffer, fields });
    }

    /// Exchanges `pairs` burst by burst; returns nanoseconds in the engine for each.
    fn exchange(&mut self, pairs: &[(Vec<u8>, Vec<u8>)], nonce: u32) -> f64 {
        let mut spent_ns = 0;
        for pairs in pairs.chunks(BURST) {
            for (interest, _) in pairs {
                self.push(CONSUMER, interest, PitToken::from_slice(&[7; 8]).expect("8 bytes"));
                // The Nonce is the last element.
                let packet = self.burst.last_mut().expect("just pushed");
                let bytes = namehop_forward::buffer::PacketBuffer::bytes_mut(&mut packet.buffer);
                let at = bytes.len() - 4;
                bytes[at..].copy_from_slice(&nonce.to_be_bytes());
            }
            self.router.now = self.router.now.plus_ms(1);
            spent_ns += self.process();
            let answered = self.out.len();
            let mut sent = std::mem::take(&mut self.out);
            for (sent, (_, data)) in sent.drain(..).zip(pairs) {
                if sent.face == FaceId(PRODUCER) {
                    self.push(PRODUCER, data, sent.fields.pit_token);
                }
            }
            self.out = sent;
            spent_ns += self.process();
            assert!(answered == pairs.len() && (self.out.is_empty() || self.out.len() == pairs.len()));
            self.out.clear();
        }
        spent_ns as f64 / pairs.len() as f64
    }

    fn process(&mut self) -> u128 {
        let started = Instant::now();
        self.router.engine.process(self.router.now, &mut self.burst, &mut self.out);
        started.elapsed().as_nanos()
    }
}

fn bench(cs_packets: usize) -> Bench {
    let cs = CsConfig { capacity_packets: cs_packets, ..CsConfig::default() };
    let mut router = Router::with(EngineConfig { cs, ..EngineConfig::default() });
    for number in 0..1_000 {
        router.route(&format!("/net/{number}"), PRODUCER, 1);
    }
    Bench { router, burst: Vec::new(), out: Vec::new() }
}

fn pairs(content_bytes: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |number: usize| {
        let uri = format!("/net/{}/video/v=1/{number}", number % 1_000);
        (interest(&uri).packet().bytes, data(&uri).content(&vec![1; content_bytes]).packet().bytes)
    };
    (0..NAMES).map(pair).collect()
}

/// The middle one of several runs.
fn median(mut runs: Vec<f64>) -> f64 {
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

#[test]
#[ignore = "a measurement"]
fn cost_of_an_exchange() {
    for content_bytes in [100, 1_000] {
        let pairs = pairs(content_bytes);
        // rule; most cached Data; are Interests answered from the cache
        for (rule, cs_packets, serve) in
            [("no cache", 0, false), ("cached, never asked for", 20_000, false), ("all cache hits", 65_536, true)]
        {
            let mut bench = bench(cs_packets);
            let settings = CsSettings { serve: Some(serve), ..CsSettings::default() };
            bench.router.engine.cs_configure(settings).expect("settings");
            bench.exchange(&pairs, 1_000);
            let runs = (0..ROUNDS).map(|round| bench.exchange(&pairs, round as u32)).collect();
            println!("{content_bytes} bytes, {rule}: {:.0} ns for each Interest and Data", median(runs));
            bench.router.engine.check_invariants().expect("invariants");
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_new_next_hops_while_much_is_pending() {
    let config = EngineConfig { pit_capacity: 131_072, ..EngineConfig::default() };
    let mut router = Router::with(config);
    router.strategy("/", "multicast");
    router.route("/", PRODUCER, 1);
    for number in 0..100_000 {
        router.recv(CONSUMER, interest(&format!("/A/{number}")).nonce(number).lifetime(600_000)).sent_unchecked();
    }
    let steps = |router: &mut Router| {
        let mut times = Vec::new();
        while router.engine.next_deadline().is_some_and(|deadline| deadline <= router.now) {
            let started = Instant::now();
            router.wait_one_step();
            times.push(started.elapsed().as_nanos() as f64 / 1e3);
            router.sent_unchecked();
        }
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
        format!("{} steps, half of them within {:.0} us, 99 % within {:.0} us", times.len(), at(0.5), at(0.99))
    };
    let started = Instant::now();
    for number in 0..1_000_000 {
        let nexthop = NextHop { face: FaceId(PRODUCER2), cost: 1 };
        router.tell_new_nexthop(if number % 2 == 0 { "/B" } else { "/C" }, nexthop);
    }
    println!("a million new next hops: {:.0} ms; then {}", started.elapsed().as_secs_f64() * 1e3, steps(&mut router));
    router.new_route("/", PRODUCER2, 1);
    println!("one that concerns all 100,000: {}", steps(&mut router));
}
