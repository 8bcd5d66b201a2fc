//! Atomics and the like: those of the standard library, or in builds with `--cfg loom` those of the model checker, which
//! runs all interleavings of small programs (tests named `model`).

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicPtr, AtomicU64, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, Ordering, fence},
};
#[cfg(loom)]
pub(crate) use std::sync::PoisonError;
