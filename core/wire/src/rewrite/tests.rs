//! Rewriting Interests: byte examples, positions of insertion, and "nothing but the change" for any Interest.

use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::test_util::{any_interest, hex, packet};
use crate::{Interest, Name};

fn rewrite(packet: &[u8], change: &InterestRewrite) -> Result<Vec<u8>, DecodeError> {
    let mut out = [0xEE; MAX_PACKET_SIZE];
    rewrite_interest(packet, change, &mut out).map(|length| out[..length].to_vec())
}

#[test]
fn missing_elements_are_inserted_in_order() {
    let bare = hex("05 05 07 03 08 01 41");
    let all = InterestRewrite {
        nonce: Some(0x0102_0304),
        hop_limit: Some(3),
        remove_forwarding_hint: true,
        lifetime_ms: Some(1000),
        remove_hop_limit: true,
    };
    assert_eq!(rewrite(&bare, &all), Ok(hex("05 12 07 03 08 01 41 0A 04 01 02 03 04 0C 02 03 E8 22 01 03")));
    let selectors = hex("05 0C 07 03 08 01 41 21 00 12 00 22 01 09");
    let nonce = InterestRewrite { nonce: Some(1), ..Default::default() };
    assert_eq!(rewrite(&selectors, &nonce), Ok(hex("05 12 07 03 08 01 41 21 00 12 00 0A 04 00 00 00 01 22 01 09")));
    assert_eq!(rewrite(&bare, &InterestRewrite::default()), Ok(bare));
}

#[test]
fn existing_elements_are_replaced_and_the_hint_removed() {
    let bytes = hex("05 19 07 03 08 01 41 1E 05 07 03 08 01 42 0A 04 01 02 03 04 0C 02 03 E8 22 01 03");
    let change = InterestRewrite {
        nonce: Some(0xAABB_CCDD),
        hop_limit: Some(2),
        remove_forwarding_hint: true,
        lifetime_ms: Some(5),
        remove_hop_limit: true,
    };
    assert_eq!(rewrite(&bytes, &change), Ok(hex("05 11 07 03 08 01 41 0A 04 AA BB CC DD 0C 01 05 22 01 02")));
    let no_hop_limit = InterestRewrite { remove_hop_limit: true, ..Default::default() };
    let without = hex("05 16 07 03 08 01 41 1E 05 07 03 08 01 42 0A 04 01 02 03 04 0C 02 03 E8");
    assert_eq!(rewrite(&bytes, &no_hop_limit), Ok(without.clone()));
    assert_eq!(rewrite(&without, &no_hop_limit), Ok(without), "there is no HopLimit to remove");
    let hint_only = InterestRewrite { remove_forwarding_hint: true, ..Default::default() };
    assert_eq!(rewrite(&bytes, &hint_only), Ok(hex("05 12 07 03 08 01 41 0A 04 01 02 03 04 0C 02 03 E8 22 01 03")));
}

#[test]
fn elements_that_are_passed_over_stay() {
    let bytes = packet(5, &[&hex("07 03 08 01 41 C8 01 07 0A 04 01 02 03 04 22 01 05 22 01 06 3C 00")]);
    let change = InterestRewrite { nonce: Some(9), hop_limit: Some(4), ..Default::default() };
    assert_eq!(
        rewrite(&bytes, &change),
        Ok(packet(5, &[&hex("07 03 08 01 41 C8 01 07 0A 04 00 00 00 09 22 01 04 22 01 06 3C 00")]))
    );
}

#[test]
fn what_cannot_be_rewritten() {
    let change = InterestRewrite { nonce: Some(9), ..Default::default() };
    assert_eq!(rewrite(&[6, 0], &change), Err(DecodeError::UnexpectedType));
    assert_eq!(rewrite(&[5, 0], &change), Err(DecodeError::MissingName));
    assert_eq!(rewrite(&hex("05 06 0A 04 00 00 00 00"), &change), Err(DecodeError::MissingName));
    assert_eq!(rewrite(&hex("05 07 C8 00 07 03 08 01 41"), &change), Err(DecodeError::MissingName));
    assert_eq!(rewrite(&hex("05 05 07 03 08 01"), &change), Err(DecodeError::Truncated));
    assert_eq!(rewrite(&hex("05 07 07 03 08 01 41 C9 00"), &change), Err(DecodeError::CriticalElement));
    let bytes = hex("05 05 07 03 08 01 41");
    assert_eq!(rewrite_interest(&bytes, &change, &mut [0; 12]), Err(DecodeError::OutputTooSmall));
    assert_eq!(rewrite_interest(&bytes, &change, &mut [0; 13]), Ok(13));
    let filler = packet(200, &[&[0; 8787]]);
    let full = packet(5, &[&hex("07 03 08 01 41"), &filler]);
    assert_eq!(full.len(), MAX_PACKET_SIZE);
    assert_eq!(rewrite(&full, &change), Err(DecodeError::TooLong));
}

fn any_change() -> impl Strategy<Value = InterestRewrite> {
    (option::of(any::<u32>()), option::of(any::<u8>()), any::<(bool, bool)>(), option::of(any::<u64>())).prop_map(
        |(nonce, hop_limit, (remove_hop_limit, remove_forwarding_hint), lifetime_ms)| InterestRewrite {
            nonce,
            hop_limit,
            remove_hop_limit,
            remove_forwarding_hint,
            lifetime_ms,
        },
    )
}

proptest! {
    #[test]
    fn nothing_but_the_change(mut parts in any_interest(), change in any_change()) {
        let before = parts.builder().build().expect("built");
        let after = rewrite(&before, &change).expect("rewritten");
        let (old, new) = (Interest::decode(&before).expect("valid"), Interest::decode(&after).expect("valid"));
        prop_assert_eq!(new.nonce, change.nonce.or(old.nonce));
        prop_assert_eq!(new.hop_limit, change.hop_limit.or(old.hop_limit.filter(|_| !change.remove_hop_limit)));
        prop_assert_eq!(new.lifetime_ms, change.lifetime_ms.or(old.lifetime_ms));
        prop_assert_eq!(new.application_parameters, old.application_parameters);
        prop_assert!(new.check_parameters_digest());
        // The builder writes the same bytes as the rewriter.
        parts.nonce = change.nonce.or(parts.nonce);
        parts.hop_limit = change.hop_limit.or(parts.hop_limit.filter(|_| !change.remove_hop_limit));
        parts.lifetime_ms = change.lifetime_ms.or(parts.lifetime_ms);
        if change.remove_forwarding_hint {
            parts.forwarding_hint = Vec::<Name>::new();
        }
        prop_assert_eq!(parts.builder().build().expect("built"), after);
    }
}
