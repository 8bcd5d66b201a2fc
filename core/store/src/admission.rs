//! Admission: may Data enter the store at all?

use namehop_table::TableError;

use crate::eviction::Ahead;
use crate::words::Words;
use crate::{Arrival, EvictionPolicy, Parameters};

/// Decides whether Data enters the store. No method allocates.
pub trait AdmissionPolicy: Sized + Send {
    /// Does the decision depend on the packet that would have to leave?
    const COMPARES: bool;
    /// Of those that compare: how many Data are refused for one packet before another one's turn to leave comes.
    const PATIENCE: u32 = 1;
    /// Does it depend on what was asked for, so that [`requested`](Self::requested) has something to do?
    const COUNTS: bool;

    /// A policy for an empty store.
    ///
    /// # Errors
    /// When the memory cannot be had.
    fn new(parameters: &Parameters) -> Result<Self, TableError>;

    /// An Interest asked for a name, whether the store could answer or not.
    fn requested(&mut self, name_hash: u64);

    /// May Data with this name enter, whatever has to leave for it? Policies that [compare](Self::COMPARES) are asked only while
    /// there is room.
    fn admits(&mut self, name_hash: u64) -> bool;

    /// How much keeping the Data of this name is worth: what is worth more than the packet that would have to leave, enters. Asked only
    /// of policies that compare.
    fn worth(&self, _name_hash: u64) -> u32 {
        0
    }

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
    fn admits(&mut self, _: u64) -> bool {
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
    /// What the packet was worth that has to leave next, when it was last looked at; for those policies, too.
    bar: Option<u32>,
    /// Data refused since then.
    refused: u32,
}

impl<A: AdmissionPolicy, E: EvictionPolicy> Guarded<A, E> {
    /// A policy for an empty store.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let names = if A::COMPARES { parameters.slots } else { 0 };
        let (admission, eviction) = (A::new(parameters)?, E::new(parameters)?);
        Ok(Guarded { admission, eviction, names: Words::new(names)?, bar: None, refused: 0 })
    }

    /// Is this name worth more than the packet that would have to leave? That one is looked at once, and then again only after it
    /// has been in the way of as many others as [`AdmissionPolicy::PATIENCE`] says: then it has another round, so that one packet
    /// which is worth more than all that come does not keep all of them out.
    #[inline]
    fn exceeds_victim(&mut self, name_hash: u64) -> bool {
        let bar = match self.bar {
            Some(bar) => bar,
            None => {
                let Some(victim) = self.eviction.victim() else { return true };
                let bar = self.admission.worth(self.names.get(victim as usize));
                self.bar = Some(bar);
                self.refused = 0;
                bar
            }
        };
        let exceeds = self.admission.worth(name_hash) > bar;
        if !exceeds {
            self.refused += 1;
            if self.refused >= A::PATIENCE {
                self.eviction.spared();
                self.bar = None;
            }
        }
        exceeds
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
        let admits = match A::COMPARES && is_full {
            true => self.exceeds_victim(arrival.name_hash),
            false => self.admission.admits(arrival.name_hash),
        };
        if admits {
            self.eviction.expected(arrival);
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
        self.bar = None;
        self.eviction.evicted(id);
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.bar = None;
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
        // Others look at it too seldom.
        if A::COMPARES && A::PATIENCE == 1 {
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
