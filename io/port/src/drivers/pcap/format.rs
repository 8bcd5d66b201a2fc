//! The capture format: a file header, then records of a header and a frame each.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The magic number, for timestamps in microseconds and in nanoseconds.
const MAGIC_MICROSECONDS: u32 = 0xA1B2_C3D4;
const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
/// The magic number of the newer format, pcapng.
const MAGIC_PCAPNG: u32 = 0x0A0D_0D0A;
const VERSION: [u16; 2] = [2, 4];
/// LINKTYPE_ETHERNET, and the bits of the header field that hold the link type.
const LINK_ETHERNET: u32 = 1;
const LINK_BITS: u32 = 0x0FFF_FFFF;
const HEADER_BYTES: usize = 24;
/// Length of the header of a record, in bytes.
pub(super) const RECORD_BYTES: usize = 16;
/// A longer record means that the capture is corrupt.
const MAX_RECORD_BYTES: u32 = 262_144;

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text.into())
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// A frame of this many bytes.
    Frame(usize),
    /// A frame that was truncated when it was captured, or is longer than the buffer.
    Incomplete,
}

/// Reads a capture.
pub(super) struct Reader<R> {
    source: R,
    number: fn([u8; 4]) -> u32,
}

impl<R: Read> Reader<R> {
    /// Reads the file header.
    pub(super) fn new(mut source: R) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        source.read_exact(&mut header).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => invalid("the file is shorter than a capture header"),
            _ => error,
        })?;
        let at = |place: usize| [header[place], header[place + 1], header[place + 2], header[place + 3]];
        let is_magic = |number: u32| matches!(number, MAGIC_MICROSECONDS | MAGIC_NANOSECONDS);
        let number = match at(0) {
            magic if is_magic(u32::from_le_bytes(magic)) => u32::from_le_bytes,
            magic if is_magic(u32::from_be_bytes(magic)) => u32::from_be_bytes,
            magic if u32::from_be_bytes(magic) == MAGIC_PCAPNG => {
                return Err(invalid(
                    "the file has the pcapng format: convert it to pcap, for example with editcap -F pcap",
                ));
            }
            _ => return Err(invalid("not a capture in pcap format")),
        };
        match number(at(20)) & LINK_BITS {
            LINK_ETHERNET => Ok(Reader { source, number }),
            link => Err(invalid(format!("the frames are not Ethernet frames, but have link type {link}"))),
        }
    }

    /// Reads the next record into `place`; `None` at the end of the capture.
    pub(super) fn next(&mut self, place: &mut [u8]) -> io::Result<Option<Record>> {
        let mut header = [0; RECORD_BYTES];
        // A capture may end only between records.
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match self.source.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(invalid("the file ends in the middle of a record")),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let at = |place: usize| (self.number)([header[place], header[place + 1], header[place + 2], header[place + 3]]);
        let (there, length) = (at(8), at(12));
        if there > MAX_RECORD_BYTES {
            return Err(invalid(format!("a record of {there} bytes is too large")));
        }
        // At most MAX_RECORD_BYTES, as just checked.
        let there = there as usize;
        if there > place.len() || there < length as usize {
            let skipped = io::copy(&mut self.source.by_ref().take(there as u64), &mut io::sink())?;
            return if skipped == there as u64 {
                Ok(Some(Record::Incomplete))
            } else {
                Err(invalid("a record is truncated"))
            };
        }
        self.source.read_exact(&mut place[..there])?;
        Ok(Some(Record::Frame(there)))
    }
}

/// Writes the header of a capture with times in nanoseconds.
pub(super) fn write_header(target: &mut impl Write) -> io::Result<()> {
    target.write_all(&MAGIC_NANOSECONDS.to_le_bytes())?;
    target.write_all(&VERSION[0].to_le_bytes())?;
    target.write_all(&VERSION[1].to_le_bytes())?;
    for number in [0, 0, MAX_RECORD_BYTES, LINK_ETHERNET] {
        target.write_all(&number.to_le_bytes())?;
    }
    Ok(())
}

/// Writes a frame with the time at which it was sent.
pub(super) fn write_record(target: &mut impl Write, now: SystemTime, frame: &[u8]) -> io::Result<()> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let length = u32::try_from(frame.len()).map_err(|_| invalid("a frame is too long"))?;
    // The format has 32 bits for the seconds, which overflow in the year 2106.
    for number in [now.as_secs() as u32, now.subsec_nanos(), length, length] {
        target.write_all(&number.to_le_bytes())?;
    }
    target.write_all(frame)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn read_all(bytes: &[u8]) -> io::Result<(Vec<Vec<u8>>, usize)> {
        let mut reader = Reader::new(bytes)?;
        let (mut frames, mut incomplete, mut place) = (Vec::new(), 0, [0; 2000]);
        while let Some(record) = reader.next(&mut place)? {
            match record {
                Record::Frame(length) => frames.push(place[..length].to_vec()),
                Record::Incomplete => incomplete += 1,
            }
        }
        Ok((frames, incomplete))
    }

    fn header(magic: u32, link: u32, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
        [magic, 0x0004_0002, 0, 0, 65_535, link].into_iter().flat_map(order).collect()
    }

    #[test]
    fn captures_of_either_order_and_resolution_are_read() {
        for magic in [MAGIC_MICROSECONDS, MAGIC_NANOSECONDS] {
            for order in [u32::to_le_bytes, u32::to_be_bytes] {
                let mut bytes = header(magic, LINK_ETHERNET, order);
                for (there, length) in [(3, 3), (2, 9), (3000, 3000), (0, 0)] {
                    bytes.extend([7, 8, there, length].into_iter().flat_map(order));
                    bytes.extend(vec![5; there as usize]);
                }
                assert_eq!(read_all(&bytes).expect("a complete capture"), (vec![vec![5; 3], vec![]], 2));
                bytes.pop();
                assert!(read_all(&bytes[..bytes.len() - 1]).is_err(), "a truncated record");
            }
        }
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let table = [
            (b"too short".to_vec(), "shorter"),
            (vec![0; 24], "not a capture"),
            ([&MAGIC_PCAPNG.to_be_bytes()[..], &[0; 20]].concat(), "pcapng"),
            (header(MAGIC_MICROSECONDS, 113, u32::to_le_bytes), "link type 113"),
        ];
        for (bytes, reason) in table {
            let error = read_all(&bytes).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let mut long = header(MAGIC_MICROSECONDS, LINK_ETHERNET, u32::to_le_bytes);
        long.extend([0, 0, MAX_RECORD_BYTES + 1, MAX_RECORD_BYTES + 1].into_iter().flat_map(u32::to_le_bytes));
        assert!(read_all(&long).expect_err("the record is too large").to_string().contains("262145 bytes"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..8)) {
            let mut bytes = Vec::new();
            write_header(&mut bytes).expect("memory");
            for frame in &frames {
                let time = UNIX_EPOCH + Duration::from_nanos(1_700_000_000_000_000_123);
                write_record(&mut bytes, time, frame).expect("memory");
            }
            prop_assert_eq!(read_all(&bytes).expect("a complete capture"), (frames, 0));
        }

        #[test]
        fn any_bytes_end_well(bytes in prop::collection::vec(any::<u8>(), 0..200), is_capture in any::<bool>()) {
            let whole = header(MAGIC_MICROSECONDS, LINK_ETHERNET, u32::to_le_bytes);
            let start = if is_capture { whole } else { Vec::new() };
            let _ = read_all(&[start, bytes].concat());
        }
    }
}
