//! A schedule for measurements: what the publications did with packets, in place of the whole protocol.

use std::marker::PhantomData;

use super::{Schedule, ScheduleKind};
use crate::flow::Untimed;

/// The schedule `S` on the path that the publications measured (Takemasa, Koizumi and Hasegawa, ICN 2017, section 6.1):
/// Content Store, PIT and FIB by name, and nothing else. What is left out is written in `pipelines/stripped.rs`.
///
/// This is no router: nothing stops a looping Interest, and what is not answered stays pending. It is here to be compared
/// with, so that the cost of the whole protocol can be told. An engine with any other schedule has nothing of it.
#[derive(Debug, Clone, Copy)]
pub struct Stripped<S>(PhantomData<S>);

impl<S: Schedule> Schedule for Stripped<S> {
    const KIND: ScheduleKind = S::KIND;
    const IS_STRIPPED: bool = true;
    type Clock = Untimed;
}
