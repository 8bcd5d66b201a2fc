//! What is known of the packets of a burst ahead of their turns. The engine keeps this memory and uses it again.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_packet::DropReason;
use namehop_wire::NameRef;

use super::MAX_BURST;
use crate::fib::FibGuess;
use crate::parse::Parsed;

/// What the hint plane has found out about one packet, beside the hashes of its name. Guesses may be wrong.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// Are the hashes there?
    pub(super) is_hashed: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(super) entry: Option<u32>,
    /// Its PIT slot, if a PIT token names it.
    pub(super) slot: Option<u32>,
    /// What will probably be evicted for the packet: cached Data for Data, an entry with a PIT slot for an Interest.
    pub(super) victim: Option<u32>,
    /// FIB entry of the name, as far as it was looked for.
    pub(super) fib: FibGuess,
}

/// Decoded packets, guesses and hashes of a burst, by position. Hashes lie together because a group of names is hashed at once.
///
/// Schedules that look at one or two packets at a time use the first guesses and hashes again and again, so that these stay in
/// the first-level cache; decoded packets lie where they are in the burst.
#[derive(Default)]
pub(crate) struct BurstState {
    pub(super) parsed: Box<[Parsed]>,
    pub(super) guesses: Box<[Guess]>,
    pub(super) hashes: Box<[PrefixHashes]>,
}

impl BurstState {
    /// For bursts of up to [`MAX_BURST`] packets.
    pub(crate) fn new() -> Self {
        BurstState {
            parsed: (0..MAX_BURST).map(|_| Parsed::default()).collect(),
            guesses: (0..MAX_BURST).map(|_| Guess::default()).collect(),
            hashes: (0..MAX_BURST).map(|_| PrefixHashes::new()).collect(),
        }
    }

    /// What is known of the packet at `position` of the burst, whose guesses are at `place`.
    #[inline]
    pub(super) fn prepared(&mut self, position: usize, place: usize) -> Prepared<'_> {
        let guess = &self.guesses[place];
        Prepared {
            parsed: &self.parsed[position],
            fib_guess: guess.fib,
            is_hashed: guess.is_hashed,
            hashes: &mut self.hashes[place],
        }
    }

    /// The packet at `position` of the burst, the guesses at `place`, and the hashes there if they are of use.
    #[inline]
    pub(super) fn at(&mut self, position: usize, place: usize) -> (&Parsed, &mut Guess, Option<&PrefixHashes>) {
        let (guess, hashes) = (&mut self.guesses[place], &self.hashes[place]);
        let usable = guess.is_hashed && hashes.result().is_ok();
        (&self.parsed[position], guess, usable.then_some(hashes))
    }
}

/// What is known of the packet that has its turn.
pub(crate) struct Prepared<'a> {
    pub(crate) parsed: &'a Parsed,
    pub(crate) fib_guess: FibGuess,
    is_hashed: bool,
    hashes: &'a mut PrefixHashes,
}

impl<'a> Prepared<'a> {
    /// Of a packet with which nothing was done ahead; `hashes` is where those of its name are to lie.
    pub(crate) fn not_hashed(parsed: &'a Parsed, hashes: &'a mut PrefixHashes) -> Self {
        Prepared { parsed, fib_guess: FibGuess::default(), is_hashed: false, hashes }
    }

    /// The same place for a packet that was decoded anew, and whose name is not hashed.
    pub(crate) fn parsed_anew(self, parsed: &'a Parsed) -> Self {
        Prepared { parsed, is_hashed: false, fib_guess: FibGuess::default(), ..self }
    }

    /// The hashes of the packet's name, computed unless they are there already.
    ///
    /// # Errors
    /// When the name has too many components.
    #[inline]
    pub(crate) fn into_hashes(self, key: &HashKey, name: NameRef<'_>) -> Result<&'a PrefixHashes, DropReason> {
        if !self.is_hashed {
            // The result is kept with the hashes.
            let _ = hash_prefixes(key, name.value(), self.hashes);
        }
        self.hashes.result().map_err(|_| DropReason::NameTooDeep)?;
        debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
        Ok(self.hashes)
    }
}
