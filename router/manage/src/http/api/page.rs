//! Lists in pages, so that a list of millions of items needs a bounded amount of memory, however slowly a client reads
//! it.
//!
//! A page contains the position of the next one. The server keeps no state for it.

use namehop_client::nfd::{Element, decode_items};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, Failure};
use crate::server::TableCursor;

/// Default and maximum number of items in a page.
const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: usize = 1000;
/// A page ends with the portion that fills this many bytes of the dataset, even if it has few items.
const PAGE_BYTES: usize = 256 << 10;
/// Minimum and maximum number of entries that the control thread reads at once, and maximum number of such reads for a
/// page.
const MIN_PORTION: usize = 16;
const MAX_PORTION: usize = 256;
const MAX_PORTIONS: usize = 256;

/// A page of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// Items of the page. May be empty although further pages follow.
    pub(super) items: Vec<T>,
    /// Value of `after` for the next page; `null` on the last page.
    #[schema(required)]
    pub(super) next: Option<String>,
}

/// Returns the number of items in a page: the requested one or the default.
pub(super) fn limit(requested: Option<usize>) -> Result<usize, Failure> {
    match requested.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(Failure::bad_request(format!("limit must be from 1 to {MAX_LIMIT}"))),
    }
}

/// Parses a position that a page gave as `next`. Numbers beyond 64 bits become the largest, which is past the end.
pub(super) fn cursor(after: Option<&str>) -> Result<Option<u64>, Failure> {
    let wrong = || Failure::bad_request("after must be the value of next in the previous page");
    let number = |after: &str| has_digits(after, 20).then(|| after.parse().unwrap_or(u64::MAX));
    after.map(|after| number(after).ok_or_else(wrong)).transpose()
}

/// Returns true for a whole number without a sign, of at most `most` digits.
pub(super) fn has_digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Reads a page of a table that may be very long. `take` appends the wanted parts of an entry to the page.
pub(super) async fn walk<I: Element, T>(
    api: &Api,
    from: TableCursor,
    limit: usize,
    take: impl Fn(I, &mut Vec<T>),
) -> Result<Page<T>, Failure> {
    let (mut items, mut bytes, mut cursor) = (Vec::new(), 0, Some(from));
    for _ in 0..MAX_PORTIONS {
        let Some(from) = cursor.filter(|_| items.len() < limit && bytes < PAGE_BYTES) else { break };
        let portion = (limit - items.len()).clamp(MIN_PORTION, MAX_PORTION);
        let (content, next) = api.inside.portion(from, portion).await?;
        let before = items.len();
        decode_items(&content)?.into_iter().for_each(|item| take(item, &mut items));
        if items.len() > before {
            bytes += content.len();
        }
        cursor = next;
    }
    let next = cursor.map(|cursor| cursor.number().unwrap_or_default().to_string());
    Ok(Page { items, next })
}
