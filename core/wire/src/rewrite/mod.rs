//! Changes the parts of an Interest that a forwarder may change: Nonce, HopLimit, ForwardingHint and
//! InterestLifetime.

#[cfg(test)]
mod tests;

use crate::interest::rank;
use crate::tlv::{self, Nni, OrderedReader, element_len, put_header, types};
use crate::{DecodeError, MAX_PACKET_SIZE};

/// Changes to make. Fields at their default leave the packet unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterestRewrite {
    /// Sets or inserts the Nonce.
    pub nonce: Option<u32>,
    /// Sets or inserts the HopLimit.
    pub hop_limit: Option<u8>,
    /// Removes the HopLimit, unless `hop_limit` sets it.
    pub remove_hop_limit: bool,
    /// Removes the ForwardingHint.
    pub remove_forwarding_hint: bool,
    /// Sets or inserts the InterestLifetime.
    pub lifetime_ms: Option<u64>,
}

/// Room for the longest element that can be inserted: an InterestLifetime of 8 bytes.
const LONGEST_ELEMENT: usize = 10;

/// Replacement of one element of an Interest; a length of 0 removes it.
#[derive(Debug, Clone, Copy)]
struct Edit {
    rank: u8,
    element: [u8; LONGEST_ELEMENT],
    length: usize,
    /// Range in the VALUE of the Interest that it replaces; empty for an insertion.
    start: usize,
    end: usize,
}

impl Edit {
    fn new(typ: u32, value: Option<&[u8]>) -> Self {
        let mut edit = Edit { rank: rank(typ), element: [0; LONGEST_ELEMENT], length: 0, start: 0, end: 0 };
        if let Some(value) = value {
            let header_len = put_header(&mut edit.element, typ, value.len());
            edit.element[header_len..header_len + value.len()].copy_from_slice(value);
            edit.length = element_len(typ, value.len());
        }
        edit
    }
}

/// The edits of one rewrite, in the order of their elements.
struct Edits {
    edits: [Option<Edit>; 4],
    /// Number of edits with a known position.
    placed: usize,
}

impl Edits {
    fn new(change: &InterestRewrite) -> Self {
        let lifetime = change.lifetime_ms.map(Nni::new);
        let hop_limit = change.hop_limit.map(|hop_limit| [hop_limit]);
        Edits {
            edits: [
                change.remove_forwarding_hint.then(|| Edit::new(types::FORWARDING_HINT, None)),
                change.nonce.map(|nonce| Edit::new(types::NONCE, Some(&nonce.to_be_bytes()))),
                lifetime.map(|lifetime| Edit::new(types::INTEREST_LIFETIME, Some(lifetime.as_slice()))),
                (hop_limit.is_some() || change.remove_hop_limit)
                    .then(|| Edit::new(types::HOP_LIMIT, hop_limit.as_ref().map(|value| &value[..]))),
            ],
            placed: 0,
        }
    }

    /// Sets the position of every edit with a rank below `limit` that found no element: they are inserted at
    /// `position`.
    fn insert_before(&mut self, limit: u8, position: usize) {
        while let Some(edit) = self.edits.get_mut(self.placed) {
            if let Some(edit) = edit {
                if edit.rank >= limit {
                    return;
                }
                (edit.start, edit.end) = (position, position);
            }
            self.placed += 1;
        }
    }

    /// Positions the next edit on an existing element, if its rank matches.
    fn replace(&mut self, found: u8, start: usize, end: usize) {
        if let Some(Some(edit)) = self.edits.get_mut(self.placed)
            && edit.rank == found
        {
            (edit.start, edit.end) = (start, end);
            self.placed += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.edits.iter().flatten()
    }
}

/// Writes the changed `packet` to `out`, and returns the new length. Missing elements are inserted at their position;
/// everything else is copied unchanged.
///
/// # Errors
/// When `packet` is not framed as an Interest; `OutputTooSmall`; `TooLong` when the result is larger than
/// [`MAX_PACKET_SIZE`].
pub fn rewrite_interest(packet: &[u8], change: &InterestRewrite, out: &mut [u8]) -> Result<usize, DecodeError> {
    let outer = tlv::read_single_element(packet)?;
    if outer.typ != types::INTEREST {
        return Err(DecodeError::UnexpectedType);
    }
    let mut edits = Edits::new(change);
    let mut elements = OrderedReader::new(outer.value, rank);
    let mut last_end = 0;
    while let Some(element) = elements.next_element()? {
        let end = elements.position();
        let start = end - element.wire.len();
        if last_end == 0 && (element.typ != types::NAME || start != 0) {
            return Err(DecodeError::MissingName);
        }
        let found = rank(element.typ);
        edits.insert_before(found, last_end);
        edits.replace(found, start, end);
        last_end = end;
    }
    if last_end == 0 {
        return Err(DecodeError::MissingName);
    }
    edits.insert_before(u8::MAX, last_end);

    let removed: usize = edits.iter().map(|edit| edit.end - edit.start).sum();
    let added: usize = edits.iter().map(|edit| edit.length).sum();
    let value_len = outer.value.len() - removed + added;
    let total = element_len(types::INTEREST, value_len);
    if total > MAX_PACKET_SIZE {
        return Err(DecodeError::TooLong);
    }
    let out = out.get_mut(..total).ok_or(DecodeError::OutputTooSmall)?;
    let mut written = put_header(out, types::INTEREST, value_len);
    let mut put = |bytes: &[u8]| {
        out[written..written + bytes.len()].copy_from_slice(bytes);
        written += bytes.len();
    };
    let mut copied = 0;
    for edit in edits.iter() {
        put(&outer.value[copied..edit.start]);
        put(&edit.element[..edit.length]);
        copied = edit.end;
    }
    put(&outer.value[copied..]);
    Ok(total)
}
