//! Reading a sequence of elements in a prescribed order under the evolvability rules.

use super::{Element, Reader, is_critical};
use crate::DecodeError;

/// Reads the elements of a VALUE whose grammar prescribes an order and lets none repeat.
///
/// An element that is unknown, out of order or repeated is an error when it is critical and passed over when it is not
/// (NDN packet specification, tlv.rst "Considerations for Evolvability of TLV-Based Encoding").
#[derive(Debug, Clone)]
pub struct OrderedReader<'a, F> {
    reader: Reader<'a>,
    rank_of: F,
    last_rank: u8,
}

impl<'a, F: Fn(u32) -> u8> OrderedReader<'a, F> {
    /// Rank of types that are passed over wherever they stand, critical or not.
    pub const IGNORED: u8 = u8::MAX;

    /// `rank_of` gives the place of each known type in the order, from 1, and 0 for unknown types.
    #[inline]
    pub const fn new(value: &'a [u8], rank_of: F) -> Self {
        OrderedReader { reader: Reader::new(value), rank_of, last_rank: 0 }
    }

    /// Offset in the VALUE behind the element read last.
    #[inline]
    pub const fn position(&self) -> usize {
        self.reader.position()
    }

    /// The next element that is known and in order; `None` at the end.
    ///
    /// # Errors
    /// As for [`Reader::read_element`]; `CriticalElement`.
    // Inlined into each decoder, `rank_of` becomes part of its dispatch and elements stay in registers.
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
