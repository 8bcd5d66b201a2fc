//! Lists in pages, so that a list of millions costs a bounded amount of memory however slowly it is read.
//!
//! A page says where the next one begins. Nothing is kept for that.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Api, Failure};
use crate::nfd::{DatasetItem, decode_items};
use crate::server::PlaceInTable;

/// Items of a page, unless the client asks for another number, and at most.
const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: usize = 1000;
/// A page ends with the portion in which it has so many bytes of the dataset, however few items these are.
const PAGE_BYTES: usize = 256 << 10;
/// Entries that the control thread reads at once, and portions that one request has it read. The rest is for the next page.
const MIN_PORTION: usize = 16;
const MAX_PORTION: usize = 256;
const MAX_PORTIONS: usize = 256;

/// A part of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// What is in it. May be nothing although there are further pages.
    pub(super) items: Vec<T>,
    /// To be given as `after`, for the next page; `null` when this is the last.
    #[schema(required)]
    pub(super) next: Option<String>,
}

/// About how many items a page has.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Failure> {
    match asked.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(Failure::bad_request(format!("limit must be from 1 to {MAX_LIMIT}"))),
    }
}

/// A number that a page gave as `next`. Behind the largest one there is nothing.
pub(super) fn place(after: Option<&str>) -> Result<Option<u64>, Failure> {
    let wrong = || Failure::bad_request("after must be what the page before has as next");
    let number = |after: &str| has_digits(after, 20).then(|| after.parse().unwrap_or(u64::MAX));
    after.map(|after| number(after).ok_or_else(wrong)).transpose()
}

/// Whether a text is a whole number, without a sign, in at most this many digits.
pub(super) fn has_digits(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Reads a page of a table that may be very long. `take` adds what is wanted of an entry to the page.
pub(super) async fn walk<I: DatasetItem, T>(
    api: &Api,
    from: PlaceInTable,
    limit: usize,
    take: impl Fn(I, &mut Vec<T>),
) -> Result<Page<T>, Failure> {
    let (mut items, mut bytes, mut place) = (Vec::new(), 0, Some(from));
    for _ in 0..MAX_PORTIONS {
        let Some(from) = place.filter(|_| items.len() < limit && bytes < PAGE_BYTES) else { break };
        let portion = (limit - items.len()).clamp(MIN_PORTION, MAX_PORTION);
        let (content, next) = api.inside.portion(from, portion).await?;
        let before = items.len();
        decode_items(&content)?.into_iter().for_each(|item| take(item, &mut items));
        if items.len() > before {
            bytes += content.len();
        }
        place = next;
    }
    let next = place.map(|place| place.number().unwrap_or_default().to_string());
    Ok(Page { items, next })
}
