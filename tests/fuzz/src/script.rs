//! Parses fuzz input as a list of events, so that mutations of the input are mutations of the events.

/// Iterates over the events of a fuzz input. Each is one byte for the kind, two bytes for the length (big endian), and
/// the content. A length beyond the end of the input is truncated.
pub struct Events<'a>(pub &'a [u8]);

impl<'a> Iterator for Events<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[what, high, low], rest) = self.0.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        self.0 = rest;
        Some((what, bytes))
    }
}
