//! Cache policies: cycles by the published blocks, Filter's model, simulations of the published workloads, and
//! measurements of the engine with each policy.
//!
//! | file | what |
//! |---|---|
//! | `filter` | false positives, threshold and model of Filter |
//! | `rates` | simulations with the published workloads |
//! | `insertion_rates` | insertion rates of Filter and TinyLFU, simulated |
//! | `tinylfu_choices` | choices for TinyLFU on which the order of insertion rates depends, simulated |
//! | `hit_rates` | hit rates of all compared policies, simulated |
//! | `cycles` | average cycles from rates and blocks |
//! | `engine` | blocks and forwarding speed, measured in the engine |
//! | `accesses` | dependent memory accesses |

pub(crate) mod accesses;
pub(crate) mod cycles;
pub(crate) mod engine;
pub(crate) mod filter;
pub(crate) mod hit_rates;
pub(crate) mod insertion_rates;
mod rates;
mod tinylfu_choices;

use namehop_model::cache::FilterModel;
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};

/// Cache capacity in packets of the published rates.
const CAPACITY: usize = 100_000;
/// Conditions of computed values.
pub(crate) const ARITHMETIC: &str = "arithmetic only, nothing is measured";

/// The model with the published web workload.
fn web_model(history: f64, threshold: u32) -> FilterModel {
    let shape = WorkloadShape::published(WorkloadKind::Web);
    let capacity = CAPACITY as u64;
    FilterModel { packets: shape.objects, alpha: shape.alpha, capacity, history, threshold, counters: None }
}
