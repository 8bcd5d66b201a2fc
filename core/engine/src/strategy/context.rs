//! The interface between the pipelines and the strategies: what a strategy can read and do.
//!
//! A strategy is called by trigger (an Interest arrived, Data arrived, …) with a context for one PIT entry, and acts by
//! calling methods of the context. The engine implements the context over its tables; tests implement it over plain
//! vectors.

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
    /// The Nonce last sent to it.
    pub nonce: u32,
    /// When the Interest was last sent to it.
    pub last_renewed: Timestamp,
    /// When that Interest's lifetime ends.
    pub expiry: Timestamp,
    /// Reason of the Nack received since `last_renewed`, if there was one.
    pub nacked: Option<NackReason>,
}

/// A few bytes that a strategy keeps in a PIT entry; zero in a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PitScratch {
    /// Current suppression interval in microseconds; 0 = none yet.
    pub suppression_us: u32,
    /// The strategy's own flags.
    pub flags: u32,
    /// A face id of the strategy's choice; 0 = none.
    pub face: u32,
}

/// A few bytes that a strategy keeps in an out-record; zero in a new record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutScratch {
    /// Current suppression interval in microseconds; 0 = none yet.
    pub suppression_us: u32,
    /// The strategy's own flags.
    pub flags: u32,
}

/// The packet that is being handled and its PIT entry.
///
/// All record accessors refer to the PIT entry of the trigger.
pub trait StrategyContext {
    /// Time of the packet.
    fn now(&self) -> Timestamp;
    /// Face on which the triggering packet arrived. It is [`FaceId::INVALID`] for triggers without a packet: `Timer`,
    /// `AfterNewNextHop`, `OnDroppedInterest`, `BeforeExpirePendingInterest`, and `AfterReceiveInterest` for a pending
    /// Interest that is retried.
    fn ingress(&self) -> FaceId;
    /// Properties of a face; `None` if it does not exist.
    fn face(&self, id: FaceId) -> Option<FaceInfo>;
    /// A random number.
    fn random(&mut self) -> u64;

    /// Number of next hops of the Interest's FIB match, which is by forwarding hint if it has one.
    fn nexthop_count(&self) -> usize;
    /// Next hop by rank: lowest cost first.
    fn nexthop(&self, index: usize) -> FaceId;
    /// Returns whether the Interest may be sent to this face. The face must exist, its link must be up, it must not be
    /// the ingress (unless ad hoc), and scope rules must allow it (`/localhost`, `/localhop`, HopLimit 0). `ingress` is
    /// the downstream for which the Interest would be sent.
    ///
    /// Without such a downstream, the Interest of at least one unexpired in-record must be allowed there. A retried
    /// Interest is not sent to a face that returned a Nack for it.
    fn is_eligible(&self, nexthop: FaceId) -> bool;
    /// Number of faces of the router.
    fn face_count(&self) -> usize;
    /// A face of the router, in arbitrary order. Indices are valid until the trigger ends.
    fn face_at(&self, index: usize) -> FaceInfo;

    /// All in-records, in arbitrary order.
    fn in_records(&self) -> impl Iterator<Item = InRecord>;
    /// All out-records, in arbitrary order.
    fn out_records(&self) -> impl Iterator<Item = OutRecord>;
    /// Scratch of the out-record of `face`, if there is one.
    fn out_scratch(&mut self, face: FaceId) -> Option<&mut OutScratch>;
    /// Scratch of the PIT entry.
    fn pit_scratch(&mut self) -> &mut PitScratch;
    /// This worker's measurements for the FIB prefix of the Interest. They are created at first use; `None` if memory
    /// for them is used up.
    fn measurements(&mut self) -> Option<&mut Measurements>;

    /// Returns whether the Interest carries NonDiscovery.
    fn is_non_discovery(&self) -> bool;
    /// Sends the pending Interest to a face, with a new or renewed out-record. Returns `false` if it could not be sent.
    fn send_interest(&mut self, face: FaceId) -> bool;
    /// Like [`send_interest`](Self::send_interest), with the NonDiscovery header set or removed (self-learning).
    fn send_interest_discovery(&mut self, face: FaceId, non_discovery: bool) -> bool;
    /// Sends the Interest with a fresh Nonce, as an additional probe (asf).
    fn send_probe(&mut self, face: FaceId) -> bool;
    /// Sends a Nack to one downstream and removes its in-record. Does nothing on faces that are not point-to-point.
    fn send_nack(&mut self, downstream: FaceId, reason: NackReason);
    /// Sends a Nack to all downstreams.
    fn send_nacks(&mut self, reason: NackReason);
    /// Ends the PIT entry once this packet is handled.
    fn reject_pending_interest(&mut self);
    /// Sets the end of the PIT entry to `now + milliseconds`.
    fn set_expiry_ms(&mut self, milliseconds: u64);
    /// Schedules a call of the strategy with [`Trigger::Timer`] in `delay_us` microseconds, unless the PIT entry is
    /// satisfied or has ended by then. Only one such timer is pending at a time; further calls have no effect
    /// meanwhile. A timer cannot be cancelled, so strategies must tolerate an obsolete one.
    fn schedule_timer_us(&mut self, delay_us: u64);
    /// Sends the Data at hand to all downstreams except its ingress (unless ad hoc), each with its own token. Data
    /// triggers only.
    fn send_data_to_all(&mut self);
    /// Self-learning: reports the announcement of the Data at hand to the RIB, as a learned route to the ingress.
    /// Returns `true` if there was an announcement and it was reported.
    fn learn_announced_route(&mut self) -> bool;
    /// Self-learning: requests the announcement that covers the Data name from the RIB, to attach it to the Data. The
    /// engine removes the Data and its downstreams from the PIT entry, which may end. It sends the Data when the
    /// control plane has replied or one second has passed.
    fn request_announcement(&mut self);
    /// Self-learning: reports that the learned route for this prefix via `face` is obsolete.
    fn forget_learned_route(&mut self, face: FaceId);
}

/// The reason why the engine calls the strategy. A looping Interest is not among them: the pipeline itself answers it
/// with Nack Duplicate, because it may have no PIT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// An Interest arrived that is not a loop and was not answered from the Content Store; its in-record is inserted.
    /// Or a pending Interest is retried, because no upstream can answer it any more.
    AfterReceiveInterest,
    /// Data arrived for this PIT entry; the strategy forwards it (default: `send_data_to_all`).
    AfterReceiveData,
    /// Data arrived that satisfies several PIT entries; the pipeline forwards it, the strategy only measures.
    BeforeSatisfyInterest,
    /// A Nack arrived from the ingress face and is stored in its out-record.
    AfterReceiveNack(NackReason),
    /// The link failed to deliver the Interest to this face.
    OnDroppedInterest(FaceId),
    /// The FIB entry got a new next hop.
    AfterNewNextHop(NextHop),
    /// A timer of [`StrategyContext::schedule_timer_us`] is due and the PIT entry is still unsatisfied.
    Timer,
    /// The PIT entry ends unsatisfied.
    BeforeExpirePendingInterest,
}
