//! Reading a sequence of elements in a prescribed order under the evolvability rules.

use super::{Element, Reader, is_critical};
use crate::DecodeError;

/// Reads the elements of a VALUE with a grammar that prescribes an order and forbids repetition.
///
/// An element that is unknown, out of order or repeated is an error if it is critical and ignored otherwise (NDN
/// packet specification, tlv.rst "Considerations for Evolvability of TLV-Based Encoding").
#[derive(Debug, Clone)]
pub struct OrderedReader<'a, F> {
    reader: Reader<'a>,
    rank_of: F,
    last_rank: u8,
}

impl<'a, F: Fn(u32) -> u8> OrderedReader<'a, F> {
    /// Rank of types that are ignored anywhere, critical or not.
    pub const IGNORED: u8 = u8::MAX;

    /// Makes a reader. `rank_of` returns the position of each known type in the order, from 1, and 0 for unknown
    /// types.
    #[inline]
    pub const fn new(value: &'a [u8], rank_of: F) -> Self {
        OrderedReader { reader: Reader::new(value), rank_of, last_rank: 0 }
    }

    /// Offset in the VALUE after the last element read.
    #[inline]
    pub const fn position(&self) -> usize {
        self.reader.position()
    }

    /// Returns the next element that is known and in order; `None` at the end.
    ///
    /// # Errors
    /// As for [`Reader::read_element`]; `CriticalElement`.
    // Inlined into each decoder, so that `rank_of` becomes part of its dispatch and elements stay in registers.
    #[inline(always)]
    pub fn next_element(&mut self) -> Result<Option<Element<'a>>, DecodeError> {
        while !self.reader.is_empty() {
            let element = self.reader.read_element()?;
            let rank = (self.rank_of)(element.typ);
            if rank == Self::IGNORED {
                continue;
            }
            if rank > self.last_rank {
                self.last_rank = rank;
                return Ok(Some(element));
            }
            if is_critical(element.typ) {
                return Err(DecodeError::CriticalElement);
            }
        }
        Ok(None)
    }
}
