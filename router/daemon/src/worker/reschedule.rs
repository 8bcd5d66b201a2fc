//! Changes the schedule of a worker: measurements alternate schedules over the same tables.

use namehop_engine::schedule::Schedule;

use super::Worker;

impl<S: Schedule> Worker<S> {
    /// Returns the same worker with another schedule, for measurements.
    pub fn with_schedule<T: Schedule>(self) -> Worker<T> {
        let Worker {
            engine,
            pool,
            reassembler,
            table,
            records,
            timers,
            rings,
            ports,
            port_retry,
            mailbox,
            waker,
            number,
            handover,
            handed,
            started,
            is_stopping,
            busy,
            processor,
            erasing,
            settling,
            frames,
            incoming,
            outgoing,
            encoded,
            dropped_interests,
            latency,
            capture,
            stamps,
            watches,
            congested,
            congestion_marks,
        } = self;
        Worker {
            engine: engine.with_schedule(),
            pool,
            reassembler,
            table,
            records,
            timers,
            rings,
            ports,
            port_retry,
            mailbox,
            waker,
            number,
            handover,
            handed,
            started,
            is_stopping,
            busy,
            processor,
            erasing,
            settling,
            frames,
            incoming,
            outgoing,
            encoded,
            dropped_interests,
            latency,
            capture,
            stamps,
            watches,
            congested,
            congestion_marks,
        }
    }
}
