//! TinyLFU admission (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM TOS 2017), as
//! published and in a form that looks at fewer packets.

use namehop_table::TableError;

use crate::sketch::Sketch;
use crate::{AdmissionPolicy, Parameters};

/// Requests of a sample for each packet of the store, unless told otherwise: as its authors recommend.
const SAMPLE: u32 = 10;
/// The same of the patient form: the rates of workloads whose popularities do not change rise up to there.
const LONG_SAMPLE: u32 = 50;
/// Refusals for one packet, of the patient form: with more of them, hit rates and speed stay the same.
const PATIENCE: u32 = 32;
/// Requests of a sample for each cache line of counters. With the long sample more of them do no harm to the hit rate.
pub(crate) const SAMPLE_PER_LINE: u64 = 32;
const LONG_SAMPLE_PER_LINE: u64 = 80;

/// As published: each Data that comes is compared with the packet which would have to leave.
pub type TinyLfu = Frequency<1>;

/// Each Data that comes is compared with what the packet was worth that would have to leave, when that was last looked at: so a
/// refusal looks at the counters of the name that came and at nothing else.
pub type PatientTinyLfu = Frequency<PATIENCE>;

/// Data enters if its name was asked for more often lately than that of the packet which would have to leave.
///
/// 2 bytes for each request of a sample, 0.8 in the patient form: 20 per packet of the capacity, and 40. And
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
            if REFUSALS == 1 { (SAMPLE, SAMPLE_PER_LINE) } else { (LONG_SAMPLE, LONG_SAMPLE_PER_LINE) };
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
