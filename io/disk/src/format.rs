//! The bytes of the file: a superblock of 4 KiB, then slots of 1 KiB. All numbers are little-endian.
//!
//! A record lies in consecutive slots, its header first:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | CRC-32C of all that follows, to the end of the body |
//! | 4–7 | `NHdr` |
//! | 8–15 | life of the file, a random number |
//! | 16–23 | position in the log: slots written before it since the life began |
//! | 24–31 | when it was written, in milliseconds since 1970 |
//! | 32–39 | until when the Data is fresh, in milliseconds since 1970; 0 = not at all |
//! | 40–41 | bytes of the body |
//! | 42 | 1 = Data, 2 = erasure: the Data under this prefix before this position is erased |
//! | 43–47 | 0 |
//! | 48– | body: a Data packet, or the VALUE of a name |
//!
//! The superblock says that the file is one of ours, how many slots it has, and its life. The life changes whenever the file is
//! to start empty, by which all records before mean nothing.

use namehop_packet::Timestamp;
use namehop_wire::MAX_PACKET_SIZE;

/// Bytes of a slot: a packet takes a whole number of them, with its header of 48 bytes.
pub const SLOT_BYTES: usize = 1024;
/// Bytes in front of a record's body.
pub(crate) const HEADER_BYTES: usize = 48;
/// Slots of the longest record.
pub(crate) const MAX_RECORD_SLOTS: usize = (HEADER_BYTES + MAX_PACKET_SIZE).div_ceil(SLOT_BYTES);
/// Bytes in front of the first slot.
pub(crate) const SUPERBLOCK_BYTES: usize = 4096;
/// Slots that a worker takes of the log at once. No record goes beyond them.
pub(crate) const CHUNK_SLOTS: u64 = 128;
/// Bytes of these.
pub(crate) const CHUNK_BYTES: usize = CHUNK_SLOTS as usize * SLOT_BYTES;

pub(crate) const RECORD_MAGIC: [u8; 4] = *b"NHdr";
const FILE_MAGIC: [u8; 16] = *b"Namehop CS disk\n";
const VERSION: u32 = 1;
/// Bytes of the superblock that mean something, its checksum at their end.
const SUPERBLOCK_USED: usize = 44;

/// Slots of a record with a body of so many bytes.
pub(crate) fn slots_of(body_bytes: usize) -> usize {
    (HEADER_BYTES + body_bytes).div_ceil(SLOT_BYTES)
}

/// No log comes as far as this, which takes centuries at 100 GB/s. So positions can be added up.
const MAX_POSITION: u64 = 1 << 60;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A Data packet.
    Data = 1,
    /// The Data under a prefix is erased.
    Erasure = 2,
}

/// An intact record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) position: u64,
    pub(crate) written_ms: u64,
    pub(crate) fresh_until_ms: u64,
    pub(crate) kind: Kind,
    pub(crate) body: &'a [u8],
}

impl Record<'_> {
    /// Milliseconds for which the Data is fresh from `now_ms` on. A record from the future tells that the clock was set back;
    /// then nobody knows how old it is, and it is not fresh.
    pub(crate) fn fresh_for_ms(&self, now_ms: u64) -> u64 {
        /// Clocks are corrected by less than this while they are right.
        const TOLERANCE_MS: u64 = 1_000;
        if self.written_ms > now_ms.saturating_add(TOLERANCE_MS) {
            return 0;
        }
        self.fresh_until_ms.saturating_sub(now_ms)
    }
}

/// Why there is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRecord {
    /// Something else is there.
    Absent,
    /// One of an earlier life of the file.
    OtherLife,
    /// One that is torn or was changed.
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

/// Bytes of the body, by the header.
pub(crate) fn body_bytes(header: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([header[40], header[41]]))
}

/// Puts a record behind others that precede it in the log. It is not complete before it is [sealed](seal).
///
/// Its length is padded to whole slots. `body` has no more bytes than the longest packet.
pub(crate) fn append(run: &mut Vec<u8>, position: u64, kind: Kind, fresh_until: Timestamp, body: &[u8]) {
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

/// Completes all records of a run: life, times and checksums. `wall_ms` gives the time of day of a time of the engine.
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

/// Sets the checksum of a record, which is header and body.
pub(crate) fn seal_record(record: &mut [u8]) {
    let checksum = crc32c::crc32c(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// The record at the start of these bytes, if it is intact and of this life of the file. There may be more bytes behind it.
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
        1 => Kind::Data,
        2 => Kind::Erasure,
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

/// What the start of the file says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Slots of the ring.
    pub(crate) slots: u64,
    /// The life of the file.
    pub(crate) life: u64,
}

/// Why a file is not one of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// Another program's, or nobody's.
    Foreign,
    /// Of another version of the format.
    Version(u32),
    /// Ours once, but damaged.
    Damaged,
}

impl Superblock {
    /// As it stands in the file.
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

    /// What the first bytes of a file say.
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

/// Where the slot with this position in the log begins in the file.
pub(crate) fn offset_of(position: u64, slots: u64) -> u64 {
    SUPERBLOCK_BYTES as u64 + position % slots * SLOT_BYTES as u64
}
