//! Names: URI form, canonical order, prefixes, checks.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::DecodeError;
use crate::test_util::any_name;

fn name(uri: &str) -> Name {
    uri.parse().expect("a valid URI")
}

#[test]
fn uris_in_canonical_form_read_back_the_same() {
    for uri in [
        "/",
        "/A",
        "/hello/world",
        "/...",
        "/....",
        "/a/.../b",
        "/32=PA/v=1/seg=0/off=65536/t=1700000000000000/seq=18446744073709551615",
        "/%00%01%FF%20%2F%3D%25",
        "/65535=x/9=...",
        "/sha256digest=28bad4b5275bd392dbb670c75cf0b66f13f7942021e80f55c0e86b374753a548",
        "/params-sha256=28bad4b5275bd392dbb670c75cf0b66f13f7942021e80f55c0e86b374753a548/x",
        "/54=abc",
        "/54=%00%05",
        "/a.b/-_~",
    ] {
        assert_eq!(name(uri).to_string(), uri);
    }
}

#[test]
fn other_spellings_of_the_same_name() {
    assert_eq!(name(""), Name::new());
    assert_eq!(name("ndn:/A/B/"), name("/A/B"));
    assert_eq!(name("NDN:A/B"), name("A/B"));
    assert_eq!(name("/8=A"), name("/A"));
    assert_eq!(name("/54=%05"), name("/v=5"));
    assert_eq!(name("/%41%2e"), name("/A."));
    assert_eq!(name("/a b"), name("/a%20b"));
    assert_eq!(name("/%2E%2e%2E"), name("/..."));
    assert_eq!(name("/8=..%2E."), name("/...."));
}

#[test]
fn bad_uris() {
    for (uri, error) in [
        ("//", NameUriError::EmptyComponent),
        ("/A//B", NameUriError::EmptyComponent),
        ("/.", NameUriError::EmptyComponent),
        ("/..", NameUriError::EmptyComponent),
        ("/8=", NameUriError::EmptyComponent),
        ("/%2E", NameUriError::EmptyComponent),
        ("/.%2E", NameUriError::EmptyComponent),
        ("/%4", NameUriError::BadEscape),
        ("/%", NameUriError::BadEscape),
        ("/%GG", NameUriError::BadEscape),
        ("/%+1", NameUriError::BadEscape),
        ("/0=A", NameUriError::BadType),
        ("/65536=A", NameUriError::BadType),
        ("/08=A", NameUriError::BadType),
        ("/+8=A", NameUriError::BadType),
        ("/=A", NameUriError::BadType),
        ("/foo=A", NameUriError::BadType),
        ("/v=", NameUriError::BadValue),
        ("/v=01", NameUriError::BadValue),
        ("/v=18446744073709551616", NameUriError::BadValue),
        ("/sha256digest=28ba", NameUriError::BadValue),
        ("/sha256digest=zz", NameUriError::BadValue),
        ("/1=A", NameUriError::BadValue),
    ] {
        assert_eq!(uri.parse::<Name>(), Err(error), "{uri}");
    }
}

#[test]
fn component_bytes() {
    let built = Name::new()
        .append_generic("A")
        .append_keyword(b"PA")
        .append_version(1)
        .append_segment(256)
        .append_byte_offset(0)
        .append_timestamp_us(65536)
        .append_sequence(7);
    let expected =
        [&[8, 1, b'A', 32, 2, b'P', b'A', 54, 1, 1, 50, 2, 1, 0][..], &[52, 1, 0, 56, 4, 0, 1, 0, 0, 58, 1, 7]]
            .concat();
    assert_eq!(built.value(), expected);
    assert_eq!(built.len(), 7);
    let component = |index| built.get(index).expect("component");
    assert!(component(0).is_generic() && component(1).is_keyword(b"PA") && !component(1).is_keyword(b"P"));
    assert!(component(2).is_version() && !component(2).is_segment() && component(3).is_segment());
    assert_eq!(component(3).as_segment(), Some(256));
    assert_eq!(component(4).as_byte_offset(), Some(0));
    assert_eq!(component(5).as_timestamp_us(), Some(65536));
    assert_eq!(component(6).as_sequence(), Some(7));
    assert_eq!(component(6).as_version(), None);
    assert_eq!(built.get(7), None);
}

#[test]
fn invalid_names_are_refused() {
    assert_eq!(NameRef::from_value(&[1, 1, 0]), Err(DecodeError::BadComponent));
    assert_eq!(NameRef::from_value(&[2, 0]), Err(DecodeError::BadComponent));
    assert_eq!(NameRef::from_value(&[254, 0, 1, 0, 0, 0]), Err(DecodeError::BadComponent));
    assert_eq!(NameRef::from_value(&[0, 0]), Err(DecodeError::BadType));
    assert_eq!(NameRef::from_value(&[8, 2, 65]), Err(DecodeError::Truncated));
    assert_eq!(NameRef::from_element(&[8, 0]), Err(DecodeError::UnexpectedType));
    assert_eq!(NameRef::from_element(&[7, 3, 8, 1, 65]).map(|n| n.len()), Ok(1));
    assert!(NameRef::from_value(&[253, 255, 255, 0]).is_ok());
}

#[test]
fn canonical_order_by_type_then_length_then_bytes() {
    let sorted = [
        "/",
        "/sha256digest=0000000000000000000000000000000000000000000000000000000000000000",
        "/3=A",
        "/...",
        "/A",
        "/A/A",
        "/B",
        "/AA",
        "/32=A",
        "/300=A",
    ];
    for pair in sorted.windows(2) {
        assert!(name(pair[0]) < name(pair[1]), "{} < {}", pair[0], pair[1]);
    }
}

#[test]
fn parts_of_a_name() {
    let long = name("/a/b/c");
    assert_eq!(long.prefix(2), name("/a/b"));
    assert_eq!(long.prefix(9), long);
    assert_eq!(long.as_ref().without_last(1), name("/a/b"));
    assert_eq!(long.as_ref().without_last(9), Name::new());
    assert_eq!(long.as_ref().suffix(1), name("/b/c"));
    assert_eq!(long.as_ref().suffix(9), Name::new());
    assert_eq!(long.get_from_end(0), long.last());
    assert_eq!(long.get_from_end(2), long.get(0));
    assert_eq!(long.get_from_end(3), None);
    assert!(Name::new().is_prefix_of(long.as_ref()) && long.is_prefix_of(long.as_ref()));
    assert!(!name("/a/b/c/d").is_prefix_of(long.as_ref()) && !name("/a/bb").is_prefix_of(long.as_ref()));
    assert_eq!(long.clone().pop().to_string(), "/a/b");
    assert_eq!(Name::new().pop().len(), 0);
    assert_eq!(name("/a").append_name(name("/b/c").as_ref()), long);
}

#[test]
fn maps_by_name_are_searched_with_bytes() {
    let map = std::collections::HashMap::from([(name("/a/b"), 1)]);
    assert_eq!(map.get(name("/a/b").as_ref().value()), Some(&1));
    let map = std::collections::BTreeMap::from([(name("/a/b"), 1)]);
    assert_eq!(map.get(name("/a/b").as_ref().value()), Some(&1));
}

proptest! {
    #[test]
    fn uri_round_trip(name in any_name(0..12)) {
        prop_assert_eq!(name.to_string().parse::<Name>(), Ok(name));
    }

    #[test]
    fn reading_any_text_ends_and_writes_back_the_same_name(text in "[/=%.a-c0-9A-F~ ]{0,30}|\\PC{0,20}") {
        if let Ok(name) = text.parse::<Name>() {
            prop_assert_eq!(name.to_string().parse::<Name>(), Ok(name));
        }
    }

    #[test]
    fn canonical_order_is_component_order(a in any_name(0..5), b in any_name(0..5), shared in any_name(0..3)) {
        let a = shared.clone().append_name(a.as_ref());
        let b = shared.append_name(b.as_ref());
        prop_assert_eq!(a.cmp(&b), a.components().cmp(b.components()));
        prop_assert_eq!(a.as_ref().cmp(&b.as_ref()), a.cmp(&b));
    }

    #[test]
    fn value_round_trip(name in any_name(0..12)) {
        let view = NameRef::from_value(name.value()).expect("built names are valid");
        prop_assert_eq!(view, name.as_ref());
        prop_assert_eq!((view.len(), name.components().len()), (name.len(), name.components().count()));
        prop_assert_eq!(view.components().collect::<Name>(), name.clone());
        for count in 0..=name.len() {
            let prefix = view.prefix(count);
            prop_assert_eq!(prefix.len(), count);
            prop_assert!(prefix.is_prefix_of(view));
            prop_assert_eq!(prefix.to_owned().append_name(view.suffix(count)), name.clone());
        }
    }

    #[test]
    fn prefix_test_agrees_with_components(a in any_name(0..3), b in any_name(0..3)) {
        let by_component = a.len() <= b.len() && a.components().zip(b.components()).all(|(x, y)| x == y);
        prop_assert_eq!(a.is_prefix_of(b.as_ref()), by_component);
    }

    #[test]
    fn arbitrary_bytes_as_a_name(bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(name) = NameRef::from_value(&bytes) {
            prop_assert_eq!(name.components().map(|c| c.wire_len()).sum::<usize>(), bytes.len());
        }
    }
}

#[test]
fn a_name_is_read_again_and_again_in_the_same_memory() {
    let mut name = Name::new();
    for uri in ["/a/b%40c/%2F", "/", "/seg=5/x", "/...%41", "/....", "/.%2e%2E.", "/%2E2", "ndn:/q", "/%41%42%43"] {
        assert_eq!(name.read_uri(uri), Ok(()));
        assert_eq!(name, uri.parse::<Name>().expect("valid"));
        assert_eq!(NameRef::from_value(name.value()).expect("valid VALUE").len(), name.len());
    }
    for wrong in ["/a/%4", "/a/%%%", "/a/%zz", "/a//b", "/a/..", "/a/%2E.", "/x/=y"] {
        assert!(name.read_uri(wrong).is_err(), "{wrong}");
        assert!(name.is_empty() && name.value().is_empty());
    }
}
