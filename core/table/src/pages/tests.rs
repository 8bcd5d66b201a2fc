//! Memory on every kind of pages that this host has.

use super::*;

fn need(bytes: usize) -> MemoryNeed {
    MemoryNeed::all("test", bytes)
}

/// Reads and writes all of the memory.
fn check(need: MemoryNeed, pages: HugePages) -> PageKind {
    let mapping = Mapping::with_pages(need, pages).expect("memory");
    let base = mapping.base();
    assert_eq!(base.as_ptr().addr() % BASE_ALIGNMENT, 0);
    for offset in 0..need.bytes {
        // SAFETY: below the requested length; nothing else uses the mapping.
        unsafe {
            assert_eq!(base.add(offset).read(), 0);
            base.add(offset).write(0xa5);
        }
    }
    mapping.kind()
}

/// Free pages in the system's pool.
fn free_in_pool(page_kib: usize) -> usize {
    let file = format!("/sys/kernel/mm/hugepages/hugepages-{page_kib}kB/free_hugepages");
    std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn memory_is_zeroed_and_aligned_on_all_page_sizes() {
    for bytes in [0, 1, 4096, 3 * MEBIBYTE, 8 * MEBIBYTE + 5] {
        assert_eq!(check(need(bytes), HugePages::Off), PageKind::Ordinary);
        for pages in HugePages::ALL {
            check(need(bytes), pages);
        }
    }
}

#[test]
fn a_request_for_ordinary_pages_gets_them() {
    let mapping = Mapping::new(need(8 * MEBIBYTE), PageRequest::Ordinary).expect("memory");
    assert_eq!(mapping.kind(), PageKind::Ordinary);
    let mapping = Mapping::new(need(100), PageRequest::Large).expect("memory");
    assert_eq!(mapping.kind(), PageKind::Ordinary, "a small table must use ordinary pages");
}

#[test]
fn transparent_pages_are_used_where_offered() {
    let expected = if transparent_pages_offered() { PageKind::Transparent } else { PageKind::Ordinary };
    assert_eq!(check(need(4 * MEBIBYTE), HugePages::Transparent), expected);
}

/// Needs a host whose pool has pages: `sysctl vm.nr_hugepages=64`, and
/// `echo 2 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages`.
#[test]
fn pages_from_the_pool_are_used_as_long_as_there_are_some() {
    let without = check(need(4 * MEBIBYTE), HugePages::Transparent);
    // Other tests of this process take some pages, too.
    if free_in_pool(2048) >= 32 {
        for pages in [HugePages::TwoMiB, HugePages::Auto] {
            assert_eq!(check(need(4 * MEBIBYTE), pages), PageKind::Huge2M);
            assert_eq!(check(need(3 * MEBIBYTE + 1), pages), PageKind::Huge2M);
        }
        assert_eq!(
            check(need(4 * MEBIBYTE), HugePages::OneGiB),
            without,
            "no 1 GiB page may be used for a small table"
        );
        // Only the part that an enlargeable table is sized for takes pages from the pool.
        let free = free_in_pool(2048);
        let enlargeable = MemoryNeed { expected_bytes: 6 * MEBIBYTE, ..need(40 * MEBIBYTE) };
        assert_eq!(check(enlargeable, HugePages::TwoMiB), PageKind::Huge2M);
        let mapping = Mapping::with_pages(MemoryNeed { bytes: 1 << 36, ..enlargeable }, HugePages::TwoMiB);
        assert_eq!(mapping.expect("memory").kind(), PageKind::Huge2M);
        assert!(free_in_pool(2048) + 16 >= free, "the pages must return to the pool");
    } else {
        assert_eq!(check(need(100 * MEBIBYTE), HugePages::TwoMiB), without);
    }
    if free_in_pool(1 << 20) >= 1 {
        assert_eq!(check(need(HUGE_1G_BYTES / 2), HugePages::Auto), PageKind::Huge1G);
        assert_eq!(check(need(HUGE_1G_BYTES / 2), HugePages::OneGiB), PageKind::Huge1G);
    } else {
        let mapping = Mapping::with_pages(need(HUGE_1G_BYTES), HugePages::OneGiB).expect("memory");
        assert_eq!(mapping.kind(), without);
    }
    // More than any pool has.
    let mapping = Mapping::with_pages(need(1 << 42), HugePages::Auto).expect("address space");
    assert!(matches!(mapping.kind(), PageKind::Transparent | PageKind::Ordinary));
}

#[test]
fn more_memory_than_there_is_can_be_reserved_and_touched_at_its_end() {
    let mapping = Mapping::with_pages(need(1 << 36), HugePages::Transparent).expect("address space");
    // SAFETY: inside the mapping.
    unsafe { mapping.base().add((1 << 36) - 1).write(1) };
}

#[test]
fn impossible_requests_fail_without_harm() {
    for pages in HugePages::ALL {
        assert!(Mapping::with_pages(need(usize::MAX), pages).is_err());
        assert!(Mapping::with_pages(need(usize::MAX - 1), pages).is_err());
        assert!(Mapping::with_pages(need(1 << 60), pages).is_err());
    }
}

#[test]
fn what_there_is_is_known_by_name_and_in_sum() {
    struct Rarity(#[expect(dead_code, reason = "only the name of the type is used")] u64);
    let find = |contents| table_memory().into_iter().find(|memory| memory.contents == contents);
    let need = MemoryNeed::entries::<Rarity>(3 * MEBIBYTE);
    let contents = need.contents;
    assert!(contents.starts_with("pages::tests::") && contents.ends_with("::Rarity"), "{contents}");
    let mapping = Mapping::new(need, PageRequest::Ordinary).expect("memory");
    let memory = find(contents).expect("listed");
    assert_eq!((memory.bytes, memory.pool_bytes, memory.pages), (3 * MEBIBYTE, 0, PageKind::Ordinary));
    let sums = table_memory_by_pages();
    let &(_, count, bytes) = sums.iter().find(|(pages, ..)| *pages == PageKind::Ordinary).expect("listed");
    assert!(count >= 1 && bytes >= 3 * MEBIBYTE);
    assert!(sums.is_sorted());
    drop(mapping);
    assert_eq!(find(contents), None);
    assert_eq!(MemoryNeed::entries::<Vec<Option<u8>>>(0).contents, "vec::Vec");
    assert_eq!(MemoryNeed::entries::<u64>(0).contents, "u64");
}

#[test]
fn what_was_touched_ahead_is_there_when_it_is_needed() {
    use nix::sys::resource::{UsageWho, getrusage};
    const BYTES: usize = 3 << 20;
    let faults = || getrusage(UsageWho::RUSAGE_THREAD).expect("usage").minor_page_faults();
    let mapping = Mapping::with_pages(need(BYTES), HugePages::Off).expect("memory");
    assert!(
        !mapping.range.touch(BYTES, 1 << 20) && !mapping.range.touch(usize::MAX - 5000, 4096),
        "a range outside of the mapping must be refused"
    );
    if !mapping.range.touch(100, BYTES - 100) {
        // The system is too old for the advice.
        return;
    }
    let before = faults();
    for offset in (0..BYTES).step_by(BASE_ALIGNMENT) {
        // SAFETY: inside the memory, which nothing else uses.
        unsafe { mapping.base().add(offset).write(1) };
    }
    assert!(faults() - before < 100, "{} faults", faults() - before);
}

#[test]
#[cfg(target_os = "linux")]
fn without_mincore_each_page_is_touched_and_nothing_changes() {
    const BYTES: usize = 64 << 10;
    let mapping = Mapping::with_pages(need(BYTES), HugePages::Off).expect("memory");
    // SAFETY: inside the memory, which nothing else uses.
    let bytes = unsafe { std::slice::from_raw_parts_mut(mapping.base().as_ptr(), BYTES) };
    bytes.fill(0xa5);
    assert!(mapping.range.touch_each(0, BYTES));
    assert!(bytes.iter().all(|&byte| byte == 0xa5));
}

/// Another thread may get the addresses between the unmapping of a part of a range and the mapping of other pages
/// there.
#[test]
#[cfg(target_os = "linux")]
fn memory_of_others_that_lies_in_the_gap_is_left_alone() {
    const PAGE: usize = BASE_ALIGNMENT;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE;
    for (surplus_before, bytes) in [(0, 4 * PAGE), (2 * PAGE, 4 * PAGE), (0, 8 * PAGE)] {
        let mut reserved = Reserved::new(8 * PAGE, 1).expect("address space");
        // SAFETY: inside the range.
        reserved.base = unsafe { reserved.base.add(surplus_before) };
        let bytes = bytes.min(8 * PAGE - surplus_before);
        let mut theirs = None;
        let replaced = reserved.replace_part(0, bytes, |start| {
            let length = NonZeroUsize::new(PAGE).expect("not 0");
            // SAFETY: takes unused addresses, as another thread could.
            let other = unsafe { mmap_anonymous(Some(start), length, READ_AND_WRITE, flags) }.expect("a gap");
            // SAFETY: mapped just now.
            unsafe { other.cast::<u8>().write(77) };
            theirs = Some(other.cast::<u8>());
            // As if the pool had too few pages.
            None
        });
        assert!(replaced.is_none());
        let theirs = theirs.expect("the closure is called");
        // SAFETY: mapped by this test, and not unmapped.
        assert_eq!(unsafe { theirs.read() }, 77);
        unmap(theirs.cast(), PAGE);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn bytes_written_into_the_gap_are_part_of_the_range() {
    const PAGE: usize = BASE_ALIGNMENT;
    let reserved = Reserved::new(8 * PAGE, 1).expect("address space");
    let replaced = reserved.replace_part(0, 4 * PAGE, |start| {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE;
        // SAFETY: takes unused addresses.
        unsafe { mmap_anonymous(Some(start), NonZeroUsize::new(4 * PAGE)?, READ_AND_WRITE, flags) }.ok()
    });
    let mapping = replaced.expect("room in the gap").keep(PageKind::Ordinary);
    assert!(mapping.range.touch(0, 8 * PAGE), "the range must be mapped from start to end");
    // Memory elsewhere, as from a system that takes the address as a hint, is unmapped.
    let elsewhere = Reserved::new(PAGE, 1).expect("address space");
    let address = elsewhere.mapped;
    std::mem::forget(elsewhere);
    let reserved = Reserved::new(8 * PAGE, 1).expect("address space");
    assert!(reserved.replace_part(0, PAGE, |_| Some(address)).is_none());
}
