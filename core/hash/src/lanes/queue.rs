//! The names of a group that are not in a lane yet.

use super::GROUP_NAMES;
use super::vector::MAX_LANES;
use crate::siphash::{WORD_BYTES, partial_word};
use crate::{HashKey, PrefixHashes, hash_prefixes};

/// Words of the results of one name. The hash of the prefix of n components is word 2 n; its length follows.
pub(super) const RESULT_WORDS: usize = size_of::<PrefixHashes>() / size_of::<u64>();
/// Longest name that is hashed in a lane. Longer ones are rare, and one of them would occupy all lanes for itself.
const LANE_NAME_BYTES: usize = 512;

/// The names, as parallel arrays so that several can be loaded into lanes at once.
#[repr(align(64))]
pub(super) struct Queue {
    /// Addresses of names.
    pub(super) bases: [u64; Self::ROOM],
    pub(super) lengths: [u64; Self::ROOM],
    /// Offset of the results of each name, in words.
    pub(super) starts: [u64; Self::ROOM],
    pub(super) count: usize,
    /// Index of the next name to take.
    pub(super) next: usize,
}

impl Queue {
    /// One vector more than the names, because loads read a whole vector after the last name.
    const ROOM: usize = GROUP_NAMES + MAX_LANES;

    /// Fills the queue, and sets all results to those of an empty name. Names that are too long for a lane are hashed
    /// at once and are empty in the queue. Names shorter than a word are copied into `short`, so that a whole word of
    /// each can be read.
    #[inline(always)]
    pub(super) fn new(
        key: &HashKey,
        names: &[&[u8]],
        short: &mut [[u8; WORD_BYTES]; GROUP_NAMES],
        out: &mut [PrefixHashes],
    ) -> Self {
        static NOTHING: [u8; WORD_BYTES] = [0; WORD_BYTES];
        let mut queue = Queue {
            bases: [NOTHING.as_ptr().expose_provenance() as u64; Self::ROOM],
            lengths: [0; Self::ROOM],
            starts: [0; Self::ROOM],
            count: names.len(),
            next: 0,
        };
        let slots = queue.bases.iter_mut().zip(&mut queue.lengths).zip(&mut queue.starts);
        let names = names.iter().zip(short).zip(out).enumerate();
        for ((number, ((&name, short), out)), ((base, length), start)) in names.zip(slots) {
            if name.len() > LANE_NAME_BYTES {
                // The result is kept in `out`.
                let _ = hash_prefixes(key, name, out);
                continue;
            }
            out.entries[0] = [key.empty, 0];
            let bytes = if name.len() < WORD_BYTES {
                *short = partial_word(name).to_le_bytes();
                short.as_ptr()
            } else {
                name.as_ptr()
            };
            *base = bytes.expose_provenance() as u64;
            *length = name.len() as u64;
            *start = (number * RESULT_WORDS) as u64;
        }
        queue
    }
}
