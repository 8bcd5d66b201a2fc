//! The state of the packets of a burst before they are handled. The engine keeps and reuses this memory.

use std::ops::Range;

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_packet::{DropReason, Incoming};
use namehop_wire::NameRef;

use crate::fib::FibGuess;
use crate::parse::{MAX_BURST, Parsed, ParsedKind};

/// Maximum number of packets in a group, which are prefetched together.
pub const MAX_LOOKAHEAD: usize = 64;

/// The prefetch plane's results for one packet, except the hashes of its name. Guesses may be wrong.
#[derive(Debug, Default)]
pub(crate) struct Guess {
    /// Whether the hashes are computed.
    pub(crate) is_hashed: bool,
    /// Entry of the PIT-CS composite table that the packet probably concerns.
    pub(crate) entry: Option<u32>,
    /// Its PIT slot, if the PIT token contains it.
    pub(crate) slot: Option<u32>,
    /// The entry that will probably be evicted for the packet: one with cached Data for Data, one with a PIT slot for
    /// an Interest.
    pub(crate) victim: Option<u32>,
    /// FIB entry of the name, as far as the lookup has come.
    pub(crate) fib: FibGuess,
}

/// Consecutive packets of a burst that pass a step together, and where [`BurstState`] keeps their guesses and hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Position of the first packet in the burst.
    position: usize,
    /// Index of its guesses and hashes.
    index: usize,
    len: usize,
}

impl Group {
    /// Returns the packets at these positions of a burst, with the guesses of each at its own position.
    #[inline(always)]
    pub fn of(positions: Range<usize>) -> Self {
        Group { position: positions.start, index: positions.start, len: positions.len() }
    }

    /// Returns the packet at `position` of a burst, with its guesses at `index`. An order that processes one or two
    /// packets at a time uses the same indices again, so that these stay in the first-level cache.
    #[inline(always)]
    pub fn one(position: usize, index: usize) -> Self {
        Group { position, index, len: 1 }
    }

    #[inline(always)]
    pub(crate) fn positions(self) -> Range<usize> {
        self.position..self.position + self.len
    }

    #[inline(always)]
    pub(crate) fn indices(self) -> Range<usize> {
        self.index..self.index + self.len
    }

    /// Returns the position and the index of each packet.
    #[inline(always)]
    pub(crate) fn each(self) -> impl Iterator<Item = (usize, usize)> {
        self.positions().zip(self.indices())
    }
}

/// The state of up to [`MAX_BURST`] packets between the steps of a schedule: layouts of decoded packets by position in
/// the burst; guesses and hashes by index, see [`Group`]. Hashes are stored together because a group of names is hashed
/// at once.
///
/// Its methods are the steps of the prefetch plane. They read the engine and change only this state. Methods panic if a
/// position or an index is not below [`MAX_BURST`].
#[derive(Debug)]
pub struct BurstState {
    pub(crate) parsed: Box<[Parsed]>,
    pub(crate) guesses: Box<[Guess]>,
    pub(crate) hashes: Box<[PrefixHashes]>,
}

impl Default for BurstState {
    fn default() -> Self {
        Self::new()
    }
}

impl BurstState {
    /// Creates the state for bursts of up to [`MAX_BURST`] packets.
    pub fn new() -> Self {
        BurstState {
            parsed: (0..MAX_BURST).map(|_| Parsed::default()).collect(),
            guesses: (0..MAX_BURST).map(|_| Guess::default()).collect(),
            hashes: (0..MAX_BURST).map(|_| PrefixHashes::new()).collect(),
        }
    }

    /// Returns a state for bursts without packets, which owns no memory.
    pub(crate) fn empty() -> Self {
        BurstState { parsed: Box::default(), guesses: Box::default(), hashes: Box::default() }
    }

    /// Forgets the guesses at `index`, for packets that are handled without any.
    #[inline]
    pub fn forget(&mut self, index: usize) {
        self.guesses[index] = Guess::default();
    }

    /// Returns the state of the packet at `position` of the burst, with its guesses at `index`.
    #[inline]
    pub fn prepared(&mut self, position: usize, index: usize) -> Prepared<'_> {
        let guess = &self.guesses[index];
        Prepared {
            parsed: &self.parsed[position],
            fib_guess: guess.fib,
            is_hashed: guess.is_hashed,
            hashes: &mut self.hashes[index],
        }
    }

    /// Returns the packet at `position` of the burst, the guesses at `index`, and the hashes there if they are valid.
    #[inline]
    pub(crate) fn at(&mut self, position: usize, index: usize) -> (&Parsed, &mut Guess, Option<&PrefixHashes>) {
        let (guess, hashes) = (&mut self.guesses[index], &self.hashes[index]);
        let usable = guess.is_hashed && hashes.result().is_ok();
        (&self.parsed[position], guess, usable.then_some(hashes))
    }
}

/// The prepared state of the packet that is being handled.
pub struct Prepared<'a> {
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
    pub(crate) fn reparsed(self, parsed: &'a Parsed) -> Self {
        Prepared { parsed, is_hashed: false, fib_guess: FibGuess::default(), ..self }
    }

    /// Returns the kind of the packet.
    #[inline(always)]
    pub fn kind(&self) -> ParsedKind {
        self.parsed.kind
    }

    /// Returns the name of `packet`, which must be the packet that this state belongs to, and an Interest or Data.
    #[inline(always)]
    pub fn name<'p>(&self, packet: &'p Incoming) -> NameRef<'p> {
        self.parsed.name(packet)
    }

    /// Returns the guess of the FIB entry for an Interest's name.
    #[inline(always)]
    pub fn fib_guess(&self) -> FibGuess {
        self.fib_guess
    }

    /// Returns the hashes of the packet's name, and computes them if necessary. `key` must be the engine's.
    ///
    /// # Errors
    /// If the name has too many components.
    #[inline]
    pub fn into_hashes(self, key: &HashKey, name: NameRef<'_>) -> Result<&'a PrefixHashes, DropReason> {
        if !self.is_hashed {
            // The result is stored with the hashes.
            let _ = hash_prefixes(key, name.value(), self.hashes);
        }
        self.hashes.result().map_err(|_| DropReason::NameTooDeep)?;
        debug_assert_eq!(self.hashes.full(), namehop_hash::hash_name(key, name.value()));
        Ok(self.hashes)
    }
}
