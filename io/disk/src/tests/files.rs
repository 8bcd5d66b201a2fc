//! Files: which are used, which are refused, and what a complete cache finds again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::sleep;

use super::*;
use crate::{DiskCache, DiskSettings, MIN_CAPACITY_BYTES, OpenError};

fn settings(path: &Path, keep: bool) -> DiskSettings {
    DiskSettings { path: path.to_owned(), capacity_bytes: MIN_CAPACITY_BYTES, keep, read_timeout_ms: 10_000 }
}

fn start(settings: DiskSettings) -> Result<(DiskCache, DiskTier), OpenError> {
    let workers = vec![Worker { wake: Box::new(|| {}), started: Instant::now() }];
    let (cache, mut tiers) = DiskCache::start(settings, key(), workers, |_| 0)?;
    Ok((cache, tiers.remove(0)))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        sleep(Duration::from_millis(1));
    }
}

fn wait_for_work(cache: &DiskCache, tier: &mut DiskTier) {
    wait_until("the disk cache works", || {
        let is_working = cache.status().state == TierState::Working;
        // The index is in the ring by now.
        while let Some(finished) = tier.next_finished() {
            tier.end_read(finished, false);
        }
        is_working
    });
}

fn look_up(tier: &mut DiskTier, name: &str) -> Option<Vec<u8>> {
    let located = tier.find(hash_of(name), false)?;
    assert!(matches!(tier.start_read(hash_of(name), located, false), ReadStart::Started(_)));
    tier.flush();
    let mut found = None;
    wait_until("the disk answers", || {
        let Some(finished) = tier.next_finished() else { return false };
        found = finished.data().map(|(packet, _)| packet.to_vec());
        tier.end_read(finished, true);
        true
    });
    found
}

#[test]
fn a_file_is_made_used_and_kept_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cache");
    for keep in [false, true, true, false, true] {
        let was_kept = keep && path.exists();
        let (cache, mut tier) = start(settings(&path, keep)).expect("the disk cache starts");
        wait_for_work(&cache, &mut tier);
        assert_eq!(fs::metadata(&path).expect("the file exists").permissions().mode() & 0o777, 0o600);
        for number in 0..50 {
            let name = format!("/n/{number}");
            let packet = data(&name, number, usize::from(number) * 100);
            if was_kept && tier.find(hash_of(&name), false).is_some() {
                assert_eq!(look_up(&mut tier, &name), Some(packet.clone()));
            }
            tier.offer(hash_of(&name), Timestamp::default(), &packet);
            tier.flush();
            assert_eq!(look_up(&mut tier, &name), Some(packet));
        }
        assert!(cache.status().counters.errors == 0 && cache.status().counters.checksum_failures == 0);
        cache.stop();
    }
    let (cache, mut tier) = start(settings(&path, true)).expect("the disk cache starts");
    wait_for_work(&cache, &mut tier);
    for number in 0..50 {
        assert!(look_up(&mut tier, &format!("/n/{number}")).is_some(), "packet {number} must be found");
    }
    cache.stop();
}

#[test]
fn what_a_worker_has_gathered_is_written_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cache");
    let packet = data("/last", 1, 100);
    let (cache, mut tier) = start(settings(&path, true)).expect("the disk cache starts");
    wait_for_work(&cache, &mut tier);
    tier.offer(hash_of("/last"), Timestamp::default(), &packet);
    drop(tier);
    cache.stop();
    let (cache, mut tier) = start(settings(&path, true)).expect("the disk cache starts");
    wait_for_work(&cache, &mut tier);
    assert_eq!(look_up(&mut tier, "/last"), Some(packet));
    cache.stop();
}

#[test]
fn files_that_are_not_ours_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("letter");
    for content in [&b"Dear Sir"[..], &[0; 1], &[0; 8192]] {
        fs::write(&path, content).expect("written");
        for keep in [false, true] {
            assert!(matches!(start(settings(&path, keep)), Err(OpenError::Foreign(_))));
        }
        assert_eq!(fs::read(&path).expect("the file exists"), content);
    }
    let missing = folder.path().join("no/such");
    assert!(matches!(start(settings(&missing, true)), Err(OpenError::NoDirectory(_))));
    assert!(matches!(start(settings(folder.path(), true)), Err(OpenError::NotAFile(_))));
    assert!(matches!(start(settings(Path::new("/dev/null"), true)), Err(OpenError::NotAFile(_))));
    let small = DiskSettings { capacity_bytes: 1 << 20, ..settings(&path, true) };
    assert!(matches!(start(small), Err(OpenError::Capacity)));
    let large = DiskSettings { capacity_bytes: u64::MAX, ..settings(&path, true) };
    assert!(matches!(start(large), Err(OpenError::Capacity)));
}

#[test]
fn a_file_is_used_once_and_keeps_its_size_and_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cache");
    let (cache, _tier) = start(settings(&path, true)).expect("the disk cache starts");
    assert!(matches!(start(settings(&path, true)), Err(OpenError::InUse(_))));
    cache.stop();
    let larger = |keep| DiskSettings { capacity_bytes: 2 * MIN_CAPACITY_BYTES, ..settings(&path, keep) };
    wait_until("the thread has closed the file", || !matches!(start(larger(true)), Err(OpenError::InUse(_))));
    let Err(OpenError::OtherSize { has_bytes, .. }) = start(larger(true)) else {
        panic!("another size must be refused")
    };
    let (cache, _tier) = start(DiskSettings { capacity_bytes: has_bytes, ..settings(&path, true) })
        .expect("the present size is accepted");
    cache.stop();
    let (cache, _tier) = start(larger(false)).expect("the contents may be replaced");
    cache.stop();
    let mut bytes = fs::read(&path).expect("the file exists");
    bytes[30] ^= 1;
    fs::write(&path, &bytes).expect("written");
    assert!(matches!(start(larger(false)), Err(OpenError::Damaged(_))));
}
