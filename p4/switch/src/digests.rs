//! Digests that programs report to the control plane, in a bounded queue: workers add to it without a lock, and the
//! control plane takes from it.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use namehop_p4_compile::description::MAX_DIGEST_BYTES;

/// Maximum number of waiting digests; further ones are dropped and counted.
const MOST_WAITING: usize = 4096;

/// One digest.
#[derive(Debug, Clone, Copy)]
pub struct Digest {
    /// Index in the program's list of digest types.
    pub number: u32,
    length: u16,
    bytes: [u8; MAX_DIGEST_BYTES as usize],
}

impl Digest {
    /// The fields, packed without gaps; the first one begins at the highest bit of the first byte.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Digests of all workers that the control plane has not taken yet.
pub struct Digests {
    waiting: ArrayQueue<Digest>,
    dropped: AtomicU64,
}

impl Digests {
    /// Makes the queue of a program. `any` is false if the program reports no digests.
    pub(crate) fn new(any: bool) -> Digests {
        Digests { waiting: ArrayQueue::new(if any { MOST_WAITING } else { 1 }), dropped: AtomicU64::new(0) }
    }

    /// Adds a digest, or drops it if the queue is full. Called by workers: takes no lock and allocates no memory.
    pub(crate) fn put(&self, number: u32, bytes: &[u8]) {
        let mut digest = Digest { number, length: bytes.len() as u16, bytes: [0; MAX_DIGEST_BYTES as usize] };
        let fits = digest.bytes.get_mut(..bytes.len()).map(|to| to.copy_from_slice(bytes)).is_some();
        if !fits || self.waiting.push(digest).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the oldest digest.
    pub fn take(&self) -> Option<Digest> {
        self.waiting.pop()
    }

    /// Counts a digest that was taken and then discarded.
    pub fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of digests that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digests, MAX_DIGEST_BYTES, MOST_WAITING};

    #[test]
    fn what_is_too_much_is_counted() {
        let digests = Digests::new(true);
        for number in 0..MOST_WAITING as u32 + 3 {
            digests.put(number, &number.to_be_bytes());
        }
        digests.put(1, &[0; MAX_DIGEST_BYTES as usize + 1]);
        assert_eq!(digests.dropped(), 4);
        for number in 0..MOST_WAITING as u32 {
            let digest = digests.take().expect("a digest is queued");
            assert_eq!((digest.number, digest.bytes()), (number, &number.to_be_bytes()[..]));
        }
        assert!(digests.take().is_none());
    }
}
