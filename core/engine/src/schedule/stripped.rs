//! A schedule for measurements: the reduced path of the publications in place of the whole protocol.

use std::marker::PhantomData;

use super::{Schedule, ScheduleKind};
use crate::flow::Untimed;

/// The schedule `S` on the path that the publications measured (Takemasa, Koizumi and Hasegawa, ICN 2017, section 6.1):
/// Content Store, PIT and FIB by name, and nothing else. `pipelines/stripped.rs` lists what is omitted.
///
/// This is no router: nothing stops a looping Interest, and an unanswered one stays pending. It exists for comparison,
/// to measure the cost of the whole protocol. An engine with any other schedule contains none of it.
#[derive(Debug, Clone, Copy)]
pub struct Stripped<S>(PhantomData<S>);

impl<S: Schedule> Schedule for Stripped<S> {
    const KIND: ScheduleKind = S::KIND;
    const IS_STRIPPED: bool = true;
    type Clock = Untimed;
}
