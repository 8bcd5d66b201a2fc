//! Bytes waiting to be written to a stream: one contiguous buffer, so that any number of packets leave in one call; and the
//! memory that all these buffers together may take.
//!
//! A queue grows only while its peer reads more slowly than packets come, and each has a limit of its own; but a hundred
//! slow readers have a hundred queues. So a queue may grow to half of what the others of its class have left, no further:
//! one slow peer has all that it is allowed, many slow peers each have their part of the whole, and something is always left
//! for the next one (Choudhury and Hahne 1998, dynamic queue length thresholds). Strangers may take half of the budget.
//! Applications on this computer and peers that this router was told of have the other half to themselves, and what strangers
//! leave. Beyond the budget every queue may hold a packet or two.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use super::framing::packet_ends;

/// What every queue may hold: a largest packet, and what the memory for it is rounded up to.
const FLOOR_BYTES: usize = 16 * 1024;

/// The whole budget.
#[derive(Debug)]
pub(super) struct SendBudget {
    limit_bytes: usize,
    all_bytes: Cell<usize>,
    strangers_bytes: Cell<usize>,
}

impl SendBudget {
    /// A budget of which nothing is used.
    pub(super) fn new(limit_bytes: usize) -> Rc<SendBudget> {
        Rc::new(SendBudget { limit_bytes, all_bytes: Cell::new(0), strangers_bytes: Cell::new(0) })
    }

    /// The account of a new queue.
    pub(super) fn account(self: &Rc<Self>, is_stranger: bool) -> Account {
        Account { budget: Rc::clone(self), is_stranger, held_bytes: Cell::new(0) }
    }

    /// What is left for a class.
    fn left_bytes(&self, is_stranger: bool) -> usize {
        let left = self.limit_bytes.saturating_sub(self.all_bytes.get());
        let of_strangers = (self.limit_bytes / 2).saturating_sub(self.strangers_bytes.get());
        if is_stranger { left.min(of_strangers) } else { left }
    }
}

/// What one queue holds of the budget; dropping it gives that back.
#[derive(Debug)]
pub(super) struct Account {
    budget: Rc<SendBudget>,
    is_stranger: bool,
    held_bytes: Cell<usize>,
}

impl Account {
    /// Reserves memory so that the queue holds `bytes` altogether; `false`, and nothing changes, when that is more than it may
    /// grow to. It may always shrink.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let held = self.held_bytes.get();
        if bytes > held && bytes > FLOOR_BYTES {
            let left = self.budget.left_bytes(self.is_stranger) + held;
            if bytes > left / 2 {
                return false;
            }
        }
        let changed = |all: usize| (all + bytes).saturating_sub(held);
        self.budget.all_bytes.set(changed(self.budget.all_bytes.get()));
        if self.is_stranger {
            self.budget.strangers_bytes.set(changed(self.budget.strangers_bytes.get()));
        }
        self.held_bytes.set(bytes);
        true
    }

    /// Whether less than half of what the class may have is left, so that memory is better given back than kept.
    fn is_scarce(&self) -> bool {
        let whole = if self.is_stranger { self.budget.limit_bytes / 2 } else { self.budget.limit_bytes };
        self.budget.left_bytes(self.is_stranger) < whole / 2
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// Storage kept by an idle face; what a burst needed beyond it is given back. Enough for a usual burst of large packets:
/// growing and shrinking with each would cost two calls to the kernel.
const KEPT_BYTES: usize = 256 * 1024;

/// What a flush achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Nothing is left.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
}

/// A bounded byte queue in front of a stream.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: Vec<u8>,
    /// Bytes at the front that were written already.
    written: usize,
    /// Where some packet begins that was perhaps not written as a whole; all before it were.
    packet: usize,
    limit_bytes: usize,
    /// Holds the storage, which may be more than what waits.
    account: Account,
}

impl SendBuffer {
    /// An empty queue for at most `limit_bytes`, whose storage `account` holds.
    pub(super) fn new(limit_bytes: usize, account: Account) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, packet: 0, limit_bytes, account }
    }

    /// Bytes waiting.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Appends a packet; `false` when it does not fit.
    pub(super) fn push(&mut self, packet: &[u8]) -> bool {
        if self.len() + packet.len() > self.limit_bytes {
            return false;
        }
        // Moving the rest to the front is cheaper than growing, and happens at most once per written half.
        if self.written > 0 && (self.written >= self.len() || self.bytes.len() + packet.len() > self.bytes.capacity()) {
            self.move_to_front();
        }
        if self.bytes.len() + packet.len() > self.bytes.capacity() && !self.grow(self.bytes.len() + packet.len()) {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        true
    }

    /// Forgets what was written already, but for the beginning of a packet of which only that was.
    #[cold]
    fn move_to_front(&mut self) {
        self.packet = self.unfinished_packet();
        let done = self.packet.min(self.written);
        self.bytes.drain(..done);
        self.written -= done;
        self.packet -= done;
    }

    /// Where the first packet begins that was not written as a whole.
    fn unfinished_packet(&self) -> usize {
        let ends = packet_ends(&self.bytes[self.packet..]).map(|end| self.packet + end);
        ends.take_while(|&end| end <= self.written).last().unwrap_or(self.packet)
    }

    /// Makes room for `needed` bytes altogether, in steps that keep the cost of moving small; `false` when the budget
    /// does not allow it.
    #[cold]
    fn grow(&mut self, needed: usize) -> bool {
        let present = self.bytes.capacity();
        let steps = [present * 2, present + present / 4].map(|size| size.max(needed).max(FLOOR_BYTES));
        for size in steps {
            if self.account.hold(size) {
                self.bytes.reserve_exact(size - self.bytes.len());
                return true;
            }
        }
        false
    }

    /// Writes as much as `write` takes. A short write counts as [`Flush::Blocked`]: the kernel buffer is full.
    pub(super) fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<Flush> {
        while self.len() > 0 {
            match write(&self.bytes[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    if self.len() > 0 {
                        return Ok(Flush::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flush::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.clear();
        Ok(Flush::Empty)
    }

    /// Forgets everything. Returns how many packets were not written as a whole.
    pub(super) fn give_up(&mut self) -> usize {
        let lost = packet_ends(&self.bytes[self.unfinished_packet()..]).count();
        self.clear();
        lost
    }

    /// Forgets everything; storage for a usual burst stays unless memory is scarce.
    fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        self.packet = 0;
        let kept = if self.bytes.capacity() > 0 && self.account.is_scarce() { 0 } else { KEPT_BYTES };
        if self.bytes.capacity() > kept {
            self.bytes.shrink_to(kept);
            self.account.hold(self.bytes.capacity());
        }
    }
}
