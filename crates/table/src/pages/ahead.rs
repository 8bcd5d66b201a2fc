//! Touching memory before it is needed.
//!
//! The system clears a page when it is first touched. For gigabytes this takes seconds, in a virtual machine often more
//! than what the memory is needed for, so a thread of its own does it, some steps ahead of whoever fills the memory.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::{HUGE_2M_BYTES, Mapping};

/// Touched at once: as long as this takes, the process's other threads can get no new memory from the system.
const STEP_BYTES: usize = HUGE_2M_BYTES;

/// A part of a mapping.
struct Part {
    mapping: Arc<Mapping>,
    start: usize,
    bytes: usize,
}

/// A thread that touches what it is told to. It ends when this is dropped and all is touched.
pub(crate) struct TouchAhead {
    parts: Sender<Part>,
}

impl TouchAhead {
    /// Starts the thread; `None` where that is of no use.
    pub(crate) fn start() -> Option<Self> {
        if thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
            return None;
        }
        let (sender, parts) = channel::<Part>();
        let touch = move || {
            for part in parts {
                // Whole huge pages.
                let end = (part.start + part.bytes).next_multiple_of(STEP_BYTES).min(part.mapping.bytes());
                for start in (part.start / STEP_BYTES * STEP_BYTES..end).step_by(STEP_BYTES) {
                    // Whoever fills the memory touches what could not be touched now.
                    part.mapping.touch(start, STEP_BYTES.min(end - start));
                }
            }
        };
        thread::Builder::new().name("memory".to_owned()).spawn(touch).ok()?;
        Some(TouchAhead { parts: sender })
    }

    /// Has a part of a mapping touched soon.
    pub(crate) fn touch(&self, mapping: &Arc<Mapping>, start: usize, bytes: usize) {
        // If the thread is gone, nothing is touched ahead.
        let _ = self.parts.send(Part { mapping: Arc::clone(mapping), start, bytes });
    }
}
