//! TLV numbers, elements and stream framing.

use proptest::prelude::*;

use super::*;
use crate::{DecodeError, MAX_PACKET_SIZE};

#[test]
fn var_numbers_at_the_borders_of_each_form() {
    let cases: [(u64, &[u8]); 8] = [
        (0, &[0]),
        (252, &[252]),
        (253, &[253, 0, 253]),
        (65535, &[253, 255, 255]),
        (65536, &[254, 0, 1, 0, 0]),
        (0xFFFF_FFFF, &[254, 255, 255, 255, 255]),
        (0x1_0000_0000, &[255, 0, 0, 0, 1, 0, 0, 0, 0]),
        (u64::MAX, &[255; 9]),
    ];
    for (number, bytes) in cases {
        assert_eq!(read_var_number(bytes), Ok((number, bytes.len())));
        assert_eq!(Writer::new().var_number(number).as_slice(), bytes);
        for cut in 0..bytes.len() {
            assert_eq!(read_var_number(&bytes[..cut]), Err(DecodeError::Truncated));
        }
    }
}

#[test]
fn longer_forms_of_a_var_number_are_refused() {
    let cases: [&[u8]; 5] = [
        &[253, 0, 252],
        &[254, 0, 0, 255, 255],
        &[254, 0, 0, 0, 1],
        &[255, 0, 0, 0, 0, 255, 255, 255, 255],
        &[255, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    for bytes in cases {
        assert_eq!(read_var_number(bytes), Err(DecodeError::NonMinimalNumber));
    }
}

#[test]
fn non_negative_integers() {
    assert_eq!(decode_nni(&[5]), Ok(5));
    assert_eq!(decode_nni(&[0, 5]), Ok(5), "longer forms are accepted");
    assert_eq!(decode_nni(&[1, 0, 0, 0]), Ok(1 << 24));
    assert_eq!(decode_nni(&[255; 8]), Ok(u64::MAX));
    for length in [0, 3, 5, 6, 7, 9] {
        assert_eq!(decode_nni(&vec![1; length]), Err(DecodeError::BadNumberLength));
    }
    for (number, bytes) in [(0, &[0][..]), (255, &[255]), (256, &[1, 0]), (65536, &[0, 1, 0, 0])] {
        assert_eq!(Nni::new(number).as_slice(), bytes);
    }
    assert_eq!(Nni::new(1 << 32).as_slice(), [0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn elements_with_bad_types_or_lengths_are_refused() {
    let read = |bytes: &[u8]| Reader::new(bytes).read_element().map(|e| e.typ);
    assert_eq!(read(&[0, 0]), Err(DecodeError::BadType));
    assert_eq!(read(&[255, 0, 0, 0, 1, 0, 0, 0, 0, 0]), Err(DecodeError::BadType));
    assert_eq!(read(&[254, 255, 255, 255, 255, 0]), Ok(u32::MAX));
    assert_eq!(read(&[8, 2, 1]), Err(DecodeError::Truncated));
    assert_eq!(read(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255]), Err(DecodeError::Truncated));
    assert_eq!(read(&[8, 253, 0, 1, 0]), Err(DecodeError::NonMinimalNumber));
    assert_eq!(read(&[]), Err(DecodeError::Truncated));
    assert_eq!(read_single_element(&[8, 0, 0]), Err(DecodeError::TrailingBytes));
    assert_eq!(Reader::new(&[8, 0]).read_typed(7), Err(DecodeError::UnexpectedType));
}

#[test]
fn a_stream_is_cut_at_element_borders() {
    assert_eq!(frame_length(&[]), Ok(None));
    assert_eq!(frame_length(&[5]), Ok(None));
    assert_eq!(frame_length(&[5, 253, 1]), Ok(None));
    assert_eq!(frame_length(&[5, 11, 7]), Ok(Some(13)));
    assert_eq!(frame_length(&[0]), Err(DecodeError::BadType), "the error must be reported before LENGTH arrives");
    let largest = MAX_PACKET_SIZE - 4;
    let header = Writer::new().var_number(100).var_number(largest as u64).as_slice().to_vec();
    assert_eq!(frame_length(&header), Ok(Some(MAX_PACKET_SIZE)));
    let header = Writer::new().var_number(100).var_number(largest as u64 + 1).as_slice().to_vec();
    assert_eq!(frame_length(&header), Err(DecodeError::TooLong));
    assert_eq!(frame_length(&[100, 255, 255, 255, 255, 255, 255, 255, 255, 255]), Err(DecodeError::TooLong));
}

#[test]
fn ordered_reading_follows_the_evolvability_rules() {
    let rank = |typ| match typ {
        40 => 1,
        41 => 2,
        42 => 3,
        _ => 0,
    };
    let types = |value: &[u8]| {
        let mut reader = OrderedReader::new(value, rank);
        let mut seen = Vec::new();
        while let Some(element) = reader.next_element()? {
            seen.push(element.typ);
        }
        Ok(seen)
    };
    assert_eq!(types(&[40, 0, 41, 0, 42, 0]), Ok(vec![40, 41, 42]));
    assert_eq!(types(&[41, 0, 60, 0, 42, 0]), Ok(vec![41, 42]), "unknown, not critical");
    assert_eq!(types(&[41, 0, 61, 0]), Err(DecodeError::CriticalElement), "unknown, critical by its low bit");
    assert_eq!(types(&[41, 0, 20, 0]), Err(DecodeError::CriticalElement), "unknown, critical by its size");
    assert_eq!(types(&[41, 0, 40, 0, 42, 0]), Ok(vec![41, 42]), "out of order, not critical");
    assert_eq!(types(&[42, 0, 41, 0]), Err(DecodeError::CriticalElement), "out of order, critical");
    assert_eq!(types(&[40, 0, 40, 0]), Ok(vec![40]), "repeated, not critical");
    assert_eq!(types(&[41, 0, 41, 0]), Err(DecodeError::CriticalElement), "repeated, critical");
}

#[test]
fn nested_elements_of_every_length_form() {
    for length in [0, 252, 253, 65535, 65536] {
        let value = vec![0xAB; length];
        let mut writer = Writer::from(vec![1, 2]);
        writer.nested(300, |w| {
            w.raw(&value);
        });
        let bytes = writer.into_vec();
        assert_eq!(bytes.len(), 2 + element_len(300, length));
        let element = read_single_element(&bytes[2..]).expect("one element");
        assert_eq!((element.typ, element.value), (300, &value[..]));
    }
}

proptest! {
    #[test]
    fn var_number_round_trip(number: u64) {
        let bytes = Writer::new().var_number(number).as_slice().to_vec();
        prop_assert_eq!(bytes.len(), var_number_len(number));
        prop_assert_eq!(read_var_number(&bytes), Ok((number, bytes.len())));
    }

    #[test]
    fn nni_round_trip(number: u64) {
        let nni = Nni::new(number);
        prop_assert_eq!(nni.as_slice().len(), nni_len(number));
        prop_assert_eq!(decode_nni(nni.as_slice()), Ok(number));
    }

    #[test]
    fn element_round_trip(typ in 1..=u32::MAX, value in proptest::collection::vec(any::<u8>(), 0..600)) {
        let bytes = Writer::new().element(typ, &value).as_slice().to_vec();
        prop_assert_eq!(bytes.len(), element_len(typ, value.len()));
        prop_assert_eq!(frame_length(&bytes), Ok(Some(bytes.len())));
        let element = read_single_element(&bytes).expect("one element");
        prop_assert_eq!((element.typ, element.value, element.wire), (typ, &value[..], &bytes[..]));
    }

    #[test]
    fn reading_arbitrary_bytes_ends(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        let mut read = 0;
        while let Ok(element) = reader.read_element() {
            read += element.wire.len();
            prop_assert_eq!(read, reader.position());
        }
        let _ = frame_length(&bytes);
    }
}
