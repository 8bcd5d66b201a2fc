//! Requests from a file: one name per line, or the binary format `oracleGeneral` of libCacheSim; plain, or compressed
//! with zstd.
//!
//! A record of `oracleGeneral` has 24 bytes, little-endian: time (32 bits), object (64), size (32), and position of the
//! object's next request (64). Only the object is used, because a Content Store counts packets.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use namehop_table::permutation::mix;
use ruzstd::decoding::StreamingDecoder;

/// Size of a record in bytes, and position of the object in it.
const RECORD_BYTES: usize = 24;
const OBJECT: std::ops::Range<usize> = 4..12;
/// First bytes of a zstd-compressed file.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Maximum length of a line.
const MAX_LINE_BYTES: usize = 65_536;

/// Format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// One name per line. Empty lines are skipped.
    Lines,
    /// Binary records of `oracleGeneral`.
    OracleGeneral,
}

impl TraceFormat {
    /// Returns the format by the file name: libCacheSim's traces carry their format in the name.
    pub fn of(path: &Path) -> Self {
        let is_binary = path.to_string_lossy().to_ascii_lowercase().contains("oraclegeneral");
        if is_binary { TraceFormat::OracleGeneral } else { TraceFormat::Lines }
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// The file is not valid zstd.
    #[error("the trace is not valid zstd data: {0}")]
    Compression(String),
    /// The last record is incomplete.
    #[error("the trace ends within a record: it is damaged or has another format")]
    Truncated,
    /// A line is longer than `MAX_LINE_BYTES`.
    #[error("a line of the trace has more than {MAX_LINE_BYTES} bytes: it is damaged or has another format")]
    LongLine,
}

/// Requests read from a file.
pub struct Trace {
    input: Box<dyn BufRead + Send>,
    format: TraceFormat,
    line: Vec<u8>,
}

impl Trace {
    /// Opens a trace, compressed or not.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(path: &Path, format: TraceFormat) -> Result<Self, TraceError> {
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let is_compressed = file.fill_buf()?.starts_with(&ZSTD_MAGIC);
        let input: Box<dyn BufRead + Send> = if is_compressed {
            let decoder = StreamingDecoder::new(file).map_err(|error| TraceError::Compression(error.to_string()))?;
            Box::new(BufReader::with_capacity(1 << 20, decoder))
        } else {
            Box::new(file)
        };
        Ok(Trace { input, format, line: Vec::new() })
    }

    /// Returns the next request, as the hash of its name; `None` at the end of the file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not valid zstd, or is not in the given format.
    pub fn next_request(&mut self) -> Result<Option<u64>, TraceError> {
        match self.format {
            TraceFormat::Lines => self.next_line(),
            TraceFormat::OracleGeneral => self.next_record(),
        }
    }

    fn next_line(&mut self) -> Result<Option<u64>, TraceError> {
        loop {
            self.line.clear();
            let read = (&mut self.input).take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            if self.line.len() > MAX_LINE_BYTES {
                return Err(TraceError::LongLine);
            }
            let name = self.line.trim_ascii();
            if !name.is_empty() {
                return Ok(Some(hash_of_text(name)));
            }
        }
    }

    fn next_record(&mut self) -> Result<Option<u64>, TraceError> {
        let mut record = [0; RECORD_BYTES];
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match self.input.read(&mut record[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(TraceError::Truncated),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut object = [0; 8];
        object.copy_from_slice(&record[OBJECT]);
        Ok(Some(mix(u64::from_le_bytes(object))))
    }
}

/// Hashes a name. Numbers have distinct hashes; other names may collide.
fn hash_of_text(name: &[u8]) -> u64 {
    let number = std::str::from_utf8(name).ok().and_then(|text| text.parse::<u64>().ok());
    number.map_or_else(
        || {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        },
        mix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], name: &str) -> Result<Vec<u64>, TraceError> {
        let directory = tempfile::tempdir().expect("directory");
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        let mut trace = Trace::open(&path, TraceFormat::of(&path))?;
        std::iter::from_fn(|| trace.next_request().transpose()).collect()
    }

    #[test]
    fn lines_are_numbers_or_names() {
        let names = read(b"1\n/a/b\r\n\n 1 \n18446744073709551615\n/a/b", "trace.txt").expect("a trace");
        assert_eq!(names.len(), 5);
        assert_eq!((names[0], names[1], names[3]), (mix(1), names[4], mix(u64::MAX)));
        assert_eq!(names[2], mix(1));
        assert_ne!(names[0], names[1]);
        assert!(read(b"", "trace.txt").expect("an empty trace").is_empty());
        let long = vec![b'a'; MAX_LINE_BYTES + 1];
        assert!(matches!(read(&long, "trace.txt"), Err(TraceError::LongLine)));
    }

    fn records(objects: &[u64]) -> Vec<u8> {
        let record = |(time, object): (usize, &u64)| {
            [&(time as u32).to_le_bytes()[..], &object.to_le_bytes(), &1_u32.to_le_bytes(), &(-1_i64).to_le_bytes()]
                .concat()
        };
        objects.iter().enumerate().flat_map(record).collect()
    }

    #[test]
    fn records_are_read_to_the_end() {
        let bytes = records(&[7, u64::MAX, 7]);
        assert_eq!(bytes.len(), 72);
        let names = read(&bytes, "a.oracleGeneral").expect("a trace");
        assert_eq!(names, [mix(7), mix(u64::MAX), mix(7)]);
        assert!(matches!(read(&bytes[..71], "a.oracleGeneral"), Err(TraceError::Truncated)));
    }

    #[test]
    fn compressed_traces_are_read() {
        let compress =
            |bytes: &[u8]| ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Uncompressed);
        let bytes = records(&(0..10_000).collect::<Vec<u64>>());
        let names = read(&compress(&bytes), "a.oracleGeneral.zst").expect("a trace");
        assert_eq!(names, (0..10_000).map(mix).collect::<Vec<u64>>());
        assert_eq!(read(&compress(b"1\n2\n"), "a.txt.zst").expect("a trace"), [mix(1), mix(2)]);
        let mut damaged = compress(&bytes);
        damaged.truncate(1000);
        assert!(read(&damaged, "a.oracleGeneral.zst").is_err());
        damaged.truncate(6);
        assert!(read(&damaged, "a.oracleGeneral.zst").is_err());
    }
}
