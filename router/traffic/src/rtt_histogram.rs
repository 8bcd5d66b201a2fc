//! Histogram of round-trip times, used by consumers and fetches.

use hdrhistogram::Histogram;

/// Longest recorded round-trip time: one hour. Longer ones count as this.
const MAX_RTT_NS: u64 = 3_600_000_000_000;
/// Decimal digits of precision.
const RTT_DIGITS: u8 = 3;

/// Returns an empty histogram of nanoseconds.
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
