//! Compares layouts with the general decoders, on valid packets of all shapes, on damaged ones, and on arbitrary
//! bytes.

use proptest::prelude::*;

use super::*;
use crate::builder::{DataBuilder, InterestBuilder};
use crate::name::Name;
use crate::security::DigestSigner;
use crate::test_util::{any_data, any_interest};

fn decode_data(packet: &[u8]) -> Result<DataLayout, DecodeError> {
    let mut layout = DataLayout::default();
    layout.fill(packet).map(|()| layout)
}

fn check(packet: &[u8]) -> Result<(), TestCaseError> {
    prop_assert_eq!(InterestLayout::decode(packet), InterestLayout::decode_unusual(packet));
    prop_assert_eq!(decode_data(packet), DataLayout::decode_unusual(packet));
    if let (Ok(layout), Ok(interest)) = (InterestLayout::decode(packet), Interest::decode(packet)) {
        prop_assert_eq!(layout.name.of_packet(packet), interest.name);
        prop_assert_eq!(layout.name.of_packet(packet).len(), interest.name.len());
        prop_assert_eq!(layout.forwarding_hint(packet), interest.forwarding_hint);
        prop_assert_eq!(layout.has_forwarding_hint(), interest.forwarding_hint.is_some());
        prop_assert_eq!((layout.nonce(), layout.hop_limit()), (interest.nonce, interest.hop_limit));
        prop_assert_eq!(layout.lifetime_ms, interest.lifetime_ms);
        prop_assert_eq!(layout.has_parameters, interest.application_parameters.is_some());
    }
    if let (Ok(layout), Ok(header)) = (decode_data(packet), DataHeader::decode(packet)) {
        prop_assert_eq!(layout.name.of_packet(packet), header.name);
        prop_assert_eq!(layout.freshness_ms, header.freshness_ms.unwrap_or(0));
    }
    Ok(())
}

fn name() -> Name {
    "/net/example/54=%01/seg=7".parse().expect("name")
}

#[test]
fn usual_packets_take_the_short_way() {
    for lifetime_ms in [1, 300, 70_000, u64::MAX] {
        let interest = InterestBuilder::new(name()).can_be_prefix(true).must_be_fresh(true).nonce(7).hop_limit(9);
        let packet = interest.lifetime_ms(lifetime_ms).build().expect("the packet is small enough");
        let mut layout = InterestLayout::default();
        layout.fill_usual(&packet).expect("the packet has the usual layout");
        assert_eq!(layout.lifetime_ms, Some(lifetime_ms));
        assert_eq!((layout.nonce(), layout.hop_limit()), (Some(7), Some(9)));
        assert!(layout.can_be_prefix && layout.must_be_fresh);
    }
    // Near 253 bytes the outer LENGTH changes its form.
    for content_bytes in (0..300).chain([8_000]) {
        let data = DataBuilder::new(name()).freshness_ms(5_000).content(vec![0; content_bytes]);
        let packet = data.sign(&DigestSigner).expect("the packet is small enough");
        let mut layout = DataLayout::default();
        layout.fill_usual(&packet).expect("the packet has the usual layout");
        assert_eq!(layout.freshness_ms, 5_000);
    }
}

#[test]
fn elements_out_of_order_are_left_to_the_general_decoder() {
    // Nonce before CanBePrefix, Nonce twice, a Nonce of three bytes.
    for elements in [&b"\x0a\x04abcd\x21\x00"[..], b"\x0a\x04abcd\x0a\x04abcd", b"\x0a\x03abc"] {
        let mut packet = vec![5, (5 + elements.len()) as u8, 7, 3, 8, 1, b'A'];
        packet.extend(elements);
        assert_eq!(InterestLayout::default().fill_usual(&packet), None);
        check(&packet).expect("the general decoder has the same result");
    }
}

proptest! {
    #[test]
    fn layouts_of_interests_say_what_the_general_decoder_says(
        parts in any_interest(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        if let Ok(mut packet) = parts.builder().build() {
            if let Some((at, byte)) = damage {
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            check(&packet)?;
        }
    }

    #[test]
    fn layouts_of_data_say_what_the_general_decoder_says(
        parts in any_data(),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        if let Ok(mut packet) = parts.builder().sign(&DigestSigner) {
            if let Some((at, byte)) = damage {
                let at = at.index(packet.len());
                packet[at] = byte;
            }
            check(&packet)?;
        }
    }

    #[test]
    fn any_bytes_are_decoded_alike(mut packet in prop::collection::vec(any::<u8>(), 0..60), typ in 5_u8..7) {
        if packet.len() > 2 {
            packet[0] = typ;
            packet[1] = (packet.len() - 2) as u8;
        }
        check(&packet)?;
    }
}
