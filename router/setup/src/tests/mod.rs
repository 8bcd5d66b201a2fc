//! Detection, plans, changes and undoing them, on made-up trees of `/proc` and `/sys`.

mod change;
mod plan;
mod tree;
