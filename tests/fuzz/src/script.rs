//! Reads fuzz input as a list of events, so that mutations of the input are mutations of what happens.

/// Events of a fuzz input: each is a byte that says what, two bytes length (big endian), and that many bytes. A length
/// beyond the input is cut to what is there.
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
