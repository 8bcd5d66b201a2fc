//! Histogram of times with a bounded relative error, for percentiles of many samples.

/// Bits kept below the leading one: a bucket is at most 1/64 of its value wide.
const PRECISION_BITS: u32 = 6;
const BUCKETS: usize = (65 - PRECISION_BITS as usize) << PRECISION_BITS;

/// Counts of values in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

fn bucket(value: u64) -> usize {
    let small = 1u64 << PRECISION_BITS;
    if value < small {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION_BITS;
    (((shift + 1) as usize) << PRECISION_BITS) + ((value >> shift) - small) as usize
}

/// Largest value that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let small = 1usize << PRECISION_BITS;
    if bucket < small {
        return bucket as u64;
    }
    let shift = (bucket >> PRECISION_BITS) as u32 - 1;
    let start = ((bucket & (small - 1)) + small) as u64;
    (start << shift) + ((1u64 << shift) - 1)
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value_ns: u64) {
        if let Some(count) = self.counts.get_mut(bucket(value_ns)) {
            *count += 1;
        }
        self.total += 1;
        self.sum += u128::from(value_ns);
        self.min = self.min.min(value_ns);
        self.max = self.max.max(value_ns);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Smallest value; `None` when there is none.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// Largest value; `None` when there is none.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// Mean; `None` when there is no value.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// Value below which `percent` of 100 of the values lie, at most 1.6 % too large.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((percent / 100.0 * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_bound(index).min(self.max));
            }
        }
        Some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_a_known_series() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50.0), None);
        for value in 1..=1000u64 {
            histogram.record(value * 1000);
        }
        let close = |percent, expected: f64| {
            let got = histogram.percentile(percent).unwrap() as f64;
            assert!(got >= expected && got <= expected * 1.016, "{percent}: {got}");
        };
        close(50.0, 500_000.0);
        close(99.0, 990_000.0);
        close(100.0, 1_000_000.0);
        assert_eq!((histogram.min(), histogram.max()), (Some(1000), Some(1_000_000)));
        assert_eq!(histogram.mean(), Some(500_500.0));
    }

    proptest! {
        #[test]
        fn every_value_lies_in_its_bucket(value in any::<u64>()) {
            let index = bucket(value);
            prop_assert!(index < BUCKETS);
            prop_assert!(upper_bound(index) >= value);
            prop_assert!(index == 0 || upper_bound(index - 1) < value);
        }
    }
}
