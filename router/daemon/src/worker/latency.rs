//! The stamps of packets on their way out of a worker, until they are sent or given to the thread that sends them.

use namehop_face::latency::LatencyRecorder;
use namehop_packet::Stamp;

/// Stamps of the frames that a turn sends.
#[derive(Debug, Default)]
pub(super) struct FrameStamps {
    /// Those of the frames that were put together last, with their places among those, in this order.
    put_together: Vec<(usize, Stamp)>,
    /// Those of frames that ports send at the end of the turn.
    by_ports: Vec<Stamp>,
}

impl FrameStamps {
    /// The frame at this place is the last one of a packet with a stamp.
    #[cold]
    pub(super) fn put_on(&mut self, place: usize, stamp: Stamp) {
        self.put_together.push((place, stamp));
    }

    /// The frames that were put together last leave by a port.
    #[inline]
    pub(super) fn leave_by_port(&mut self) {
        if !self.put_together.is_empty() {
            self.by_ports.extend(self.put_together.drain(..).map(|(_, stamp)| stamp));
        }
    }

    /// The frames that were put together last leave by a ring: what gives their stamps by place, asked for all places in order.
    #[inline]
    pub(super) fn leave_by_ring(&mut self) -> impl FnMut(usize) -> Stamp {
        let mut stamps = self.put_together.drain(..).peekable();
        move |place| stamps.next_if(|(stamped, _)| *stamped == place).map_or(Stamp::NONE, |(_, stamp)| stamp)
    }

    /// The ports have sent what they had.
    #[inline]
    pub(super) fn note_sent(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if self.by_ports.is_empty() {
            return;
        }
        match recorder {
            Some(recorder) => recorder.note_sent(&mut self.by_ports),
            // It was switched off while they were on their way.
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
