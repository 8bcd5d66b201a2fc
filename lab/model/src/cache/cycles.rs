//! Average cycles per packet with a cache policy: equations 5.1 and 5.2 of the thesis.

use serde::Serialize;

/// Costs of the numbered blocks of figures 5.1 and 5.2 of the thesis, in cycles or in bytes of memory. B1 and B3 to
/// B11 occur with all policies; B2, B12 and B13 belong to one policy.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BlockCosts {
    /// B1, B3, B11: every Interest, hit or miss.
    pub always: f64,
    /// B4: a hit.
    pub hit: f64,
    /// B5 to B9: a miss.
    pub miss: f64,
    /// B10: insertion of Data.
    pub insertion: f64,
    /// B2: the policy records the Interest.
    pub history: f64,
    /// B12: the policy selects a victim, for all Data received.
    pub eviction: f64,
    /// B13: the policy decides on admission.
    pub admission: f64,
}

impl BlockCosts {
    /// Average cost of an Interest and, if it missed, of its Data: equations 5.1, 5.2, 6.11, 6.12, 6.14 and 6.15.
    /// Equations 5.1, 6.11 and 6.12 are the case of an insertion rate of 1.
    pub fn average(&self, hit_rate: f64, insertion_rate: f64) -> f64 {
        let missed = self.miss + self.eviction + self.admission + insertion_rate * self.insertion;
        self.always + self.history + hit_rate * self.hit + (1.0 - hit_rate) * missed
    }
}
