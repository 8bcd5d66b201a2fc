//! What programs report to the control plane: a queue with a bound, which workers fill without a lock and the control plane empties.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;

/// The longest report, in bytes.
pub const MOST_BYTES: u16 = 248;
/// Reports that wait at most; further ones are counted and dropped.
const MOST_WAITING: usize = 4096;

/// One report.
#[derive(Debug, Clone, Copy)]
pub struct Digest {
    /// Place in the program's list.
    pub number: u32,
    length: u16,
    bytes: [u8; MOST_BYTES as usize],
}

impl Digest {
    /// Its parts, one behind the other without gaps, the first one at the highest bit of the first byte.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Reports of all workers that nobody has taken yet.
pub struct Digests {
    waiting: ArrayQueue<Digest>,
    dropped: AtomicU64,
}

impl Digests {
    /// For a program that reports something, or nothing.
    pub(crate) fn new(any: bool) -> Digests {
        Digests { waiting: ArrayQueue::new(if any { MOST_WAITING } else { 1 }), dropped: AtomicU64::new(0) }
    }

    /// Called by workers: takes no lock and no memory.
    pub(crate) fn put(&self, number: u32, bytes: &[u8]) {
        let mut digest = Digest { number, length: bytes.len() as u16, bytes: [0; MOST_BYTES as usize] };
        let fits = digest.bytes.get_mut(..bytes.len()).map(|to| to.copy_from_slice(bytes)).is_some();
        if !fits || self.waiting.push(digest).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The oldest one.
    pub fn take(&self) -> Option<Digest> {
        self.waiting.pop()
    }

    /// Counts one that was taken and that nobody wants.
    pub fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digests, MOST_BYTES, MOST_WAITING};

    #[test]
    fn what_is_too_much_is_counted() {
        let digests = Digests::new(true);
        for number in 0..MOST_WAITING as u32 + 3 {
            digests.put(number, &number.to_be_bytes());
        }
        digests.put(1, &[0; MOST_BYTES as usize + 1]);
        assert_eq!(digests.dropped(), 4);
        for number in 0..MOST_WAITING as u32 {
            let digest = digests.take().expect("it waits");
            assert_eq!((digest.number, digest.bytes()), (number, &number.to_be_bytes()[..]));
        }
        assert!(digests.take().is_none());
    }
}
