//! TinyLFU admission (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM TOS
//! 2017), as published and in a form that examines fewer packets.

use namehop_table::TableError;

use crate::sketch::Sketch;
use crate::{AdmissionPolicy, Parameters};

/// Default number of requests in a sample per packet of the store, as its authors recommend. It is also called the
/// window of TinyLFU.
pub const TINYLFU_SAMPLE: u32 = 10;
/// The same for the patient form: hit rates of workloads with constant popularities rise up to this length.
const LONG_SAMPLE: u32 = 50;
/// Rejections per victim in the patient form: with more, hit rate and speed stay the same.
const PATIENCE: u32 = 32;
/// Requests of a sample per cache line of counters. With the long sample, more requests per line do not lower the hit
/// rate.
pub(crate) const SAMPLE_PER_LINE: u64 = 32;
const LONG_SAMPLE_PER_LINE: u64 = 80;

/// As published: all arriving Data are compared with the victim.
pub type TinyLfu = Frequency<1>;

/// Compares arriving Data with the victim's value when that was last determined: so a rejection reads only the
/// counters of the arriving name.
pub type PatientTinyLfu = Frequency<PATIENCE>;

/// Admits Data if its name was requested more often recently than the victim's.
///
/// 2 bytes for each request of a sample, 0.8 in the patient form: 20 per packet of the capacity, and 40. In addition
/// [`Guarded`](crate::admission::Guarded) keeps the hash of each name, 8 bytes per slot.
#[derive(Debug)]
pub struct Frequency<const REFUSALS: u32> {
    sketch: Sketch,
}

impl<const REFUSALS: u32> AdmissionPolicy for Frequency<REFUSALS> {
    const COMPARES: bool = true;
    const PATIENCE: u32 = REFUSALS;
    const COUNTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let (usual, per_line) =
            if REFUSALS == 1 { (TINYLFU_SAMPLE, SAMPLE_PER_LINE) } else { (LONG_SAMPLE, LONG_SAMPLE_PER_LINE) };
        Ok(Frequency { sketch: Sketch::new(parameters.sample(usual), per_line)? })
    }

    #[inline]
    fn requested(&mut self, name_hash: u64) {
        self.sketch.count(name_hash);
    }

    #[inline]
    fn admits(&mut self, _: u64) -> bool {
        true
    }

    #[inline]
    fn worth(&self, name_hash: u64) -> u32 {
        self.sketch.estimate(name_hash).into()
    }

    #[inline]
    fn prefetch(&self, name_hash: u64) {
        self.sketch.prefetch(name_hash);
    }
}
