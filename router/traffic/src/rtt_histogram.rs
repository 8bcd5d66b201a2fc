//! The histogram of round-trip times that consumers and fetches have.

use hdrhistogram::Histogram;

/// Longest round-trip time that is told from longer ones: an hour.
const MAX_RTT_NS: u64 = 3_600_000_000_000;
/// Decimal digits of a round-trip time that are kept.
const RTT_DIGITS: u8 = 3;

/// One without values, in nanoseconds.
pub(crate) fn rtt_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_RTT_NS, RTT_DIGITS).expect("the bounds are in order, and five digits are allowed")
}

#[cfg(test)]
mod tests {
    #[test]
    fn bounds_are_accepted() {
        let mut histogram = super::rtt_histogram();
        histogram.saturating_record(u64::MAX);
        assert_eq!(histogram.len(), 1);
    }
}
