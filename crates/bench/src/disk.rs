//! The second tier of the Content Store on a disk: packets stored and found again per second, beside plain reads of the same
//! size by threads, in one run. Before reads the system is asked to forget what it has of the file in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use namehop_disk::{
    DiskCache, DiskSettings, DiskState, DiskTier, Finished, OpenError, ReadId, Reading, SLOT_BYTES, Worker,
};
use namehop_hash::HashKey;
use namehop_packet::Timestamp;
use namehop_wire::builder::DataBuilder;
use namehop_wire::security::DigestSigner;
use namehop_wire::{MAX_PACKET_SIZE, Name};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde::Serialize;

/// Packets that leave memory in one turn of a worker.
const PACKETS_PER_TURN: usize = 16;
/// Multiplier that spreads numbers over 64 bits, as hashes are spread.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
/// How long the disk may take to start, or to answer the last requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// File or block device; a file is made, and removed at the end if it was not there.
    pub path: PathBuf,
    /// Its size.
    pub capacity_bytes: u64,
    /// Content of a packet, in bytes.
    pub content_bytes: usize,
    /// Reads under way at a time.
    pub in_flight: usize,
    /// Time of each of the three parts.
    pub duration: Duration,
}

/// What came out.
#[derive(Debug, Clone, Serialize)]
pub struct DiskBenchReport {
    /// Bytes of a packet.
    pub packet_bytes: usize,
    /// Reads under way at a time.
    pub in_flight: usize,
    /// Packets on the disk.
    pub packets: u64,
    /// Packets stored per second.
    pub stored_per_s: f64,
    /// Packets per second that were offered while all buffers were in use.
    pub not_stored_per_s: f64,
    /// Packets found per second.
    pub found_per_s: f64,
    /// Reads through the tier that gave nothing.
    pub not_found: u64,
    /// Plain reads of as many bytes per second, by as many threads as reads were under way.
    pub plain_reads_per_s: f64,
    /// Packets found through the tier for each plain read.
    pub found_share: f64,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum DiskBenchError {
    /// The tier cannot be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Packets of this size do not exist, or no reads were to be under way.
    #[error("a packet has at most {MAX_PACKET_SIZE} bytes, and from 1 to {} reads can be under way", ReadId::COUNT)]
    Options,
    /// The disk does not do what it should.
    #[error("the disk {0}")]
    Disk(&'static str),
    /// A file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Measures; `step` is told what is going on.
///
/// # Errors
/// See [`DiskBenchError`].
pub fn measure(options: &DiskOptions, step: &dyn Fn(&str)) -> Result<DiskBenchReport, DiskBenchError> {
    let is_new = !options.path.exists();
    let result = measure_at(options, step);
    if is_new {
        // What was made here is not left behind; the measurement is what counts.
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
            tier.give_back(finished, false);
        }
        tier.report().status.state == DiskState::Working
    })?;

    step("storing packets");
    let slots_of_packet = packet.len().div_ceil(SLOT_BYTES) + 1;
    // Half of the file, so that all that was stored is there when it is read.
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
            tier.give_back(finished, false);
        }
    }
    let stored_per_s = packets as f64 / begun.elapsed().as_secs_f64();
    let not_stored_per_s = tier.report().counters.not_stored as f64 / begun.elapsed().as_secs_f64();

    step("finding packets");
    forget_cached(&options.path)?;
    let (found, not_found, time) = find(&mut tier, packets, options)?;
    cache.stop();

    step("reading without the tier");
    forget_cached(&options.path)?;
    let used_bytes = packets * (slots_of_packet * SLOT_BYTES) as u64;
    let plain_reads_per_s = read_plainly(options, packet.len(), used_bytes)?;
    let found_per_s = found as f64 / time.as_secs_f64();
    Ok(DiskBenchReport {
        packet_bytes: packet.len(),
        in_flight: options.in_flight,
        packets,
        stored_per_s,
        not_stored_per_s,
        found_per_s,
        not_found,
        plain_reads_per_s,
        found_share: found_per_s / plain_reads_per_s,
    })
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

/// Has the system write the file and forget what it has of it in memory.
fn forget_cached(path: &Path) -> Result<(), DiskBenchError> {
    let file = File::open(path)?;
    file.sync_all()?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)?;
    Ok(())
}

/// Packets found through the tier, reads in vain, and the time that it took.
fn find(tier: &mut DiskTier, packets: u64, options: &DiskOptions) -> Result<(u64, u64, Duration), DiskBenchError> {
    let (mut found, mut not_found, mut under_way, mut next) = (0, 0, 0, 0_u64);
    let begun = Instant::now();
    let mut last_answer = begun;
    while begun.elapsed() < options.duration || under_way > 0 {
        while under_way < options.in_flight && begun.elapsed() < options.duration {
            next = next.wrapping_mul(SPREAD).wrapping_add(1);
            let hash = hash_of((next >> 20) % packets.max(1));
            let Some(located) = tier.find(hash, false) else { return Err(DiskBenchError::Disk("stopped working")) };
            match tier.read(hash, located) {
                Reading::Started(_) => under_way += 1,
                Reading::Joined(_) => {}
                Reading::Busy => break,
            }
        }
        tier.flush();
        let before = under_way;
        while let Some(finished) = tier.next_finished() {
            under_way -= 1;
            let is_found = Finished::data(&finished).is_some();
            *if is_found { &mut found } else { &mut not_found } += 1;
            tier.give_back(finished, is_found);
        }
        if under_way != before {
            last_answer = Instant::now();
        } else if last_answer.elapsed() > PATIENCE {
            return Err(DiskBenchError::Disk("does not answer"));
        } else {
            thread::yield_now();
        }
    }
    Ok((found, not_found, begun.elapsed()))
}

/// Reads per second of threads that read so many bytes each time, anywhere in what was written.
fn read_plainly(options: &DiskOptions, bytes: usize, used_bytes: u64) -> Result<f64, DiskBenchError> {
    let file = File::open(&options.path)?;
    // As the tier does.
    let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
    let slots = (used_bytes / SLOT_BYTES as u64).max(1);
    let begun = Instant::now();
    let counts: io::Result<Vec<u64>> = thread::scope(|scope| {
        let read = |number: usize| {
            let file = &file;
            move || -> io::Result<u64> {
                let (mut buffer, mut count, mut next) = (vec![0; bytes], 0, number as u64);
                while begun.elapsed() < options.duration {
                    next = next.wrapping_mul(SPREAD).wrapping_add(number as u64 * 2 + 1);
                    file.read_exact_at(&mut buffer, (next >> 20) % slots * SLOT_BYTES as u64)?;
                    count += 1;
                }
                Ok(count)
            }
        };
        let threads: Vec<_> = (0..options.in_flight).map(|number| scope.spawn(read(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))))
            .collect()
    });
    Ok(counts?.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
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
        let report = measure(&options, &|_| {}).expect("it is measured");
        assert!(report.packets > 100 && report.found_per_s > 0.0 && report.plain_reads_per_s > 0.0, "{report:?}");
        assert_eq!(report.not_found, 0);
        assert!(!options.path.exists(), "nothing is left behind");
        let too_many = DiskOptions { in_flight: 0, ..options };
        assert!(matches!(measure(&too_many, &|_| {}), Err(DiskBenchError::Options)));
    }
}
