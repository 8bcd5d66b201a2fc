//! Page kinds of an area: which were used, which are available, and how to make others available.

use std::fmt;
use std::fs;

use namehop_table::{CacheLines, HugePages, PageKind, PageRequest, TableError, prefetch::CACHE_LINE_BYTES};
use serde::Serialize;

const MEBIBYTE: usize = 1 << 20;
const HUGE_2M_BYTES: usize = 2 * MEBIBYTE;
const HUGE_1G_BYTES: usize = 1024 * MEBIBYTE;
/// Size of ordinary pages in bytes.
const ORDINARY_BYTES: usize = 4096;
/// All page kinds, largest first.
const KINDS: [PageKind; 4] = [PageKind::Huge1G, PageKind::Huge2M, PageKind::Transparent, PageKind::Ordinary];

/// Pages of an area.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PageInfo {
    /// Kind: `1 GiB pages`, `2 MiB pages`, `transparent huge pages` or `ordinary pages`.
    pub kind: String,
    /// Size of a page in bytes.
    pub page_bytes: usize,
    /// Share of the area on huge pages, 0 to 1; `None` for reserved huge pages or if unknown.
    pub huge_share: Option<f64>,
}

impl PageInfo {
    /// Describes the pages of a completely touched area.
    pub(super) fn of(lines: &CacheLines) -> Self {
        let kind = lines.page_kind();
        let page_bytes = match kind {
            PageKind::Huge1G => HUGE_1G_BYTES,
            PageKind::Huge2M | PageKind::Transparent => HUGE_2M_BYTES,
            PageKind::Ordinary => ORDINARY_BYTES,
        };
        let explicit = matches!(kind, PageKind::Huge1G | PageKind::Huge2M);
        let huge_share = if explicit { None } else { huge_share(lines) };
        PageInfo { kind: kind.to_string(), page_bytes, huge_share }
    }
}

impl fmt::Display for PageInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

/// A page kind that was not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingPages {
    /// The page kind.
    pub kind: String,
    /// How to make it available.
    pub remedy: String,
}

/// Allocates an untouched area on pages of the wanted kind, or of the next best kind.
pub(super) fn reserve(area_bytes: usize, wanted: PageKind) -> Result<CacheLines, TableError> {
    let before = HugePages::in_use();
    let setting = match wanted {
        // `Auto` falls back to pages of 2 MiB.
        PageKind::Huge1G => HugePages::Auto,
        PageKind::Huge2M => HugePages::TwoMiB,
        PageKind::Transparent => HugePages::Transparent,
        PageKind::Ordinary => HugePages::Off,
    };
    setting.use_from_now_on();
    let area = CacheLines::new(area_bytes / CACHE_LINE_BYTES, PageRequest::Large);
    before.use_from_now_on();
    area
}

/// Returns the page kinds available for an area of this size, largest first. Ordinary pages are always included; a lack
/// of memory shows when the area is allocated.
pub(super) fn obtainable(area_bytes: usize) -> Vec<PageKind> {
    let had = |wanted: PageKind| reserve(area_bytes, wanted).is_ok_and(|lines| lines.page_kind() == wanted);
    KINDS.into_iter().filter(|&kind| kind == PageKind::Ordinary || had(kind)).collect()
}

/// Returns the page kinds that are not among `had`.
pub(super) fn missing<'a>(had: impl Iterator<Item = &'a PageInfo>, area_bytes: usize) -> Vec<MissingPages> {
    let had: Vec<&str> = had.map(|info| info.kind.as_str()).collect();
    let missing = KINDS.into_iter().filter(|kind| !had.contains(&kind.to_string().as_str()));
    missing.map(|kind| MissingPages { kind: kind.to_string(), remedy: remedy(kind, area_bytes) }).collect()
}

fn remedy(kind: PageKind, area_bytes: usize) -> String {
    let reserve = |page_bytes: usize, directory: &str| {
        let pages = area_bytes.div_ceil(page_bytes);
        format!("as root: echo {pages} > /sys/kernel/mm/hugepages/{directory}/nr_hugepages")
    };
    match kind {
        PageKind::Huge1G => format!(
            "{}; if no contiguous gigabyte is free, reserve at boot with the kernel parameters hugepagesz=1G \
             hugepages={}",
            reserve(HUGE_1G_BYTES, "hugepages-1048576kB"),
            area_bytes.div_ceil(HUGE_1G_BYTES)
        ),
        PageKind::Huge2M => reserve(HUGE_2M_BYTES, "hugepages-2048kB"),
        PageKind::Transparent => "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        PageKind::Ordinary => "not enough free memory for ordinary pages".to_owned(),
    }
}

/// Share of the area on transparent huge pages, from the system's count for the mapping of the area.
fn huge_share(lines: &CacheLines) -> Option<f64> {
    let start = lines.as_slice().as_ptr().addr();
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    let huge_kilobytes = huge_kilobytes_at(&maps, start)?;
    Some((huge_kilobytes as f64 * 1024.0 / size_of_val(lines.as_slice()) as f64).min(1.0))
}

/// Returns `AnonHugePages` of the mapping at `address`, from the text of `smaps`.
fn huge_kilobytes_at(maps: &str, address: usize) -> Option<u64> {
    let mut inside = false;
    for line in maps.lines() {
        if let Some((start, end)) = address_range(line) {
            inside = (start..end).contains(&address);
        } else if inside && let Some(rest) = line.strip_prefix("AnonHugePages:") {
            return rest.trim().strip_suffix("kB")?.trim().parse().ok();
        }
    }
    None
}

/// Parses the address range in the head line of a mapping: `7f00-7f10 rw-p …`.
fn address_range(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_remedy() {
        let none = missing(std::iter::empty(), 4 << 30);
        assert_eq!(none.len(), 4);
        assert!(none[0].remedy.contains("echo 4 >") && none[0].remedy.contains("hugepages=4"));
        assert!(none[1].remedy.contains("echo 2048 >"));
        let info = PageInfo { kind: PageKind::Ordinary.to_string(), page_bytes: 4096, huge_share: None };
        assert_eq!(missing([info].iter(), 4 << 30), none[..3]);
    }

    #[test]
    fn huge_pages_are_read_for_the_right_mapping() {
        let maps = "1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nAnonHugePages:         0 kB\n\
                    200000-800000 rw-p 00000000 00:00 0 \nSize: 6144 kB\nAnonHugePages:      4096 kB\n";
        assert_eq!(huge_kilobytes_at(maps, 0x20_0040), Some(4096));
        assert_eq!(huge_kilobytes_at(maps, 0x1fff), Some(0));
        assert_eq!(huge_kilobytes_at(maps, 0x80_0000), None);
    }

    #[test]
    fn areas_are_on_the_pages_that_can_be_had() {
        let kinds = obtainable(1 << 20);
        assert_eq!(kinds.last(), Some(&PageKind::Ordinary));
        for kind in kinds {
            assert_eq!(reserve(1 << 20, kind).expect("memory").page_kind(), kind);
        }
    }
}
