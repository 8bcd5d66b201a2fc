//! Bytes waiting to be written to a stream: one contiguous buffer, so that any number of packets leave in one call; and the
//! memory that all these buffers together may take.
//!
//! A queue grows only while its peer reads more slowly than packets come, and each has a limit of its own; but a hundred
//! slow readers have a hundred queues. So a queue may grow to half of what the others of its class have left, no further:
//! one slow peer has all that it is allowed, many slow peers each have their part of the whole, and something is always left
//! for the next one (Choudhury and Hahne 1998, dynamic queue length thresholds). Strangers may take half of the budget.
//! Applications on this computer and peers that this router was told of have the other half to themselves, and what strangers
//! leave. Beyond the budget every queue may hold a packet or two.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

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
    /// Has the queue hold `bytes` altogether; `false`, and nothing changes, when that is more than it may grow to. It may
    /// always shrink.
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
    limit_bytes: usize,
    /// Holds the storage, which may be more than what waits.
    account: Account,
}

impl SendBuffer {
    /// An empty queue for at most `limit_bytes`, whose storage `account` holds.
    pub(super) fn new(limit_bytes: usize, account: Account) -> Self {
        SendBuffer { bytes: Vec::new(), written: 0, limit_bytes, account }
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
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        if self.bytes.len() + packet.len() > self.bytes.capacity() && !self.grow(self.bytes.len() + packet.len()) {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        true
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

    /// Forgets everything; storage for a usual burst stays unless memory is scarce.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        let kept = if self.bytes.capacity() > 0 && self.account.is_scarce() { 0 } else { KEPT_BYTES };
        if self.bytes.capacity() > kept {
            self.bytes.shrink_to(kept);
            self.account.hold(self.bytes.capacity());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Lets every queue grow in turns, a KiB at a time, until none can.
    fn grow_all(accounts: &[Account]) {
        let mut grown = true;
        while grown {
            grown = false;
            for account in accounts {
                grown |= account.hold(account.held_bytes.get() + 1024);
            }
        }
    }

    #[test]
    fn shares_shrink_with_their_number_and_stay_within_the_budget() {
        for number in [1, 2, 10, 300] {
            let budget = SendBudget::new(64 * MIB);
            let strangers: Vec<Account> = (0..number).map(|_| budget.account(true)).collect();
            grow_all(&strangers);
            let shares: Vec<usize> = strangers.iter().map(|account| account.held_bytes.get()).collect();
            let fair = 32 * MIB / (number + 1);
            assert!(shares.iter().all(|share| share.abs_diff(fair) <= 4096), "{number}: {:?}", &shares[..1]);
            assert!(shares.iter().sum::<usize>() <= 32 * MIB);
            let known: Vec<Account> = (0..number).map(|_| budget.account(false)).collect();
            grow_all(&known);
            let fair = (64 * MIB - shares.iter().sum::<usize>()) / (number + 1);
            assert!(known.iter().all(|account| account.held_bytes.get().abs_diff(fair) <= 4096));
            drop((strangers, known));
            assert_eq!((budget.all_bytes.get(), budget.strangers_bytes.get()), (0, 0));
        }
    }

    #[test]
    fn greedy_known_queues_leave_strangers_little_but_every_queue_a_packet() {
        let budget = SendBudget::new(MIB);
        let known: Vec<Account> = (0..1000).map(|_| budget.account(false)).collect();
        grow_all(&known);
        assert!(known.iter().all(|account| account.held_bytes.get() >= FLOOR_BYTES));
        let stranger = budget.account(true);
        assert!(stranger.is_scarce());
        assert!(!stranger.hold(FLOOR_BYTES + 1) && stranger.hold(FLOOR_BYTES));
        assert!(stranger.hold(100), "shrinking is always allowed");
        drop(known);
        assert!(!stranger.is_scarce() && stranger.hold(200 * 1024));
    }

    fn buffer(limit_bytes: usize) -> SendBuffer {
        SendBuffer::new(limit_bytes, SendBudget::new(1 << 30).account(false))
    }

    #[test]
    fn short_writes_keep_order_and_the_limit_counts_waiting_bytes_only() {
        let mut buffer = buffer(10);
        assert!(buffer.push(b"abcdef"));
        assert!(!buffer.push(b"ghijk"));
        let mut out = Vec::new();
        let flushed = buffer.flush(|bytes| {
            out.extend_from_slice(&bytes[..4]);
            Ok(4)
        });
        assert_eq!(flushed.expect("flush"), Flush::Blocked);
        assert_eq!(buffer.len(), 2);
        assert!(buffer.push(b"ghijklmn"));
        let flushed = buffer.flush(|bytes| {
            out.extend_from_slice(bytes);
            Ok(bytes.len())
        });
        assert_eq!(flushed.expect("flush"), Flush::Empty);
        assert_eq!(out, b"abcdefghijklmn");
    }

    #[test]
    fn a_blocked_kernel_is_not_an_error_and_a_broken_one_is() {
        let mut buffer = buffer(10);
        buffer.push(b"ab");
        assert_eq!(buffer.flush(|_| Err(io::ErrorKind::WouldBlock.into())).expect("flush"), Flush::Blocked);
        assert!(buffer.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
        assert_eq!(buffer.len(), 2);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut buffer = buffer(1 << 20);
        assert!(buffer.push(&vec![0; 1 << 20]));
        buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
        assert!(buffer.bytes.capacity() <= KEPT_BYTES);
    }

    #[test]
    fn many_buffers_take_no_more_storage_than_the_budget_and_keep_none_when_it_is_scarce() {
        const LIMIT_BYTES: usize = 32 << 20;
        let budget = SendBudget::new(LIMIT_BYTES);
        let mut buffers: Vec<SendBuffer> =
            (0..300).map(|number| SendBuffer::new(4 << 20, budget.account(number % 2 == 0))).collect();
        let packet = [0; 8000];
        for _ in 0..100 {
            for buffer in &mut buffers {
                buffer.push(&packet);
            }
        }
        let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
        assert!(storage > LIMIT_BYTES / 2 && storage <= LIMIT_BYTES + 300 * FLOOR_BYTES, "{storage} bytes");
        assert!(buffers.iter().all(|buffer| buffer.len() >= packet.len()), "everybody has something");
        for buffer in &mut buffers {
            buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
        }
        let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
        assert!(storage <= LIMIT_BYTES / 2, "{storage} bytes are kept");
        // Growing and shrinking does not lose any of the budget.
        drop(buffers);
        assert!(SendBuffer::new(LIMIT_BYTES, budget.account(false)).push(&vec![0; LIMIT_BYTES / 2]));
    }
}
