//! A random table with a list of its entries as a model: which entry a packet matches, and which changes are possible.

use namehop_p4_lang::tree::LARGEST_PRIORITY;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::entry_profile::{Does, Profile, Values};

const WIDTHS: [u32; 9] = [1, 8, 16, 31, 32, 33, 64, 65, 128];
const KINDS: [&str; 5] = ["exact", "lpm", "ternary", "range", "optional"];
/// Widths of the action parameter that only takes up room.
const FURTHER: [u32; 4] = [1, 8, 64, 100];
/// Result of a packet that matches no entry.
pub const DEFAULT: u16 = 0xEEEE;
/// Maximum number of entries of a table.
pub const SIZE: usize = 12;
/// A timeout that expires at once, and one that never expires.
pub const SHORT_NS: i64 = 1;
const LONG_NS: i64 = 3_600_000_000_000;

/// A match on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Bits { value: u128, mask: u128 },
    Range(u128, u128),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub keys: Vec<Want>,
    pub priority: i64,
    pub does: Does,
    pub is_const: bool,
    /// Properties that only P4Runtime sets.
    pub timeout_ns: i64,
    pub metadata: Vec<u8>,
}

pub struct Key {
    pub kind: &'static str,
    pub width: u32,
    pub is_signed: bool,
}

impl Key {
    pub fn all(&self) -> u128 {
        u128::MAX >> (128 - self.width)
    }

    /// Maps bits to a number that sorts as the values do, and back.
    pub fn order(&self, bits: u128) -> u128 {
        if self.is_signed { bits ^ 1 << (self.width - 1) } else { bits }
    }
}

/// How the program sets the priorities of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Largest,
    Smallest,
    /// With `@priority`, for some of them.
    Ranks,
    /// By their positions, with this step.
    Places {
        largest_wins: bool,
        delta: i64,
    },
}

pub struct Table {
    random: Xoshiro256PlusPlus,
    pub keys: Vec<Key>,
    pub further: u32,
    pub order: Order,
    /// `const entries`.
    pub is_const: bool,
    pub times_out: bool,
    pub profile: Option<Profile>,
    /// The program's own entries, with the priorities that it states, if any.
    pub own: Vec<(Known, Option<i64>)>,
    /// In order of insertion, not of priority.
    pub entries: Vec<Known>,
    pub default: u16,
}

impl Table {
    pub fn new(seed: u64) -> Table {
        let mut table = Table {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            keys: Vec::new(),
            further: 0,
            order: Order::Largest,
            is_const: false,
            times_out: false,
            profile: None,
            own: Vec::new(),
            entries: Vec::new(),
            default: DEFAULT,
        };
        table.further = table.one_of(&FURTHER);
        for _ in 0..=table.below(3) {
            let mut kind = table.one_of(&KINDS);
            if kind == "lpm" && table.keys.iter().any(|key| key.kind == "lpm") {
                kind = "exact";
            }
            let widths = if kind == "range" { &WIDTHS[..7] } else { &WIDTHS[..] };
            let width = table.one_of(widths);
            let is_signed = kind == "range" && table.below(2) == 0;
            table.keys.push(Key { kind, width, is_signed });
        }
        let delta = 1 + table.below(3) as i64;
        let places = |largest_wins| Order::Places { largest_wins, delta };
        table.order = table.one_of(&[Order::Largest, Order::Smallest, Order::Ranks, places(true), places(false)]);
        table.is_const = table.below(6) == 0;
        table.times_out = table.below(4) == 0;
        table.profile = match table.below(3) {
            0 => None,
            number => Some(Profile::new(number == 1)),
        };
        table.begin();
        table
    }

    /// Generates the program's own entries.
    fn begin(&mut self) {
        let count = self.below(4) * 2;
        let mut own: Vec<Known> = Vec::new();
        for _ in 0..count {
            let mut entry = self.entry();
            entry.is_const = self.is_const || self.below(4) == 0;
            entry.does = Does::Own(self.values());
            (entry.timeout_ns, entry.metadata) = (0, Vec::new());
            if own.iter().all(|known| known.keys != entry.keys) {
                own.push(entry);
            }
        }
        let count = own.len() as i64;
        for (place, mut entry) in (0..).zip(own) {
            let number = match self.order {
                _ if !self.has_priorities() => None,
                Order::Largest => Some(entry.priority),
                Order::Smallest => Some(LARGEST_PRIORITY - entry.priority),
                Order::Ranks => (self.below(3) > 0).then(|| self.below(4) as i64),
                Order::Places { .. } => None,
            };
            entry.priority = match self.order {
                _ if !self.has_priorities() => 0,
                Order::Largest => entry.priority,
                Order::Smallest => LARGEST_PRIORITY - number.unwrap_or(0),
                Order::Ranks => LARGEST_PRIORITY - number.unwrap_or(place + 1),
                Order::Places { largest_wins: true, delta } => 1 + (count - 1 - place) * delta,
                Order::Places { largest_wins: false, delta } => LARGEST_PRIORITY - 1 - place * delta,
            };
            self.entries.push(entry.clone());
            self.own.push((entry, number));
        }
        if self.order == Order::Ranks && self.own.iter().all(|(_, number)| number.is_none()) {
            // Without any `@priority`, positions count.
            self.order = Order::Places { largest_wins: true, delta: 1 };
            for (place, entry) in self.entries.iter_mut().enumerate().filter(|(_, entry)| entry.priority > 0) {
                entry.priority = count - place as i64;
                self.own[place].0.priority = entry.priority;
            }
        }
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn number(&mut self, width: u32) -> u128 {
        let all = u128::MAX >> (128 - width);
        let whole = u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64());
        // Few values, so that keys collide, and extreme values.
        match self.below(6) {
            0 => 0,
            1 => all,
            2 => whole & all,
            3 => 1 << (width - 1),
            _ => whole & all & 3,
        }
    }

    pub fn values(&mut self) -> Values {
        Values { id: self.below(0xE000) as u16, further: self.number(self.further) }
    }

    pub fn has_priorities(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.kind, "ternary" | "range" | "optional"))
    }

    fn does(&mut self) -> Does {
        let way = if self.profile.is_some() { self.below(6) } else { 0 };
        match way {
            0 | 1 => Does::Own(self.values()),
            2 => Does::Member(1 + self.below(4) as u32),
            3 => Does::Group(1 + self.below(3) as u32),
            _ => {
                let count = 1 + self.below(3);
                Does::Set((0..count).map(|_| (self.values(), 1 + self.below(3) as u32)).collect())
            }
        }
    }

    pub fn entry(&mut self) -> Known {
        let mut keys = Vec::new();
        for place in 0..self.keys.len() {
            let (kind, width, all) = (self.keys[place].kind, self.keys[place].width, self.keys[place].all());
            let (value, other) = (self.number(width), self.number(width));
            let mask = match kind {
                "lpm" => match self.below(width as usize + 1) as u32 {
                    0 => 0,
                    length => all & all << (width - length),
                },
                "ternary" => other,
                "optional" if self.below(3) == 0 => 0,
                _ => all,
            };
            keys.push(match kind {
                "range" if self.keys[place].order(value) > self.keys[place].order(other) => Want::Range(other, value),
                "range" => Want::Range(value, other),
                _ => Want::Bits { value: value & mask, mask },
            });
        }
        let priority = match self.below(2) {
            _ if !self.has_priorities() => 0,
            0 => 1 + self.below(4) as i64,
            // The range of priorities in programs where the smallest number wins.
            _ => LARGEST_PRIORITY - self.below(4) as i64,
        };
        let timeout_ns = if self.times_out { self.one_of(&[0, SHORT_NS, LONG_NS]) } else { 0 };
        let metadata = self.one_of(&[&b""[..], b"note"]).to_vec();
        Known { keys, priority, does: self.does(), is_const: false, timeout_ns, metadata }
    }

    /// An existing entry with another action, or a new one.
    pub fn some_entry(&mut self) -> Known {
        let new = self.entry();
        if self.entries.is_empty() || self.below(3) == 0 {
            return new;
        }
        let place = self.below(self.entries.len());
        let Known { keys, priority, .. } = self.entries[place].clone();
        Known { keys, priority, ..new }
    }

    pub fn place(&self, entry: &Known) -> Option<usize> {
        self.entries.iter().position(|known| known.keys == entry.keys && known.priority == entry.priority)
    }

    /// Slots in use by groups and sets.
    pub fn places(&self) -> u32 {
        let sets = self.entries.iter().map(|entry| entry.does.places());
        sets.chain(self.profile.iter().map(Profile::places)).sum()
    }

    /// The possible results of a packet with these keys: one, or several for groups.
    pub fn look(&self, packet: &[u128]) -> Vec<u16> {
        let fits = |entry: &&Known| {
            entry.keys.iter().zip(&self.keys).zip(packet).all(|((want, key), value)| match want {
                Want::Bits { value: wanted, mask } => value & mask == *wanted,
                Want::Range(first, last) => (key.order(*first)..=key.order(*last)).contains(&key.order(*value)),
            })
        };
        let prefix = |entry: &Known| -> u32 {
            let keys = entry.keys.iter().zip(&self.keys).filter(|(_, key)| key.kind == "lpm");
            keys.map(|(key, _)| if let Want::Bits { mask, .. } = key { mask.count_ones() } else { 0 }).sum()
        };
        // Of equally good entries the first one: `max_by_key` returns the last maximum.
        let best = self.entries.iter().rev().filter(fits).max_by_key(|entry| (entry.priority, prefix(entry)));
        best.map_or(vec![self.default], |entry| entry.does.results(self.profile.as_ref()))
    }

    /// The keys of a packet that usually matches an entry.
    pub fn packet(&mut self) -> Vec<u128> {
        let entry = self.some_entry();
        let mut values = Vec::new();
        for (place, want) in entry.keys.iter().enumerate() {
            let (other, way) = (self.number(self.keys[place].width), self.below(4));
            let key = &self.keys[place];
            values.push(match want {
                Want::Bits { value, mask } => value | other & !mask,
                Want::Range(first, last) => match way {
                    0 => *first,
                    1 => *last,
                    2 => last.wrapping_add(1) & key.all(),
                    _ => key.order(key.order(other).clamp(key.order(*first), key.order(*last))),
                },
            });
        }
        values
    }
}
