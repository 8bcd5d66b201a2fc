//! CLOCK-Pro over a vector that begins at the hand of hot packets.

use super::super::steps::{Data, Decided};
use super::EvictionModel;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Hot,
    Cold { observed: bool },
    Ghost,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    name: u64,
    kind: Kind,
    used: bool,
}

/// Hands are names of pages; a page has at most one position, whether it is in the store or a ghost.
pub(super) struct ClockPro {
    circle: Vec<Page>,
    hand_cold: Option<u64>,
    hand_test: Option<u64>,
    capacity: usize,
    cold_target: usize,
}

impl ClockPro {
    pub(super) fn new(capacity: usize) -> Self {
        ClockPro { circle: Vec::new(), hand_cold: None, hand_test: None, capacity, cold_target: capacity }
    }

    fn place(&self, name: u64) -> Option<usize> {
        self.circle.iter().position(|page| page.name == name)
    }

    fn count(&self, is_it: impl Fn(Kind) -> bool) -> usize {
        self.circle.iter().filter(|page| is_it(page.kind)).count()
    }

    /// Returns the next page in the circle.
    fn behind(&self, place: usize) -> u64 {
        self.circle[(place + 1) % self.circle.len()].name
    }

    fn remove(&mut self, place: usize) {
        let name = self.circle[place].name;
        let next = Some(self.behind(place)).filter(|&next| next != name);
        for hand in [&mut self.hand_cold, &mut self.hand_test] {
            if *hand == Some(name) {
                *hand = next;
            }
        }
        self.circle.remove(place);
    }

    /// Ends a page's test period. Returns `true` if the page was removed.
    fn end_test(&mut self, place: usize) -> bool {
        let Page { kind, used, .. } = self.circle[place];
        if kind != Kind::Ghost && kind != (Kind::Cold { observed: true }) {
            return false;
        }
        if !used {
            self.cold_target = (self.cold_target - 1).max(1);
        }
        if kind == Kind::Ghost {
            self.remove(place);
            return true;
        }
        self.circle[place].kind = Kind::Cold { observed: false };
        false
    }

    fn run_hand_hot(&mut self) {
        loop {
            if self.circle[0].kind != Kind::Hot {
                if !self.end_test(0) {
                    self.circle.rotate_left(1);
                }
                continue;
            }
            let page = &mut self.circle[0];
            let was_used = std::mem::take(&mut page.used);
            if !was_used {
                page.kind = Kind::Cold { observed: false };
            }
            self.circle.rotate_left(1);
            if !was_used {
                return;
            }
        }
    }

    fn limit_hot(&mut self) {
        while self.count(|kind| kind == Kind::Hot) > self.capacity - self.cold_target {
            self.run_hand_hot();
        }
    }

    fn hand(&self, hand: Option<u64>) -> usize {
        hand.and_then(|name| self.place(name)).unwrap_or(0)
    }

    fn find_victim(&mut self) -> usize {
        loop {
            if self.count(|kind| matches!(kind, Kind::Cold { .. })) == 0 {
                self.run_hand_hot();
            }
            let place = self.hand(self.hand_cold);
            let Page { kind, used, name } = self.circle[place];
            let Kind::Cold { observed } = kind else {
                self.hand_cold = Some(self.behind(place));
                continue;
            };
            if !used {
                self.hand_cold = Some(name);
                return place;
            }
            self.hand_cold = Some(self.behind(place)).filter(|&next| next != name);
            self.circle.remove(place);
            let kind = if observed { Kind::Hot } else { Kind::Cold { observed: true } };
            self.circle.push(Page { name, kind, used: false });
            if observed {
                self.limit_hot();
            }
        }
    }
}

impl EvictionModel for ClockPro {
    fn names(&self) -> Vec<u64> {
        self.circle.iter().filter(|page| page.kind != Kind::Ghost).map(|page| page.name).collect()
    }

    fn hit(&mut self, name: u64) {
        self.circle.iter_mut().filter(|page| page.name == name).for_each(|page| page.used = true);
    }

    fn erase(&mut self, name: u64) {
        if let Some(place) = self.place(name).filter(|&place| self.circle[place].kind != Kind::Ghost) {
            self.remove(place);
        }
    }

    fn victim(&mut self) -> Option<u64> {
        None
    }

    fn enter(&mut self, data: Data, is_full: bool, _: u64, _: bool, _: Decided) {
        let ghost = self.place(data.name);
        if let Some(ghost) = ghost {
            self.cold_target = (self.cold_target + 1).min(self.capacity);
            self.remove(ghost);
        }
        if is_full {
            let place = self.find_victim();
            if self.circle[place].kind == (Kind::Cold { observed: true }) {
                self.circle[place].kind = Kind::Ghost;
                while self.count(|kind| kind == Kind::Ghost) > self.capacity {
                    let place = self.hand(self.hand_test);
                    self.hand_test = Some(self.behind(place));
                    self.end_test(place);
                }
            } else {
                self.remove(place);
            }
        }
        let kind = if ghost.is_some() { Kind::Hot } else { Kind::Cold { observed: true } };
        self.circle.push(Page { name: data.name, kind, used: false });
        self.limit_hot();
    }
}
