//! LFU: evicts the packet with the fewest uses since it entered; among equals, the one that has had this number of
//! uses for longest.

use namehop_table::TableError;

use crate::slots::{List, Note, Slots};
use crate::words::Words;
use crate::{Ahead, Arrival, EvictionPolicy, Parameters};

const PRESENT: u8 = 1;
/// Size of a class in 64-bit words.
const CLASS_WORDS: usize = 4;

/// Packets with the same number of uses.
#[derive(Debug, Clone, Copy, Default)]
struct Class {
    uses: u64,
    members: List,
}

/// Least frequently used. Packets with the same number of uses form a class, and the classes are a list ordered by
/// use, so that no operation searches.
///
/// 16 bytes per slot, and 48 per class, of which there are never more than packets.
#[derive(Debug)]
pub struct Lfu {
    /// The hash in a note is the number of the packet's class.
    slots: Slots,
    /// Links of classes, fewest uses first.
    class_links: Slots,
    classes: Words,
    order: List,
    free: List,
    /// Classes from here on were never used.
    fresh: u32,
    length: usize,
}

impl Lfu {
    fn class(&self, number: u32) -> Class {
        let at = CLASS_WORDS * number as usize;
        let (uses, ends, length) = (self.classes.get(at), self.classes.get(at + 1), self.classes.get(at + 2));
        Class { uses, members: List::from_parts((ends >> 32) as u32, ends as u32, length as usize) }
    }

    fn set_class(&mut self, number: u32, class: Class) {
        let at = CLASS_WORDS * number as usize;
        let (first, last, length) = class.members.parts();
        self.classes.set(at, class.uses);
        self.classes.set(at + 1, u64::from(first) << 32 | u64::from(last));
        self.classes.set(at + 2, length as u64);
    }

    /// Makes a class without members, behind another one; at the front if `behind` is `None`.
    fn new_class(&mut self, behind: Option<u32>, uses: u64) -> u32 {
        let number = self.class_links.pop_front(&mut self.free).unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        });
        self.class_links.insert_behind(&mut self.order, behind, number);
        self.set_class(number, Class { uses, members: List::default() });
        number
    }

    fn join(&mut self, id: u32, number: u32) {
        let mut class = self.class(number);
        self.slots.push_back(&mut class.members, id);
        self.set_class(number, class);
        self.slots.set_note(id, Note { hash: number.into(), mark: PRESENT });
    }

    /// Takes a packet out of its class, which is deleted with its last member.
    fn leave(&mut self, id: u32) {
        let number = self.slots.note(id).hash as u32;
        let mut class = self.class(number);
        self.slots.remove(&mut class.members, id);
        self.set_class(number, class);
        if class.members.len() == 0 {
            self.class_links.remove(&mut self.order, number);
            self.class_links.push_back(&mut self.free, number);
        }
    }
}

impl EvictionPolicy for Lfu {
    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        // There may be one class more than packets while a packet changes its class.
        let classes = parameters.slots.saturating_add(1);
        Ok(Lfu {
            slots: Slots::new(parameters.slots)?,
            class_links: Slots::new(classes)?,
            classes: Words::new(CLASS_WORDS * classes)?,
            order: List::default(),
            free: List::default(),
            fresh: 0,
            length: 0,
        })
    }

    fn admitted(&mut self, id: u32, _: &Arrival) {
        let first = self.order.first().filter(|&first| self.class(first).uses == 1);
        let class = first.unwrap_or_else(|| self.new_class(None, 1));
        self.join(id, class);
        self.length += 1;
    }

    fn hit(&mut self, id: u32) {
        if self.slots.mark(id) == 0 {
            return;
        }
        let number = self.slots.note(id).hash as u32;
        let uses = self.class(number).uses + 1;
        let next = self.class_links.next(number).filter(|&next| self.class(next).uses == uses);
        let next = next.unwrap_or_else(|| self.new_class(Some(number), uses));
        self.leave(id);
        self.join(id, next);
    }

    fn removed(&mut self, id: u32) {
        if self.slots.mark(id) != 0 {
            self.leave(id);
            self.slots.set_mark(id, 0);
            self.length -= 1;
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.class(self.order.first()?).members.first()
    }

    /// The members of the class with the fewest uses: new packets join it.
    fn upcoming(&self, ahead: &mut Ahead) -> Option<u32> {
        self.slots.upcoming(ahead, || self.class(self.order.first()?).members.first(), |_| true)
    }

    fn prefetch(&self, id: u32) {
        self.slots.prefetch(id);
    }

    fn prefetch_hit(&self, id: u32) {
        self.slots.prefetch_neighbours(id);
    }

    fn len(&self) -> usize {
        self.length
    }
}
