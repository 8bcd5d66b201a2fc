//! The second tier of the Content Store on a disk: packets stored and found per second, compared with direct reads of
//! the same ranges of the file, with as many in flight. Tier and direct reads take turns in one run.
//!
//! Packets are read from the disk and not from the page cache: before each turn the system is asked to drop the file's
//! cached pages, and within a turn no page is read twice.

mod direct;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use namehop_disk::{DiskCache, DiskSettings, DiskTier, OpenError, SLOT_BYTES, Worker};
use namehop_engine::second_tier::{ReadId, ReadStart, SecondTier, TierState};
use namehop_hash::HashKey;
use namehop_packet::Timestamp;
use namehop_wire::builder::DataBuilder;
use namehop_wire::security::DigestSigner;
use namehop_wire::{MAX_PACKET_SIZE, Name};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde::Serialize;

use crate::median::{median, quartiles};
use crate::permutation::mix;
use direct::{DirectReads, Pass};

/// Packets evicted from memory in one poll iteration of a worker.
const PACKETS_PER_TURN: usize = 16;
/// Multiplier that spreads numbers over 64 bits, like hashes.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
/// Number of turns of the tier and of direct reads.
const ROUNDS: u32 = 5;
/// Page size of the page cache, in bytes.
const PAGE_BYTES: u64 = 4_096;
/// Time for the disk to start, or to complete the last requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Parameters of the measurement.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// File or block device. A file that did not exist is created, and removed at the end.
    pub path: PathBuf,
    /// Size of the file, in bytes.
    pub capacity_bytes: u64,
    /// Bytes of content per packet.
    pub content_bytes: usize,
    /// Reads in flight.
    pub in_flight: usize,
    /// Duration of each of the three parts: storing, finding, direct reads.
    pub duration: Duration,
}

/// Results of the measurement.
#[derive(Debug, Clone, Serialize)]
pub struct DiskBenchReport {
    /// Size of a packet in bytes.
    pub packet_bytes: usize,
    /// Reads in flight.
    pub in_flight: usize,
    /// Packets stored on the disk.
    pub packets: u64,
    /// Packets stored per second, until all were written.
    pub stored_per_s: f64,
    /// Packets offered per second while all buffers were in use, and not stored.
    pub not_stored_per_s: f64,
    /// Packets found per second.
    pub found_per_s: Rate,
    /// Reads through the tier that did not return a packet.
    pub not_found: u64,
    /// Direct reads of the same ranges per second, with as many in flight; `None` if the file system does not support
    /// direct reads.
    pub direct_reads_per_s: Option<Rate>,
    /// Ratio of packets found per second to direct reads per second, in adjacent turns.
    pub found_share: Option<Rate>,
}

/// Median and quartiles over turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// The median.
    pub median: f64,
    /// Lower and upper quartile.
    pub quartiles: (f64, f64),
}

impl Rate {
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        Rate { median: median(&mut values), quartiles: quartiles(&mut values) }
    }
}

/// Why the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum DiskBenchError {
    /// The tier could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The packets would be too large, or the number of reads in flight is out of range.
    #[error("a packet must have at most {MAX_PACKET_SIZE} bytes, and 1 to {} reads can be in flight", ReadId::COUNT)]
    Options,
    /// The disk misbehaves.
    #[error("the disk {0}")]
    Disk(&'static str),
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs the measurement; `step` is called with the name of each step.
///
/// # Errors
/// See [`DiskBenchError`].
pub fn measure(options: &DiskOptions, step: &dyn Fn(&str)) -> Result<DiskBenchReport, DiskBenchError> {
    let is_new = !options.path.exists();
    let result = measure_at(options, step);
    if is_new {
        // A new file is removed. An error here does not matter, because the measurement is done.
        let _ = std::fs::remove_file(&options.path);
    }
    result
}

fn measure_at(options: &DiskOptions, step: &dyn Fn(&str)) -> Result<DiskBenchReport, DiskBenchError> {
    let packet = DataBuilder::new(Name::new().append_generic("bench"))
        .content(vec![7; options.content_bytes])
        .sign(&DigestSigner)
        .map_err(|_| DiskBenchError::Options)?;
    if !(1..=ReadId::COUNT).contains(&options.in_flight) {
        return Err(DiskBenchError::Options);
    }
    let settings = DiskSettings {
        path: options.path.clone(),
        capacity_bytes: options.capacity_bytes,
        keep: false,
        read_timeout_ms: u64::from(u32::MAX),
    };
    let worker = Worker { wake: Box::new(|| {}), started: Instant::now() };
    let (cache, mut tiers) = DiskCache::start(settings, HashKey::random(), vec![worker], |_| 0)?;
    let Some(mut tier) = tiers.pop() else { return Err(DiskBenchError::Disk("has no worker")) };
    wait_until("did not start", || {
        while let Some(finished) = tier.next_finished() {
            tier.end_read(finished, false);
        }
        tier.report().status.state == TierState::Working
    })?;

    step("storing packets");
    let slots_of_packet = packet.len().div_ceil(SLOT_BYTES) + 1;
    // Only half of the file is filled, so that every stored packet is still there when it is read.
    let most = options.capacity_bytes / 2 / (slots_of_packet * SLOT_BYTES) as u64;
    let begun = Instant::now();
    let mut packets = 0;
    while begun.elapsed() < options.duration && packets < most {
        for _ in 0..PACKETS_PER_TURN {
            let before = tier.report().counters.stored;
            tier.offer(hash_of(packets), Timestamp::default(), &packet);
            packets += tier.report().counters.stored - before;
        }
        tier.flush();
        while let Some(finished) = tier.next_finished() {
            tier.end_read(finished, false);
        }
    }
    let offered_for = begun.elapsed();
    wait_until("does not write", || {
        while let Some(finished) = tier.next_finished() {
            tier.end_read(finished, false);
        }
        tier.flush();
        tier.is_all_written()
    })?;
    File::open(&options.path)?.sync_all()?;
    let stored_per_s = packets as f64 / begun.elapsed().as_secs_f64();
    let not_stored_per_s = tier.report().counters.not_stored as f64 / offered_for.as_secs_f64();

    let order = in_random_order(apart(&tier, packets)?);
    let direct = DirectReads::open(&options.path)?;
    let (mut found, mut directly, mut not_found) = (Vec::new(), Vec::new(), 0);
    let mut next = order.iter().cycle();
    let time = options.duration / ROUNDS;
    for _ in 0..ROUNDS {
        step("looking up packets");
        forget_cached(&options.path)?;
        let part: Vec<_> = next.by_ref().take(order.len()).collect();
        let (pass, missed) = find(&mut tier, part.iter().map(|place| place.0), options.in_flight, time)?;
        found.push(pass.per_s());
        not_found += missed;
        if let Some(direct) = &direct {
            step("reading the disk directly");
            let places = part.iter().map(|place| place.1.clone());
            directly.push(direct.read(places, options.in_flight, time)?.per_s());
        }
        // The next turn starts with other ranges.
        next.by_ref().take(usize::try_from(pass.reads).unwrap_or(0)).for_each(drop);
    }
    cache.stop();
    let shares: Vec<f64> = found.iter().zip(&directly).map(|(found, directly)| found / directly).collect();
    let has_direct = direct.is_some();
    Ok(DiskBenchReport {
        packet_bytes: packet.len(),
        in_flight: options.in_flight,
        packets,
        stored_per_s,
        not_stored_per_s,
        found_per_s: Rate::of(&found),
        not_found,
        direct_reads_per_s: has_direct.then(|| Rate::of(&directly)),
        found_share: has_direct.then(|| Rate::of(&shares)),
    })
}

/// Hash of a packet's name, and range of the packet in the file.
type Place = (u64, Range<u64>);

/// Selects packets of which no two share a page.
fn apart(tier: &DiskTier, packets: u64) -> Result<Vec<Place>, DiskBenchError> {
    let (mut places, mut end) = (Vec::<Place>::new(), 0);
    for hash in (0..packets).map(hash_of) {
        let Some(located) = tier.find(hash, false) else { return Err(DiskBenchError::Disk("stopped working")) };
        let place = tier.range_of(located);
        if place.start / PAGE_BYTES >= end {
            end = place.end.div_ceil(PAGE_BYTES);
            places.push((hash, place));
        }
    }
    if places.is_empty() { Err(DiskBenchError::Disk("accepted no packet")) } else { Ok(places) }
}

fn in_random_order(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_unstable_by_key(|&(hash, _)| mix(hash));
    places
}

fn hash_of(number: u64) -> u64 {
    (number + 1).wrapping_mul(SPREAD)
}

fn wait_until(what: &'static str, mut is_so: impl FnMut() -> bool) -> Result<(), DiskBenchError> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > deadline {
            return Err(DiskBenchError::Disk(what));
        }
        thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// Makes the system write the file, and drop its cached pages.
fn forget_cached(path: &Path) -> Result<(), DiskBenchError> {
    let file = File::open(path)?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)?;
    Ok(())
}

/// Reads packets through the tier with `in_flight` reads in flight, until `time` has passed or no hash is left. Returns
/// the reads that found a packet, and the number of reads that did not.
fn find(
    tier: &mut DiskTier,
    mut hashes: impl Iterator<Item = u64>,
    in_flight: usize,
    time: Duration,
) -> Result<(Pass, u64), DiskBenchError> {
    let (mut found, mut not_found, mut under_way) = (0, 0, 0);
    let begun = Instant::now();
    let (mut last_answer, mut is_over) = (begun, false);
    while !is_over || under_way > 0 {
        while under_way < in_flight && !is_over {
            let Some(hash) = hashes.next().filter(|_| begun.elapsed() < time) else {
                is_over = true;
                break;
            };
            let Some(located) = tier.find(hash, false) else { return Err(DiskBenchError::Disk("stopped working")) };
            match tier.start_read(hash, located, false) {
                ReadStart::Started(_) => under_way += 1,
                ReadStart::Joined(_) | ReadStart::Busy => {
                    return Err(DiskBenchError::Disk("completed an unknown read"));
                }
            }
        }
        tier.flush();
        let before = under_way;
        while let Some(finished) = tier.next_finished() {
            under_way -= 1;
            let is_found = finished.data().is_some();
            *if is_found { &mut found } else { &mut not_found } += 1;
            tier.end_read(finished, is_found);
        }
        if under_way != before {
            last_answer = Instant::now();
        } else if last_answer.elapsed() > PATIENCE {
            return Err(DiskBenchError::Disk("does not answer"));
        } else {
            thread::yield_now();
        }
    }
    Ok((Pass { reads: found, time: begun.elapsed() }, not_found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_stored_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = DiskOptions {
            path: folder.path().join("cache"),
            capacity_bytes: 32 << 20,
            content_bytes: 1_000,
            in_flight: 16,
            duration: Duration::from_millis(300),
        };
        let report = measure(&options, &|_| {}).expect("the disk can be measured");
        assert!(report.packets > 100 && report.found_per_s.median > 0.0, "{report:?}");
        assert!(report.direct_reads_per_s.is_none_or(|direct| direct.median > 0.0), "{report:?}");
        assert_eq!(report.not_found, 0);
        assert!(!options.path.exists(), "the file must be removed");
        let too_many = DiskOptions { in_flight: 0, ..options };
        assert!(matches!(measure(&too_many, &|_| {}), Err(DiskBenchError::Options)));
    }
}
