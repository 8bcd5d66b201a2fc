//! The search for Interests that were sent to faces that are down or removed.

use super::pit_walk::{Met, PitWalk};
use crate::pcct::Pcct;

/// The search, if one is in progress.
#[derive(Default)]
pub(crate) struct LostUpstreams {
    walk: Option<PitWalk>,
    /// Whether another face went down since the walk began.
    is_again: bool,
}

impl LostUpstreams {
    /// Starts the search after a face went down or was removed. A search in progress finishes first, even if more faces
    /// go down.
    pub(crate) fn start(&mut self, pcct: &Pcct) {
        if pcct.pit.len() == 0 {
            return;
        }
        self.is_again = self.walk.is_some();
        self.walk.get_or_insert_with(|| PitWalk::new(&pcct.pit));
    }

    /// Returns whether no search is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.walk.is_none()
    }

    /// Returns the content of the next position of the search; `None` if no search is in progress.
    pub(crate) fn next(&mut self, pcct: &Pcct) -> Option<Met> {
        let met = self.walk.as_mut()?.next(&pcct.pit, |ahead| pcct.prefetch_pending(ahead));
        if let Met::End = met {
            self.walk = std::mem::take(&mut self.is_again).then(|| PitWalk::new(&pcct.pit));
        }
        Some(met)
    }
}
