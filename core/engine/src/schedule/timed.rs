//! A schedule for measurements: the path of the publications with a clock for its blocks.

use std::marker::PhantomData;

use super::{Schedule, ScheduleKind};
use crate::flow::BlockTicks;

/// The schedule `S` on the path of [`Stripped`](super::Stripped), timed block by block;
/// [`Engine::block_ticks`](crate::Engine::block_ticks) returns the result.
///
/// Names that a schedule hashes ahead are hashed outside the blocks; with [`Naive`](super::Naive) all work is inside.
#[derive(Debug, Clone, Copy)]
pub struct Timed<S>(PhantomData<S>);

impl<S: Schedule> Schedule for Timed<S> {
    const KIND: ScheduleKind = S::KIND;
    const IS_STRIPPED: bool = true;
    type Clock = BlockTicks;
}
