//! Text files and snapshots: written content is read back, and all faults are found.

use std::collections::BTreeMap;

use namehop_hash::HashKey;
use namehop_packet::FaceId;
use namehop_wire::Name;
use proptest::prelude::*;

use super::*;
use namehop_engine::fib::{FibCursor, FibWriter, MAX_PREFIX_COMPONENTS, NextHop};

type Entries = BTreeMap<Name, Vec<NextHop>>;

const KEY: HashKey = HashKey::new(3, 4);

fn name(uri: &str) -> Name {
    uri.parse().expect("valid URI")
}

fn hop(face: u32, cost: u64) -> NextHop {
    NextHop { face: FaceId(face), cost }
}

fn entries(fib: &FibWriter<()>) -> Entries {
    fib.entries().map(|(name, hops)| (name.to_owned(), hops.to_vec())).collect()
}

/// Result of loading a file in which words for faces are numbers.
struct Loaded {
    fib: FibWriter<()>,
    added: Added,
    faults: Vec<LineFault>,
    words: Vec<FaceWord>,
    end: Result<(), FileError>,
}

fn load(file: &[u8]) -> Loaded {
    let mut loaded = Loaded {
        fib: FibWriter::new(KEY, ()).expect("memory"),
        added: Added::default(),
        faults: Vec::new(),
        words: Vec::new(),
        end: Ok(()),
    };
    loaded.end = FibFile::new(file).and_then(|mut file| {
        while let Some(part) = file.next_part()? {
            match part {
                FibFilePart::Faces(words) => loaded.words.extend(words),
                FibFilePart::Faults(faults) => loaded.faults.extend(faults),
                FibFilePart::Prefixes(block) => {
                    let face_of = |position: u32| loaded.words.get(position as usize)?.word.parse().ok().map(FaceId);
                    let added = block.add_to(&mut loaded.fib, face_of)?;
                    loaded.added.prefixes += added.prefixes;
                    loaded.added.left_out += added.left_out;
                    loaded.added.refused.extend(added.refused);
                }
            }
        }
        Ok(())
    });
    loaded
}

fn save(fib: &FibWriter<()>) -> Vec<u8> {
    let mut writer = SnapshotWriter::new(fib.len() as u64);
    let (mut file, mut cursor) = (Vec::new(), Some(FibCursor::default()));
    while let Some(from) = cursor {
        cursor = fib.visit_entries(from, 100, |name, hops| {
            writer.push(name, hops, |face| (face.0 != 99).then(|| face.0.to_string()));
        });
        file.extend(writer.take_output());
    }
    writer.finish();
    file.extend(writer.take_output());
    file
}

fn example() -> FibWriter<()> {
    let mut fib = FibWriter::new(KEY, ()).expect("memory");
    for number in 0..3000u32 {
        let name = name(&format!("/example/{number}")).append_generic(vec![7; number as usize % 150]);
        fib.set_nexthops(name.as_ref(), &[hop(number % 40, 5), hop(1000 + number, u64::from(number) << 30)])
            .expect("set");
    }
    fib.add_nexthop(Name::new().as_ref(), FaceId(7), u64::MAX).expect("add");
    fib
}

#[test]
fn a_snapshot_gives_back_what_was_saved() {
    let fib = example();
    let file = save(&fib);
    let loaded = load(&file);
    assert!(loaded.end.is_ok(), "{:?}", loaded.end);
    assert_eq!(entries(&loaded.fib), entries(&fib));
    assert_eq!((loaded.added.prefixes, loaded.added.left_out), (3001, 0));
    assert_eq!(FibFile::new(file.as_slice()).expect("a snapshot").expected_prefixes(), Some(3001));
    // Also for an empty FIB.
    let empty = load(&save(&FibWriter::new(KEY, ()).expect("memory")));
    assert!(empty.end.is_ok() && empty.fib.is_empty());
}

#[test]
fn the_form_of_snapshots_does_not_change_by_accident() {
    let mut fib = FibWriter::new(KEY, ()).expect("memory");
    fib.set_nexthops(name("/a").as_ref(), &[hop(256, 300)]).expect("set");
    let file = save(&fib);
    let expected: Vec<u8> = [
        b"\x89NHFIB\r\n\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01".as_slice(),
        &file[24..32],
        b"\0\0\0\x01\0\0\0\x04",
        &file[40..48],
        b"\x03256",
        b"\0\0\0\x02\0\0\0\x09",
        &file[60..68],
        b"\x03\x08\x01a\x01\0\xfd\x01\x2c",
        b"\0\0\0\x03\0\0\0\x08",
        &file[85..93],
        b"\0\0\0\0\0\0\0\x01",
    ]
    .concat();
    assert_eq!(file, expected);
    // SipHash-2-4 with the all-zero key.
    let header_check = namehop_hash::hash_name(&HashKey::new(0, 0), &file[..24]);
    assert_eq!(file[24..32], header_check.to_be_bytes());
}

#[test]
fn next_hops_without_a_face_word_are_skipped() {
    let mut fib = FibWriter::new(KEY, ()).expect("memory");
    fib.set_nexthops(name("/a").as_ref(), &[hop(1, 1), hop(99, 0)]).expect("set");
    fib.set_nexthops(name("/b").as_ref(), &[hop(99, 0)]).expect("set");
    let loaded = load(&save(&fib));
    assert_eq!(entries(&loaded.fib), BTreeMap::from([(name("/a"), vec![hop(1, 1)])]));
}

#[test]
fn a_snapshot_that_is_cut_off_or_damaged_anywhere_is_found_out() {
    let fib = example();
    let (file, all) = (save(&fib), entries(&fib));
    for length in (0..100).chain((100..file.len()).step_by(997)).chain([file.len() - 1]) {
        let loaded = load(&file[..length]);
        let is_text = length < 8;
        assert!(loaded.end.is_err() || is_text && !loaded.faults.is_empty() || length == 0, "cut to {length}");
        assert!(entries(&loaded.fib).iter().all(|(name, hops)| all.get(name) == Some(hops)));
    }
    for position in (0..100).chain((100..file.len()).step_by(1499)) {
        let mut file = file.clone();
        file[position] ^= 0x10;
        let loaded = load(&file);
        assert!(loaded.end.is_err() || position < 8, "changed at {position}");
        assert!(entries(&loaded.fib).iter().all(|(name, hops)| all.get(name) == Some(hops)));
    }
    let longer = load(&[file.as_slice(), b"x"].concat());
    assert!(matches!(longer.end, Err(FileError::Damaged { .. })));
    let mut newer = file[..24].to_vec();
    newer[11] = 2;
    let check = namehop_hash::hash_name(&HashKey::new(0, 0), &newer);
    newer.extend_from_slice(&check.to_be_bytes());
    assert!(matches!(load(&newer).end, Err(FileError::Newer { version: 2 })));
}

#[test]
fn text_is_read_line_by_line() {
    let deep = "/c".repeat(MAX_PREFIX_COMPONENTS + 1);
    let text = format!(
        "# comment\n\n/a 300\n  /b/c  301 7 \r\n/b/c 300\n/a 301 2\n\
         /x\n/%zz 1\n/a 300 x\n/a 300 1 2\n{deep} 1\n/n other\n/a 300 9"
    );
    let loaded = load(text.as_bytes());
    assert!(loaded.end.is_ok());
    let expected =
        BTreeMap::from([(name("/a"), vec![hop(301, 2), hop(300, 9)]), (name("/b/c"), vec![hop(300, 0), hop(301, 7)])]);
    assert_eq!(entries(&loaded.fib), expected);
    assert_eq!(loaded.added.left_out, 1);
    assert_eq!(loaded.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [7, 8, 9, 10, 11]);
    let words: Vec<_> = loaded.words.iter().map(|word| (word.word.as_str(), word.line)).collect();
    assert_eq!(words, [("300", Some(3)), ("301", Some(4)), ("other", Some(12))]);
}

#[test]
fn the_number_of_lines_is_estimated_from_the_first() {
    let text: String = (0..1000).map(|number| format!("# a\n/a/{number:04} 1\n/a/{number:04} 2 7\n\n")).collect();
    let bytes = text.len() as u64;
    assert_eq!(text::estimate_prefixes(text.as_bytes(), bytes), 1000);
    assert_eq!(text::estimate_prefixes(&text.as_bytes()[..text.len() - 1], bytes - 1), 1000);
    let of_a_part = text::estimate_prefixes(&text.as_bytes()[..5000], bytes * 10);
    assert!((9_900..10_100).contains(&of_a_part), "{of_a_part}");
    assert_eq!(text::estimate_prefixes(b"", 0), 0);
    assert_eq!(text::estimate_prefixes(b"no end of line", u64::MAX), 0);
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("fib"), &text).expect("written");
    let file = FibFile::open(&folder.path().join("fib")).expect("a file");
    assert_eq!(file.expected_prefixes(), Some(1000));
}

#[test]
fn binary_input_is_reported_with_bounded_memory() {
    let loaded = load(&[0xff; 5000]);
    assert_eq!(loaded.faults.len(), 1);
    let loaded = load(&vec![b'x'; 3 << 20]);
    assert_eq!(loaded.faults.len(), 1);
    let many_faults = load("/x\n".repeat(1000).as_bytes());
    assert_eq!(many_faults.faults.len(), 1000);
    let many_hops: String = (0..40).map(|face| format!("/a {face}\n")).collect();
    let loaded = load(many_hops.as_bytes());
    assert_eq!(loaded.added.refused.len(), 1);
    assert_eq!(loaded.fib.nexthops(name("/a").as_ref()).len(), 32);
}

proptest! {
    #[test]
    fn any_entries_survive_text_and_snapshot(
        table in prop::collection::btree_map(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
            prop::collection::btree_map(0u32..50, any::<u64>(), 1..5),
            0..40,
        ),
    ) {
        let mut fib = FibWriter::new(KEY, ()).expect("memory");
        let mut text = String::new();
        for (components, hops) in &table {
            let name = components.iter().fold(Name::new(), |name, component| name.append_generic(component));
            for (&face, &cost) in hops {
                fib.add_nexthop(name.as_ref(), FaceId(face), cost).expect("add");
                text.push_str(&format!("{name} {face} {cost}\n"));
            }
        }
        let expected = entries(&fib);
        prop_assert_eq!(entries(&load(text.as_bytes()).fib), expected.clone());
        let loaded = load(&save(&fib));
        prop_assert!(loaded.end.is_ok());
        prop_assert_eq!(entries(&loaded.fib), expected);
    }
}
