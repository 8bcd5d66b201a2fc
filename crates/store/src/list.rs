//! A doubly linked list whose nodes are the numbers 0..capacity, kept in one array.
//!
//! Number `n` lives in node `n + 1`; node 0 closes the ring and is the end marker. Links hold node + 1, so that the
//! zeroed memory of a new list means "not linked" everywhere and is not touched before it is used.

/// Previous and next node of a node, each plus one. A plain array, because the allocator hands out zeroed arrays of
/// integers without touching them.
type Links = [u32; 2];
const PREVIOUS: usize = 0;
const NEXT: usize = 1;

/// The list.
#[derive(Debug, Clone)]
pub(crate) struct LinkedSlots {
    links: Vec<Links>,
    length: usize,
}

const END: usize = 0;

impl LinkedSlots {
    /// An empty list for numbers below `capacity`.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut list = LinkedSlots { links: vec![[0; 2]; capacity + 1], length: 0 };
        list.join(END, END);
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        self.links[Self::node(id)][NEXT] != 0
    }

    /// The number at the front.
    pub(crate) fn front(&self) -> Option<u32> {
        match self.links[END][NEXT] - 1 {
            0 => None,
            node => Some(node - 1),
        }
    }

    /// The number behind `id`, or at the front.
    pub(crate) fn after(&self, id: Option<u32>) -> Option<u32> {
        match self.links[id.map_or(END, Self::node)][NEXT] {
            0 | 1 => None,
            link => Some(link - 2),
        }
    }

    /// Puts `id` at the back, taking it from its old place if it has one.
    pub(crate) fn push_back(&mut self, id: u32) {
        self.remove(id);
        let node = Self::node(id);
        let last = self.links[END][PREVIOUS] as usize - 1;
        self.join(last, node);
        self.join(node, END);
        self.length += 1;
    }

    /// Takes `id` out. Nothing happens if it is not in the list.
    pub(crate) fn remove(&mut self, id: u32) {
        let node = Self::node(id);
        let [previous, next] = self.links[node];
        if next != 0 {
            self.join(previous as usize - 1, next as usize - 1);
            self.links[node] = [0; 2];
            self.length -= 1;
        }
    }

    fn node(id: u32) -> usize {
        id as usize + 1
    }

    fn join(&mut self, previous: usize, next: usize) {
        self.links[previous][NEXT] = next as u32 + 1;
        self.links[next][PREVIOUS] = previous as u32 + 1;
    }
}
