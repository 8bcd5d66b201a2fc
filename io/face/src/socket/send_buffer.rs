//! Bytes queued for a stream: one contiguous buffer, so that any number of packets leave in one call. Also the memory
//! budget that all these buffers share.
//!
//! A queue grows only while its peer reads more slowly than packets come. Each queue has a limit of its own, but a
//! hundred slow readers have a hundred queues. So a queue may grow to at most half of what is left for its class. Then
//! one slow peer gets all that its own limit allows, and many slow peers each get their part. Something is always left
//! for the next one (Choudhury and Hahne 1998, dynamic queue length thresholds). Unsolicited peers may use half of the
//! budget. Applications on this host and configured peers have the other half to themselves, and what the unsolicited
//! peers leave. Even when the budget is used up, every queue may hold a packet or two.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use super::framing::packet_ends;

/// Bytes that every queue may hold: a largest packet, rounded up to the allocation size.
const FLOOR_BYTES: usize = 16 * 1024;

/// The memory budget of all send queues.
#[derive(Debug)]
pub(super) struct SendBudget {
    limit_bytes: usize,
    all_bytes: Cell<usize>,
    unsolicited_bytes: Cell<usize>,
}

impl SendBudget {
    /// Creates an unused budget of `limit_bytes`.
    pub(super) fn new(limit_bytes: usize) -> Rc<SendBudget> {
        Rc::new(SendBudget { limit_bytes, all_bytes: Cell::new(0), unsolicited_bytes: Cell::new(0) })
    }

    /// Opens the account of a new queue.
    pub(super) fn account(self: &Rc<Self>, is_unsolicited: bool) -> Account {
        Account { budget: Rc::clone(self), is_unsolicited, held_bytes: Cell::new(0) }
    }

    /// Returns the bytes that are left for a class.
    fn left_bytes(&self, is_unsolicited: bool) -> usize {
        let left = self.limit_bytes.saturating_sub(self.all_bytes.get());
        let of_unsolicited = (self.limit_bytes / 2).saturating_sub(self.unsolicited_bytes.get());
        if is_unsolicited { left.min(of_unsolicited) } else { left }
    }
}

/// The bytes of one queue that count against the budget; dropping it returns them.
#[derive(Debug)]
pub(super) struct Account {
    budget: Rc<SendBudget>,
    is_unsolicited: bool,
    held_bytes: Cell<usize>,
}

impl Account {
    /// Reserves memory so that the queue holds `bytes` in total. Returns `false`, and changes nothing, if that exceeds
    /// what the queue may grow to. A queue may always shrink.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let held = self.held_bytes.get();
        if bytes > held && bytes > FLOOR_BYTES {
            let left = self.budget.left_bytes(self.is_unsolicited) + held;
            if bytes > left / 2 {
                return false;
            }
        }
        let changed = |all: usize| (all + bytes).saturating_sub(held);
        self.budget.all_bytes.set(changed(self.budget.all_bytes.get()));
        if self.is_unsolicited {
            self.budget.unsolicited_bytes.set(changed(self.budget.unsolicited_bytes.get()));
        }
        self.held_bytes.set(bytes);
        true
    }

    /// Whether less than half of the budget of the class is left, so that idle storage is freed.
    fn is_scarce(&self) -> bool {
        let whole = if self.is_unsolicited { self.budget.limit_bytes / 2 } else { self.budget.limit_bytes };
        self.budget.left_bytes(self.is_unsolicited) < whole / 2
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.hold(0);
    }
}

/// Storage that an idle face keeps; storage beyond it is freed after a burst. It suffices for a usual burst of large
/// packets: growing and shrinking with each burst would cost two system calls.
const KEPT_BYTES: usize = 256 * 1024;

/// Result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// The queue is empty.
    Empty,
    /// The kernel takes no more for now.
    Blocked,
}

/// A bounded byte queue in front of a stream.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: Vec<u8>,
    /// Bytes at the front that were already written.
    written: usize,
    /// Start of some packet; all packets before it were written completely.
    packet: usize,
    limit_bytes: usize,
    /// Accounts for the allocated storage, which may be more than the queued bytes.
    account: Account,
}

impl SendBuffer {
    /// Creates an empty queue for at most `limit_bytes`, with its storage charged to `account`.
    pub(super) fn new(limit_bytes: usize, account: Account) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, packet: 0, limit_bytes, account }
    }

    /// Returns the number of queued bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Appends a packet; returns `false` if it does not fit.
    pub(super) fn push(&mut self, packet: &[u8]) -> bool {
        if self.len() + packet.len() > self.limit_bytes {
            return false;
        }
        // Moving the remaining bytes to the front is cheaper than growing, and happens at most once per written half.
        if self.written > 0 && (self.written >= self.len() || self.bytes.len() + packet.len() > self.bytes.capacity()) {
            self.move_to_front();
        }
        if self.bytes.len() + packet.len() > self.bytes.capacity() && !self.grow(self.bytes.len() + packet.len()) {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        true
    }

    /// Discards the written bytes, but keeps the start of a packet that was only partly written.
    #[cold]
    fn move_to_front(&mut self) {
        self.packet = self.unfinished_packet();
        let done = self.packet.min(self.written);
        self.bytes.drain(..done);
        self.written -= done;
        self.packet -= done;
    }

    /// Returns the start of the first packet that was not written completely.
    fn unfinished_packet(&self) -> usize {
        let ends = packet_ends(&self.bytes[self.packet..]).map(|end| self.packet + end);
        ends.take_while(|&end| end <= self.written).last().unwrap_or(self.packet)
    }

    /// Makes space for `needed` bytes in total, in steps that keep the cost of moving small. Returns `false` if the
    /// budget does not allow it.
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

    /// Writes as much as `write` takes. A short write returns [`Flush::Blocked`]: the kernel buffer is full.
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

    /// Discards everything. Returns how many packets were not written completely.
    pub(super) fn give_up(&mut self) -> usize {
        let lost = packet_ends(&self.bytes[self.unfinished_packet()..]).count();
        self.clear();
        lost
    }

    /// Discards everything. Keeps storage for a usual burst unless memory is scarce.
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
