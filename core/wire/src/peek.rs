//! Finds the name of a packet in a few steps without examining the rest, for code that only decides where a packet
//! goes next.
//!
//! In a valid packet the result is the same as when decoding. In an invalid one it may be anything, or nothing: the
//! receiver decodes the packet and drops it.

use crate::tlv::{read_var_number, types, value_that_fills};

/// Returns the VALUE of the Name of an Interest or Data; `None` when the packet does not begin like one of them.
#[inline]
pub fn name_value(packet: &[u8]) -> Option<&[u8]> {
    const NAME: u8 = types::NAME as u8;
    match value_that_fills(packet)? {
        [NAME, length @ 0..253, rest @ ..] => rest.get(..usize::from(*length)),
        [NAME, rest @ ..] => {
            let (length, taken) = read_var_number(rest).ok()?;
            rest.get(taken..)?.get(..usize::try_from(length).ok()?)
        }
        _ => None,
    }
}

/// Returns the end of the component at `start` of a Name VALUE; `None` when it is truncated.
#[inline]
pub fn component_end(name_value: &[u8], start: usize) -> Option<usize> {
    // Nearly every component has one-byte TYPE and LENGTH.
    let end = match name_value.get(start..)? {
        [0..=252, length @ 0..=252, ..] => start + 2 + usize::from(*length),
        component => {
            let (_, type_bytes) = read_var_number(component).ok()?;
            let (length, length_bytes) = read_var_number(component.get(type_bytes..)?).ok()?;
            start.checked_add(type_bytes + length_bytes)?.checked_add(usize::try_from(length).ok()?)?
        }
    };
    (end <= name_value.len()).then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::security::DigestSigner;
    use crate::{Data, DataBuilder, Interest, InterestBuilder, Name};

    /// Returns the ends of the components of a VALUE.
    fn ends(value: &[u8]) -> Vec<usize> {
        let mut ends = vec![0];
        while let Some(end) = ends.last().filter(|&&end| end < value.len()).and_then(|&at| component_end(value, at)) {
            ends.push(end);
        }
        ends
    }

    proptest! {
        #[test]
        fn the_name_is_that_of_the_decoded_packet(
            lengths in prop::collection::vec(prop_oneof![0..12_usize, 250..260_usize], 1..12),
        ) {
            let mut name = Name::new();
            for (number, &length) in lengths.iter().enumerate() {
                name = name.append_generic(vec![number as u8; length]);
            }
            let interest = InterestBuilder::new(&name).build().expect("fits");
            let decoded = Interest::decode(&interest).expect("valid");
            prop_assert_eq!(name_value(&interest), Some(decoded.name.value()));
            let data = DataBuilder::new(&name).sign(&DigestSigner).expect("fits");
            let decoded = Data::decode(&data).expect("valid");
            prop_assert_eq!(name_value(&data), Some(decoded.name.value()));
            let value = name.as_ref();
            let expected: Vec<usize> = (0..=value.len()).map(|count| value.prefix(count).value().len()).collect();
            prop_assert_eq!(ends(value.value()), expected);
        }

        #[test]
        fn any_bytes_are_looked_at_safely(bytes in prop::collection::vec(any::<u8>(), 0..40), at in 0..50_usize) {
            if let Some(name) = name_value(&bytes) {
                prop_assert!(name.len() < bytes.len());
            }
            if let Some(end) = component_end(&bytes, at) {
                prop_assert!(end > at && end <= bytes.len());
            }
        }
    }
}
