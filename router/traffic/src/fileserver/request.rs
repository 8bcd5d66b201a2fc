//! Parses the name of an Interest into a request.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use namehop_wire::{ComponentRef, Interest, Name};

/// Keyword component of directory listings.
pub(super) const LISTING: &[u8] = b"ls";
/// Keyword component of metadata.
const METADATA: &[u8] = b"metadata";

/// The requested part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Metadata of a file or directory; only of a directory if `directory_only`.
    Metadata { directory_only: bool },
    /// A segment of a file, or of a directory's listing.
    Segment { listing: bool, version: u64, segment: u64 },
}

/// A parsed Interest of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRequest {
    /// The name of the Interest.
    pub(super) name: Name,
    /// Path relative to the served directory; empty for the directory itself.
    pub(super) path: PathBuf,
    pub(super) wanted: Wanted,
}

/// Parses the name of an Interest; its first `prefix_length` components are the server's prefix. Returns `None` if the
/// name does not follow the protocol or contains no valid path.
pub(super) fn parse(interest: &Interest<'_>, prefix_length: usize) -> Option<FileRequest> {
    let name = interest.name;
    let mut components = name.components().skip(prefix_length).peekable();
    let mut path = PathBuf::new();
    while let Some(component) = components.next_if(ComponentRef::is_generic) {
        path.push(file_name(component.value)?);
    }
    let rest: Vec<ComponentRef<'_>> = components.take(4).collect();
    let (listing, rest) = match rest.split_first() {
        Some((first, rest)) if first.is_keyword(LISTING) => (true, rest),
        _ => (false, rest.as_slice()),
    };
    let wanted = match rest {
        // The Data's name is longer, so it matches only with CanBePrefix.
        [metadata] if metadata.is_keyword(METADATA) && interest.can_be_prefix => {
            Wanted::Metadata { directory_only: listing }
        }
        [version, segment] => {
            Wanted::Segment { listing, version: version.as_version()?, segment: segment.as_segment()? }
        }
        _ => return None,
    };
    Some(FileRequest { name: name.to_owned(), path, wanted })
}

/// Returns the component as a file name; `None` if it is empty, `.` or `..`, or contains a slash or a zero byte.
fn file_name(component: &[u8]) -> Option<&OsStr> {
    let is_path = component.iter().any(|byte| matches!(byte, 0 | b'/'));
    let is_name = !component.is_empty() && component != b"." && component != b".." && !is_path;
    is_name.then(|| OsStr::from_bytes(component))
}

#[cfg(test)]
mod tests {
    use namehop_wire::builder::InterestBuilder;

    use super::*;

    fn parsed(uri: &str, can_be_prefix: bool) -> Option<(String, Wanted)> {
        let name: Name = uri.parse().unwrap();
        let packet = InterestBuilder::new(name).can_be_prefix(can_be_prefix).build().unwrap();
        let request = parse(&Interest::decode(&packet).unwrap(), 1)?;
        assert!(!request.path.is_absolute());
        Some((request.path.to_str().unwrap().to_owned(), request.wanted))
    }

    #[test]
    fn names_of_the_protocol_are_understood() {
        let metadata = |directory_only| Wanted::Metadata { directory_only };
        let segment = |listing| Wanted::Segment { listing, version: 7, segment: 2 };
        let cases = [
            ("/P/a/b.txt/32=metadata", "a/b.txt", metadata(false)),
            ("/P/32=metadata", "", metadata(false)),
            ("/P/a/32=ls/32=metadata", "a", metadata(true)),
            ("/P/a/b.txt/v=7/seg=2", "a/b.txt", segment(false)),
            ("/P/32=ls/v=7/seg=2", "", segment(true)),
        ];
        for (uri, path, wanted) in cases {
            assert_eq!(parsed(uri, true), Some((path.to_owned(), wanted)), "{uri}");
        }
        assert_eq!(parsed("/P/a/32=metadata", false), None);
    }

    #[test]
    fn others_are_not() {
        let digest = format!("/P/a/v=7/seg=2/sha256digest={}", "00".repeat(32));
        for uri in [
            "/P",
            "/P/a",
            "/P/a/v=7",
            "/P/a/seg=2",
            "/P/a/v=7/seg=2/b",
            "/P/a/32=metadata/v=1/seg=0",
            "/P/a/32=other/32=metadata",
            "/P/32=ls",
            "/P/32=ls/a/32=metadata",
            "/P/32=ls/32=ls/32=metadata",
            "/P/a/seg=2/v=7",
            &digest,
            // "", ".", "..", "/etc", "a/../../etc", "a\0b"
            "/P/.../32=metadata",
            "/P/..../32=metadata",
            "/P/...../32=metadata",
            "/P/%2Fetc/32=metadata",
            "/P/a%2F..%2F..%2Fetc/v=7/seg=2",
            "/P/a%00b/v=7/seg=2",
            "/P/a/...../b/32=ls/32=metadata",
        ] {
            assert_eq!(parsed(uri, true), None, "{uri}");
        }
    }
}
