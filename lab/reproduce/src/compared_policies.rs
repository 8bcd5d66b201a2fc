//! The cache policies that simulations compare, with the settings of their publications.

use namehop_simulate::policy::SimulatedPolicy;
use namehop_store::{PolicyChoice, PolicyKind, Tuning};

use crate::published::{self, Published};

/// Window of the published TinyLFU, in requests per packet of cache capacity.
pub(crate) const WINDOW: u32 = 50;
/// Counters of the published Filter.
pub(crate) const COUNTERS: u32 = 1 << 24;
/// Name of the published LFU in reports.
pub(crate) const PERFECT_LFU: &str = "perfect LFU";
/// Name of the router's LFU in reports.
pub(crate) const ROUTER_LFU: &str = "Namehop's LFU";
/// Name of the router's default policy in reports.
pub(crate) const DEFAULT: &str = "Namehop's default";

/// A policy with its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    /// Name in reports.
    pub(crate) name: &'static str,
    pub(crate) policy: SimulatedPolicy,
    /// Published hit rate: web workload, 1 %.
    pub(crate) published: Option<Published>,
}

/// The published policies with their published settings, then two of the router that were not published: its LFU and
/// its default.
///
/// The published LFU is perfect LFU: according to the thesis (5.4.2), it has the best hit rate possible, which only
/// counts of all names reach.
pub(crate) fn compared() -> [Compared; 8] {
    let [fifo, random, lfu, arc, tinylfu, filter] = published::WEB_HIT_RATES.map(Some);
    let usual = |name, kind: PolicyKind, published| Compared { name, policy: kind.into(), published };
    let tuned = |name, kind, tuning, published| {
        let choice = PolicyChoice { kind, tuning };
        Compared { name, policy: choice.into(), published }
    };
    let default = Tuning::default();
    [
        usual("FIFO", PolicyKind::Fifo, fifo),
        usual("Random", PolicyKind::Random, random),
        Compared { name: PERFECT_LFU, policy: SimulatedPolicy::PerfectLfu, published: lfu },
        usual("ARC", PolicyKind::Arc, arc),
        tuned("TinyLFU", PolicyKind::TinyLfuRandom, Tuning { sample: Some(WINDOW), ..default }, tinylfu),
        tuned("Filter", PolicyKind::Filter, Tuning { counters: Some(COUNTERS), ..default }, filter),
        usual(ROUTER_LFU, PolicyKind::Lfu, None),
        usual(DEFAULT, PolicyKind::default(), None),
    ]
}

/// The compared policies with these names, in the order of [`compared`].
pub(crate) fn named(names: &[&str]) -> Vec<Compared> {
    compared().into_iter().filter(|policy| names.contains(&policy.name)).collect()
}
