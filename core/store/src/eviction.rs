//! Eviction: decides which packet is evicted when the store is full.

use namehop_table::TableError;

use crate::Parameters;
use crate::list::Position;

/// Properties of arriving Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Hash of the Data's name, well mixed in all 64 bits.
    pub name_hash: u64,
    /// Time of arrival in nanoseconds.
    pub now: u64,
    /// End of freshness, on the same clock.
    pub fresh_until: u64,
    /// True if the Data satisfied an Interest.
    pub is_solicited: bool,
}

impl Arrival {
    /// Solicited Data that stays fresh forever.
    pub fn fresh(name_hash: u64) -> Self {
        Arrival { name_hash, now: 0, fresh_until: u64::MAX, is_solicited: true }
    }
}

/// Order in which packets are evicted from a full store.
///
/// The store reports what happens to each packet. Ids are below the number of slots that the policy was made with;
/// methods that change something may panic on other ids. No method allocates memory.
pub trait EvictionPolicy: Sized + Send {
    /// True if [`expected`](Self::expected) or [`prefetch_name`](Self::prefetch_name) has an effect.
    const EXPECTS: bool = false;

    /// Makes a policy for an empty store.
    ///
    /// # Errors
    /// If the memory is not available.
    fn new(parameters: &Parameters) -> Result<Self, TableError>;

    /// Reports that this Data will enter, before room is made for it, so that policies that remember names can look
    /// it up.
    fn expected(&mut self, _arrival: &Arrival) {}

    /// Reports that the packet entered the store, where it was not before.
    fn admitted(&mut self, id: u32, arrival: &Arrival);

    /// Reports that the packet satisfied an Interest. Ignored if it is not in the store.
    fn hit(&mut self, id: u32);

    /// Reports that the same packet arrived again. Ignored if it is not in the store.
    fn refreshed(&mut self, id: u32, _arrival: &Arrival) {
        self.hit(id);
    }

    /// Reports that the packet was evicted to make room. Ignored if it is not in the store.
    fn evicted(&mut self, id: u32) {
        self.removed(id);
    }

    /// Reports that the packet left the store for another reason. Ignored if it is not in the store.
    fn removed(&mut self, id: u32);

    /// Returns the packet to evict next; `None` when the store is empty. The packet stays in the order until
    /// [`evicted`](Self::evicted) or [`removed`](Self::removed) is called for it.
    fn victim(&mut self) -> Option<u32>;

    /// Reports that the last [`victim`](Self::victim) stays, because new packets were worth less.
    fn spared(&mut self) {}

    /// Returns the packet to evict after the ones that `ahead` has passed: the future result of
    /// [`victim`](Self::victim) if nothing else happens meanwhile, and a guess otherwise. `None` at the end of the
    /// order, or when it is not known.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32>;

    /// Prefetches the memory that [`admitted`](Self::admitted) and [`hit`](Self::hit) read first. Any id may be
    /// given.
    fn prefetch(&self, id: u32);

    /// Prefetches the other memory that [`hit`](Self::hit) needs. Reads what [`prefetch`](Self::prefetch) prefetches.
    /// Any id may be given.
    fn prefetch_hit(&self, _id: u32) {}

    /// Prefetches the memory that [`expected`](Self::expected) reads.
    fn prefetch_name(&self, _name_hash: u64) {}

    /// Number of packets in the store.
    fn len(&self) -> usize;

    /// Returns true if the store is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A cursor in the order of upcoming evictions; at first it is before all packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ahead(pub(crate) Option<Position>);

impl Ahead {
    /// Returns the number that was passed last, for policies with a single order of all numbers.
    pub(crate) fn number(self) -> Option<u32> {
        self.0.map(|position| position.block)
    }

    /// Advances past `number` and returns it.
    pub(crate) fn pass(&mut self, number: u32) -> u32 {
        self.0 = Some(Position { block: number, at: 0 });
        number
    }
}
