//! A binary Patricia trie over the bits of Name VALUEs: Song et al., "Scalable Name-Based Packet Forwarding: From Millions
//! to Billions" (ICN 2015), in its speculative form: on the way down only the bits at which prefixes part are looked at,
//! and the prefix found is compared at the end.
//!
//! A Name VALUE that is a byte prefix of another is a prefix of that name, so bits are enough.

use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{Arena, PageRequest};
use namehop_wire::NameRef;

use super::record::{Record, block_bytes};
use super::{Lines, LongestPrefixMatch, LpmError, MAX_GROUP, MAX_PREFIX_BYTES, Query};

/// "No node", "no key".
const NONE: u32 = u32::MAX;
/// Most prefixes on one path: each has one component more than the one before, and two bytes at least.
const MAX_PATH_PREFIXES: usize = MAX_PREFIX_BYTES / 2;
/// Rounds of a group between which a step is taken in every lookup.
const MAX_ROUNDS: usize = 8 * MAX_PREFIX_BYTES + 1;

/// A place where prefixes part or one ends. Half a cache line at most, for as many as possible in the caches.
#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    /// Bits of the path from the root to here; the bit after them chooses the child.
    bits: u32,
    children: [u32; 2],
    /// The prefix that ends here, or any prefix below.
    key: u32,
    /// Does a prefix end here?
    ends: bool,
}

impl Default for Node {
    fn default() -> Self {
        Node { bits: 0, children: [NONE; 2], key: NONE, ends: false }
    }
}

const _: () = assert!(size_of::<Node>() <= CACHE_LINE_BYTES / 2);

/// The trie; see the module's description.
pub struct Patricia {
    root: u32,
    nodes: Arena<Node>,
    keys: Arena<Record>,
    /// Bytes of prefixes that are not in their records.
    block_bytes: usize,
}

/// Bit `position` of a value, the highest bit of the first byte first.
#[inline(always)]
fn bit(value: &[u8], position: usize) -> usize {
    usize::from(value[position / 8] >> (7 - position % 8) & 1)
}

/// First bit at which two values differ, or the length of the shorter one in bits.
fn first_difference(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    match (a.get(common), b.get(common)) {
        (Some(a), Some(b)) => 8 * common + (a ^ b).leading_zeros() as usize,
        _ => 8 * common,
    }
}

/// Prefixes seen on the way down, shortest first.
#[derive(Clone, Copy)]
struct Path {
    keys: [u32; MAX_PATH_PREFIXES],
    count: usize,
}

impl Path {
    const EMPTY: Path = Path { keys: [NONE; MAX_PATH_PREFIXES], count: 0 };
}

impl Patricia {
    /// A trie for at most `capacity` prefixes.
    pub fn new(capacity: u32) -> Result<Self, LpmError> {
        let pages = PageRequest::default();
        let nodes = Arena::new(capacity.checked_mul(2).ok_or(LpmError::Full)?, pages)?;
        Ok(Patricia { root: NONE, nodes, keys: Arena::new(capacity, pages)?, block_bytes: 0 })
    }

    /// Vertices from the root to the one where the search for `name` ends, for comparison with the model.
    pub fn path_vertices(&self, name: NameRef<'_>) -> usize {
        let mut path = Path::EMPTY;
        std::iter::successors(self.child_of_root(), |&node| self.step(node, name.value(), &mut path)).count()
    }

    fn child_of_root(&self) -> Option<u32> {
        (self.root != NONE).then_some(self.root)
    }

    /// Notes what ends at `node`; gives the child to go on with.
    #[inline(always)]
    fn step(&self, node: u32, value: &[u8], path: &mut Path) -> Option<u32> {
        let Node { bits, children, key, ends } = self.nodes[node];
        if ends {
            path.keys[path.count] = key;
            path.count += 1;
        }
        if bits as usize >= 8 * value.len() {
            return None;
        }
        let child = children[bit(value, bits as usize)];
        (child != NONE).then_some(child)
    }

    /// The number of the longest of the path's prefixes that really is one of the name.
    #[inline]
    fn confirm(&self, value: &[u8], path: &Path) -> Option<u32> {
        let keys = path.keys[..path.count].iter().rev();
        keys.map(|&key| &self.keys[key]).find(|key| value.starts_with(key.name()))?.number
    }

    fn new_node(&mut self, node: Node) -> Result<u32, LpmError> {
        let index = self.nodes.allocate().ok_or(LpmError::Full)?;
        self.nodes[index] = node;
        Ok(index)
    }

    /// Any prefix below the place where the search for `value` ends.
    fn nearest_key(&self, value: &[u8]) -> u32 {
        let mut at = self.root;
        loop {
            let node = &self.nodes[at];
            if node.bits as usize >= 8 * value.len() {
                return node.key;
            }
            match node.children[bit(value, node.bits as usize)] {
                NONE => return node.key,
                child => at = child,
            }
        }
    }

    /// The node at or below which a path of `bits` bits ends, and the parent's place that leads there.
    fn place(&self, value: &[u8], bits: usize) -> (u32, Option<(u32, usize)>) {
        let (mut at, mut parent) = (self.root, None);
        while (self.nodes[at].bits as usize) < bits {
            let side = bit(value, self.nodes[at].bits as usize);
            parent = Some((at, side));
            at = self.nodes[at].children[side];
        }
        (at, parent)
    }
}

impl LongestPrefixMatch for Patricia {
    fn insert(&mut self, prefix: NameRef<'_>, number: u32) -> Result<(), LpmError> {
        let value = prefix.value();
        if value.len() > MAX_PREFIX_BYTES {
            return Err(LpmError::PrefixTooLong);
        }
        if value.is_empty() {
            return Err(LpmError::Empty);
        }
        let bits = 8 * value.len();
        let mut difference = 0;
        if self.root != NONE {
            let near = self.nearest_key(value);
            difference = first_difference(value, self.keys[near].name());
            if difference == bits && self.keys[near].name().len() == value.len() {
                self.keys[near].number = Some(number);
                return Ok(());
            }
        }
        let key = self.keys.allocate().ok_or(LpmError::Full)?;
        let stored = &mut self.keys[key];
        stored.number = Some(number);
        stored.set_name(value);
        self.block_bytes += block_bytes(value.len());
        let leaf = Node { bits: bits as u32, key, ends: true, ..Node::default() };
        if self.root == NONE {
            self.root = self.new_node(leaf)?;
            return Ok(());
        }
        let (at, parent) = self.place(value, difference);
        let here = self.nodes[at];
        let new = if here.bits as usize == difference {
            if difference == bits {
                // Prefixes part where this one ends.
                let node = &mut self.nodes[at];
                node.ends = true;
                node.key = key;
                return Ok(());
            }
            // The prefix that ends here goes on.
            let leaf = self.new_node(leaf)?;
            self.nodes[at].children[bit(value, difference)] = leaf;
            return Ok(());
        } else if difference == bits {
            // The new prefix ends above.
            let mut node = leaf;
            node.children[bit(self.keys[here.key].name(), difference)] = at;
            self.new_node(node)?
        } else {
            let leaf = self.new_node(leaf)?;
            let mut children = [at; 2];
            children[bit(value, difference)] = leaf;
            self.new_node(Node { bits: difference as u32, children, key, ends: false })?
        };
        match parent {
            Some((parent, side)) => self.nodes[parent].children[side] = new,
            None => self.root = new,
        }
        Ok(())
    }

    #[inline]
    fn find(&self, query: &Query<'_>) -> Option<u32> {
        let value = query.name.value();
        let mut path = Path::EMPTY;
        let mut at = self.child_of_root();
        while let Some(node) = at {
            at = self.step(node, value, &mut path);
        }
        self.confirm(value, &path)
    }

    /// Each node's address is in the node before, so only lookups of different names can overlap: all take one step, then
    /// all the next.
    fn find_group(&self, queries: &[Query<'_>], found: &mut [Option<u32>; MAX_GROUP]) {
        let count = queries.len().min(MAX_GROUP);
        let mut at = [self.child_of_root(); MAX_GROUP];
        let mut paths = [Path::EMPTY; MAX_GROUP];
        let last_key = |path: &Path| path.count.checked_sub(1).map(|last| path.keys[last]);
        for _ in 0..MAX_ROUNDS {
            let mut all_done = true;
            for ((at, path), query) in at[..count].iter_mut().zip(&mut paths).zip(queries) {
                let Some(node) = *at else { continue };
                *at = self.step(node, query.name.value(), path);
                if let Some(next) = *at {
                    self.nodes.prefetch(next);
                    all_done = false;
                } else if let Some(key) = last_key(path) {
                    self.keys.prefetch(key);
                }
            }
            if all_done {
                break;
            }
        }
        for key in paths[..count].iter().filter_map(last_key) {
            self.keys[key].prefetch_block();
        }
        for ((query, path), found) in queries.iter().zip(&paths).zip(found) {
            *found = self.confirm(query.name.value(), path);
        }
    }

    fn lines(&self, query: &Query<'_>) -> Lines {
        let value = query.name.value();
        let mut path = Path::EMPTY;
        let mut lines = Lines::default();
        let mut last_line = None;
        let mut at = self.child_of_root();
        while let Some(node) = at {
            let line = node as usize * size_of::<Node>() / CACHE_LINE_BYTES;
            if last_line.replace(line) != Some(line) {
                lines.add(1, 1);
            }
            at = self.step(node, value, &mut path);
        }
        // From the longest to the one that is confirmed.
        for &key in path.keys[..path.count].iter().rev() {
            let key = &self.keys[key];
            lines.add_record(key);
            if value.starts_with(key.name()) {
                break;
            }
        }
        lines
    }

    fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.keys.len() * size_of::<Record>() + self.block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_in_bits() {
        assert_eq!(first_difference(&[0b1010_0000], &[0b1000_0000]), 2);
        assert_eq!(first_difference(&[1, 2], &[1, 2, 3]), 16);
        assert_eq!(first_difference(&[7], &[7]), 8);
        assert_eq!(bit(&[0, 0b0100_0000], 9), 1);
        assert_eq!(bit(&[0, 0b0100_0000], 10), 0);
    }
}
