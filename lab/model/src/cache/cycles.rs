//! Average cycles of packets with a cache policy: equations 5.1 and 5.2 of the thesis.

use serde::Serialize;

/// Costs of the blocks of figures 5.1 and 5.2 of the thesis, cycles or bytes of memory, by their numbers: B1, B3 to B11 for all
/// policies, B2, B12 and B13 for one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BlockCosts {
    /// B1, B3, B11: of each Interest, whatever happens. B2 belongs to the policy.
    pub always: f64,
    /// B4: of a hit.
    pub hit: f64,
    /// B5 to B9: of a miss.
    pub miss: f64,
    /// B10: Data enters.
    pub insertion: f64,
    /// B2: the policy learns of the Interest.
    pub history: f64,
    /// B12: the policy finds a victim for all Data that comes.
    pub eviction: f64,
    /// B13: the policy decides whether Data enters.
    pub admission: f64,
}

impl BlockCosts {
    /// Average cost of an Interest and, where it missed, its Data: equations 5.1 and 5.2, 6.11, 6.12, 6.14 and 6.15. The odd ones are
    /// the even ones with an insertion rate of 1.
    pub fn average(&self, hit_rate: f64, insertion_rate: f64) -> f64 {
        let missed = self.miss + self.eviction + self.admission + insertion_rate * self.insertion;
        self.always + self.history + hit_rate * self.hit + (1.0 - hit_rate) * missed
    }
}
