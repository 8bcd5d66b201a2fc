//! The names of a group that are not in a lane yet.

use super::GROUP_NAMES;
use super::vector::MAX_LANES;
use crate::siphash::{WORD_BYTES, partial_word};
use crate::{HashKey, PrefixHashes, hash_prefixes};

/// Words of the results of one name. The hash of the prefix of n components is word 2 n, and its length is behind it.
pub(super) const RESULT_WORDS: usize = size_of::<PrefixHashes>() / size_of::<u64>();
/// Longest name that is put into a lane. Longer ones are rare, and one alone would keep all lanes busy for itself.
const LANE_NAME_BYTES: usize = 512;

/// The names, as parallel arrays so that several can be put into lanes at once.
#[repr(align(64))]
pub(super) struct Queue {
    /// Addresses of names.
    pub(super) bases: [u64; Self::ROOM],
    pub(super) lengths: [u64; Self::ROOM],
    /// Where the results of each name start, in words.
    pub(super) starts: [u64; Self::ROOM],
    pub(super) count: usize,
    /// Number of the next name to be taken out.
    pub(super) next: usize,
}

impl Queue {
    /// As many more as are read in vain after the last name.
    const ROOM: usize = GROUP_NAMES + MAX_LANES;

    /// Takes in the names, all with the result that an empty name has. Those that are too long for a lane are hashed at
    /// once and stand in the queue as empty. Those shorter than a word are copied into `short`, so that a whole word can
    /// be read of each.
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
        let places = queue.bases.iter_mut().zip(&mut queue.lengths).zip(&mut queue.starts);
        let names = names.iter().zip(short).zip(out).enumerate();
        for ((number, ((&name, short), out)), ((base, length), start)) in names.zip(places) {
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
