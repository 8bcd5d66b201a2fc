//! The cache policies that simulations compare, with the settings of their publications.

use namehop_store::{PolicyChoice, PolicyKind, Tuning};

use crate::published::{self, Published};

/// Requests per sample of the published TinyLFU, per packet of cache capacity.
const SAMPLE: u32 = 50;
/// Counters of the published Filter.
pub(crate) const COUNTERS: u32 = 1 << 24;

/// The published policies with their published settings and hit rates (web workload, 1 %), and the router's default,
/// which was not published.
pub(crate) fn compared() -> [(&'static str, PolicyChoice, Option<Published>); 7] {
    let [fifo, random, lfu, arc, tinylfu, filter] = published::WEB_HIT_RATES.map(Some);
    let with = |kind, tuning| PolicyChoice { kind, tuning };
    let usual = Tuning::default();
    [
        ("FIFO", PolicyKind::Fifo.into(), fifo),
        ("Random", PolicyKind::Random.into(), random),
        ("LFU", PolicyKind::Lfu.into(), lfu),
        ("ARC", PolicyKind::Arc.into(), arc),
        ("TinyLFU", with(PolicyKind::TinyLfuRandom, Tuning { sample: Some(SAMPLE), ..usual }), tinylfu),
        ("Filter", with(PolicyKind::Filter, Tuning { counters: Some(COUNTERS), ..usual }), filter),
        ("Namehop's default", PolicyKind::default().into(), None),
    ]
}
