//! A strategy context over plain vectors, shared by the tests of all strategies.

use std::cell::Cell;

use namehop_packet::{FaceId, FaceInfo, FaceScope, LinkType, Timestamp};
use namehop_wire::lp::NackReason;

use super::context::{InRecord, OutRecord, OutScratch, PitScratch, StrategyContext, Trigger};
use super::measurements::Measurements;
use super::registry::full_name;
use super::{StrategyInstance, dispatch};
use crate::fib::NextHop;

pub const A: FaceId = FaceId(300);
pub const B: FaceId = FaceId(301);
pub const C: FaceId = FaceId(302);
/// Downstreams.
pub const D: FaceId = FaceId(400);
pub const E: FaceId = FaceId(401);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Interest(FaceId),
    Discovery(FaceId, bool),
    Probe(FaceId),
    Nack(FaceId, NackReason),
    Nacks(NackReason),
    Reject,
    Expiry(u64),
    Timer(u64),
    Data,
    Learn,
    RequestAnnouncement,
    Forget(FaceId),
}

/// One PIT entry, its FIB match and the faces around it.
pub struct Mock {
    pub now: Timestamp,
    pub ingress: FaceId,
    pub faces: Vec<FaceInfo>,
    pub nexthops: Vec<NextHop>,
    /// Faces that scope rules forbid.
    pub forbidden: Vec<FaceId>,
    pub in_records: Vec<InRecord>,
    pub out_records: Vec<(OutRecord, OutScratch)>,
    pub pit_scratch: PitScratch,
    pub measurements: Option<Measurements>,
    /// Returned and incremented at each draw.
    pub random: u64,
    pub non_discovery: bool,
    pub lifetime_ms: u64,
    pub actions: Vec<Action>,
    pub data_carries_announcement: bool,
    /// Number of eligibility checks.
    pub eligibility_looks: Cell<u32>,
}

pub fn face(id: FaceId, scope: FaceScope, link_type: LinkType) -> FaceInfo {
    FaceInfo { id, scope, link_type, is_up: true }
}

impl Mock {
    /// Next hops with the given costs; non-local point-to-point faces A to E.
    pub fn new(nexthops: &[(FaceId, u64)]) -> Self {
        Mock {
            now: Timestamp(1_000_000_000_000),
            ingress: FaceId::INVALID,
            faces: [A, B, C, D, E].map(|id| face(id, FaceScope::NonLocal, LinkType::PointToPoint)).to_vec(),
            nexthops: nexthops.iter().map(|&(face, cost)| NextHop { face, cost }).collect(),
            forbidden: Vec::new(),
            in_records: Vec::new(),
            out_records: Vec::new(),
            pit_scratch: PitScratch::default(),
            measurements: Some(Measurements::default()),
            random: 0,
            non_discovery: false,
            lifetime_ms: 4_000,
            actions: Vec::new(),
            data_carries_announcement: false,
            eligibility_looks: Cell::new(0),
        }
    }

    pub fn pass_ms(&mut self, milliseconds: u64) {
        self.now = self.now.plus_ms(milliseconds);
    }

    /// Clears the PIT entry, as after satisfaction or expiry; measurements stay.
    pub fn new_entry(&mut self) {
        self.in_records.clear();
        self.out_records.clear();
        self.pit_scratch = PitScratch::default();
    }

    pub fn trigger(&mut self, strategy: &StrategyInstance, trigger: Trigger) -> Vec<Action> {
        self.actions.clear();
        dispatch(strategy, trigger, self);
        std::mem::take(&mut self.actions)
    }

    /// Handles an Interest from a downstream as the pipeline does.
    pub fn interest(&mut self, strategy: &StrategyInstance, downstream: FaceId) -> Vec<Action> {
        self.ingress = downstream;
        let expiry = self.now.plus_ms(self.lifetime_ms);
        match self.in_records.iter_mut().find(|record| record.face == downstream) {
            Some(record) => record.expiry = expiry,
            None => self.in_records.push(InRecord { face: downstream, expiry }),
        }
        self.trigger(strategy, Trigger::AfterReceiveInterest)
    }

    /// Handles Data from an upstream for this entry alone; afterwards the records are as the pipeline leaves them.
    pub fn data(&mut self, strategy: &StrategyInstance, upstream: FaceId) -> Vec<Action> {
        self.ingress = upstream;
        let actions = self.trigger(strategy, Trigger::AfterReceiveData);
        self.in_records.clear();
        self.out_records.retain(|(record, _)| record.face != upstream);
        actions
    }

    /// Handles a Nack from an upstream.
    pub fn nack(&mut self, strategy: &StrategyInstance, upstream: FaceId, reason: NackReason) -> Vec<Action> {
        self.ingress = upstream;
        for (record, _) in &mut self.out_records {
            if record.face == upstream {
                record.nacked = Some(reason);
            }
        }
        self.trigger(strategy, Trigger::AfterReceiveNack(reason))
    }

    /// Handles a trigger without a packet.
    pub fn event(&mut self, strategy: &StrategyInstance, trigger: Trigger) -> Vec<Action> {
        self.ingress = FaceId::INVALID;
        self.trigger(strategy, trigger)
    }

    fn send(&mut self, face: FaceId) -> bool {
        if self.face(face).is_none() {
            return false;
        }
        let fresh = OutRecord {
            face,
            nonce: self.random as u32,
            last_renewed: self.now,
            expiry: self.now.plus_ms(self.lifetime_ms),
            nacked: None,
        };
        match self.out_records.iter_mut().find(|(record, _)| record.face == face) {
            Some((record, _)) => *record = fresh,
            None => self.out_records.push((fresh, OutScratch::default())),
        }
        true
    }
}

impl StrategyContext for Mock {
    fn now(&self) -> Timestamp {
        self.now
    }
    fn ingress(&self) -> FaceId {
        self.ingress
    }
    fn face(&self, id: FaceId) -> Option<FaceInfo> {
        self.faces.iter().find(|face| face.id == id).copied()
    }
    fn random(&mut self) -> u64 {
        let drawn = self.random;
        self.random = drawn.wrapping_add(1);
        drawn
    }
    fn nexthop_count(&self) -> usize {
        self.nexthops.len()
    }
    fn nexthop(&self, index: usize) -> FaceId {
        self.nexthops[index].face
    }
    fn is_eligible(&self, nexthop: FaceId) -> bool {
        self.eligibility_looks.update(|looks| looks + 1);
        let Some(info) = self.face(nexthop) else {
            return false;
        };
        let may_go = |downstream| downstream != nexthop || info.link_type == LinkType::AdHoc;
        let downstream_allows = if self.ingress == FaceId::INVALID {
            self.in_records.iter().any(|record| record.expiry > self.now && may_go(record.face))
        } else {
            may_go(self.ingress)
        };
        downstream_allows && info.is_up && !self.forbidden.contains(&nexthop)
    }
    fn face_count(&self) -> usize {
        self.faces.len()
    }
    fn face_at(&self, index: usize) -> FaceInfo {
        self.faces[index]
    }
    fn in_records(&self) -> impl Iterator<Item = InRecord> {
        self.in_records.iter().copied()
    }
    fn out_records(&self) -> impl Iterator<Item = OutRecord> {
        self.out_records.iter().map(|(record, _)| *record)
    }
    fn out_scratch(&mut self, face: FaceId) -> Option<&mut OutScratch> {
        self.out_records.iter_mut().find(|(record, _)| record.face == face).map(|(_, scratch)| scratch)
    }
    fn pit_scratch(&mut self) -> &mut PitScratch {
        &mut self.pit_scratch
    }
    fn measurements(&mut self) -> Option<&mut Measurements> {
        self.measurements.as_mut()
    }
    fn is_non_discovery(&self) -> bool {
        self.non_discovery
    }
    fn send_interest(&mut self, face: FaceId) -> bool {
        self.actions.push(Action::Interest(face));
        self.send(face)
    }
    fn send_interest_discovery(&mut self, face: FaceId, non_discovery: bool) -> bool {
        self.actions.push(Action::Discovery(face, non_discovery));
        self.send(face)
    }
    fn send_probe(&mut self, face: FaceId) -> bool {
        self.actions.push(Action::Probe(face));
        self.send(face)
    }
    fn send_nack(&mut self, downstream: FaceId, reason: NackReason) {
        self.actions.push(Action::Nack(downstream, reason));
        self.in_records.retain(|record| record.face != downstream);
    }
    fn send_nacks(&mut self, reason: NackReason) {
        self.actions.push(Action::Nacks(reason));
        self.in_records.clear();
    }
    fn reject_pending_interest(&mut self) {
        self.actions.push(Action::Reject);
    }
    fn set_expiry_ms(&mut self, milliseconds: u64) {
        self.actions.push(Action::Expiry(milliseconds));
    }
    fn schedule_timer_us(&mut self, delay_us: u64) {
        self.actions.push(Action::Timer(delay_us));
    }
    fn send_data_to_all(&mut self) {
        self.actions.push(Action::Data);
    }
    fn learn_announced_route(&mut self) -> bool {
        self.actions.push(Action::Learn);
        self.data_carries_announcement
    }
    fn request_announcement(&mut self) {
        self.actions.push(Action::RequestAnnouncement);
    }
    fn forget_learned_route(&mut self, face: FaceId) {
        self.actions.push(Action::Forget(face));
    }
}

/// Returns a strategy by the part of its name after `/localhost/nfd/strategy/`.
pub fn strategy(rest: &str) -> StrategyInstance {
    let name = full_name(rest).expect("a name");
    StrategyInstance::parse(name.as_ref()).expect("a strategy")
}
