//! An engine with a second tier on a file: Data that leaves memory is found again, also after a restart, unless newer
//! Data or an erasure has replaced it. The engine's own tests cover the rest of its protocol, with a tier in memory.

mod router;

use router::{IN_MEMORY, Router};

#[test]
fn a_restart_finds_what_was_written() {
    let names: Vec<String> = (0..50).map(|number| format!("/A/{number}")).collect();
    let mut router = Router::new();
    names.iter().for_each(|name| router.fetch(name, b""));
    router.fill_memory();
    let mut router = router.restart();
    for name in &names {
        assert_eq!(router.content_of(name), Some(Vec::new()), "{name}");
    }
    assert_eq!(router.report().status.counters.checksum_failures, 0);
    assert_eq!(router.report().counters.found, names.len() as u64);
}

#[test]
fn newer_data_and_erasures_count_on_the_disk_too() {
    let mut router = Router::new();
    router.fetch("/A", b"older");
    router.fill_memory();
    router.fetch_fresh("/A", b"newer");
    router.fill_memory();
    assert_eq!(router.content_of("/A"), Some(b"newer".to_vec()));
    router.fill_memory();
    assert_eq!(router.erase("/A", 10), 0, "the packet must not be in memory");
    assert_eq!(router.content_of("/A"), None);
    let mut router = router.restart();
    assert_eq!(router.content_of("/A"), None);
}

#[test]
fn an_erasure_with_a_limit_is_one_on_the_disk_too() {
    let mut router = Router::new();
    (0..5).for_each(|number| router.fetch(&format!("/A/{number}"), b""));
    router.fill_memory();
    // It comes from the disk into memory, and stays on the disk.
    assert_eq!(router.content_of("/A/0"), Some(Vec::new()));
    assert_eq!(router.erase("/A", 1), 1);
    assert_eq!(router.content_of("/A/0"), None);
    let mut router = router.restart();
    assert_eq!(router.content_of("/A/0"), None);
}

#[test]
fn what_was_read_is_in_memory_and_stays_on_the_disk() {
    let mut router = Router::new();
    router.fetch("/A", b"content");
    router.fill_memory();
    for _ in 0..2 {
        let (stored, reads) = (router.report().counters.stored, router.report().status.counters.reads);
        assert_eq!(router.content_of("/A"), Some(b"content".to_vec()));
        assert_eq!(router.content_of("/A"), Some(b"content".to_vec()), "the second one must come from memory");
        assert_eq!(router.report().status.counters.reads - reads, 1);
        router.fill_memory();
        assert_eq!(router.report().counters.stored - stored, IN_MEMORY as u64, "/A must not be written again");
    }
}
