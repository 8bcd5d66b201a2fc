//! Tests of detection, plans, changes and undoing them, on simulated trees of `/proc` and `/sys`.

mod change;
mod plan;
mod tree;
