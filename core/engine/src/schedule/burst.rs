//! The state of the packets of a burst before they are handled. The engine keeps and reuses this memory.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_packet::DropReason;
use namehop_wire::NameRef;

use super::MAX_BURST;
use crate::fib::FibGuess;
use crate::parse::Parsed;

/// The prefetch plane's results for one packet, except the hashes of its name. Guesses may be wrong.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// Whether the hashes are computed.
    pub(super) is_hashed: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(super) entry: Option<u32>,
    /// Its PIT slot, if the PIT token contains it.
    pub(super) slot: Option<u32>,
    /// The entry that will probably be evicted for the packet: one with cached Data for Data, one with a PIT slot for
    /// an Interest.
    pub(super) victim: Option<u32>,
    /// FIB entry of the name, as far as the lookup has come.
    pub(super) fib: FibGuess,
}

/// Decoded packets, guesses and hashes of a burst, by position. Hashes are stored together because a group of names is
/// hashed at once.
///
/// Schedules that process one or two packets at a time reuse the first guesses and hashes, so that these stay in the
/// first-level cache; decoded packets are always at their position in the burst.
#[derive(Default)]
pub(crate) struct BurstState {
    pub(super) parsed: Box<[Parsed]>,
    pub(super) guesses: Box<[Guess]>,
    pub(super) hashes: Box<[PrefixHashes]>,
}

impl BurstState {
    /// Creates the state for bursts of up to [`MAX_BURST`] packets.
    pub(crate) fn new() -> Self {
        BurstState {
            parsed: (0..MAX_BURST).map(|_| Parsed::default()).collect(),
            guesses: (0..MAX_BURST).map(|_| Guess::default()).collect(),
            hashes: (0..MAX_BURST).map(|_| PrefixHashes::new()).collect(),
        }
    }

    /// Returns the state of the packet at `position` of the burst, with its guesses at `place`.
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

    /// Returns the packet at `position` of the burst, the guesses at `place`, and the hashes there if they are valid.
    #[inline]
    pub(super) fn at(&mut self, position: usize, place: usize) -> (&Parsed, &mut Guess, Option<&PrefixHashes>) {
        let (guess, hashes) = (&mut self.guesses[place], &self.hashes[place]);
        let usable = guess.is_hashed && hashes.result().is_ok();
        (&self.parsed[position], guess, usable.then_some(hashes))
    }
}

/// The prepared state of the packet that is being handled.
pub(crate) struct Prepared<'a> {
    pub(crate) parsed: &'a Parsed,
    pub(crate) fib_guess: FibGuess,
    is_hashed: bool,
    hashes: &'a mut PrefixHashes,
}

impl<'a> Prepared<'a> {
    /// Creates the state of a packet without hashes or guesses; its hashes will be stored in `hashes`.
    pub(crate) fn not_hashed(parsed: &'a Parsed, hashes: &'a mut PrefixHashes) -> Self {
        Prepared { parsed, fib_guess: FibGuess::default(), is_hashed: false, hashes }
    }

    /// Returns the state of a packet that was decoded again, with the same memory for hashes. Its name is not hashed.
    pub(crate) fn parsed_anew(self, parsed: &'a Parsed) -> Self {
        Prepared { parsed, is_hashed: false, fib_guess: FibGuess::default(), ..self }
    }

    /// Returns the hashes of the packet's name, and computes them if necessary.
    ///
    /// # Errors
    /// If the name has too many components.
    #[inline]
    pub(crate) fn into_hashes(self, key: &HashKey, name: NameRef<'_>) -> Result<&'a PrefixHashes, DropReason> {
        if !self.is_hashed {
            // The result is stored with the hashes.
            let _ = hash_prefixes(key, name.value(), self.hashes);
        }
        self.hashes.result().map_err(|_| DropReason::NameTooDeep)?;
        debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
        Ok(self.hashes)
    }
}
