//! Files that list routes, one on each line: `PREFIX NEXTHOP [COST]`. Empty lines and lines that begin with `#` are
//! skipped.

use std::fmt;
use std::str::FromStr;

use crate::fib_file::{LineWords, parse_line};
use namehop_face::FaceUri;
use namehop_port::drivers::parse_uri;
use namehop_wire::Name;
use thiserror::Error;

/// A face, as given by the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaceSelector {
    /// By its id.
    Id(u64),
    /// By its remote address, which need not be canonical.
    Uri(FaceUri),
}

impl FromStr for FaceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        parse_uri(text).map(Self::Uri).map_err(|error| format!("not a face number, and {error}"))
    }
}

impl fmt::Display for FaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaceSelector::Id(id) => id.fmt(f),
            FaceSelector::Uri(uri) => uri.fmt(f),
        }
    }
}

/// One route of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteLine {
    /// Number of the line, from 1.
    pub line: usize,
    /// Prefix of the route.
    pub prefix: Name,
    /// Next hop of its Interests.
    pub next_hop: FaceSelector,
    /// Lower is better; `None` if the line has no cost.
    pub cost: Option<u64>,
}

/// A fault in a file of routes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct RouteFileError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The fault, as text.
    pub reason: String,
}

/// Parses the routes in a text.
///
/// # Errors
/// The first faulty line.
pub fn parse_route_file(text: &str) -> Result<Vec<RouteLine>, RouteFileError> {
    let mut routes = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        let wrong = |reason| RouteFileError { line, reason };
        if let Some(words) = parse_line(content).map_err(wrong)? {
            routes.push(route_of(line, &words).map_err(wrong)?);
        }
    }
    Ok(routes)
}

fn route_of(line: usize, words: &LineWords<'_>) -> Result<RouteLine, String> {
    let LineWords { prefix, face, cost } = *words;
    Ok(RouteLine {
        line,
        prefix: prefix.parse().map_err(|error| format!("'{prefix}' is not a name: {error}"))?,
        next_hop: face.parse().map_err(|error| format!("'{face}' is not a next hop: {error}"))?,
        cost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_line_by_line() {
        let routes = parse_route_file("# comment\n\n/a 300\n  /b/c udp4://192.0.2.1:6363 7 \n").unwrap();
        assert_eq!(routes.len(), 2);
        assert_eq!((routes[0].line, &routes[0].next_hop, routes[0].cost), (3, &FaceSelector::Id(300), None));
        assert_eq!((routes[1].prefix.to_string(), routes[1].cost), ("/b/c".to_owned(), Some(7)));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, parts) in [
            ("/a", ["line 1: ", "expected PREFIX NEXTHOP"]),
            ("\n/a x", ["line 2: ", "'x' is not a next hop"]),
            ("/%zz 1", ["line 1: ", "'/%zz' is not a name"]),
            ("/a 1 x", ["line 1: ", "'x' is not a cost"]),
            ("/a 1 2 3", ["line 1: ", "unexpected '3'"]),
        ] {
            let error = parse_route_file(text).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn faces_are_named_by_number_or_uri() {
        assert_eq!("300".parse(), Ok(FaceSelector::Id(300)));
        let by_uri: FaceSelector = "udp4://192.0.2.1:6363".parse().unwrap();
        assert!(matches!(by_uri, FaceSelector::Uri(_)));
        assert_eq!(by_uri.to_string(), "udp4://192.0.2.1:6363");
        assert!("nonsense".parse::<FaceSelector>().is_err());
    }
}
