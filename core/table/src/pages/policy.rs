//! Which kinds of pages the tables of this process request, and which they got.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// Which pages a table requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PageRequest {
    /// Ordinary pages: for tables that stay small.
    Ordinary,
    /// Pages as large as [`HugePages`] says.
    #[default]
    Large,
}

/// Page size of large tables, set for the whole process because they share the host's memory.
///
/// Pages of 1 GiB and 2 MiB come from a pool that the system's administrator reserves. A table takes enough of them
/// at once for its whole expected size, so that touching them cannot fail later. The rest of its address space,
/// reserved so that the table can be enlarged, is on other pages. A page that would be less than half used is not
/// taken. Transparent huge pages need no preparation, and take no memory before they are touched, then 2 MiB at a
/// time. Where memory is [made ready ahead](crate::make_memory_ready_ahead), the first 2 MiB of a table that is
/// filled from its start lie on ordinary pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HugePages {
    /// Pages of 1 GiB, else of 2 MiB, from the pool, else transparent huge pages, else ordinary pages; written `auto`.
    Auto,
    /// As `Auto`, without pages of 2 MiB; written `1GiB`.
    OneGiB,
    /// As `Auto`, without pages of 1 GiB; written `2MiB`.
    TwoMiB,
    /// As `Auto`, without pages from the pool; written `transparent`.
    Transparent,
    /// Ordinary pages, so that memory is taken in the smallest units; written `off`.
    Off,
}

/// The setting of the process, as its position in [`HugePages::ALL`].
static IN_USE: AtomicU8 = AtomicU8::new(3);

impl HugePages {
    /// All settings, from the one that allows the most kinds of pages.
    pub const ALL: [HugePages; 5] =
        [HugePages::Auto, HugePages::OneGiB, HugePages::TwoMiB, HugePages::Transparent, HugePages::Off];

    /// Returns the name of the setting in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            HugePages::Auto => "auto",
            HugePages::OneGiB => "1GiB",
            HugePages::TwoMiB => "2MiB",
            HugePages::Transparent => "transparent",
            HugePages::Off => "off",
        }
    }

    /// Sets the pages of tables made from now on. Before the first call it is
    /// [`Transparent`](HugePages::Transparent).
    pub fn use_from_now_on(self) {
        IN_USE.store(self as u8, Ordering::Relaxed);
    }

    /// Returns the setting that tables use now.
    pub fn in_use() -> Self {
        Self::ALL[usize::from(IN_USE.load(Ordering::Relaxed)) % Self::ALL.len()]
    }

    /// Kinds of pages from the pool to try, largest first.
    pub(super) const fn pool_kinds(self) -> &'static [PageKind] {
        match self {
            HugePages::Auto => &[PageKind::Huge1G, PageKind::Huge2M],
            HugePages::OneGiB => &[PageKind::Huge1G],
            HugePages::TwoMiB => &[PageKind::Huge2M],
            HugePages::Transparent | HugePages::Off => &[],
        }
    }
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of a page setting is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownHugePages(pub String);

impl fmt::Display for UnknownHugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown kind of pages '{}', expected ", self.0)?;
        for (position, known) in HugePages::ALL.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}'{known}'")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownHugePages {}

impl FromStr for HugePages {
    type Err = UnknownHugePages;

    fn from_str(text: &str) -> Result<Self, UnknownHugePages> {
        HugePages::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| UnknownHugePages(text.to_owned()))
    }
}

/// The kind of pages that a table got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageKind {
    /// Pages of 1 GiB from the system's pool.
    Huge1G,
    /// Pages of 2 MiB from the system's pool.
    Huge2M,
    /// Pages for which the system was advised to use huge pages where it can.
    Transparent,
    /// The system's ordinary pages.
    Ordinary,
}

impl PageKind {
    /// All kinds, from the largest.
    pub const ALL: [PageKind; 4] = [PageKind::Huge1G, PageKind::Huge2M, PageKind::Transparent, PageKind::Ordinary];
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PageKind::Huge1G => "1 GiB pages",
            PageKind::Huge2M => "2 MiB pages",
            PageKind::Transparent => "transparent huge pages",
            PageKind::Ordinary => "ordinary pages",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_back() {
        for pages in HugePages::ALL {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        let error = "4KiB".parse::<HugePages>().expect_err("the name is unknown");
        assert_eq!(
            error.to_string(),
            "unknown kind of pages '4KiB', expected 'auto', '1GiB', '2MiB', 'transparent', 'off'"
        );
    }

    #[test]
    fn tables_use_transparent_pages_by_default() {
        assert_eq!(HugePages::in_use(), HugePages::Transparent);
    }
}
