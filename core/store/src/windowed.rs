//! A window in front of a store. All new Data stays there until enough other Data has followed it.

use namehop_table::TableError;

use crate::admission::Contest;
use crate::list::OrderedNumbers;
use crate::{AdmissionPolicy, Ahead, Arrival, CachePolicy, EvictionPolicy, Parameters};

/// Default share of the store that new packets enter.
const WINDOW: f64 = 0.03;

/// All Data enters a window, where it stays until as many packets as the window holds have entered behind it. Then the
/// admission policy, which must [compare](AdmissionPolicy::COMPARES), compares it with the next victim of the rest of
/// the store. If it is worth more, it moves there and the victim is evicted. Otherwise it is evicted itself.
///
/// So a retransmitted Interest finds its Data, and several requests for a new name in a short time fetch it once.
///
/// Besides the memory of both policies 4 bytes per slot.
#[derive(Debug)]
pub struct Windowed<A, E> {
    contest: Contest<A>,
    window: OrderedNumbers,
    rest: E,
    window_capacity: usize,
    rest_capacity: usize,
}

impl<A: AdmissionPolicy, E: EvictionPolicy> Windowed<A, E> {
    const IS_MEANT: () = assert!(A::COMPARES, "packets that leave the window are compared");

    /// Makes a policy for an empty store.
    ///
    /// # Errors
    /// If the memory is not available.
    pub fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let () = Self::IS_MEANT;
        let window_capacity = parameters.share(parameters.tuning.window.unwrap_or(WINDOW)).max(1);
        Ok(Windowed {
            contest: Contest::new(parameters)?,
            window: OrderedNumbers::new(parameters.slots)?,
            rest: E::new(parameters)?,
            window_capacity,
            rest_capacity: parameters.capacity.saturating_sub(window_capacity),
        })
    }

    /// Moves the oldest packet of the window to the rest.
    #[inline]
    fn leave_window(&mut self, oldest: u32) {
        self.window.remove(oldest);
        self.rest.admitted(oldest, &Arrival::fresh(self.contest.name(oldest)));
    }
}

impl<A: AdmissionPolicy, E: EvictionPolicy> CachePolicy for Windowed<A, E> {
    fn counts(&self) -> bool {
        A::COUNTS
    }

    fn admits_most(&self) -> bool {
        true
    }

    fn expects(&self) -> bool {
        false
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        self.contest.admission.requested(name_hash);
    }

    #[inline]
    fn admits(&mut self, _: &Arrival, _: bool) -> bool {
        true
    }

    #[inline]
    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        self.contest.set_name(id, arrival.name_hash);
        self.window.push_back(id);
        // While the store fills up, the rest has room.
        while self.window.len() > self.window_capacity
            && self.rest.len() < self.rest_capacity
            && let Some(oldest) = self.window.front()
        {
            self.leave_window(oldest);
        }
    }

    /// A use in the window does not count where the packet moves to.
    #[inline]
    fn hit(&mut self, id: u32) {
        self.rest.hit(id);
    }

    #[inline]
    fn refreshed(&mut self, id: u32, arrival: &Arrival) {
        self.rest.refreshed(id, arrival);
    }

    #[inline]
    fn evicted(&mut self, id: u32) {
        if !self.window.remove(id) {
            self.contest.victim_left();
            self.rest.evicted(id);
        }
    }

    #[inline]
    fn removed(&mut self, id: u32) {
        self.contest.victim_left();
        if !self.window.remove(id) {
            self.rest.removed(id);
        }
    }

    #[inline]
    fn victim(&mut self) -> Option<u32> {
        let oldest = self.window.front();
        let Some(oldest) = oldest.filter(|_| self.window.len() >= self.window_capacity || self.rest.is_empty()) else {
            return self.rest.victim();
        };
        if self.rest.is_empty() || !self.contest.exceeds_victim(self.contest.name(oldest), &mut self.rest) {
            return Some(oldest);
        }
        let victim = self.rest.victim();
        self.leave_window(oldest);
        victim
    }

    /// The oldest packets of the window: most lose the comparison.
    #[inline]
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        let (id, place) = self.window.behind(ahead.0)?;
        ahead.0 = Some(place);
        Some(id)
    }

    #[inline]
    fn prefetch(&self, id: u32) {
        self.window.prefetch_note(id);
        self.contest.prefetch_name(id);
        self.rest.prefetch(id);
    }

    #[inline]
    fn prefetch_hit(&self, id: u32) {
        self.rest.prefetch_hit(id);
    }

    fn compares_each(&self) -> bool {
        true
    }

    #[inline]
    fn prefetch_request(&self, name_hash: u64) {
        self.contest.admission.prefetch_request(name_hash);
    }

    #[inline]
    fn prefetch_name(&self, _: u64) {}

    #[inline]
    fn prefetch_victim(&self, id: u32, name_hash: u64) {
        self.contest.prefetch_worth(id, name_hash);
    }

    #[inline]
    fn len(&self) -> usize {
        self.window.len() + self.rest.len()
    }
}
