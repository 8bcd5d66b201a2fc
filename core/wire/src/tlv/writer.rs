//! Writing TLV elements into a growing vector, or numbers into the caller's memory.

/// Length in bytes of a VAR-NUMBER in its shortest form.
#[inline]
pub const fn var_number_len(number: u64) -> usize {
    match number {
        0..=252 => 1,
        253..=0xFFFF => 3,
        0x1_0000..=0xFFFF_FFFF => 5,
        _ => 9,
    }
}

/// Length in bytes of the VALUE of a NonNegativeInteger in its shortest form.
#[inline]
pub const fn nni_len(number: u64) -> usize {
    match number {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}

/// Length in bytes of a complete element with a VALUE of `value_len` bytes.
#[inline]
pub const fn element_len(typ: u32, value_len: usize) -> usize {
    var_number_len(typ as u64) + var_number_len(value_len as u64) + value_len
}

/// The shortest VALUE of a NonNegativeInteger, without allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nni {
    bytes: [u8; 8],
    length: u8,
}

impl Nni {
    /// Encodes `number`.
    #[inline]
    pub const fn new(number: u64) -> Self {
        Nni { bytes: number.to_be_bytes(), length: nni_len(number) as u8 }
    }

    /// The VALUE.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[8 - usize::from(self.length)..]
    }
}

/// Writes a VAR-NUMBER at the start of `out` and returns its length in bytes.
///
/// # Panics
/// When `out` is shorter than [`var_number_len`].
#[inline]
pub fn put_var_number(out: &mut [u8], number: u64) -> usize {
    let length = var_number_len(number);
    let bytes = number.to_be_bytes();
    match length {
        1 => out[0] = bytes[7],
        3 => out[..3].copy_from_slice(&[253, bytes[6], bytes[7]]),
        _ => {
            out[0] = if length == 5 { 254 } else { 255 };
            out[1..length].copy_from_slice(&bytes[9 - length..]);
        }
    }
    length
}

/// Writes TYPE and LENGTH at the start of `out` and returns their length in bytes.
///
/// # Panics
/// When `out` is too short.
#[inline]
pub fn put_header(out: &mut [u8], typ: u32, value_len: usize) -> usize {
    let type_len = put_var_number(out, u64::from(typ));
    type_len + put_var_number(&mut out[type_len..], value_len as u64)
}

/// Appends elements to a vector.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    buffer: Vec<u8>,
}

impl Writer {
    /// Makes an empty writer.
    pub const fn new() -> Self {
        Writer { buffer: Vec::new() }
    }

    /// Makes a writer with room for `bytes` bytes without reallocation.
    pub fn with_capacity(bytes: usize) -> Self {
        Writer { buffer: Vec::with_capacity(bytes) }
    }

    /// Number of bytes written so far.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns true if nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the bytes written.
    pub fn into_vec(self) -> Vec<u8> {
        self.buffer
    }

    /// Appends raw bytes, for example a complete element built elsewhere.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(bytes);
        self
    }

    /// Appends a VAR-NUMBER.
    pub fn var_number(&mut self, number: u64) -> &mut Self {
        let mut bytes = [0; 9];
        let length = put_var_number(&mut bytes, number);
        self.raw(&bytes[..length])
    }

    /// Appends an element.
    pub fn element(&mut self, typ: u32, value: &[u8]) -> &mut Self {
        self.var_number(u64::from(typ)).var_number(value.len() as u64).raw(value)
    }

    /// Appends an element with a NonNegativeInteger in its shortest form as VALUE.
    pub fn nni(&mut self, typ: u32, number: u64) -> &mut Self {
        self.element(typ, Nni::new(number).as_slice())
    }

    /// Appends an element; `write` appends its VALUE.
    pub fn nested(&mut self, typ: u32, write: impl FnOnce(&mut Writer)) -> &mut Self {
        let start = self.buffer.len();
        write(self);
        let value_len = self.buffer.len() - start;
        let mut header = [0; 18];
        let header_len = put_header(&mut header, typ, value_len);
        // The length is known only now: the VALUE moves to make room for the header.
        self.buffer.resize(start + header_len + value_len, 0);
        self.buffer.copy_within(start..start + value_len, start + header_len);
        self.buffer[start..start + header_len].copy_from_slice(&header[..header_len]);
        self
    }
}

impl From<Vec<u8>> for Writer {
    /// Appends to the contents of `buffer`.
    fn from(buffer: Vec<u8>) -> Self {
        Writer { buffer }
    }
}
