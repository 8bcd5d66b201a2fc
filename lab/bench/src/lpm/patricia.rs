//! A binary Patricia trie over the bits of Name TLV-VALUEs: Song et al., "Scalable Name-Based Packet Forwarding: From
//! Millions to Billions" (ICN 2015), in its speculative form. The descent reads only the bits at which prefixes
//! diverge; the prefix found is compared at the end.
//!
//! A Name TLV-VALUE that is a byte prefix of another one is a prefix of that name, so comparing bits suffices.

use namehop_table::prefetch::CACHE_LINE_BYTES;
use namehop_table::{Arena, PageRequest};
use namehop_wire::NameRef;

use super::record::{Record, block_bytes};
use super::{Lines, LongestPrefixMatch, LpmError, MAX_GROUP, MAX_PREFIX_BYTES, Query};

/// Marks a missing node or key.
const NONE: u32 = u32::MAX;
/// Maximum number of prefixes on one path: each has at least one component, that is two bytes, more than the one
/// before.
const MAX_PATH_PREFIXES: usize = MAX_PREFIX_BYTES / 2;
/// Maximum number of rounds of a group; each round takes one step in every lookup.
const MAX_ROUNDS: usize = 8 * MAX_PREFIX_BYTES + 1;

/// A node where prefixes diverge or one ends. At most half a cache line, so that the caches hold many.
#[derive(Clone, Copy)]
#[repr(C)]
struct Node {
    /// Length in bits of the path from the root to this node; the next bit selects the child.
    bits: u32,
    children: [u32; 2],
    /// The prefix that ends here, or any prefix below.
    key: u32,
    /// True if a prefix ends here.
    ends: bool,
}

impl Default for Node {
    fn default() -> Self {
        Node { bits: 0, children: [NONE; 2], key: NONE, ends: false }
    }
}

const _: () = assert!(size_of::<Node>() <= CACHE_LINE_BYTES / 2);

/// The trie; see the module documentation.
pub struct Patricia {
    root: u32,
    nodes: Arena<Node>,
    keys: Arena<Record>,
    /// Heap bytes of prefixes that are not inline.
    block_bytes: usize,
}

/// Returns bit `position` of a value, counted from the highest bit of the first byte.
#[inline(always)]
fn bit(value: &[u8], position: usize) -> usize {
    usize::from(value[position / 8] >> (7 - position % 8) & 1)
}

/// Returns the first bit at which two values differ, or the length in bits of the shorter one.
fn first_difference(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    match (a.get(common), b.get(common)) {
        (Some(a), Some(b)) => 8 * common + (a ^ b).leading_zeros() as usize,
        _ => 8 * common,
    }
}

/// Prefixes found on the descent, shortest first.
#[derive(Clone, Copy)]
struct Path {
    keys: [u32; MAX_PATH_PREFIXES],
    count: usize,
}

impl Path {
    const EMPTY: Path = Path { keys: [NONE; MAX_PATH_PREFIXES], count: 0 };
}

impl Patricia {
    /// Creates a trie for at most `capacity` prefixes.
    pub fn new(capacity: u32) -> Result<Self, LpmError> {
        let pages = PageRequest::default();
        let nodes = Arena::new(capacity.checked_mul(2).ok_or(LpmError::Full)?, pages)?;
        Ok(Patricia { root: NONE, nodes, keys: Arena::new(capacity, pages)?, block_bytes: 0 })
    }

    /// Number of vertices from the root to the end of the search for `name`, for comparison with the model.
    pub fn path_vertices(&self, name: NameRef<'_>) -> usize {
        let mut path = Path::EMPTY;
        std::iter::successors(self.child_of_root(), |&node| self.step(node, name.value(), &mut path)).count()
    }

    fn child_of_root(&self) -> Option<u32> {
        (self.root != NONE).then_some(self.root)
    }

    /// Records a prefix that ends at `node`, and returns the next child.
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

    /// Returns the number of the longest prefix of the path that really is a prefix of the name.
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

    /// Returns any prefix below the node where the search for `value` ends.
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

    /// Returns the node at or below which a path of `bits` bits ends, and its parent with the child index.
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
                // The new prefix ends at an existing node.
                let node = &mut self.nodes[at];
                node.ends = true;
                node.key = key;
                return Ok(());
            }
            // An existing prefix is a prefix of the new one.
            let leaf = self.new_node(leaf)?;
            self.nodes[at].children[bit(value, difference)] = leaf;
            return Ok(());
        } else if difference == bits {
            // The new prefix ends above an existing node.
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

    /// A node's address is in its parent, so only lookups of different names can overlap: all lookups take one step,
    /// then all take the next.
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
        // Keys are compared from the longest down to the one that matches.
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
