//! Latency stamps of packets on their way out of a worker, until they are sent or passed to the thread that sends them.

use namehop_face::latency::LatencyRecorder;
use namehop_packet::Stamp;

/// Stamps of the frames that a poll iteration sends.
#[derive(Debug, Default)]
pub(super) struct FrameStamps {
    /// Stamps of the frames built last, with the index of each frame among them, in ascending order.
    put_together: Vec<(usize, Stamp)>,
    /// Stamps of frames that ports send at the end of the poll iteration.
    by_ports: Vec<Stamp>,
}

impl FrameStamps {
    /// Records that the frame at index `place` is the last frame of a packet with this stamp.
    #[cold]
    pub(super) fn put_on(&mut self, place: usize, stamp: Stamp) {
        self.put_together.push((place, stamp));
    }

    /// The frames built last leave by a port.
    #[inline]
    pub(super) fn leave_by_port(&mut self) {
        if !self.put_together.is_empty() {
            self.by_ports.extend(self.put_together.drain(..).map(|(_, stamp)| stamp));
        }
    }

    /// The frames built last leave by a ring. Returns a function from frame index to stamp, to be called with each
    /// index in ascending order.
    #[inline]
    pub(super) fn leave_by_ring(&mut self) -> impl FnMut(usize) -> Stamp {
        let mut stamps = self.put_together.drain(..).peekable();
        move |place| stamps.next_if(|(stamped, _)| *stamped == place).map_or(Stamp::NONE, |(_, stamp)| stamp)
    }

    /// The ports have sent their frames: records the latency of those with stamps.
    #[inline]
    pub(super) fn note_sent(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if self.by_ports.is_empty() {
            return;
        }
        match recorder {
            Some(recorder) => recorder.note_sent(&mut self.by_ports),
            // Measuring was stopped while the frames were queued.
            None => self.by_ports.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_of_a_ring_gets_its_own_stamp() {
        let mut stamps = FrameStamps::default();
        stamps.put_on(1, Stamp::at(40));
        stamps.put_on(3, Stamp::at(80));
        let mut of = stamps.leave_by_ring();
        let given: Vec<Stamp> = (0..5).map(&mut of).collect();
        drop(of);
        assert_eq!(given, [Stamp::NONE, Stamp::at(40), Stamp::NONE, Stamp::at(80), Stamp::NONE]);
        stamps.put_on(0, Stamp::at(4));
        stamps.leave_by_port();
        assert_eq!((stamps.by_ports.len(), stamps.put_together.len()), (1, 0));
        stamps.note_sent(None);
        assert!(stamps.by_ports.is_empty());
    }
}
