//! Finds the ends of the components of a Name VALUE (NDN packet specification, "TLV" and "Name").

/// Returns the bytes after the first component of `name_part`; empty if the component is truncated.
#[inline(always)]
pub(crate) fn after_component(name_part: &[u8]) -> &[u8] {
    // Nearly every component has one-byte type and length.
    if let [0..=252, length @ 0..=252, bytes @ ..] = name_part
        && let Some(rest) = bytes.get(usize::from(*length)..)
    {
        return rest;
    }
    after_long_component(name_part)
}

/// Returns the end of the component that starts at `start`; the end of the name if the component is truncated.
#[cfg(target_arch = "x86_64")]
pub(crate) fn component_end(name_value: &[u8], start: usize) -> usize {
    let part = name_value.get(start..).unwrap_or_default();
    name_value.len() - after_component(part).len()
}

/// Does the same for types and lengths of any size.
#[cold]
fn after_long_component(name_part: &[u8]) -> &[u8] {
    let rest = || {
        let (_, length) = var_number(name_part)?;
        let (length, bytes) = var_number(length)?;
        bytes.get(usize::try_from(length).ok()?..)
    };
    rest().unwrap_or_default()
}

/// Reads a TLV variable-size number; returns its value and the bytes after it.
fn var_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let size = match first {
        0..=252 => return Some((u64::from(first), rest)),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let (digits, rest) = rest.split_at_checked(size)?;
    Some((digits.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)), rest))
}
