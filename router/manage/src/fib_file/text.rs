//! Text files: one `PREFIX FACE [COST]` a line, where FACE is a number or a URI. Empty lines, and lines that start with
//! `#`, are ignored. Several lines for one prefix give it several next hops.

use std::collections::HashMap;
use std::io::BufRead;

use arrayvec::ArrayVec;
use namehop_wire::Name;

use super::block::{MAX_VALUE_BYTES, PrefixBlock};
use super::{FaceWord, FibFilePart, FileError, LineFault};
use namehop_engine::fib::{MAX_NEXTHOPS, MAX_PREFIX_COMPONENTS};

/// Maximum size of a line, in bytes; names are far shorter.
const MAX_LINE_BYTES: usize = 1 << 20;
/// Maximum number of faults reported at once.
const MAX_FAULTS_AT_ONCE: usize = 64;

/// The words of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineWords<'a> {
    /// URI of the prefix.
    pub prefix: &'a str,
    /// Number or URI of the face.
    pub face: &'a str,
    /// The cost, if given.
    pub cost: Option<u64>,
}

/// Splits a line into words; `None` if it is empty or a comment.
///
/// # Errors
/// The fault in the line.
pub fn parse_line(line: &str) -> Result<Option<LineWords<'_>>, String> {
    let mut words = line.split_whitespace();
    let Some(prefix) = words.next().filter(|word| !word.starts_with('#')) else {
        return Ok(None);
    };
    let Some(face) = words.next() else {
        return Err("expected PREFIX NEXTHOP [COST]".to_owned());
    };
    let cost = words.next().map(|cost| cost.parse().map_err(|_| format!("'{cost}' is not a cost"))).transpose()?;
    match words.next() {
        Some(extra) => Err(format!("unexpected '{extra}' after PREFIX NEXTHOP COST")),
        None => Ok(Some(LineWords { prefix, face, cost })),
    }
}

/// Estimates the number of prefixes in a file of `bytes` bytes from its start.
pub(super) fn estimate_prefixes(start: &[u8], bytes: u64) -> u64 {
    let (mut prefixes, mut sampled) = (0u64, 0u64);
    let mut last: &[u8] = &[];
    for line in start.split_inclusive(|&byte| byte == b'\n') {
        if !line.ends_with(b"\n") && bytes > start.len() as u64 {
            break;
        }
        let prefix = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).unwrap_or(&[]);
        if !prefix.is_empty() && !prefix.starts_with(b"#") && prefix != last {
            last = prefix;
            prefixes += 1;
        }
        sampled += line.len() as u64;
    }
    (u128::from(prefixes) * u128::from(bytes) / u128::from(sampled.max(1))) as u64
}

/// Reads a text file.
#[derive(Debug)]
pub struct TextReader<R> {
    input: R,
    expected_prefixes: Option<u64>,
    line: u64,
    buffer: Vec<u8>,
    /// Index of each face word of the file.
    words: HashMap<String, u32>,
    /// Word and index of the last line; most lines repeat it.
    last_word: (String, u32),
    new_words: Vec<FaceWord>,
    faults: Vec<LineFault>,
    /// Buffer for the prefix of the next line.
    next: Name,
    /// Prefix of the last lines, with their face word indices and costs.
    prefix: Name,
    nexthops: ArrayVec<(u32, u64), MAX_NEXTHOPS>,
    block: PrefixBlock,
    ended: bool,
}

impl<R: BufRead> TextReader<R> {
    /// Starts at the first line. `expected_prefixes` is the approximate number of prefixes, if known.
    pub fn new(input: R, expected_prefixes: Option<u64>) -> Self {
        TextReader {
            input,
            expected_prefixes,
            line: 0,
            buffer: Vec::new(),
            words: HashMap::new(),
            last_word: (String::new(), 0),
            new_words: Vec::new(),
            faults: Vec::new(),
            next: Name::new(),
            prefix: Name::new(),
            nexthops: ArrayVec::new(),
            block: PrefixBlock::default(),
            ended: false,
        }
    }

    /// Returns the approximate number of prefixes, if known.
    pub fn expected_prefixes(&self) -> Option<u64> {
        self.expected_prefixes
    }

    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_part(&mut self) -> Result<Option<FibFilePart>, FileError> {
        while !self.ended && !self.block.is_full() && self.faults.len() < MAX_FAULTS_AT_ONCE {
            self.ended = !self.read_line()?;
        }
        if self.ended {
            self.end_prefix();
        }
        Ok(if !self.new_words.is_empty() {
            Some(FibFilePart::Faces(std::mem::take(&mut self.new_words)))
        } else if !self.faults.is_empty() {
            Some(FibFilePart::Faults(std::mem::take(&mut self.faults)))
        } else if !self.block.is_empty() {
            Some(FibFilePart::Prefixes(std::mem::take(&mut self.block)))
        } else {
            None
        })
    }

    /// Reads a line; returns false at the end.
    fn read_line(&mut self) -> Result<bool, FileError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let limit = MAX_LINE_BYTES as u64;
        let length = std::io::Read::take(&mut self.input, limit).read_until(b'\n', &mut buffer)?;
        if length > 0 {
            self.line += 1;
            let is_whole = length < MAX_LINE_BYTES || buffer.ends_with(b"\n");
            let result = match std::str::from_utf8(&buffer) {
                _ if !is_whole => Err(format!("the line is longer than {MAX_LINE_BYTES} bytes; is this a text file?")),
                Ok(text) => self.take_line(text),
                Err(_) => Err("this is not UTF-8 text; write bytes of names as %XX".to_owned()),
            };
            if let Err(message) = result {
                self.faults.push(LineFault { line: self.line, message });
            }
            if !is_whole {
                // Reading on would interpret the rest of the line as further lines.
                self.ended = true;
            }
        }
        self.buffer = buffer;
        Ok(length > 0 && !self.ended)
    }

    fn take_line(&mut self, text: &str) -> Result<(), String> {
        let Some(LineWords { prefix, face, cost }) = parse_line(text)? else {
            return Ok(());
        };
        self.next.read_uri(prefix).map_err(|error| format!("'{prefix}' is not a name: {error}"))?;
        if self.next.len() > MAX_PREFIX_COMPONENTS {
            return Err(format!("the prefix has more than {MAX_PREFIX_COMPONENTS} components; shorten it"));
        }
        if self.next.value().len() > MAX_VALUE_BYTES {
            return Err(format!("the prefix is longer than {MAX_VALUE_BYTES} bytes; shorten it"));
        }
        if self.next != self.prefix || self.nexthops.is_full() {
            self.end_prefix();
            std::mem::swap(&mut self.next, &mut self.prefix);
        }
        let face = self.position_of(face);
        self.nexthops.push((face, cost.unwrap_or(0)));
        Ok(())
    }

    fn position_of(&mut self, word: &str) -> u32 {
        if self.last_word.0 != word || self.words.is_empty() {
            let position = match self.words.get(word) {
                Some(&known) => known,
                None => {
                    let position = self.words.len() as u32;
                    self.words.insert(word.to_owned(), position);
                    self.new_words.push(FaceWord { word: word.to_owned(), line: Some(self.line) });
                    position
                }
            };
            self.last_word = (word.to_owned(), position);
        }
        self.last_word.1
    }

    /// Appends the prefix of the last lines to the block.
    fn end_prefix(&mut self) {
        if !self.nexthops.is_empty() {
            self.block.push(self.prefix.value(), self.nexthops.drain(..));
        }
    }
}
