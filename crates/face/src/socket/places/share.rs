//! What strangers of one transport, or of one origin, have together.

use super::list::List;
use super::{BY_ORIGIN, BY_USE};

/// One in so many places is for new strangers, and one in so many can be taken over in a second.
pub(super) const FRESH_FRACTION: usize = 4;

/// How many places were taken over in the present second.
#[derive(Debug, Default)]
pub(super) struct Rate {
    second: u64,
    count: usize,
}

impl Rate {
    /// Counts one, unless there were `limit` in this second.
    pub(super) fn allows(&mut self, second: u64, limit: usize) -> bool {
        if self.second != second {
            *self = Rate { second, count: 0 };
        }
        let allowed = self.count < limit;
        self.count += usize::from(allowed);
        allowed
    }
}

/// Strangers of one transport.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) limit: usize,
    /// Nothing more has come from them since they were made, as far as was looked.
    pub(super) fresh: List<BY_USE>,
    /// Packets came from them later.
    pub(super) proven: List<BY_USE>,
    pub(super) taken_over: Rate,
}

impl Share {
    pub(super) fn len(&self) -> usize {
        self.fresh.len() + self.proven.len()
    }

    /// Places for new strangers, and how many can be taken over in a second.
    pub(super) fn quarter(&self) -> usize {
        (self.limit / FRESH_FRACTION).max(1)
    }

    pub(super) fn list(&mut self, is_proven: bool) -> &mut List<BY_USE> {
        if is_proven { &mut self.proven } else { &mut self.fresh }
    }
}

/// Strangers of one origin.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    pub(super) all: List<BY_ORIGIN>,
    pub(super) taken_over: Rate,
}
