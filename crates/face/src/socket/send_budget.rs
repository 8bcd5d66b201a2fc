//! The memory that all send queues together may take.
//!
//! A queue grows only while its peer reads more slowly than packets come, and each has a limit of its own; but a hundred
//! slow readers have a hundred queues. So a queue may grow to half of what the others of its class have left, no further:
//! one slow peer has all that it is allowed, many slow peers each have their part of the whole, and something is always left
//! for the next one (Choudhury and Hahne 1998, dynamic queue length thresholds). Strangers may take half of the budget.
//! Applications on this computer and peers that this router was told of have the other half to themselves, and what strangers
//! leave. Beyond the budget every queue may hold a packet or two.

use std::cell::Cell;
use std::rc::Rc;

/// What every queue may hold: a largest packet, and what the memory for it is rounded up to.
pub(super) const FLOOR_BYTES: usize = 16 * 1024;

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
    pub(super) fn is_scarce(&self) -> bool {
        let whole = if self.is_stranger { self.budget.limit_bytes / 2 } else { self.budget.limit_bytes };
        self.budget.left_bytes(self.is_stranger) < whole / 2
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.hold(0);
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
}
