//! Reading TLV elements from memory or from a stream. Assumes nothing about the input.

use crate::{DecodeError, MAX_PACKET_SIZE};

/// One TLV element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element<'a> {
    /// TYPE: 1..=2^32-1.
    pub typ: u32,
    /// VALUE.
    pub value: &'a [u8],
    /// The complete element: TYPE, LENGTH and VALUE.
    pub wire: &'a [u8],
}

/// Reads elements one after another.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    input: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Makes a reader at the start of `input`.
    #[inline]
    pub const fn new(input: &'a [u8]) -> Self {
        Reader { input, position: 0 }
    }

    /// Returns true if everything was read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.position >= self.input.len()
    }

    /// Number of bytes read so far: the offset of the next element in the input.
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> &'a [u8] {
        self.input.get(self.position..).unwrap_or_default()
    }

    /// Reads the next element.
    ///
    /// # Errors
    /// `Truncated` (also at the end of the input), `NonMinimalNumber`, `BadType`.
    #[inline(always)]
    pub fn read_element(&mut self) -> Result<Element<'a>, DecodeError> {
        let rest = self.remaining();
        // Nearly all elements have one-byte TYPE and LENGTH; other forms are read out of line.
        if let [typ @ 1..253, length @ 0..253, ..] = *rest
            && let Some(wire) = rest.get(..2 + usize::from(length))
        {
            self.position += wire.len();
            return Ok(Element { typ: u32::from(typ), value: &wire[2..], wire });
        }
        self.read_long_element()
    }

    #[inline(never)]
    fn read_long_element(&mut self) -> Result<Element<'a>, DecodeError> {
        let rest = self.remaining();
        let (typ, header_len, value_len) = read_header(rest)?;
        let value_len = usize::try_from(value_len).map_err(|_| DecodeError::Truncated)?;
        let end = header_len.checked_add(value_len).ok_or(DecodeError::Truncated)?;
        let wire = rest.get(..end).ok_or(DecodeError::Truncated)?;
        self.position += end;
        Ok(Element { typ, value: &wire[header_len..], wire })
    }

    /// Reads the next element, which must have type `typ`.
    ///
    /// # Errors
    /// As for [`read_element`](Self::read_element); `UnexpectedType`.
    #[inline]
    pub fn read_typed(&mut self, typ: u32) -> Result<Element<'a>, DecodeError> {
        let element = self.read_element()?;
        if element.typ == typ { Ok(element) } else { Err(DecodeError::UnexpectedType) }
    }
}

/// Returns the only element, which must fill `input`.
///
/// # Errors
/// As for [`Reader::read_element`]; `TrailingBytes` when more follows.
#[inline]
pub fn read_single_element(input: &[u8]) -> Result<Element<'_>, DecodeError> {
    let mut reader = Reader::new(input);
    let element = reader.read_element()?;
    if reader.is_empty() { Ok(element) } else { Err(DecodeError::TrailingBytes) }
}

/// Returns the VALUE of the first element, if its TYPE takes one byte, its LENGTH one or three, and it fills `rest`.
#[inline(always)]
pub(crate) fn value_that_fills(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [_, length @ 0..253, value @ ..] => (usize::from(*length) == value.len()).then_some(value),
        [_, 253, high, low, value @ ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            // A LENGTH that fits in one byte must be encoded in one.
            (length == value.len() && length >= 253).then_some(value)
        }
        _ => None,
    }
}

/// Reads a VAR-NUMBER; returns the number and its length in bytes.
///
/// # Errors
/// `Truncated`; `NonMinimalNumber` when a shorter form exists.
#[inline]
pub fn read_var_number(input: &[u8]) -> Result<(u64, usize), DecodeError> {
    let (number, length, least) = match *input {
        [first, ..] if first < 253 => return Ok((u64::from(first), 1)),
        [253, a, b, ..] => (u64::from(u16::from_be_bytes([a, b])), 3, 253),
        [254, a, b, c, d, ..] => (u64::from(u32::from_be_bytes([a, b, c, d])), 5, 1 << 16),
        [255, a, b, c, d, e, f, g, h, ..] => (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 9, 1 << 32),
        _ => return Err(DecodeError::Truncated),
    };
    if number < least { Err(DecodeError::NonMinimalNumber) } else { Ok((number, length)) }
}

#[inline]
fn read_type(input: &[u8]) -> Result<(u32, usize), DecodeError> {
    let (number, length) = read_var_number(input)?;
    match u32::try_from(number) {
        Ok(typ) if typ != 0 => Ok((typ, length)),
        _ => Err(DecodeError::BadType),
    }
}

/// Returns TYPE, length of TYPE and LENGTH in bytes, and LENGTH.
fn read_header(input: &[u8]) -> Result<(u32, usize, u64), DecodeError> {
    let (typ, type_len) = read_type(input)?;
    let (value_len, length_len) = read_var_number(&input[type_len..])?;
    Ok((typ, type_len + length_len, value_len))
}

/// Decodes the VALUE of a NonNegativeInteger. A longer form than necessary is accepted.
///
/// # Errors
/// `BadNumberLength` unless it is 1, 2, 4 or 8 bytes long.
#[inline]
pub fn decode_nni(value: &[u8]) -> Result<u64, DecodeError> {
    match *value {
        [a] => Ok(u64::from(a)),
        [a, b] => Ok(u64::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Ok(u64::from(u32::from_be_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Ok(u64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Err(DecodeError::BadNumberLength),
    }
}

/// Finds the end of the first element on a stream: returns its total length in bytes, or `None` while its TYPE and
/// LENGTH have not arrived completely.
///
/// # Errors
/// `NonMinimalNumber`, `BadType`; `TooLong` when the element is larger than [`MAX_PACKET_SIZE`]. After an error the
/// boundaries of further elements are unknown.
#[inline]
pub fn frame_length(input: &[u8]) -> Result<Option<usize>, DecodeError> {
    // Nearly all frames have a one-byte TYPE and a LENGTH of one or three bytes.
    let (header_len, value_len) = match *input {
        [1..253, length @ 0..253, ..] => (2, usize::from(length)),
        [1..253, 253, high, low, ..] => (4, usize::from(u16::from_be_bytes([high, low]))),
        _ => return frame_length_of_any(input),
    };
    let is_minimal = header_len == 2 || value_len >= 253;
    if is_minimal && header_len + value_len <= MAX_PACKET_SIZE {
        return Ok(Some(header_len + value_len));
    }
    frame_length_of_any(input)
}

#[cold]
fn frame_length_of_any(input: &[u8]) -> Result<Option<usize>, DecodeError> {
    let Some((header_len, value_len)) = frame_header(input)? else { return Ok(None) };
    usize::try_from(value_len)
        .ok()
        .and_then(|value_len| value_len.checked_add(header_len))
        .filter(|&total| total <= MAX_PACKET_SIZE)
        .map(Some)
        .ok_or(DecodeError::TooLong)
}

/// Reads the TYPE and LENGTH of the first element on a stream: returns their length in bytes and LENGTH, or `None`
/// while they have not arrived completely. LENGTH has no limit here.
///
/// # Errors
/// `NonMinimalNumber`, `BadType`.
pub fn frame_header(input: &[u8]) -> Result<Option<(usize, u64)>, DecodeError> {
    match read_header(input) {
        Ok((_, header_len, value_len)) => Ok(Some((header_len, value_len))),
        Err(DecodeError::Truncated) => Ok(None),
        Err(error) => Err(error),
    }
}
