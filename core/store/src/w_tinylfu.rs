//! W-TinyLFU (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM TOS 2017).

use namehop_table::TableError;

use crate::sketch::Sketch;
use crate::slots::{List, Note, Slots, kept};
use crate::tinylfu::SAMPLE_PER_LINE;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

/// Default number of requests in a sample per packet of the store.
const SAMPLE: u32 = 10;
/// Default share of the store that new packets enter.
const WINDOW_SHARE: f64 = 0.01;
/// Marks: which list a packet is in.
const WINDOW: u8 = 1;
const PROBATION: u8 = 2;
const PROTECTED: u8 = 3;

/// New packets enter a small window, ordered by use. A packet that leaves it is compared with the next victim of the
/// main part, and the one that was requested less often recently is evicted. In the main part, used packets are
/// protected from unused ones.
///
/// 16 bytes per slot, and 2 for each request of a sample: with the default sample 20 per packet of the capacity.
#[derive(Debug)]
pub struct WTinyLfu {
    slots: Slots,
    sketch: Sketch,
    window: List,
    probation: List,
    protected: List,
    window_capacity: usize,
    main_capacity: usize,
    protected_capacity: usize,
}

impl WTinyLfu {
    fn list(&mut self, mark: u8) -> (&mut Slots, &mut List) {
        let list = match mark {
            WINDOW => &mut self.window,
            PROBATION => &mut self.probation,
            _ => &mut self.protected,
        };
        (&mut self.slots, list)
    }

    fn enter(&mut self, mark: u8, id: u32) {
        self.slots.set_mark(id, mark);
        let (slots, list) = self.list(mark);
        slots.push_back(list, id);
    }

    fn leave(&mut self, id: u32) {
        let mark = self.slots.mark(id);
        let (slots, list) = self.list(mark);
        slots.remove(list, id);
    }

    /// Moves packets beyond the window's capacity to the main part, while that has room.
    fn empty_window(&mut self) {
        while self.window.len() > self.window_capacity
            && self.probation.len() + self.protected.len() < self.main_capacity
            && let Some(oldest) = self.window.first()
        {
            self.leave(oldest);
            self.enter(PROBATION, oldest);
        }
    }

    fn estimate(&self, id: u32) -> u8 {
        self.sketch.estimate(self.slots.note(id).hash)
    }
}

impl EvictionPolicy for WTinyLfu {
    const EXPECTS: bool = true;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let window_capacity = parameters.share(parameters.tuning.window.unwrap_or(WINDOW_SHARE)).max(1);
        let main_capacity = parameters.capacity.saturating_sub(window_capacity);
        Ok(WTinyLfu {
            slots: Slots::new(parameters.slots)?,
            sketch: Sketch::new(parameters.sample(SAMPLE), SAMPLE_PER_LINE)?,
            window: List::default(),
            probation: List::default(),
            protected: List::default(),
            window_capacity,
            main_capacity,
            protected_capacity: (main_capacity as f64 * parameters.tuning.protected) as usize,
        })
    }

    fn admitted(&mut self, id: u32, arrival: &Arrival) {
        let hash = kept(arrival.name_hash);
        self.sketch.count(hash);
        self.slots.set_note(id, Note { hash, mark: WINDOW });
        self.enter(WINDOW, id);
        self.empty_window();
    }

    fn hit(&mut self, id: u32) {
        let Note { hash, mark } = self.slots.note(id);
        if mark == 0 {
            return;
        }
        self.sketch.count(hash);
        self.leave(id);
        self.enter(if mark == WINDOW { WINDOW } else { PROTECTED }, id);
        while self.protected.len() > self.protected_capacity
            && let Some(oldest) = self.protected.first()
        {
            self.leave(oldest);
            self.enter(PROBATION, oldest);
        }
    }

    fn removed(&mut self, id: u32) {
        if self.slots.mark(id) != 0 {
            self.leave(id);
            self.slots.set_mark(id, 0);
        }
    }

    fn evicted(&mut self, id: u32) {
        if self.slots.mark(id) == 0 {
            return;
        }
        self.removed(id);
        // The new packet will need room in the window: the oldest packet of the window, if it won the comparison,
        // makes it.
        if self.window.len() >= self.window_capacity
            && self.probation.len() + self.protected.len() < self.main_capacity
            && let Some(oldest) = self.window.first()
        {
            self.leave(oldest);
            self.enter(PROBATION, oldest);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        let of_main = self.probation.first().or(self.protected.first());
        let of_window = self.window.first().filter(|_| self.window.len() >= self.window_capacity || of_main.is_none());
        match (of_window, of_main) {
            (Some(new), Some(old)) if self.estimate(new) > self.estimate(old) => Some(old),
            (Some(new), _) => Some(new),
            (None, old) => old,
        }
    }

    /// The oldest packets of the window: most lose the comparison.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.slots.upcoming(ahead, || self.window.first(), |_| true)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn prefetch_hit(&self, id: u32) {
        self.slots.prefetch_neighbours(id);
    }

    fn prefetch_name(&self, name_hash: u64) {
        self.sketch.prefetch(kept(name_hash));
    }

    fn len(&self) -> usize {
        self.window.len() + self.probation.len() + self.protected.len()
    }
}
