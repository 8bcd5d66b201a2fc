//! The URI form of names (NDN packet specification, name.rst "NDN URI Scheme", and naming conventions revision 3).

use std::fmt::{self, Display, Formatter, Write};
use std::str::FromStr;

use super::{ComponentRef, Name, NameRef};
use crate::tlv::{Nni, types};

/// Component types with a word before the equals sign, and a number after it.
const NUMBER_WORDS: [(u32, &str); 5] = [
    (types::SEGMENT_NAME_COMPONENT, "seg"),
    (types::BYTE_OFFSET_NAME_COMPONENT, "off"),
    (types::VERSION_NAME_COMPONENT, "v"),
    (types::TIMESTAMP_NAME_COMPONENT, "t"),
    (types::SEQUENCE_NUM_NAME_COMPONENT, "seq"),
];

/// Component types with a word before the equals sign, and a digest in hexadecimal digits after it.
const DIGEST_WORDS: [(u32, &str); 2] = [
    (types::IMPLICIT_SHA256_DIGEST_COMPONENT, "sha256digest"),
    (types::PARAMETERS_SHA256_DIGEST_COMPONENT, "params-sha256"),
];

/// Reason why a text is not the URI of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameUriError {
    /// A component is empty, `.` or `..`; the empty component is written `...`.
    #[error("a name component is empty, \".\" or \"..\"")]
    EmptyComponent,
    /// A percent sign is not followed by two hexadecimal digits.
    #[error("a percent sign is not followed by two hexadecimal digits")]
    BadEscape,
    /// The text before the equals sign is neither a number in 1..=65535 nor a known word.
    #[error("unknown component type before the equals sign")]
    BadType,
    /// The value does not fit the component type.
    #[error("the value does not match the type of the name component")]
    BadValue,
}

impl Display for ComponentRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((_, word)) = DIGEST_WORDS.iter().find(|(typ, _)| *typ == self.typ) {
            write!(f, "{word}=")?;
            return self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        }
        if let Some((_, word)) = NUMBER_WORDS.iter().find(|(typ, _)| *typ == self.typ)
            && let Some(number) = self.as_number()
            // A number in a longer form would not parse to the same component.
            && Nni::new(number).as_slice() == self.value
        {
            return write!(f, "{word}={number}");
        }
        if !self.is_generic() {
            write!(f, "{}=", self.typ)?;
        }
        if self.value.iter().all(|&byte| byte == b'.') {
            f.write_str("...")?;
        }
        for &byte in self.value {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    f.write_char(char::from(byte))?
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

impl Display for NameRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("/");
        }
        self.components().try_for_each(|component| write!(f, "/{component}"))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl FromStr for Name {
    type Err = NameUriError;

    /// Parses a URI. The scheme `ndn:` and the slashes at the start and at the end may be omitted.
    fn from_str(uri: &str) -> Result<Self, NameUriError> {
        let mut name = Name::new();
        name.read_uri(uri)?;
        Ok(name)
    }
}

impl Name {
    /// Parses a URI into this name and reuses its memory: for millions of names, one after another. The name is `/`
    /// after an error.
    pub fn read_uri(&mut self, uri: &str) -> Result<(), NameUriError> {
        self.clear();
        let has_scheme = uri.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("ndn:"));
        let path = if has_scheme { &uri[4..] } else { uri };
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').filter(|shorter| !shorter.is_empty()).unwrap_or(path);
        if path.is_empty() {
            return Ok(());
        }
        let read = path.split('/').try_for_each(|text| push_component(self, text));
        if read.is_err() {
            self.clear();
        }
        read
    }
}

fn push_component(name: &mut Name, text: &str) -> Result<(), NameUriError> {
    let Some((word, text)) = text.split_once('=') else {
        return push_generic(name, text);
    };
    if let Some((typ, _)) = NUMBER_WORDS.iter().find(|(_, known)| *known == word) {
        let number = parse_decimal(text).ok_or(NameUriError::BadValue)?;
        return push_checked(name, *typ, Nni::new(number).as_slice());
    }
    if let Some((typ, _)) = DIGEST_WORDS.iter().find(|(_, known)| *known == word) {
        return push_checked(name, *typ, &parse_hex(text).ok_or(NameUriError::BadValue)?);
    }
    let typ = parse_decimal(word).and_then(|typ| u16::try_from(typ).ok());
    let typ = typ.filter(|&typ| typ != 0).ok_or(NameUriError::BadType)?;
    push_checked(name, u32::from(typ), &unescape(text)?)
}

fn push_generic(name: &mut Name, text: &str) -> Result<(), NameUriError> {
    let escapes = text.bytes().filter(|&byte| byte == b'%').count();
    let Some(length) = text.len().checked_sub(2 * escapes).filter(|_| !may_be_periods(text)) else {
        name.push(ComponentRef::generic(&unescape(text)?));
        return Ok(());
    };
    name.push_generic_with(length, |out| unescape_into(text, out))
}

/// Returns true if the component may consist of periods only, plain or escaped.
fn may_be_periods(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'.' | b'%' | b'2' | b'E' | b'e'))
}

fn push_checked(name: &mut Name, typ: u32, value: &[u8]) -> Result<(), NameUriError> {
    name.push(ComponentRef::new(typ, value).map_err(|_| NameUriError::BadValue)?);
    Ok(())
}

/// Parses digits without sign and leading zeros, so that every number has one spelling.
fn parse_decimal(text: &str) -> Option<u64> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks_exact(2).map(|pair| hex_byte(pair[0], pair[1])).collect()
}

fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// Returns the bytes of a component. An escaped period counts as a period, so escapes are decoded before the three
/// extra periods of a component of periods only are removed.
fn unescape(text: &str) -> Result<Vec<u8>, NameUriError> {
    let mut value = Vec::with_capacity(text.len());
    unescape_into(text, &mut value)?;
    if value.iter().all(|&byte| byte == b'.') {
        let periods = value.len().checked_sub(3).ok_or(NameUriError::EmptyComponent)?;
        value.truncate(periods);
    }
    Ok(value)
}

/// Appends the decoded text, including all its periods.
fn unescape_into(text: &str, value: &mut Vec<u8>) -> Result<(), NameUriError> {
    let mut rest = text.as_bytes();
    loop {
        rest = match *rest {
            [] => return Ok(()),
            [b'%', ref escape @ ..] => {
                let [high, low, ref after @ ..] = *escape else { return Err(NameUriError::BadEscape) };
                value.push(hex_byte(high, low).ok_or(NameUriError::BadEscape)?);
                after
            }
            [byte, ref after @ ..] => {
                value.push(byte);
                after
            }
        };
    }
}
