//! Snapshots: a header of 32 bytes, then blocks; the last block is of kind "end".
//!
//! | bytes | header | | bytes | block |
//! |---|---|---|---|---|
//! | 8 | the magic | | 4 | kind: 1 words for faces, 2 prefixes, 3 end |
//! | 4 | version | | 4 | bytes of content |
//! | 4 | 0 | | 8 | check of kind, number of the block, and content |
//! | 8 | prefixes expected | | | content |
//! | 8 | check of the 24 bytes before | | | |
//!
//! Numbers are in network byte order, as in the NDN packet specification. Checks are SipHash-2-4 with fixed keys: they
//! detect damage, not forgery. A word is a VAR-NUMBER length and UTF-8 text. The content of the end block is the number
//! of prefixes, in 8 bytes.
//!
//! Writers and readers handle the snapshot in pieces, so neither side needs memory for the whole.

use std::collections::HashMap;
use std::io::{self, Read};

use namehop_hash::{HashKey, hash_name};
use namehop_packet::FaceId;
use namehop_wire::NameRef;
use namehop_wire::tlv::{Writer, read_var_number};

use super::block::{MAX_BLOCK_BYTES, PrefixBlock};
use super::{BLOCK_BYTES, FaceWord, FibFilePart, FileError};
use namehop_engine::fib::{MAX_NEXTHOPS, NextHops};

/// Version that is written, and the only one that is read.
pub(super) const VERSION: u32 = 1;
/// First bytes of a snapshot. They are not valid UTF-8, and reveal line ending conversion.
const MAGIC: [u8; 8] = *b"\x89NHFIB\r\n";
const HEADER_BYTES: usize = 32;
const BLOCK_HEADER_BYTES: usize = 16;
const END_BYTES: usize = 8;

const FACES: u32 = 1;
const PREFIXES: u32 = 2;
const END: u32 = 3;

/// Returns true if this is the start of a snapshot.
pub(super) fn is_magic(start: &[u8]) -> bool {
    start.starts_with(&MAGIC)
}

fn check(kind: u32, number: u64, content: &[u8]) -> u64 {
    hash_name(&HashKey::new(number, kind.into()), content)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Writes a snapshot in pieces.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// Output that was not taken yet.
    output: Vec<u8>,
    block: PrefixBlock,
    blocks: u64,
    prefixes: u64,
    /// Index of each word in the file.
    words: HashMap<String, u32>,
    /// Index of the word of each face that occurred; `None` for faces without a word.
    faces: HashMap<FaceId, Option<u32>>,
    /// Words to be written in the next block.
    new_words: Writer,
}

impl SnapshotWriter {
    /// Starts with the header. `prefixes` is the approximate number of prefixes.
    pub fn new(prefixes: u64) -> Self {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_be_bytes());
        header.extend_from_slice(&0u32.to_be_bytes());
        header.extend_from_slice(&prefixes.to_be_bytes());
        let check = check(0, 0, &header);
        header.extend_from_slice(&check.to_be_bytes());
        SnapshotWriter {
            output: header,
            block: PrefixBlock::default(),
            blocks: 0,
            prefixes: 0,
            words: HashMap::new(),
            faces: HashMap::new(),
            new_words: Writer::with_capacity(0),
        }
    }

    /// Adds a prefix. `word_of` returns the word for a face, shorter than a kilobyte, and is called once for each face.
    /// Next hops whose face has no word are left out; without any next hop left, so is the prefix.
    pub fn push(
        &mut self,
        prefix: NameRef<'_>,
        nexthops: NextHops<'_>,
        mut word_of: impl FnMut(FaceId) -> Option<String>,
    ) {
        let mut known = arrayvec::ArrayVec::<(u32, u64), { MAX_NEXTHOPS }>::new();
        for nexthop in nexthops.iter() {
            if let Some(position) = self.position_of(nexthop.face, &mut word_of) {
                known.push((position, nexthop.cost));
            }
        }
        if known.is_empty() {
            return;
        }
        self.block.push(prefix.value(), known.into_iter());
        self.prefixes += 1;
        if self.block.is_full() || self.new_words.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn position_of(&mut self, face: FaceId, word_of: &mut impl FnMut(FaceId) -> Option<String>) -> Option<u32> {
        if let Some(&known) = self.faces.get(&face) {
            return known;
        }
        let position = word_of(face).map(|word| {
            let next = self.words.len() as u32;
            *self.words.entry(word).or_insert_with_key(|word| {
                self.new_words.var_number(word.len() as u64).raw(word.as_bytes());
                next
            })
        });
        self.faces.insert(face, position);
        position
    }

    /// Ends the snapshot. The next [`take_output`](Self::take_output) returns the last piece.
    pub fn finish(&mut self) {
        self.end_block();
        self.write_block(END, &self.prefixes.to_be_bytes());
    }

    /// Returns the next piece; empty if more entries must be added first.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    fn end_block(&mut self) {
        if !self.new_words.is_empty() {
            let words = std::mem::replace(&mut self.new_words, Writer::with_capacity(0)).into_vec();
            self.write_block(FACES, &words);
        }
        if !self.block.is_empty() {
            let block = std::mem::take(&mut self.block);
            self.write_block(PREFIXES, block.records());
        }
    }

    fn write_block(&mut self, kind: u32, content: &[u8]) {
        self.output.extend_from_slice(&kind.to_be_bytes());
        self.output.extend_from_slice(&(content.len() as u32).to_be_bytes());
        self.output.extend_from_slice(&check(kind, self.blocks, content).to_be_bytes());
        self.output.extend_from_slice(content);
        self.blocks += 1;
    }
}

/// Reads a snapshot.
#[derive(Debug)]
pub struct SnapshotReader<R> {
    input: R,
    expected_prefixes: u64,
    blocks: u64,
    offset: u64,
    ended: bool,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads and checks the header.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or has a newer version.
    pub fn new(mut input: R) -> Result<Self, FileError> {
        let damaged = |what| FileError::Damaged { offset: 0, what };
        let mut header = [0; HEADER_BYTES];
        read_whole(&mut input, &mut header, 0)?;
        let (checked, _) = header.split_at(HEADER_BYTES - size_of::<u64>());
        if !is_magic(&header) {
            return Err(damaged("this is not a FIB snapshot"));
        }
        if u64_at(&header, 24) != check(0, 0, checked) {
            return Err(damaged("the header of the snapshot is damaged"));
        }
        match u32_at(&header, 8) {
            VERSION => Ok(SnapshotReader {
                input,
                expected_prefixes: u64_at(&header, 16),
                blocks: 0,
                offset: HEADER_BYTES as u64,
                ended: false,
            }),
            version => Err(FileError::Newer { version }),
        }
    }

    /// Returns the approximate number of prefixes.
    pub fn expected_prefixes(&self) -> u64 {
        self.expected_prefixes
    }

    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// When the snapshot cannot be read, is damaged, or is cut off. No parts follow then.
    pub fn next_part(&mut self) -> Result<Option<FibFilePart>, FileError> {
        if self.ended {
            return Ok(None);
        }
        self.ended = true;
        let start = self.offset;
        let damaged = |what| FileError::Damaged { offset: start, what };
        let mut header = [0; BLOCK_HEADER_BYTES];
        read_whole(&mut self.input, &mut header, start)?;
        let (kind, length) = (u32_at(&header, 0), u32_at(&header, 4) as usize);
        if length > MAX_BLOCK_BYTES {
            return Err(damaged("the snapshot is damaged"));
        }
        let mut content = vec![0; length];
        read_whole(&mut self.input, &mut content, start)?;
        if u64_at(&header, 8) != check(kind, self.blocks, &content) {
            return Err(damaged("the snapshot is damaged"));
        }
        self.blocks += 1;
        self.offset += (BLOCK_HEADER_BYTES + length) as u64;
        let part = match kind {
            FACES => FibFilePart::Faces(read_words(&content).ok_or_else(|| damaged("malformed list of faces"))?),
            PREFIXES => FibFilePart::Prefixes(PrefixBlock::new(content, start)),
            END if length == END_BYTES => {
                let surplus = self.input.read(&mut [0])?;
                let has_more = || damaged("data after the end of the snapshot");
                return if surplus == 0 { Ok(None) } else { Err(has_more()) };
            }
            _ => return Err(damaged("block of an unknown kind")),
        };
        self.ended = false;
        Ok(Some(part))
    }
}

fn read_words(mut content: &[u8]) -> Option<Vec<FaceWord>> {
    let mut words = Vec::new();
    while !content.is_empty() {
        let (length, length_bytes) = read_var_number(content).ok()?;
        let (word, rest) = content[length_bytes..].split_at_checked(usize::try_from(length).ok()?)?;
        words.push(FaceWord { word: std::str::from_utf8(word).ok()?.to_owned(), line: None });
        content = rest;
    }
    Some(words)
}

/// Fills `bytes`. `offset` is the start of the part that they belong to, for messages.
fn read_whole(input: &mut impl Read, bytes: &mut [u8], offset: u64) -> Result<(), FileError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FileError::Damaged { offset, what: "the snapshot is cut off" },
        _ => FileError::Io(error),
    })
}
