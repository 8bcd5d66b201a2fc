//! The names of the RIB as a tree with one node per name component, in flat memory.
//!
//! A node is found by hashing (parent, component), so a lookup costs one probe per component, and the nodes near the
//! root stay in the CPU cache. Siblings are linked, so that all names below a name can be visited. Component bytes are
//! stored in one array. Vectors grow by an eighth, not by doubling: at a million routes this reduces unused memory from
//! 50 megabytes to 5.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use namehop_wire::NameRef;
use namehop_wire::tlv::Reader;

use super::routes::RouteSet;

/// Index of a node.
pub(super) type NodeIndex = u32;
/// Marks the absence of a node.
pub(super) const NO_NODE: NodeIndex = u32::MAX;
const ROOT: NodeIndex = 0;
/// Depth of a free node.
const FREE: u8 = u8::MAX;

#[derive(Debug)]
struct Node {
    /// The next free node if this one is free.
    parent: NodeIndex,
    first_child: NodeIndex,
    next_sibling: NodeIndex,
    previous_sibling: NodeIndex,
    /// Offset of the component (TYPE, LENGTH and VALUE) in `components`.
    component_offset: u32,
    component_bytes: u16,
    depth: u8,
    routes: RouteSet,
}

impl Node {
    fn new(parent: NodeIndex, depth: u8) -> Self {
        Node {
            parent,
            first_child: NO_NODE,
            next_sibling: NO_NODE,
            previous_sibling: NO_NODE,
            component_offset: 0,
            component_bytes: 0,
            depth,
            routes: RouteSet::Empty,
        }
    }
}

/// The tree. Node 0 is the root (name `/`) and is always present.
#[derive(Debug)]
pub(super) struct NameTree {
    nodes: Vec<Node>,
    first_free: NodeIndex,
    children: HashTable<NodeIndex>,
    hasher: RandomState,
    components: Vec<u8>,
    /// Bytes of `components` that no node uses.
    unused_bytes: usize,
}

impl Default for NameTree {
    fn default() -> Self {
        NameTree {
            nodes: vec![Node::new(NO_NODE, 0)],
            first_free: NO_NODE,
            children: HashTable::new(),
            hasher: RandomState::new(),
            components: Vec::new(),
            unused_bytes: 0,
        }
    }
}

/// Appends an item; when full, grows the capacity by an eighth.
pub(super) fn push_in_small_steps<T>(vector: &mut Vec<T>, item: T) {
    reserve_in_small_steps(vector, 1);
    vector.push(item);
}

fn reserve_in_small_steps<T>(vector: &mut Vec<T>, additional: usize) {
    if vector.capacity() - vector.len() < additional {
        vector.reserve_exact(additional.max(vector.len() / 8).max(4));
    }
}

impl NameTree {
    /// Returns the number of slots, used or free; every [`NodeIndex`] is below it.
    pub(super) fn slots(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn is_live(&self, node: NodeIndex) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.depth != FREE)
    }

    pub(super) fn depth(&self, node: NodeIndex) -> u8 {
        self.nodes[node as usize].depth
    }

    pub(super) fn parent(&self, node: NodeIndex) -> NodeIndex {
        self.nodes[node as usize].parent
    }

    pub(super) fn first_child(&self, node: NodeIndex) -> NodeIndex {
        self.nodes[node as usize].first_child
    }

    pub(super) fn next_sibling(&self, node: NodeIndex) -> NodeIndex {
        self.nodes[node as usize].next_sibling
    }

    pub(super) fn routes(&self, node: NodeIndex) -> &RouteSet {
        &self.nodes[node as usize].routes
    }

    pub(super) fn routes_mut(&mut self, node: NodeIndex) -> &mut RouteSet {
        &mut self.nodes[node as usize].routes
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.components.capacity() + self.children.allocation_size()
    }

    fn hash(&self, parent: NodeIndex, component: &[u8]) -> u64 {
        self.hasher.hash_one((parent, component))
    }

    fn component(&self, node: NodeIndex) -> &[u8] {
        let node = &self.nodes[node as usize];
        let start = node.component_offset as usize;
        &self.components[start..start + node.component_bytes as usize]
    }

    fn child(&self, parent: NodeIndex, hash: u64, component: &[u8]) -> Option<NodeIndex> {
        self.children
            .find(hash, |&node| self.nodes[node as usize].parent == parent && self.component(node) == component)
            .copied()
    }

    pub(super) fn find(&self, name: NameRef<'_>) -> Option<NodeIndex> {
        let mut node = ROOT;
        for component in component_wires(name) {
            node = self.child(node, self.hash(node, component), component)?;
        }
        Some(node)
    }

    /// Returns the node of the longest prefix of `name` in the tree.
    pub(super) fn find_deepest(&self, name: NameRef<'_>) -> NodeIndex {
        let mut node = ROOT;
        for component in component_wires(name) {
            match self.child(node, self.hash(node, component), component) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// Returns the node of `name` and inserts it if necessary. `None` if a 32-bit index or offset would overflow.
    pub(super) fn find_or_insert(&mut self, name: NameRef<'_>) -> Option<NodeIndex> {
        let mut node = ROOT;
        for component in component_wires(name) {
            let hash = self.hash(node, component);
            node = match self.child(node, hash, component) {
                Some(child) => child,
                None => match self.insert_child(node, hash, component) {
                    Some(child) => child,
                    None => {
                        self.prune(node);
                        return None;
                    }
                },
            };
        }
        Some(node)
    }

    fn insert_child(&mut self, parent: NodeIndex, hash: u64, component: &[u8]) -> Option<NodeIndex> {
        let component_offset = u32::try_from(self.components.len()).ok()?;
        let component_bytes = u16::try_from(component.len()).ok()?;
        let depth = self.depth(parent).checked_add(1).filter(|&depth| depth < FREE)?;
        let mut new = Node::new(parent, depth);
        new.component_offset = component_offset;
        new.component_bytes = component_bytes;
        new.next_sibling = self.first_child(parent);
        let node = if self.first_free != NO_NODE {
            let node = self.first_free;
            self.first_free = self.parent(node);
            self.nodes[node as usize] = new;
            node
        } else {
            let node = NodeIndex::try_from(self.nodes.len()).ok().filter(|&node| node != NO_NODE)?;
            push_in_small_steps(&mut self.nodes, new);
            node
        };
        reserve_in_small_steps(&mut self.components, component.len());
        self.components.extend_from_slice(component);
        let next = self.next_sibling(node);
        if next != NO_NODE {
            self.nodes[next as usize].previous_sibling = node;
        }
        self.nodes[parent as usize].first_child = node;
        let (nodes, components, hasher) = (&self.nodes, &self.components, &self.hasher);
        self.children.insert_unique(hash, node, |&node| {
            let node = &nodes[node as usize];
            let start = node.component_offset as usize;
            hasher.hash_one((node.parent, &components[start..start + node.component_bytes as usize]))
        });
        Some(node)
    }

    /// Removes the node if it has neither routes nor children, then its parent likewise, up to the root.
    pub(super) fn prune(&mut self, mut node: NodeIndex) {
        while node != ROOT && self.routes(node).is_empty() && self.first_child(node) == NO_NODE {
            let parent = self.parent(node);
            let hash = self.hash(parent, self.component(node));
            if let Ok(entry) = self.children.find_entry(hash, |&other| other == node) {
                entry.remove();
            }
            let (previous, next) = {
                let node = &self.nodes[node as usize];
                (node.previous_sibling, node.next_sibling)
            };
            match previous {
                NO_NODE => self.nodes[parent as usize].first_child = next,
                _ => self.nodes[previous as usize].next_sibling = next,
            }
            if next != NO_NODE {
                self.nodes[next as usize].previous_sibling = previous;
            }
            self.unused_bytes += self.nodes[node as usize].component_bytes as usize;
            self.nodes[node as usize] = Node::new(self.first_free, FREE);
            self.first_free = node;
            node = parent;
        }
        if self.unused_bytes > 4096 && self.unused_bytes > self.components.len() / 2 {
            self.compact_components();
        }
    }

    fn compact_components(&mut self) {
        let mut compacted = Vec::with_capacity(self.components.len() - self.unused_bytes);
        for node in self.nodes.iter_mut().filter(|node| node.depth != FREE) {
            let start = node.component_offset as usize;
            node.component_offset = compacted.len() as u32;
            compacted.extend_from_slice(&self.components[start..start + node.component_bytes as usize]);
        }
        self.components = compacted;
        self.unused_bytes = 0;
    }

    /// Writes the TLV-VALUE of the node's name into `value`.
    pub(super) fn name_value(&self, node: NodeIndex, value: &mut Vec<u8>) {
        let mut path = [NO_NODE; FREE as usize];
        let depth = self.depth(node) as usize;
        let mut current = node;
        for step in path[..depth].iter_mut().rev() {
            *step = current;
            current = self.parent(current);
        }
        value.clear();
        for &node in &path[..depth] {
            value.extend_from_slice(self.component(node));
        }
    }
}

/// Iterates over the components of a name, each with its TYPE and LENGTH.
fn component_wires<'a>(name: NameRef<'a>) -> impl Iterator<Item = &'a [u8]> {
    let mut reader = Reader::new(name.value());
    std::iter::from_fn(move || reader.read_element().ok().map(|element| element.wire))
}
