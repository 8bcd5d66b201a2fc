//! A block of prefixes with their next hops, in the encoding of snapshots: a sequence of records. A record holds the
//! length and TLV-VALUE of a name, the number of its next hops, and for each next hop the index of its face among the
//! file's words, and its cost. All numbers are VAR-NUMBERs of the NDN packet specification.

use std::ops::Range;

use arrayvec::ArrayVec;
use namehop_packet::FaceId;
use namehop_wire::tlv::{put_var_number, read_var_number};
use namehop_wire::{Name, NameRef};

use super::{BLOCK_BYTES, FileError};
use namehop_engine::fib::{FibAddition, FibError, FibWriter, MAX_NEXTHOPS, MAX_PREFIX_COMPONENTS, NextHop};

/// Number of records added to a FIB at once.
const GROUP: usize = 128;
/// Maximum size of a VAR-NUMBER, in bytes.
const MAX_NUMBER_BYTES: usize = 9;
/// Maximum size of the TLV-VALUE of a prefix, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = u16::MAX as usize;
/// Maximum size of a block, in bytes: a block ends with the record that fills it.
pub(super) const MAX_BLOCK_BYTES: usize = BLOCK_BYTES + MAX_VALUE_BYTES + (2 + 2 * MAX_NEXTHOPS) * MAX_NUMBER_BYTES;

/// A part of a file: prefixes with their next hops.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PrefixBlock {
    records: Vec<u8>,
    /// Offset of the block in a snapshot, for messages.
    offset: u64,
}

/// The result of adding a block to a FIB.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Prefixes that have all next hops of the file.
    pub prefixes: u64,
    /// Next hops left out because their face does not exist.
    pub left_out: u64,
    /// Prefixes that the FIB refused.
    pub refused: Vec<Refused>,
}

/// A prefix that the FIB refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    /// The prefix.
    pub prefix: Name,
    /// The reason.
    pub error: FibError,
}

/// A record, decoded from the front of a block.
struct Record<'a> {
    prefix: NameRef<'a>,
    nexthop_count: usize,
    /// The record's next hops, followed by the further records.
    rest: &'a [u8],
}

impl PrefixBlock {
    /// Creates a block from undecoded records; [`add_to`](Self::add_to) decodes them.
    pub(super) fn new(records: Vec<u8>, offset: u64) -> Self {
        PrefixBlock { records, offset }
    }

    /// Returns the encoded records.
    pub(super) fn records(&self) -> &[u8] {
        &self.records
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= BLOCK_BYTES
    }

    /// Appends a record. `value` has at most 65,535 bytes; there are 1 to [`MAX_NEXTHOPS`] pairs of face word index and
    /// cost.
    pub(super) fn push(&mut self, value: &[u8], nexthops: impl ExactSizeIterator<Item = (u32, u64)>) {
        self.push_number(value.len() as u64);
        self.records.extend_from_slice(value);
        self.push_number(nexthops.len() as u64);
        for (face, cost) in nexthops {
            self.push_number(face.into());
            self.push_number(cost);
        }
    }

    fn push_number(&mut self, number: u64) {
        let mut bytes = [0; MAX_NUMBER_BYTES];
        let length = put_var_number(&mut bytes, number);
        self.records.extend_from_slice(&bytes[..length]);
    }

    /// Adds the prefixes to a FIB with [`FibWriter::add_many`]. `face_of` maps the index of a word to its face; next
    /// hops without a face are left out.
    ///
    /// # Errors
    /// When the block is damaged; records before the fault are added.
    pub fn add_to<S: Send + Sync>(
        &self,
        fib: &mut FibWriter<S>,
        face_of: impl Fn(u32) -> Option<FaceId>,
    ) -> Result<Added, FileError> {
        let mut added = Added::default();
        let mut nexthops: Vec<NextHop> = Vec::new();
        let mut group: ArrayVec<(NameRef<'_>, Range<usize>), GROUP> = ArrayVec::new();
        let mut rest = self.records.as_slice();
        let mut whole = true;
        while whole && !rest.is_empty() {
            nexthops.clear();
            group.clear();
            while !group.is_full() && !rest.is_empty() {
                let Some((prefix, missing, after)) = read_record(rest, &face_of, &mut nexthops) else {
                    whole = false;
                    break;
                };
                rest = after;
                added.left_out += missing;
                added.prefixes += u64::from(missing == 0);
                let start = group.last().map_or(0, |(_, range)| range.end);
                if start < nexthops.len() {
                    group.push((prefix, start..nexthops.len()));
                }
            }
            add_group(fib, &group, &nexthops, &mut added);
        }
        if !whole {
            return Err(FileError::Damaged { offset: self.offset, what: "malformed record" });
        }
        Ok(added)
    }
}

fn add_group<S: Send + Sync>(
    fib: &mut FibWriter<S>,
    group: &[(NameRef<'_>, Range<usize>)],
    nexthops: &[NextHop],
    added: &mut Added,
) {
    let additions: ArrayVec<FibAddition<'_>, GROUP> = group
        .iter()
        .map(|(prefix, range)| FibAddition { prefix: *prefix, nexthops: &nexthops[range.clone()] })
        .collect();
    let mut left = additions.as_slice();
    while let Err(refused) = fib.add_many(left) {
        added.refused.push(Refused { prefix: left[refused.position].prefix.to_owned(), error: refused.error });
        added.prefixes = added.prefixes.saturating_sub(1);
        left = &left[refused.position + 1..];
    }
}

/// Decodes a record and appends its next hops to `nexthops`. Returns the prefix, the number of next hops without a
/// face, and the bytes after the record; `None` if the record is malformed.
fn read_record<'a>(
    records: &'a [u8],
    face_of: &impl Fn(u32) -> Option<FaceId>,
    nexthops: &mut Vec<NextHop>,
) -> Option<(NameRef<'a>, u64, &'a [u8])> {
    let Record { prefix, nexthop_count, mut rest } = read_name(records)?;
    let mut missing = 0;
    for _ in 0..nexthop_count {
        let face = u32::try_from(read_number(&mut rest)?).ok()?;
        let cost = read_number(&mut rest)?;
        match face_of(face) {
            Some(face) => nexthops.push(NextHop { face, cost }),
            None => missing += 1,
        }
    }
    Some((prefix, missing, rest))
}

fn read_name(mut records: &[u8]) -> Option<Record<'_>> {
    let length = usize::try_from(read_number(&mut records)?).ok().filter(|&length| length <= MAX_VALUE_BYTES)?;
    let (value, mut rest) = records.split_at_checked(length)?;
    let prefix = NameRef::from_value(value).ok().filter(|prefix| prefix.len() <= MAX_PREFIX_COMPONENTS)?;
    let nexthop_count = usize::try_from(read_number(&mut rest)?).ok()?;
    (1..=MAX_NEXTHOPS).contains(&nexthop_count).then_some(Record { prefix, nexthop_count, rest })
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, length) = read_var_number(bytes).ok()?;
    *bytes = &bytes[length..];
    Some(number)
}
