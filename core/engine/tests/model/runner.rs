//! Runs the engine and the model side by side. `actions` applies the actions of a scenario to both.

mod actions;

use std::collections::BTreeMap;

use namehop_engine::engine::{CsConfig, Engine, EngineConfig, UnsolicitedPolicy};
use namehop_engine::fib::{self, FibWriter};
use namehop_engine::strategy::{StrategyInstance, registry};
use namehop_hash::HashKey;
use namehop_packet::{BufferPool, DropReason, FaceId, FaceInfo, FaceScope, Incoming, LinkFields, LinkType, Timestamp};
use namehop_store::PolicyKind;
use namehop_wire::NameRef;
use namehop_wire::lp::PitToken;
use proptest::prelude::*;

use super::engines::{Division, Engines, Process};
use super::packets::{self, Data, Interest, name};
use super::scenario::*;
use super::{Face, FaceNumber, Headers, Link, Model, NextHop, Nonce, Sent, Settings, Strategy, Unsolicited, is_under};

/// An Interest that the forwarder has sent and that the peer may answer.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) face: FaceNumber,
    pub(super) interest: Interest,
    pub(super) nonce: u32,
    pub(super) token: PitToken,
}

/// A received Interest.
#[derive(Debug, Clone)]
struct Received {
    face: FaceNumber,
    interest: Interest,
    nonce: Option<u32>,
    headers: Headers,
}

/// The engine and the model side by side.
pub struct Runner {
    pub(super) now_ms: u64,
    pool: BufferPool,
    pub(super) engine: Engines,
    fib: FibWriter<StrategyInstance>,
    pub(super) model: Model,
    /// Current number of each face; `None` if it is removed.
    faces: Vec<Option<FaceNumber>>,
    removals: u32,
    burst: Vec<Incoming>,
    pub(super) expected: Vec<Sent>,
    pub(super) asked: Vec<Asked>,
    received: Vec<Received>,
    /// Number of Data packets without a downstream, and how many of them may be counted for their scope instead.
    undelivered: u64,
    undelivered_localhost: u64,
    /// Values of nonces that the forwarder added.
    pub(super) added: BTreeMap<u32, Nonce>,
    /// Everything that the engine has sent, byte for byte and in order.
    pub sent: Vec<String>,
}

impl Runner {
    /// Prepares a scenario for the engine's own schedule.
    pub fn new(scenario: &Scenario, division: Division) -> Self {
        Runner::with(scenario, division, Box::new(Engine::process))
    }

    /// Prepares a scenario. `process` handles the bursts of its engines.
    pub fn with(scenario: &Scenario, division: Division, process: Process) -> Self {
        let settings = Settings {
            dead_nonce_lifetime_ms: DEAD_NONCE_LIFETIME_MS,
            default_hop_limit: scenario.default_hop_limit,
            producer_regions: vec![name(REGION)],
            unsolicited: scenario.unsolicited,
            accept_unasked: scenario.accept_unasked,
        };
        let config = EngineConfig {
            pit_capacity: 1_024,
            cs: CsConfig {
                capacity_packets: 4_096,
                capacity_bytes: 16 << 20,
                policy: PolicyKind::Lru.into(),
                admit: true,
                serve: true,
            },
            unsolicited: match scenario.unsolicited {
                Unsolicited::DropAll => UnsolicitedPolicy::DropAll,
                Unsolicited::AdmitLocal => UnsolicitedPolicy::AdmitLocal,
                Unsolicited::AdmitNetwork => UnsolicitedPolicy::AdmitNetwork,
                Unsolicited::AdmitAll => UnsolicitedPolicy::AdmitAll,
            },
            accept_unasked_data: scenario.accept_unasked,
            dead_nonce_lifetime_ms: DEAD_NONCE_LIFETIME_MS,
            dead_nonce_capacity: 4_096,
            default_hop_limit: scenario.default_hop_limit,
            producer_regions: vec![REGION.parse().expect("a name")],
            measurement_capacity: 16,
            // So few that a burst has several groups.
            lookahead: 3,
            ..EngineConfig::default()
        };
        let key = HashKey::new(0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);
        let fib = FibWriter::new(key, StrategyInstance::default()).expect("memory for a FIB");
        let pool = BufferPool::new(4_096, 64);
        let engine = Engines::new(division, &config, &fib, (pool.clone(), key), process);
        let mut runner = Runner {
            now_ms: 0,
            pool,
            engine,
            fib,
            model: Model::new(settings),
            faces: vec![None; FACES.len()],
            removals: 0,
            burst: Vec::new(),
            expected: Vec::new(),
            asked: Vec::new(),
            received: Vec::new(),
            undelivered: 0,
            undelivered_localhost: 0,
            added: BTreeMap::new(),
            sent: Vec::new(),
        };
        for index in 0..FACES_AT_START {
            runner.add_face(index);
        }
        for (index, prefix) in PREFIXES.iter().enumerate() {
            let (chosen, strategy) = match scenario.multicast[index] {
                true => ("multicast", Strategy::Multicast),
                false => ("best-route", Strategy::BestRoute),
            };
            let chosen = registry::full_name(chosen).expect("a name");
            let chosen = StrategyInstance::parse(chosen.as_ref()).expect("a strategy");
            let value = packets::name_value(&name(prefix));
            let prefix_name = NameRef::from_value(&value).expect("a name");
            runner.fib.set_strategy(prefix_name, chosen).expect("room for a strategy");
            runner.model.set_strategy(name(prefix), strategy);
            runner.set_routes(index, &scenario.routes[index]);
        }
        runner
    }

    /// Traces everything, which must make no difference.
    pub fn trace_everything(&mut self) {
        self.engine.trace_everything();
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms * 1_000_000)
    }

    fn add_face(&mut self, index: usize) {
        let (number, face) = FACES[index];
        let number = number + (self.removals << 16);
        self.faces[index] = Some(number);
        self.model.set_face(number, face);
        self.engine.set_face(face_info(number, face));
    }

    /// Advances the engine to the current time.
    fn advance(&mut self) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        self.engine.advance(self.now(), &mut out);
        self.compare(out)
    }

    /// Returns the number of a face, even if it was removed.
    fn number(&self, index: usize) -> FaceNumber {
        self.faces[index].unwrap_or(FACES[index].0)
    }

    fn set_routes(&mut self, prefix: usize, faces: &[usize]) {
        let mut nexthops: Vec<NextHop> = Vec::new();
        for (cost, &index) in faces.iter().enumerate() {
            if let Some(face) = self.faces[index]
                && !nexthops.iter().any(|nexthop| nexthop.face == face)
            {
                nexthops.push(NextHop { face, cost: cost as u64 });
            }
        }
        let value = packets::name_value(&name(PREFIXES[prefix]));
        let prefix_name = NameRef::from_value(&value).expect("a name");
        let entries: Vec<fib::NextHop> =
            nexthops.iter().map(|nexthop| fib::NextHop { face: FaceId(nexthop.face), cost: nexthop.cost }).collect();
        self.fib.set_nexthops(prefix_name, &entries).expect("room for a route");
        self.model.set_nexthops(name(PREFIXES[prefix]), nexthops);
    }

    fn add_route(&mut self, prefix: usize, face: FaceNumber) -> Result<(), TestCaseError> {
        let prefix_name = name(PREFIXES[prefix]);
        if self.model.nexthops(&prefix_name).iter().any(|nexthop| nexthop.face == face) {
            return Ok(());
        }
        let nexthop = NextHop { face, cost: 10 + u64::from(face) };
        self.model.add_nexthop(prefix_name.clone(), nexthop);
        self.expected.extend(self.model.new_nexthop(&prefix_name, nexthop));
        let value = packets::name_value(&prefix_name);
        let added = NameRef::from_value(&value).expect("a name");
        self.fib.add_nexthop(added, FaceId(face), nexthop.cost).expect("room for a route");
        let mut out = Vec::new();
        let nexthop = fib::NextHop { face: FaceId(face), cost: nexthop.cost };
        self.engine.new_nexthop(self.now(), added, nexthop, &mut out);
        self.compare(out)
    }

    fn receive_interest(&mut self, mut received: Received) {
        // It is undefined which of several answers to one face carries the mark of an Interest without a token. So
        // faces that use tokens do not mark Interests without one.
        let uses_tokens = received.face % 2 == 1;
        if !uses_tokens {
            received.headers.token.clear();
        } else if received.headers.token.is_empty() {
            received.headers.mark = 0;
        }
        let Received { face, interest, nonce, headers } = &received;
        if nonce.is_some_and(|nonce| self.model.is_uncertain(&interest.name, Nonce::from(nonce))) {
            return;
        }
        self.expected.extend(self.model.interest(*face, interest, nonce.map(Nonce::from), headers));
        let fields = LinkFields {
            pit_token: PitToken::from_slice(&headers.token).unwrap_or_else(PitToken::empty),
            congestion_mark: headers.mark,
            next_hop_face_id: headers.next_hop.map(u64::from),
            ..LinkFields::default()
        };
        self.push(*face, &packets::encode_interest(interest, *nonce), fields);
        self.received.push(received);
    }

    fn receive_data(
        &mut self,
        face: FaceNumber,
        (packet, data): (Vec<u8>, Data),
        headers: &Headers,
        answered: Option<(Interest, PitToken)>,
    ) {
        if self.model.is_hint_open(face, &data, answered.as_ref().map(|(interest, _)| interest)) {
            return;
        }
        let token = answered.map_or(PitToken::empty(), |(_, token)| token);
        let is_from_somewhere = self.model.face(face).is_some();
        let is_localhost = is_under(&data.name, "/localhost");
        let sent = self.model.data(face, &data, headers);
        if is_from_somewhere && !sent.iter().any(|packet| matches!(packet, Sent::Data { .. })) {
            self.undelivered += 1;
            self.undelivered_localhost += u64::from(is_localhost);
        }
        self.expected.extend(sent);
        let fields = LinkFields {
            pit_token: token,
            congestion_mark: headers.mark,
            no_cache: headers.no_cache,
            ..LinkFields::default()
        };
        self.push(face, &packet, fields);
    }

    fn push(&mut self, face: FaceNumber, packet: &[u8], fields: LinkFields) {
        let buffer = self.pool.copy_of(packet).expect("a buffer");
        self.burst.push(Incoming { face: FaceId(face), buffer, fields });
    }

    fn end_burst(&mut self) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        let mut burst = std::mem::take(&mut self.burst);
        self.engine.process(self.now(), &mut burst, &mut out);
        prop_assert!(burst.is_empty(), "packets are left in the burst");
        self.compare(out)?;
        let drops = &self.engine.counters().drops;
        let named =
            drops[DropReason::UnsolicitedData] + drops[DropReason::UnaskedData] + drops[DropReason::NoDownstream];
        // Several engines may have had and counted the same Data.
        let most = if self.engine.count() > 1 { u64::MAX } else { self.undelivered };
        prop_assert!(
            (self.undelivered - self.undelivered_localhost..=most).contains(&named),
            "{} Data packets went nowhere, {named} of them are counted",
            self.undelivered
        );
        Ok(())
    }

    /// Ends the scenario: after all lifetimes, only cached Data may be left.
    pub fn finish(mut self) -> Result<Vec<String>, TestCaseError> {
        self.end_burst()?;
        self.engine.check_invariants().map_err(|error| TestCaseError::fail(error.to_string()))?;
        self.now_ms += LIFETIMES_MS.iter().flatten().max().unwrap_or(&0) + 1_000;
        self.expected.extend(self.model.advance(self.now_ms));
        self.advance()?;
        prop_assert!(self.engine.is_idle(), "pending Interests outlive their lifetime");
        self.engine.check_invariants().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(self.pool.in_use(), 0, "all packet buffers must be returned");
        Ok(self.sent)
    }
}

/// Returns a face in the engine's terms.
fn face_info(number: FaceNumber, face: Face) -> FaceInfo {
    FaceInfo {
        id: FaceId(number),
        scope: if face.local { FaceScope::Local } else { FaceScope::NonLocal },
        link_type: match face.link {
            Link::PointToPoint => LinkType::PointToPoint,
            Link::MultiAccess => LinkType::MultiAccess,
            Link::AdHoc => LinkType::AdHoc,
        },
        is_up: face.is_up,
    }
}
