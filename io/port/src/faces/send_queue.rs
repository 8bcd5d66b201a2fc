//! The send queue of a port.

use std::collections::VecDeque;

use namehop_packet::{PacketBuffer, PortQueue};

/// Complete frames, oldest first.
#[derive(Default)]
pub(super) struct SendQueue {
    frames: Vec<PacketBuffer>,
    /// The lengths of the queued frames while the port is congested. Otherwise empty, because the link usually takes
    /// all frames at once.
    lengths: VecDeque<u32>,
    /// Sum of `lengths`.
    bytes: usize,
}

impl SendQueue {
    /// Returns the number of queued frames.
    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether frames were left over when the port last sent.
    pub(super) fn is_congested(&self) -> bool {
        !self.lengths.is_empty()
    }

    /// Returns the bytes left over when the port last sent, plus the bytes queued since; 0 if nothing was left.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.bytes
    }

    /// Appends complete frames.
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

    /// Sends as many frames as the port takes.
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

    /// Drops all queued frames; returns their number.
    pub(super) fn discard(&mut self) -> usize {
        let count = self.frames.len();
        self.frames.clear();
        self.lengths.clear();
        self.bytes = 0;
        count
    }
}
