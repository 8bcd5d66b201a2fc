//! Admission: decides whether Data enters the store.

use namehop_table::TableError;

use crate::eviction::Ahead;
use crate::words::Words;
use crate::{Arrival, EvictionPolicy, Parameters};

/// Decides whether Data enters the store. No method allocates memory.
pub trait AdmissionPolicy: Sized + Send {
    /// True if the decision depends on the packet that would be evicted.
    const COMPARES: bool;
    /// For policies that compare: true if Data enters, too, that is worth as much as the victim.
    const ADMITS_EQUALS: bool = false;
    /// For policies that compare: number of Data rejected against one victim before that victim gets another round.
    const PATIENCE: u32 = 1;
    /// True if the decision depends on past Interests, which [`requested`](Self::requested) reports.
    const COUNTS: bool;

    /// Makes a policy for an empty store.
    ///
    /// # Errors
    /// If the memory is not available.
    fn new(parameters: &Parameters) -> Result<Self, TableError>;

    /// Reports the name of an Interest, whether it was a hit or a miss.
    fn requested(&mut self, name_hash: u64);

    /// Returns true if Data with this name may enter, regardless of the victim. For policies that
    /// [compare](Self::COMPARES) it is called only while the store has room.
    fn admits(&mut self, name_hash: u64) -> bool;

    /// Returns the value of keeping the Data of this name; Data enters if its value exceeds the victim's, or equals it
    /// with [`ADMITS_EQUALS`](Self::ADMITS_EQUALS). Called only for policies that compare.
    fn worth(&self, _name_hash: u64) -> u32 {
        0
    }

    /// Prefetches the memory that [`admits`](Self::admits) and [`worth`](Self::worth) read.
    fn prefetch(&self, name_hash: u64);

    /// Prefetches the memory that [`requested`](Self::requested) reads. Called once for each request of a group, before
    /// the first one is reported.
    fn prefetch_request(&self, name_hash: u64) {
        self.prefetch(name_hash);
    }
}

/// Admits all Data.
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

/// An admission policy with what it needs to compare packets with the victim of an eviction policy.
#[derive(Debug)]
pub(crate) struct Contest<A> {
    pub(crate) admission: A,
    /// Name hashes of the packets in the store; 8 bytes per slot.
    names: Words,
    /// Value of the victim when it was last determined.
    bar: Option<u32>,
    /// Number of packets that lost against it since then.
    refused: u32,
}

impl<A: AdmissionPolicy> Contest<A> {
    /// Makes a contest for an empty store.
    ///
    /// # Errors
    /// If the memory is not available.
    pub(crate) fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let names = if A::COMPARES { parameters.slots } else { 0 };
        Ok(Contest { admission: A::new(parameters)?, names: Words::new(names)?, bar: None, refused: 0 })
    }

    /// Notes the name of a packet that entered the store.
    #[inline]
    pub(crate) fn set_name(&mut self, id: u32, name_hash: u64) {
        if A::COMPARES {
            self.names.set(id as usize, name_hash);
        }
    }

    /// Returns the hash of the name of a packet in the store.
    #[inline]
    pub(crate) fn name(&self, id: u32) -> u64 {
        self.names.get(id as usize)
    }

    /// Returns true if this name has a higher value than the victim, or the same and the policy
    /// [admits it](AdmissionPolicy::ADMITS_EQUALS). The victim's value is determined once, and again only after it led
    /// to [`AdmissionPolicy::PATIENCE`] rejections. Then the victim gets another round, so that a single packet with a
    /// higher value than all arrivals does not keep them all out.
    #[inline]
    pub(crate) fn exceeds_victim(&mut self, name_hash: u64, eviction: &mut impl EvictionPolicy) -> bool {
        let bar = match self.bar {
            Some(bar) => bar,
            None => {
                let Some(victim) = eviction.victim() else { return true };
                let bar = self.admission.worth(self.name(victim));
                self.bar = Some(bar);
                self.refused = 0;
                bar
            }
        };
        let worth = self.admission.worth(name_hash);
        let exceeds = worth > bar || A::ADMITS_EQUALS && worth == bar;
        if !exceeds {
            self.refused += 1;
            if self.refused >= A::PATIENCE {
                eviction.spared();
                self.bar = None;
            }
        }
        exceeds
    }

    /// Reports that the victim left the store, or may have.
    #[inline]
    pub(crate) fn victim_left(&mut self) {
        self.bar = None;
    }

    /// Prefetches the memory that holds the hash of a packet's name.
    #[inline]
    pub(crate) fn prefetch_name(&self, id: u32) {
        self.names.prefetch(id as usize);
    }

    /// Prefetches the memory that the value of a packet in the store is read from.
    #[inline]
    pub(crate) fn prefetch_worth(&self, id: u32, name_hash: u64) {
        self.prefetch_name(id);
        self.admission.prefetch(name_hash);
    }
}

/// An admission policy in front of an eviction policy: the whole policy of a store.
#[derive(Debug)]
pub struct Guarded<A, E> {
    contest: Contest<A>,
    eviction: E,
}

impl<A: AdmissionPolicy, E: EvictionPolicy> Guarded<A, E> {
    /// Makes a policy for an empty store.
    ///
    /// # Errors
    /// If the memory is not available.
    pub fn new(parameters: &Parameters) -> Result<Self, TableError> {
        Ok(Guarded { contest: Contest::new(parameters)?, eviction: E::new(parameters)? })
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
        self.contest.admission.requested(name_hash);
    }

    #[inline]
    fn admits(&mut self, arrival: &Arrival, is_full: bool) -> bool {
        let admits = match A::COMPARES && is_full {
            true => self.contest.exceeds_victim(arrival.name_hash, &mut self.eviction),
            false => self.contest.admission.admits(arrival.name_hash),
        };
        if admits {
            self.eviction.expected(arrival);
        }
        admits
    }

    #[inline]
    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        self.contest.set_name(id, arrival.name_hash);
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
        self.contest.victim_left();
        self.eviction.evicted(id);
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.contest.victim_left();
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

    fn admits_most(&self) -> bool {
        !A::COUNTS
    }

    fn compares_each(&self) -> bool {
        A::COMPARES && A::PATIENCE == 1
    }

    #[inline]
    fn prefetch_request(&self, name_hash: u64) {
        self.contest.admission.prefetch_request(name_hash);
    }

    #[inline]
    fn prefetch_name(&self, name_hash: u64) {
        self.contest.admission.prefetch(name_hash);
        self.eviction.prefetch_name(name_hash);
    }

    #[inline]
    fn prefetch_victim(&self, id: u32, name_hash: u64) {
        self.eviction.prefetch(id);
        // Patient policies read it too rarely.
        if self.compares_each() {
            self.contest.prefetch_worth(id, name_hash);
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.eviction.len()
    }
}

/// The interface between a store and its policy: admission and eviction together. Methods that [`EvictionPolicy`]
/// has, too, mean the same.
pub trait CachePolicy: Send {
    /// Returns true if [`requested`](Self::requested) has an effect.
    fn counts(&self) -> bool;
    /// Returns true if the policy admits most Data. Others admit a few packets in a hundred, so that prefetching the
    /// place of each is not worthwhile.
    fn admits_most(&self) -> bool;
    /// Returns true if the policy examines arriving Data. If not, [`admits`](Self::admits) always returns true, and
    /// neither it nor [`prefetch_name`](Self::prefetch_name) has another effect.
    fn expects(&self) -> bool;
    /// Reports the name of an Interest, whether it was a hit or a miss.
    fn requested(&mut self, name_hash: u64);
    /// Returns true if this Data, which is not in the store, may enter. The caller then inserts it: it evicts a
    /// packet if `is_full`, and calls [`admitted`](Self::admitted), unless there is no memory for the Data.
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
    /// Evicts the [`victim`](Self::victim) and returns it; `None` when the store is empty.
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
    /// Returns true if the policy examines a packet that may be evicted for each arriving Data. So the prefetch plane
    /// predicts one for each, although most Data may be rejected.
    fn compares_each(&self) -> bool;
    /// Prefetches the memory that [`requested`](Self::requested) reads. Called once for each request of a group, before
    /// the first one is reported.
    fn prefetch_request(&self, name_hash: u64);
    /// Prefetches the memory that the decision about the Data of a name reads.
    fn prefetch_name(&self, name_hash: u64);
    /// Prefetches the memory that evicting the packet with this name, and comparing with it, read. Any arguments may
    /// be given.
    fn prefetch_victim(&self, id: u32, name_hash: u64);
    /// Number of packets in the store.
    fn len(&self) -> usize;
    /// Returns true if the store is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
