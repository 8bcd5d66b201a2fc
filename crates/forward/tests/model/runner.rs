//! The engine and the model side by side.

use std::collections::BTreeMap;

use namehop_forward::buffer::{BufferPool, HeapBuffer, HeapPool};
use namehop_forward::engine::{CsConfig, CsSettings, Engine, EngineConfig, UnsolicitedPolicy};
use namehop_forward::face::{FaceId, FaceInfo, FaceScope, LinkType};
use namehop_forward::fib::{self, FibWriter};
use namehop_forward::packet::{Incoming, LinkFields};
use namehop_forward::schedule::{Burst, Schedule};
use namehop_forward::strategy::{StrategyInstance, StrategyKind};
use namehop_forward::time::Timestamp;
use namehop_hash::HashKey;
use namehop_store::PolicyKind;
use namehop_wire::NameRef;
use namehop_wire::lp::{NackReason, PitToken};
use proptest::prelude::*;

use super::packets::{self, Data, IMPLICIT_DIGEST, Interest, name};
use super::scenario::*;
use super::{FaceNumber, Headers, Link, Model, NextHop, Nonce, Sent, Settings, Strategy, Unsolicited};

/// An Interest that the forwarder has sent and that the peer may answer.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) face: FaceNumber,
    pub(super) interest: Interest,
    pub(super) nonce: u32,
    pub(super) token: PitToken,
}

/// An Interest that came in.
#[derive(Debug, Clone)]
struct Received {
    face: FaceNumber,
    interest: Interest,
    nonce: Option<u32>,
    headers: Headers,
}

/// The engine and the model side by side.
pub struct Runner<S: Schedule = Burst> {
    pub(super) now_ms: u64,
    pool: HeapPool,
    pub(super) engine: Engine<HeapPool, S>,
    fib: FibWriter<StrategyInstance>,
    pub(super) model: Model,
    /// Current number of each face; `None` when it is removed.
    faces: Vec<Option<FaceNumber>>,
    removals: u32,
    burst: Vec<Incoming<HeapBuffer>>,
    pub(super) expected: Vec<Sent>,
    pub(super) asked: Vec<Asked>,
    received: Vec<Received>,
    /// Values of nonces that the forwarder added.
    pub(super) added: BTreeMap<u32, Nonce>,
    /// Everything that the engine has sent, byte for byte and in order.
    pub sent: Vec<String>,
}

impl<S: Schedule> Runner<S> {
    pub fn new(scenario: &Scenario) -> Self {
        let settings = Settings {
            dead_nonce_lifetime_ms: DEAD_NONCE_LIFETIME_MS,
            default_hop_limit: scenario.default_hop_limit,
            producer_regions: vec![name(REGION)],
            unsolicited: scenario.unsolicited,
        };
        let config = EngineConfig {
            pit_capacity: 1_024,
            cs: CsConfig {
                capacity_packets: 4_096,
                capacity_bytes: 16 << 20,
                policy: PolicyKind::Lru,
                admit: true,
                serve: true,
            },
            unsolicited: match scenario.unsolicited {
                Unsolicited::DropAll => UnsolicitedPolicy::DropAll,
                Unsolicited::AdmitLocal => UnsolicitedPolicy::AdmitLocal,
                Unsolicited::AdmitNetwork => UnsolicitedPolicy::AdmitNetwork,
                Unsolicited::AdmitAll => UnsolicitedPolicy::AdmitAll,
            },
            dead_nonce_lifetime_ms: DEAD_NONCE_LIFETIME_MS,
            dead_nonce_capacity: 4_096,
            default_hop_limit: scenario.default_hop_limit,
            producer_regions: vec![REGION.parse().expect("a name")],
            measurement_capacity: 16,
            ..EngineConfig::default()
        };
        let key = HashKey::new(0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210);
        let fib = FibWriter::new(key, StrategyInstance::default()).expect("memory for a FIB");
        let reader = fib.reader();
        let pool = HeapPool::new(4_096, 64);
        let engine = Engine::new(config, reader, pool.clone(), key).expect("memory for a small engine");
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
            added: BTreeMap::new(),
            sent: Vec::new(),
        };
        for index in 0..FACES_AT_START {
            runner.add_face(index);
        }
        for (index, prefix) in PREFIXES.iter().enumerate() {
            let (kind, strategy) = match scenario.multicast[index] {
                true => (StrategyKind::Multicast, Strategy::Multicast),
                false => (StrategyKind::BestRoute, Strategy::BestRoute),
            };
            let value = packets::name_value(&name(prefix));
            let prefix_name = NameRef::from_value(&value).expect("a name");
            runner.fib.set_strategy(prefix_name, StrategyInstance::new(kind)).expect("room for a strategy");
            runner.model.set_strategy(name(prefix), strategy);
            runner.set_routes(index, &scenario.routes[index]);
        }
        runner
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms * 1_000_000)
    }

    fn add_face(&mut self, index: usize) {
        let (number, face) = FACES[index];
        let number = number + (self.removals << 16);
        self.faces[index] = Some(number);
        self.model.set_face(number, face);
        self.engine.set_face(FaceInfo {
            id: FaceId(number),
            scope: if face.local { FaceScope::Local } else { FaceScope::NonLocal },
            link_type: match face.link {
                Link::PointToPoint => LinkType::PointToPoint,
                Link::MultiAccess => LinkType::MultiAccess,
                Link::AdHoc => LinkType::AdHoc,
            },
        });
    }

    /// Number of a face, also of one that does not exist any more.
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

    pub fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Interest {
                face,
                name: chosen,
                can_be_prefix,
                must_be_fresh,
                nonce,
                lifetime,
                hop_limit,
                hints,
                token,
                mark,
                next_hop,
            } => {
                let interest = Interest {
                    name: choose_name(chosen),
                    can_be_prefix: *can_be_prefix,
                    must_be_fresh: *must_be_fresh,
                    hints: hints.iter().map(|&index| name(HINTS[index])).collect(),
                    lifetime_ms: LIFETIMES_MS[*lifetime],
                    hop_limit: *hop_limit,
                };
                let headers = Headers {
                    token: TOKENS[*token].to_vec(),
                    mark: *mark,
                    next_hop: next_hop.map(|index| self.number(index)),
                    no_cache: false,
                };
                let face = self.number(*face);
                self.receive_interest(Received { face, interest, nonce: nonce.map(u32::from), headers });
            }
            Action::Again { which, face, nonce } => {
                let Some(mut earlier) = recent(&self.received, *which).cloned() else { return Ok(()) };
                if let Some(index) = face {
                    earlier.face = self.number(*index);
                }
                if let Some(nonce) = nonce {
                    earlier.nonce = Some(100 + u32::from(*nonce));
                }
                self.receive_interest(earlier);
            }
            Action::Data { face, name: chosen, freshness, content, mark, no_cache } => {
                let packet = packets::encode_data(&name(NAMES[*chosen]), FRESHNESS_MS[*freshness], &[*content]);
                let headers = Headers { mark: *mark, no_cache: *no_cache, ..Headers::default() };
                self.receive_data(self.number(*face), packet, &headers, None);
            }
            Action::Answer { which, longer, freshness, content, mark, no_cache, token } => {
                let Some(asked) = recent(&self.asked, *which).cloned() else { return Ok(()) };
                let mut data_name = asked.interest.name.clone();
                let mut choice = (FRESHNESS_MS[*freshness], *content);
                if let Some((IMPLICIT_DIGEST, digest)) = data_name.last().cloned() {
                    data_name.pop();
                    let original = FRESHNESS_MS.iter().flat_map(|&freshness| [(freshness, 0), (freshness, 1)]).find(
                        |&(freshness, content)| {
                            packets::encode_data(&data_name, freshness, &[content]).1.digest == digest
                        },
                    );
                    choice = original.unwrap_or(choice);
                } else if asked.interest.can_be_prefix
                    && let Some(last) = longer
                {
                    data_name.extend(name(if *last { "/b" } else { "/a" }));
                }
                let packet = packets::encode_data(&data_name, choice.0, &[choice.1]);
                let headers = Headers { mark: *mark, no_cache: *no_cache, ..Headers::default() };
                let answered = Some((asked.interest.clone(), choose_token(token, &asked.token)));
                self.receive_data(asked.face, packet, &headers, answered);
            }
            Action::Nack { which, reason, nonce_differs, mark, token } => {
                let Some(mut asked) = recent(&self.asked, *which).cloned() else { return Ok(()) };
                self.end_burst()?;
                asked.nonce = asked.nonce.wrapping_add(u32::from(*nonce_differs));
                let nonce = self.added.get(&asked.nonce).copied().unwrap_or(Nonce::from(asked.nonce));
                if self.model.is_nack_ambiguous(asked.face, &asked.interest, nonce) {
                    return Ok(());
                }
                let reason = REASONS[*reason];
                self.expected.extend(self.model.nack(asked.face, &asked.interest, nonce, reason, *mark));
                let fields = LinkFields {
                    nack: Some(NackReason(reason)),
                    congestion_mark: *mark,
                    pit_token: choose_token(token, &asked.token),
                    ..LinkFields::default()
                };
                let packet = packets::encode_interest(&asked.interest, Some(asked.nonce));
                self.push(asked.face, &packet, fields);
            }
            Action::Wait(index) => {
                self.end_burst()?;
                if self.now_ms + WAITS_MS[*index] <= TIME_LIMIT_MS {
                    self.now_ms += WAITS_MS[*index];
                    self.model.advance(self.now_ms);
                    let mut out = Vec::new();
                    self.engine.advance(self.now(), &mut out);
                    self.compare(out)?;
                }
            }
            Action::Routes { prefix, nexthops } => {
                self.end_burst()?;
                self.set_routes(*prefix, nexthops);
            }
            Action::AddRoute { prefix, face } => {
                self.end_burst()?;
                if let Some(number) = self.faces[*face] {
                    self.add_route(*prefix, number)?;
                }
            }
            Action::RemoveFace(index) => {
                self.end_burst()?;
                if let Some(number) = self.faces[*index].take() {
                    self.removals += 1;
                    self.fib.remove_face(FaceId(number)).expect("memory");
                    self.engine.remove_face(FaceId(number));
                    self.model.remove_face(number);
                }
            }
            Action::RestoreFace(index) => {
                self.end_burst()?;
                if self.faces[*index].is_none() {
                    self.add_face(*index);
                }
            }
            Action::ContentFlags { admit, serve } => {
                self.end_burst()?;
                let settings = CsSettings { admit: Some(*admit), serve: Some(*serve), ..CsSettings::default() };
                self.engine.cs_configure(settings).expect("no more memory is needed");
                self.model.set_content_flags(*admit, *serve);
            }
            Action::EndOfBurst => self.end_burst()?,
        }
        Ok(())
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
        // Which of several answers to one face carries the mark of an Interest without token is left open, so faces that
        // use tokens do not mark Interests without.
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
        self.expected.extend(self.model.data(face, &data, headers));
        let fields = LinkFields {
            pit_token: token,
            congestion_mark: headers.mark,
            no_cache: headers.no_cache,
            ..LinkFields::default()
        };
        self.push(face, &packet, fields);
    }

    fn push(&mut self, face: FaceNumber, packet: &[u8], fields: LinkFields<HeapBuffer>) {
        let buffer = self.pool.copy_of(packet).expect("a buffer");
        self.burst.push(Incoming { face: FaceId(face), buffer, fields });
    }

    fn end_burst(&mut self) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        let mut burst = std::mem::take(&mut self.burst);
        self.engine.process(self.now(), &mut burst, &mut out);
        prop_assert!(burst.is_empty(), "packets left in the burst");
        self.compare(out)
    }

    /// Ends the scenario: when all lifetimes are over, nothing may be left but cached Data.
    pub fn finish(mut self) -> Result<Vec<String>, TestCaseError> {
        self.end_burst()?;
        self.engine.check_invariants().map_err(TestCaseError::fail)?;
        self.now_ms += LIFETIMES_MS.iter().flatten().max().unwrap_or(&0) + 1_000;
        self.model.advance(self.now_ms);
        let mut out = Vec::new();
        self.engine.advance(self.now(), &mut out);
        self.compare(out)?;
        prop_assert!(self.engine.is_idle(), "pending Interests outlive their lifetime");
        self.engine.check_invariants().map_err(TestCaseError::fail)?;
        prop_assert_eq!(self.pool.in_use(), 0, "packet buffers were not returned");
        Ok(self.sent)
    }
}

/// One of the latest items, the latest first.
fn recent<T>(items: &[T], which: usize) -> Option<&T> {
    items.iter().rev().nth(which.min(items.len().saturating_sub(1)))
}

fn choose_token(choice: &TokenChoice, echoed: &PitToken) -> PitToken {
    match choice {
        TokenChoice::Echoed => *echoed,
        TokenChoice::None => PitToken::empty(),
        TokenChoice::Garbage => {
            PitToken::from_slice(b"\x00\x00\x00\x00\x02\xFF\xFF\xFF").unwrap_or_else(PitToken::empty)
        }
    }
}
