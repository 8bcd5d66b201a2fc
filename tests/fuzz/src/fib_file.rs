//! Files of FIB entries: any bytes are read without harm, and entries that were read survive being saved, including the
//! order of next hops.

use std::collections::BTreeMap;

use namehop_engine::fib::{FibCursor, FibWriter, MAX_NEXTHOPS, MAX_PREFIX_COMPONENTS};
use namehop_hash::{HashKey, hash_name};
use namehop_manage::fib_file::{FibFile, FibFilePart, FileError, SnapshotWriter};
use namehop_packet::FaceId;
use namehop_wire::Name;

const KEY: HashKey = HashKey::new(5, 6);

/// Checks the bytes as a file, and as the contents of snapshot blocks with valid checksums: without these, inputs would
/// never reach the code behind the checksums.
pub fn fib_file(bytes: &[u8]) {
    check(bytes);
    check(&sealed(bytes));
}

/// Builds a snapshot from a list of kind (1 byte), length (2 bytes) and content.
fn sealed(mut bytes: &[u8]) -> Vec<u8> {
    let check = |kind: u64, number: u64, content: &[u8]| hash_name(&HashKey::new(number, kind), content);
    let mut file = b"\x89NHFIB\r\n\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x05".to_vec();
    let header = check(0, 0, &file);
    file.extend(header.to_be_bytes());
    let mut number = 0;
    while let [kind, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (content, rest) = rest.split_at(length);
        file.extend(u32::from(*kind).to_be_bytes());
        file.extend((length as u32).to_be_bytes());
        file.extend(check((*kind).into(), number, content).to_be_bytes());
        file.extend(content);
        number += 1;
        bytes = rest;
    }
    file
}

type Entries = BTreeMap<Name, Vec<(u32, u64)>>;

fn entries(fib: &FibWriter<()>) -> Entries {
    fib.entries()
        .map(|(name, hops)| (name.to_owned(), hops.iter().map(|hop| (hop.face.0, hop.cost)).collect()))
        .collect()
}

/// Loads a file. Returns the entries before the first fault, the number of prefixes left out, and the fault. Face ids
/// are the positions of their words in the file.
fn load_up_to_fault(file: &[u8]) -> (FibWriter<()>, u64, Result<(), FileError>) {
    let mut fib = FibWriter::new(KEY, ()).expect("memory");
    let mut words = 0;
    let mut left_out = 0;
    let result = FibFile::new(file).and_then(|mut file| {
        while let Some(part) = file.next_part()? {
            match part {
                FibFilePart::Faces(new) => words += new.len() as u32,
                FibFilePart::Prefixes(block) => {
                    left_out += block.add_to(&mut fib, |word| (word < words).then_some(FaceId(word)))?.left_out;
                }
                FibFilePart::Faults(faults) => assert!(faults.iter().all(|fault| fault.line > 0)),
            }
        }
        Ok(())
    });
    (fib, left_out, result)
}

/// Loads a file without faults.
///
/// # Errors
/// The first fault.
pub(crate) fn load(file: &[u8]) -> Result<(), FileError> {
    let (_, _, result) = load_up_to_fault(file);
    result
}

fn check(file: &[u8]) {
    let (fib, _, _) = load_up_to_fault(file);
    let expected = entries(&fib);
    assert!(expected.iter().all(|(name, hops)| name.len() <= MAX_PREFIX_COMPONENTS && hops.len() <= MAX_NEXTHOPS));
    let mut writer = SnapshotWriter::new(fib.len() as u64);
    let mut cursor = Some(FibCursor::default());
    // Words are in the order of their first use, so their positions differ from the positions in the file.
    let mut words = Vec::new();
    while let Some(from) = cursor {
        cursor = fib.visit_entries(from, 16, |name, hops| {
            writer.push(name, hops, |face| {
                words.push(face.0);
                Some(face.to_string())
            });
        });
    }
    writer.finish();
    let (again, left_out, result) = load_up_to_fault(&writer.take_output());
    assert!(result.is_ok() && left_out == 0);
    let mut again: Entries = entries(&again);
    for hops in again.values_mut() {
        hops.iter_mut().for_each(|hop| hop.0 = words[hop.0 as usize]);
    }
    assert_eq!(again, expected);
}
