//! Tables that are used in any order stay small until a few hundred uses, and keep their contents when they get huge
//! pages.
//!
//! A separate process, because the setting applies to all tables of a process.
#![cfg(target_os = "linux")]

use namehop_table::{
    BucketTable, CacheLines, HugePages, PageRequest, Readiness, is_memory_ready, make_memory_ready_ahead,
};

/// Number of lines: 16 MiB.
const LINES: usize = 1 << 18;

/// Anonymous memory of this process in RAM in kB, including huge pages of the pool.
fn own_kilobytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("readable");
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number")
    };
    of("Anonymous:") + of("Private_Hugetlb:")
}

fn hash(number: usize) -> u64 {
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 31
}

#[test]
fn tables_get_huge_pages_after_a_few_uses_and_keep_what_is_in_them() {
    make_memory_ready_ahead(Readiness::AfterFewUses);
    // With pages of the pool, if the system has reserved some, and without.
    for pages in [HugePages::Auto, HugePages::Transparent, HugePages::Off] {
        pages.use_from_now_on();
        let before = own_kilobytes();
        let mut lines = CacheLines::used_anywhere(LINES, PageRequest::Large).expect("memory");
        let mut table = BucketTable::new(200_000, PageRequest::Large).expect("memory");
        let mut use_some = |lines: &mut CacheLines, range: std::ops::Range<usize>| {
            for number in range {
                lines.note_uses(1);
                lines[hash(number) as usize % LINES].0[0] = 1 + number as u64;
                table.insert(hash(number), number as u32).expect("room");
            }
        };
        use_some(&mut lines, 0..20);
        let taken = own_kilobytes().saturating_sub(before);
        assert!(taken < 1_000, "{taken} kB are resident after 20 uses on {pages:?}");
        use_some(&mut lines, 20..2_000);
        while !is_memory_ready() {
            std::thread::yield_now();
        }
        let taken = own_kilobytes().saturating_sub(before);
        assert!(taken >= LINES * 64 / 1024, "only {taken} kB are resident after many uses on {pages:?}");
        for number in 0..2_000 {
            // Few lines, if any, were written twice.
            let found = lines[hash(number) as usize % LINES].0[0];
            assert!(found > number as u64, "line of number {number} on {pages:?} holds {found}");
            let is_there = |index: u32| index == number as u32;
            assert_eq!(table.find(hash(number), is_there), Some(number as u32), "{pages:?}");
        }
    }
}
