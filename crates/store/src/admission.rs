//! Admission: may Data enter the store at all?

use namehop_table::TableError;

use crate::eviction::Ahead;
use crate::words::Words;
use crate::{Arrival, EvictionPolicy, Parameters};

/// Decides whether Data enters the store. No method allocates.
pub trait AdmissionPolicy: Sized + Send {
    /// Does the decision depend on the packet that would have to leave?
    const COMPARES: bool;
    /// Does it depend on what was asked for, so that [`requested`](Self::requested) has something to do?
    const COUNTS: bool;

    /// A policy for an empty store.
    ///
    /// # Errors
    /// When the memory cannot be had.
    fn new(parameters: &Parameters) -> Result<Self, TableError>;

    /// An Interest asked for a name, whether the store could answer or not.
    fn requested(&mut self, name_hash: u64);

    /// May Data with this name enter? `victim` is the name of the packet that would have to leave; `None` if there is room, or
    /// if the policy does not [compare](Self::COMPARES).
    fn admits(&mut self, name_hash: u64, victim: Option<u64>) -> bool;

    /// Asks for what [`requested`](Self::requested) and [`admits`](Self::admits) look at.
    fn prefetch(&self, name_hash: u64);
}

/// All Data enter.
#[derive(Debug)]
pub struct Everything;

impl AdmissionPolicy for Everything {
    const COMPARES: bool = false;
    const COUNTS: bool = false;

    fn new(_: &Parameters) -> Result<Self, TableError> {
        Ok(Everything)
    }

    #[inline]
    fn requested(&mut self, _: u64) {}

    #[inline]
    fn admits(&mut self, _: u64, _: Option<u64>) -> bool {
        true
    }

    #[inline]
    fn prefetch(&self, _: u64) {}
}

/// An admission policy in front of an eviction policy: all that a store asks.
#[derive(Debug)]
pub struct Guarded<A, E> {
    admission: A,
    eviction: E,
    /// Hashes of the names in the store, for admission policies that compare; 8 bytes per slot.
    names: Words,
}

impl<A: AdmissionPolicy, E: EvictionPolicy> Guarded<A, E> {
    /// A policy for an empty store.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let names = if A::COMPARES { parameters.slots } else { 0 };
        Ok(Guarded { admission: A::new(parameters)?, eviction: E::new(parameters)?, names: Words::new(names)? })
    }
}

impl<A: AdmissionPolicy, E: EvictionPolicy> CachePolicy for Guarded<A, E> {
    fn counts(&self) -> bool {
        A::COUNTS
    }

    fn expects(&self) -> bool {
        A::COUNTS || E::EXPECTS
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        self.admission.requested(name_hash);
    }

    #[inline]
    fn admits(&mut self, arrival: &Arrival, is_full: bool) -> bool {
        let victim = if A::COMPARES && is_full { self.eviction.victim() } else { None };
        let victim_name = victim.map(|id| self.names.get(id as usize));
        let admits = self.admission.admits(arrival.name_hash, victim_name);
        if admits {
            self.eviction.expected(arrival);
        } else if victim.is_some() {
            self.eviction.spared();
        }
        admits
    }

    #[inline]
    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        if A::COMPARES {
            self.names.set(id as usize, arrival.name_hash);
        }
        self.eviction.admitted(id, arrival);
    }

    #[inline]
    fn hit(&mut self, id: u32) {
        self.eviction.hit(id);
    }

    #[inline]
    fn refreshed(&mut self, id: u32, arrival: &Arrival) {
        self.eviction.refreshed(id, arrival);
    }

    #[inline]
    fn evicted(&mut self, id: u32) {
        self.eviction.evicted(id);
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.eviction.removed(id);
    }

    #[inline]
    fn victim(&mut self) -> Option<u32> {
        self.eviction.victim()
    }

    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.eviction.upcoming(ahead)
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        self.eviction.prefetch(id);
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        self.eviction.prefetch_hit(id);
    }

    #[inline]
    fn prefetch_name(&self, name_hash: u64) {
        self.admission.prefetch(name_hash);
        self.eviction.prefetch_name(name_hash);
    }

    #[inline]
    fn prefetch_victim(&self, id: u32, name_hash: u64) {
        self.eviction.prefetch(id);
        if A::COMPARES {
            self.names.prefetch(id as usize);
            self.admission.prefetch(name_hash);
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.eviction.len()
    }
}

/// What a store asks its policy: admission and eviction together. Methods that [`EvictionPolicy`] has, too, mean the same.
pub trait CachePolicy: Send {
    /// Does [`requested`](Self::requested) do anything?
    fn counts(&self) -> bool;
    /// Does it look at Data that comes? If not, [`admits`](Self::admits) says yes, and neither it nor
    /// [`prefetch_name`](Self::prefetch_name) does anything.
    fn expects(&self) -> bool;
    /// An Interest asked for a name, whether the store could answer or not.
    fn requested(&mut self, name_hash: u64);
    /// May this Data, which is not in the store, enter? If so, it does: room is made where `is_full` says that there is none,
    /// and [`admitted`](Self::admitted) follows, unless there is no memory for it.
    fn admits(&mut self, arrival: &Arrival, is_full: bool) -> bool;
    /// See [`EvictionPolicy::admitted`].
    fn admitted(&mut self, id: u32, arrival: &Arrival);
    /// See [`EvictionPolicy::hit`].
    fn hit(&mut self, id: u32);
    /// See [`EvictionPolicy::refreshed`].
    fn refreshed(&mut self, id: u32, arrival: &Arrival);
    /// See [`EvictionPolicy::evicted`].
    fn evicted(&mut self, id: u32);
    /// See [`EvictionPolicy::removed`].
    fn removed(&mut self, id: u32);
    /// See [`EvictionPolicy::victim`].
    fn victim(&mut self) -> Option<u32>;
    /// Has the [`victim`](Self::victim) leave to make room; `None` when the store is empty.
    fn evict(&mut self) -> Option<u32> {
        let victim = self.victim()?;
        self.evicted(victim);
        Some(victim)
    }
    /// See [`EvictionPolicy::upcoming`].
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32>;
    /// See [`EvictionPolicy::prefetch`].
    fn prefetch(&self, id: u32);
    /// See [`EvictionPolicy::prefetch_hit`].
    fn prefetch_hit(&self, id: u32);
    /// Asks for what a request for a name, and the decision about its Data, look at.
    fn prefetch_name(&self, name_hash: u64);
    /// Asks for what the eviction of the packet with this name, and the comparison with it, look at. Anything may be given.
    fn prefetch_victim(&self, id: u32, name_hash: u64);
    /// Packets in the store.
    fn len(&self) -> usize;
    /// Is the store empty?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
