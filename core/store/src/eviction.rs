//! Eviction: which packet leaves when the store is full.

use namehop_table::TableError;

use crate::Parameters;
use crate::list::Place;

/// Data that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Hash of its name, well mixed in all 64 bits.
    pub name_hash: u64,
    /// When it came, in nanoseconds.
    pub now: u64,
    /// Until when it is fresh, on the same clock.
    pub fresh_until: u64,
    /// Did anybody ask for it?
    pub is_solicited: bool,
}

impl Arrival {
    /// Data that somebody asked for and that stays fresh.
    pub fn fresh(name_hash: u64) -> Self {
        Arrival { name_hash, now: 0, fresh_until: u64::MAX, is_solicited: true }
    }
}

/// Order in which packets leave a full store.
///
/// The store tells it what happens to each packet; ids are below the number of slots the policy was made with, and methods
/// that change something may panic on one that is not. No method allocates.
pub trait EvictionPolicy: Sized + Send {
    /// Does [`expected`](Self::expected) or [`prefetch_name`](Self::prefetch_name) do anything?
    const EXPECTS: bool = false;

    /// A policy for an empty store.
    ///
    /// # Errors
    /// When the memory cannot be had.
    fn new(parameters: &Parameters) -> Result<Self, TableError>;

    /// This Data will enter: said before room is made for it, so that policies that remember names can look it up.
    fn expected(&mut self, _arrival: &Arrival) {}

    /// The packet entered the store; it was not there.
    fn admitted(&mut self, id: u32, arrival: &Arrival);

    /// The packet answered an Interest. Nothing happens if it is not in the store.
    fn hit(&mut self, id: u32);

    /// The same packet came again. Nothing happens if it is not in the store.
    fn refreshed(&mut self, id: u32, _arrival: &Arrival) {
        self.hit(id);
    }

    /// The packet left the store to make room for another. Nothing happens if it is not in the store.
    fn evicted(&mut self, id: u32) {
        self.removed(id);
    }

    /// The packet left the store for another reason. Nothing happens if it is not in the store.
    fn removed(&mut self, id: u32);

    /// The packet to evict next; `None` when the store is empty. It stays in the order until [`evicted`](Self::evicted) or
    /// [`removed`](Self::removed) is called for it.
    fn victim(&mut self) -> Option<u32>;

    /// The last [`victim`](Self::victim) stays, because the new packet did not deserve its place.
    fn spared(&mut self) {}

    /// The packet to evict after those that `ahead` has passed: what [`victim`](Self::victim) will say later if nothing else
    /// happens meanwhile, and a guess if something does. `None` at the end of the order, or when it is not known.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32>;

    /// Asks for the memory that [`admitted`](Self::admitted) and [`hit`](Self::hit) look at first. Any id may be given.
    fn prefetch(&self, id: u32);

    /// Asks for what else [`hit`](Self::hit) needs. Reads what [`prefetch`](Self::prefetch) asks for. Any id may be given.
    fn prefetch_hit(&self, _id: u32) {}

    /// Asks for what [`expected`](Self::expected) looks at.
    fn prefetch_name(&self, _name_hash: u64) {}

    /// Packets in the store.
    fn len(&self) -> usize;

    /// Is the store empty?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How far a look at the packets to be evicted next has come; at first, before all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ahead(pub(crate) Option<Place>);

impl Ahead {
    /// The number that was passed last, for policies that have one order of all numbers.
    pub(crate) fn number(self) -> Option<u32> {
        self.0.map(|place| place.block)
    }

    /// Passes a number.
    pub(crate) fn pass(&mut self, number: u32) -> u32 {
        self.0 = Some(Place { block: number, at: 0 });
        number
    }
}
