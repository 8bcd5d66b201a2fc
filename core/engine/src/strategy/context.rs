//! What a strategy sees and may do: the border between the pipelines and the strategies.
//!
//! A strategy is called by trigger (an Interest arrived, Data arrived, …) with a context for one PIT entry and answers
//! by calling actions on it. The engine implements the context over its tables; tests implement it over plain vectors.

use namehop_packet::{FaceId, FaceInfo, Timestamp};
use namehop_wire::lp::NackReason;

use crate::fib::NextHop;
use crate::strategy::measurements::Measurements;

/// An in-record of the PIT entry: a downstream that waits for the Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InRecord {
    /// Downstream face.
    pub face: FaceId,
    /// When the lifetime of its Interest ends.
    pub expiry: Timestamp,
}

/// An out-record of the PIT entry: an upstream that the Interest was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutRecord {
    /// Upstream face.
    pub face: FaceId,
    /// Nonce last sent to it.
    pub nonce: u32,
    /// When the Interest was last sent to it.
    pub last_renewed: Timestamp,
    /// When that Interest's lifetime ends.
    pub expiry: Timestamp,
    /// Reason of the Nack that came back since `last_renewed`, if one did.
    pub nacked: Option<NackReason>,
}

/// A few bytes that a strategy keeps in a PIT entry; zero in a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PitScratch {
    /// Current suppression interval in microseconds; 0 = none yet.
    pub suppression_us: u32,
    /// Strategy's own flags.
    pub flags: u32,
    /// A face number the strategy wants to remember; 0 = none.
    pub face: u32,
}

/// A few bytes that a strategy keeps in an out-record; zero in a new record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutScratch {
    /// Current suppression interval in microseconds; 0 = none yet.
    pub suppression_us: u32,
    /// Strategy's own flags.
    pub flags: u32,
}

/// The packet being handled and the PIT entry it belongs to.
///
/// All record accessors concern the PIT entry of the trigger.
pub trait StrategyContext {
    /// Time of the packet.
    fn now(&self) -> Timestamp;
    /// Face the triggering packet came in on; [`FaceId::INVALID`] for triggers without a packet (`Timer`, `AfterNewNextHop`,
    /// `OnDroppedInterest`, `BeforeExpirePendingInterest`, and `AfterReceiveInterest` for a pending Interest that is sent again).
    fn ingress(&self) -> FaceId;
    /// Facts about a face, `None` when it does not exist.
    fn face(&self, id: FaceId) -> Option<FaceInfo>;
    /// A random number.
    fn random(&mut self) -> u64;

    /// Number of next hops of the Interest's FIB match (by forwarding hint where it has one).
    fn nexthop_count(&self) -> usize;
    /// Next hop by rank: lowest cost first.
    fn nexthop(&self, index: usize) -> FaceId;
    /// May the Interest go to this face? Checks that the face exists, its link is up, it is not the ingress (unless ad hoc), and
    /// scope rules (`/localhost`, `/localhop`, HopLimit 0). `ingress` is the downstream on whose behalf the Interest would be sent.
    ///
    /// Without such a downstream it is enough that the Interest of one unexpired in-record may go there. An Interest that is sent
    /// again may not go where it was answered with a Nack.
    fn is_eligible(&self, nexthop: FaceId) -> bool;
    /// Number of faces of the router.
    fn face_count(&self) -> usize;
    /// A face of the router; in no order, indices valid until the trigger ends.
    fn face_at(&self, index: usize) -> FaceInfo;

    /// All in-records, in no order.
    fn in_records(&self) -> impl Iterator<Item = InRecord>;
    /// All out-records, in no order.
    fn out_records(&self) -> impl Iterator<Item = OutRecord>;
    /// Scratch of the out-record of `face`, if there is one.
    fn out_scratch(&mut self, face: FaceId) -> Option<&mut OutScratch>;
    /// Scratch of the PIT entry.
    fn pit_scratch(&mut self) -> &mut PitScratch;
    /// This worker's measurements for the FIB prefix of the Interest (made on first use; `None` when memory for them is used up).
    fn measurements(&mut self) -> Option<&mut Measurements>;

    /// Does the Interest carry NonDiscovery?
    fn is_non_discovery(&self) -> bool;
    /// Sends the pending Interest to a face, with a new or renewed out-record. `false` when it could not be sent.
    fn send_interest(&mut self, face: FaceId) -> bool;
    /// Like [`send_interest`](Self::send_interest), with the NonDiscovery header set or removed (self-learning).
    fn send_interest_discovery(&mut self, face: FaceId, non_discovery: bool) -> bool;
    /// Sends the Interest with a fresh Nonce, as a probe on its own account (asf).
    fn send_probe(&mut self, face: FaceId) -> bool;
    /// Answers one downstream with a Nack and removes its in-record. Nothing happens on faces that are not point-to-point.
    fn send_nack(&mut self, downstream: FaceId, reason: NackReason);
    /// Answers all downstreams with a Nack.
    fn send_nacks(&mut self, reason: NackReason);
    /// Ends the PIT entry as soon as this packet is done.
    fn reject_pending_interest(&mut self);
    /// Moves the end of the PIT entry to `now + milliseconds`.
    fn set_expiry_ms(&mut self, milliseconds: u64);
    /// Calls the strategy with [`Trigger::Timer`] in `delay_us` microseconds, unless the PIT entry is satisfied or gone by
    /// then. While such a trigger is to come, no other is added. There is no way to cancel, so strategies must bear one too
    /// many.
    fn schedule_timer_us(&mut self, delay_us: u64);
    /// Sends the Data at hand to all downstreams except its ingress (unless ad hoc), with each one's own token. Data triggers only.
    fn send_data_to_all(&mut self);
    /// Self-learning: the announcement carried by the Data at hand, passed on to the RIB as a learnt route to the ingress. `true` when it was there and passed on.
    fn learn_announced_route(&mut self) -> bool;
    /// Self-learning: asks the RIB for the announcement that covers the Data name so that it can be attached. The engine
    /// takes the Data and its downstreams out of the PIT entry, which may end, and sends the Data when the control plane
    /// has replied or one second has passed.
    fn request_announcement(&mut self);
    /// Self-learning: forget the learnt route for this prefix via `face`.
    fn forget_learned_route(&mut self, face: FaceId);
}

/// What made the engine call the strategy. A looping Interest is none of these: the pipeline answers it with Nack Duplicate
/// itself, since there may be no PIT entry to call a strategy for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// An Interest arrived that is not a loop and was not answered from the Content Store; its in-record is inserted. Or a pending
    /// Interest is sent again, because nothing that was sent upstream can answer it any more.
    AfterReceiveInterest,
    /// Data arrived for this PIT entry; the strategy sends it on (default: `send_data_to_all`).
    AfterReceiveData,
    /// Data arrived that satisfies several PIT entries; the pipeline sends it, the strategy only measures.
    BeforeSatisfyInterest,
    /// A Nack arrived from the ingress face and is stored in its out-record.
    AfterReceiveNack(NackReason),
    /// The link gave up delivering the Interest to this face.
    OnDroppedInterest(FaceId),
    /// The FIB entry got a new next hop.
    AfterNewNextHop(NextHop),
    /// A timer of [`StrategyContext::schedule_timer_us`] is due and the PIT entry is still unsatisfied.
    Timer,
    /// The PIT entry ends unsatisfied.
    BeforeExpirePendingInterest,
}
