//! The format of the file: a superblock of 4 KiB, then slots of 1 KiB. All integers are little-endian.
//!
//! A record occupies consecutive slots and starts with its header:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C of the rest of the record, to the end of the body |
//! | 4–7 | `NHdr` |
//! | 8–15 | life of the file, a random number |
//! | 16–23 | position in the log: slots written before it since the life began |
//! | 24–31 | time of writing, in milliseconds since 1970 |
//! | 32–39 | end of freshness of the Data, in milliseconds since 1970; 0 = not fresh |
//! | 40–41 | length of the body in bytes |
//! | 42 | 1 = Data, 2 = erasure: the Data under this prefix before this position is erased |
//! | 43–47 | 0 |
//! | 48– | body: a Data packet, or the VALUE of a name |
//!
//! The superblock identifies the file as Namehop's and holds its number of slots and its life. The life changes
//! whenever the file is cleared, which invalidates all earlier records.

use namehop_packet::Timestamp;
use namehop_wire::MAX_PACKET_SIZE;

/// Bytes of a slot. A record, which is a packet with a header of 48 bytes, takes a whole number of slots.
pub const SLOT_BYTES: usize = 1024;
/// Bytes of a record's header.
pub(crate) const HEADER_BYTES: usize = 48;
/// Slots of the longest record.
pub(crate) const MAX_RECORD_SLOTS: usize = (HEADER_BYTES + MAX_PACKET_SIZE).div_ceil(SLOT_BYTES);
/// Bytes of the superblock; the first slot follows.
pub(crate) const SUPERBLOCK_BYTES: usize = 4096;
/// Slots of a chunk, the unit in which a worker takes space of the log. A record lies within one chunk.
pub(crate) const CHUNK_SLOTS: u64 = 128;
/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: usize = CHUNK_SLOTS as usize * SLOT_BYTES;

pub(crate) const RECORD_MAGIC: [u8; 4] = *b"NHdr";
const FILE_MAGIC: [u8; 16] = *b"Namehop CS disk\n";
const VERSION: u32 = 1;
/// Bytes of the superblock in use, including the checksum at their end.
const SUPERBLOCK_USED: usize = 44;

/// Returns the number of slots of a record with a body of `body_bytes` bytes.
pub(crate) fn slots_of(body_bytes: usize) -> usize {
    (HEADER_BYTES + body_bytes).div_ceil(SLOT_BYTES)
}

/// Upper bound of positions, so that adding them cannot overflow. A log takes centuries to reach it at 100 GB/s.
const MAX_POSITION: u64 = 1 << 60;

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A Data packet.
    Data = 1,
    /// An erasure of the Data under a prefix.
    Erasure = 2,
}

/// An intact record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) position: u64,
    pub(crate) written_ms: u64,
    pub(crate) fresh_until_ms: u64,
    pub(crate) kind: RecordKind,
    pub(crate) body: &'a [u8],
}

impl Record<'_> {
    /// Returns the milliseconds for which the Data stays fresh after `now_ms`. A record from the future shows that
    /// the clock was set back; then its age is unknown, and it counts as stale.
    pub(crate) fn fresh_for_ms(&self, now_ms: u64) -> u64 {
        /// Larger than usual corrections of a clock that is right.
        const TOLERANCE_MS: u64 = 1_000;
        if self.written_ms > now_ms.saturating_add(TOLERANCE_MS) {
            return 0;
        }
        self.fresh_until_ms.saturating_sub(now_ms)
    }
}

/// Reason why there is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRecord {
    /// The bytes are not a record.
    Absent,
    /// The record belongs to an earlier life of the file.
    OtherLife,
    /// The record is torn or was changed.
    Broken,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// Returns the length of the body in bytes, as given in the header.
pub(crate) fn body_bytes(header: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([header[40], header[41]]))
}

/// Appends a record to a run of consecutive records of the log. The record is incomplete until it is [sealed](seal).
///
/// It is padded to whole slots. `body` must not be longer than the longest packet.
pub(crate) fn append(run: &mut Vec<u8>, position: u64, kind: RecordKind, fresh_until: Timestamp, body: &[u8]) {
    let start = run.len();
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&RECORD_MAGIC);
    header[16..24].copy_from_slice(&position.to_le_bytes());
    header[32..40].copy_from_slice(&fresh_until.0.to_le_bytes());
    header[40..42].copy_from_slice(&(body.len() as u16).to_le_bytes());
    header[42] = kind as u8;
    run.extend_from_slice(&header);
    run.extend_from_slice(body);
    run.resize(start + slots_of(body.len()) * SLOT_BYTES, 0);
}

/// Completes all records of a run: life, times and checksums. `wall_ms` converts the engine's time to the time of
/// day.
pub(crate) fn seal(run: &mut [u8], life: u64, now_ms: u64, wall_ms: impl Fn(Timestamp) -> u64) {
    let mut rest = run;
    while rest.len() >= HEADER_BYTES {
        let bytes = HEADER_BYTES + body_bytes(rest);
        let slots = slots_of(bytes - HEADER_BYTES);
        let fresh_until = wall_ms(Timestamp(u64_at(rest, 32)));
        rest[8..16].copy_from_slice(&life.to_le_bytes());
        rest[24..32].copy_from_slice(&now_ms.to_le_bytes());
        rest[32..40].copy_from_slice(&fresh_until.to_le_bytes());
        seal_record(&mut rest[..bytes]);
        rest = &mut rest[slots * SLOT_BYTES..];
    }
}

/// Sets the checksum of a record (header and body).
pub(crate) fn seal_record(record: &mut [u8]) {
    let checksum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Decodes the record at the start of these bytes, if it is intact and of this life of the file. More bytes may
/// follow it.
pub(crate) fn decode(bytes: &[u8], life: u64) -> Result<Record<'_>, NoRecord> {
    let Some(header) = bytes.get(..HEADER_BYTES) else { return Err(NoRecord::Absent) };
    if header[4..8] != RECORD_MAGIC {
        return Err(NoRecord::Absent);
    }
    let end = HEADER_BYTES + body_bytes(header);
    let Some(covered) = bytes.get(4..end) else { return Err(NoRecord::Broken) };
    if crc32c::crc32c(covered) != u32_at(header, 0) {
        return Err(NoRecord::Broken);
    }
    if u64_at(header, 8) != life {
        return Err(NoRecord::OtherLife);
    }
    let kind = match header[42] {
        1 => RecordKind::Data,
        2 => RecordKind::Erasure,
        _ => return Err(NoRecord::Broken),
    };
    let position = u64_at(header, 16);
    if position > MAX_POSITION {
        return Err(NoRecord::Broken);
    }
    Ok(Record {
        position,
        written_ms: u64_at(header, 24),
        fresh_until_ms: u64_at(header, 32),
        kind,
        body: &bytes[HEADER_BYTES..end],
    })
}

/// The contents of the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Number of slots of the ring.
    pub(crate) slots: u64,
    /// The life of the file.
    pub(crate) life: u64,
}

/// Reason why a file is not a disk cache of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// The file belongs to another program, or is none.
    Foreign,
    /// The file has another version of the format.
    Version(u32),
    /// The file was a disk cache, but is damaged.
    Damaged,
}

impl Superblock {
    /// Encodes the superblock.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        bytes[..16].copy_from_slice(&FILE_MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&(SLOT_BYTES as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.slots.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.life.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..SUPERBLOCK_USED - 4]);
        bytes[SUPERBLOCK_USED - 4..SUPERBLOCK_USED].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes the first bytes of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NotOurs> {
        if bytes.len() < SUPERBLOCK_USED || bytes[..16] != FILE_MAGIC {
            return Err(NotOurs::Foreign);
        }
        if u32_at(bytes, SUPERBLOCK_USED - 4) != crc32c::crc32c(&bytes[..SUPERBLOCK_USED - 4]) {
            return Err(NotOurs::Damaged);
        }
        let version = u32_at(bytes, 16);
        if version != VERSION || u32_at(bytes, 20) as usize != SLOT_BYTES {
            return Err(NotOurs::Version(version));
        }
        Ok(Superblock { slots: u64_at(bytes, 24), life: u64_at(bytes, 32) })
    }
}

/// Returns the offset in the file of the slot with this position in the log.
pub(crate) fn offset_of(position: u64, slots: u64) -> u64 {
    SUPERBLOCK_BYTES as u64 + position % slots * SLOT_BYTES as u64
}
