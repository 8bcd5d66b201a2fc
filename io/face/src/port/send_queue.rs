//! The frames that wait to be sent on a port.

use std::collections::VecDeque;

use namehop_packet::{PacketBuffer, PortQueue};

/// Complete frames, oldest first.
#[derive(Default)]
pub(super) struct SendQueue {
    frames: Vec<PacketBuffer>,
    /// While the port is congested, the lengths of the frames that wait; empty otherwise, because the link mostly takes
    /// all at once.
    lengths: VecDeque<u32>,
    /// Their sum.
    bytes: usize,
}

impl SendQueue {
    /// Frames that wait.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether frames were left over when the port last sent.
    pub(super) fn is_congested(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Bytes that were left over when the port last sent, and those queued since; 0 when none were left.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds complete frames to those that wait.
    #[inline]
    pub(super) fn append(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.is_congested() {
            self.note_lengths(frames);
        }
        self.frames.append(frames);
    }

    #[cold]
    fn note_lengths(&mut self, frames: &[PacketBuffer]) {
        for frame in frames {
            let bytes = frame.bytes().len();
            self.bytes += bytes;
            self.lengths.push_back(bytes as u32);
        }
    }

    /// Sends what waits, as far as the port takes it.
    pub(super) fn send(&mut self, port: &mut dyn PortQueue) {
        port.transmit(&mut self.frames);
        if self.frames.is_empty() {
            self.lengths.clear();
            self.bytes = 0;
        } else if self.is_congested() {
            for sent in self.lengths.drain(..self.lengths.len() - self.frames.len()) {
                self.bytes -= sent as usize;
            }
        } else {
            let left = std::mem::take(&mut self.frames);
            self.note_lengths(&left);
            self.frames = left;
        }
    }

    /// Gives up what waits; returns how many frames that were.
    pub(super) fn discard(&mut self) -> usize {
        let count = self.frames.len();
        self.frames.clear();
        self.lengths.clear();
        self.bytes = 0;
        count
    }
}
