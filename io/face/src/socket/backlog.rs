//! Fair shares for streams that send faster than the worker reads.
//!
//! A stream with packets left over after a read keeps them and hands over a limited share in each round of the thread.
//! So one peer that floods the router fills neither the ring nor the time of other faces. The memory held by all such
//! streams together is bounded: beyond the bound, each read is limited to the length of one packet.

use std::cell::Cell;

use namehop_wire::MAX_PACKET_SIZE;

/// Frames that all streams together hand over in one round: a small part of the ring, 1 to 2 ms of work. While this
/// many frames wait for a worker, streams with a backlog hand over nothing to it.
pub(super) const FRAMES_PER_ROUND: usize = 1024;
/// Maximum number of frames of one stream in one round.
const MAX_SHARE_FRAMES: usize = 256;
/// Maximum number of bytes of one read.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Total bytes held by streams above which reads become short.
const HELD_BYTES: usize = 64 << 20;

/// Number and bytes of the streams with packets that were read but not handed over.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    streams: Cell<usize>,
    bytes: Cell<usize>,
}

impl Backlog {
    /// Returns how many frames a stream may hand over before it must yield.
    pub(super) fn share_frames(&self) -> usize {
        (FRAMES_PER_ROUND / (self.streams.get() + 1)).clamp(1, MAX_SHARE_FRAMES)
    }

    /// Returns how many bytes a stream may read at once.
    pub(super) fn read_bytes(&self) -> usize {
        if self.bytes.get() > HELD_BYTES { MAX_PACKET_SIZE } else { READ_BYTES }
    }

    /// Counts a stream that holds `bytes`, until the returned guard is dropped.
    pub(super) fn hold(&self, bytes: usize) -> Held<'_> {
        self.streams.set(self.streams.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
        Held { backlog: self, bytes }
    }
}

/// One stream's part of the backlog; subtracted again on drop.
#[derive(Debug)]
pub(super) struct Held<'a> {
    backlog: &'a Backlog,
    bytes: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.backlog.streams.set(self.backlog.streams.get() - 1);
        self.backlog.bytes.set(self.backlog.bytes.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_many_streams_add_up_to_a_round() {
        let backlog = Backlog::default();
        assert_eq!(backlog.share_frames(), MAX_SHARE_FRAMES);
        let mut held: Vec<Held<'_>> = (0..31).map(|_| backlog.hold(10)).collect();
        assert_eq!(backlog.share_frames(), FRAMES_PER_ROUND / 32);
        held.extend((0..10_000).map(|_| backlog.hold(10)));
        assert_eq!(backlog.share_frames(), 1, "every queue must get a share");
        drop(held);
        assert_eq!(backlog.share_frames(), MAX_SHARE_FRAMES);
    }

    #[test]
    fn reads_become_short_while_much_is_held() {
        let backlog = Backlog::default();
        let held = backlog.hold(HELD_BYTES + 1);
        assert_eq!(backlog.read_bytes(), MAX_PACKET_SIZE);
        drop(held);
        assert_eq!(backlog.read_bytes(), READ_BYTES);
    }
}
