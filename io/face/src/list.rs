//! Doubly linked lists through the nodes of one array: a node is removed in constant time, and nothing is allocated.
//! The permits of unsolicited peers and the slots of partial packets are in such lists.

/// Index that means no node.
const NONE: u32 = u32::MAX;

/// The neighbours of a node in one list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    previous: u32,
    next: u32,
}

impl Links {
    /// The links of a node that is in no list.
    pub(crate) const NOWHERE: Links = Links { previous: NONE, next: NONE };
}

/// Access to the links of a node: a node can be in several lists of different kinds.
pub(crate) trait Linked<const KIND: usize = 0> {
    /// Returns the links of this kind.
    fn links(&mut self) -> &mut Links;
}

/// A list through the nodes' links of one kind.
#[derive(Debug)]
pub(crate) struct List<const KIND: usize = 0> {
    first: u32,
    last: u32,
    length: usize,
}

impl<const KIND: usize> Default for List<KIND> {
    fn default() -> Self {
        List { first: NONE, last: NONE, length: 0 }
    }
}

impl<const KIND: usize> List<KIND> {
    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the first node.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Appends a node that is in no list of this kind.
    pub(crate) fn push_last<N: Linked<KIND>>(&mut self, nodes: &mut [N], at: u32) {
        *nodes[at as usize].links() = Links { previous: self.last, next: NONE };
        match self.last {
            NONE => self.first = at,
            last => nodes[last as usize].links().next = at,
        }
        self.last = at;
        self.length += 1;
    }

    /// Removes a node of this list.
    pub(crate) fn remove<N: Linked<KIND>>(&mut self, nodes: &mut [N], at: u32) {
        let Links { previous, next } = std::mem::replace(nodes[at as usize].links(), Links::NOWHERE);
        match previous {
            NONE => self.first = next,
            previous => nodes[previous as usize].links().next = next,
        }
        match next {
            NONE => self.last = previous,
            next => nodes[next as usize].links().previous = previous,
        }
        self.length -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    struct Node(Links);

    impl Linked for Node {
        fn links(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    #[test]
    fn it_agrees_with_a_queue_from_which_any_element_is_taken() {
        let mut nodes: Vec<Node> = (0..10).map(|_| Node(Links::NOWHERE)).collect();
        let (mut list, mut model) = (List::default(), VecDeque::new());
        let mut state = 7_u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as u32 % 10;
            if let Some(position) = model.iter().position(|&held| held == at) {
                list.remove(&mut nodes, at);
                model.remove(position);
            } else {
                list.push_last(&mut nodes, at);
                model.push_back(at);
            }
            assert_eq!((list.first(), list.len()), (model.front().copied(), model.len()));
        }
        while let Some(at) = list.first() {
            assert_eq!(model.pop_front(), Some(at));
            list.remove(&mut nodes, at);
        }
        assert!(model.is_empty());
    }
}
