//! A glance at a packet: where its name is and what its Nonce is, without checking anything.
//!
//! For a valid packet this finds what decoding will find. For an invalid one it finds something inside the packet or
//! nothing, which costs a fetch in vain: the execution plane decodes the packet and discards it.

use std::ops::Range;

use namehop_wire::tlv::{read_var_number, types};

/// Elements between Name and Nonce that are passed over.
const MAX_PASSED: usize = 3;
const NONCE_BYTES: usize = 4;

/// What a packet looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Glance {
    /// VALUE of the Name.
    pub(super) name: Range<usize>,
    /// Nonce, in an Interest that has one.
    pub(super) nonce: Option<u32>,
    /// Does CanBePrefix follow the name?
    pub(super) can_be_prefix: bool,
}

/// TYPE of the element at `at` and the range of its VALUE.
fn element(packet: &[u8], at: usize) -> Option<(u64, Range<usize>)> {
    let (typ, type_bytes) = read_var_number(packet.get(at..)?).ok()?;
    let (length, length_bytes) = read_var_number(packet.get(at + type_bytes..)?).ok()?;
    let start = at + type_bytes + length_bytes;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= packet.len()).then_some((typ, start..end))
}

/// Looks at an Interest or Data; `None` when there is no name where one ought to be.
pub(super) fn glance(packet: &[u8]) -> Option<Glance> {
    let (outer, value) = element(packet, 0)?;
    let (typ, name) = element(packet, value.start)?;
    if typ != u64::from(types::NAME) {
        return None;
    }
    let mut found = Glance { name, ..Glance::default() };
    if outer == u64::from(types::INTEREST) {
        let mut at = found.name.end;
        for _ in 0..=MAX_PASSED {
            let Some((typ, value)) = element(packet, at) else { break };
            if typ == u64::from(types::NONCE) {
                found.nonce = packet[value].first_chunk::<NONCE_BYTES>().map(|nonce| u32::from_be_bytes(*nonce));
                break;
            }
            found.can_be_prefix |= typ == u64::from(types::CAN_BE_PREFIX);
            at = value.end;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use namehop_wire::{Interest, InterestBuilder, Name};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_sees_what_decoding_finds() {
        let name: Name = "/a/bc/def".parse().expect("name");
        for (can_be_prefix, must_be_fresh) in [(false, false), (true, false), (false, true), (true, true)] {
            let packet = InterestBuilder::new(name.clone())
                .can_be_prefix(can_be_prefix)
                .must_be_fresh(must_be_fresh)
                .nonce(0x0102_0304)
                .build()
                .expect("small");
            let seen = glance(&packet).expect("an Interest");
            let decoded = Interest::decode(&packet).expect("valid");
            assert_eq!(&packet[seen.name], decoded.name.value());
            assert_eq!((seen.nonce, seen.can_be_prefix), (decoded.nonce, can_be_prefix));
        }
    }

    proptest! {
        #[test]
        fn it_stays_inside_any_bytes(packet in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(seen) = glance(&packet) {
                prop_assert!(packet.get(seen.name).is_some());
            }
        }
    }
}
