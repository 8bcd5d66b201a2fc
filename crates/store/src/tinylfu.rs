//! TinyLFU admission (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM TOS 2017).

use namehop_table::TableError;

use crate::sketch::Sketch;
use crate::{AdmissionPolicy, Parameters};

/// Data enters if its name was asked for more often lately than that of the packet which would have to leave.
///
/// 4 to 8 bytes for each request of a sample: with the usual sample 40 to 80 per packet of the capacity. And
/// [`Guarded`](crate::admission::Guarded) keeps the hash of each name, 8 bytes per slot.
#[derive(Debug)]
pub struct TinyLfu {
    sketch: Sketch,
}

impl AdmissionPolicy for TinyLfu {
    const COMPARES: bool = true;
    const COUNTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let sample = (parameters.capacity as u64).saturating_mul(parameters.tuning.sample.into());
        Ok(TinyLfu { sketch: Sketch::new(sample)? })
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        self.sketch.count(name_hash);
    }

    #[inline]
    fn admits(&mut self, name_hash: u64, victim: Option<u64>) -> bool {
        victim.is_none_or(|victim| self.sketch.estimate(name_hash) > self.sketch.estimate(victim))
    }

    #[inline]
    fn prefetch(&self, name_hash: u64) {
        self.sketch.prefetch(name_hash);
    }
}
