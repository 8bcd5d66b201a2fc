//! Cache policies: cycles by the published blocks, Filter's model, simulations of the published workloads, and
//! measurements of the engine with each policy.
//!
//! | file | what |
//! |---|---|
//! | `filter` | false positives, threshold and model of Filter |
//! | `rates` | hit and insertion rates, simulated |
//! | `cycles` | average cycles from rates and blocks |
//! | `engine` | blocks and forwarding speed, measured in the engine |
//! | `accesses` | dependent memory accesses |

pub(crate) mod accesses;
pub(crate) mod cycles;
pub(crate) mod engine;
pub(crate) mod filter;
pub(crate) mod rates;

use namehop_model::cache::FilterModel;
use namehop_store::{PolicyChoice, PolicyKind, Tuning};
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

use crate::published::{self, Published};

/// Cache capacity in packets of the published rates.
const CAPACITY: usize = 100_000;
/// Requests per sample of the published TinyLFU, per packet of cache capacity.
const SAMPLE: u32 = 50;
/// Counters of the published Filter.
const COUNTERS: u32 = 1 << 24;
/// Conditions of computed values.
pub(crate) const ARITHMETIC: &str = "arithmetic only, nothing is measured";

/// The model with the published web workload.
fn web_model(history: f64, threshold: u32) -> FilterModel {
    let shape = WorkloadShape::published(WorkloadKind::Web);
    let capacity = CAPACITY as u64;
    FilterModel { packets: shape.objects, alpha: shape.alpha, capacity, history, threshold, counters: None }
}

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
