//! Fair shares among streams that bring more than the worker takes.
//!
//! A stream that was read far ahead keeps its packets and hands over a share of them in each round of the thread, so
//! that whoever floods the router with packets fills neither the ring nor the time of the others. Together such
//! streams hold a bounded amount of memory: beyond it, each is read one packet's length at a time.

use std::cell::Cell;

use namehop_wire::MAX_PACKET_SIZE;

/// Frames that all streams together hand over in one round: a small part of the ring, a millisecond or two of work. While so many frames
/// wait for a worker, streams with a backlog hand over nothing to it.
pub(super) const FRAMES_PER_ROUND: usize = 1024;
/// Most frames of one stream in one round.
const MAX_SHARE_FRAMES: usize = 256;
/// Most bytes of one read.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Bytes that streams may hold together before reads become short.
const HELD_BYTES: usize = 64 << 20;

/// What the streams of a thread have read and not handed over.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    streams: Cell<usize>,
    bytes: Cell<usize>,
}

impl Backlog {
    /// How many frames a stream may hand over now, before it lets others go first.
    pub(super) fn share_frames(&self) -> usize {
        (FRAMES_PER_ROUND / (self.streams.get() + 1)).clamp(1, MAX_SHARE_FRAMES)
    }

    /// How many bytes a stream may read at once.
    pub(super) fn read_bytes(&self) -> usize {
        if self.bytes.get() > HELD_BYTES { MAX_PACKET_SIZE } else { READ_BYTES }
    }

    /// Notes a stream that holds `bytes`, until the answer is dropped.
    pub(super) fn hold(&self, bytes: usize) -> Held<'_> {
        self.streams.set(self.streams.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
        Held { backlog: self, bytes }
    }
}

/// One stream's part of the backlog.
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
        assert_eq!(backlog.share_frames(), 1, "everybody gets on");
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
