//! Times that packets stay in the router: `status/latency`. Namehop's own addition to the NFD management protocol. One
//! item.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use std::num::NonZeroU32;

use namehop_face::LatencyHistograms;
use namehop_packet::PacketWay;
use namehop_wire::tlv::{Writer, decode_nni};

use super::codec::{CodecError, Fields};
use super::record::{Field, FieldId, Value, records};

/// TLV-TYPE of the item.
const LATENCY_STATUS: u32 = 210;
const ONE_IN: u32 = 211;
const MEASURED_MS: u32 = 212;
const STEP: u32 = 216;

records! {
    /// Times from reception to transmission of a sample of the packets since the measurement was started.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct LatencyStatus(LATENCY_STATUS) {
        /// On average, one packet in this many is measured; `None` = measurement is off.
        one_in: Option<NonZeroU32> = ONE_IN,
        /// Duration of the measurement, in milliseconds.
        measured_ms: u64 = MEASURED_MS,
        /// Times of Interests that missed in the Content Store.
        cache_miss: LatencyCounts = 213 => OrDefault,
        /// Times of Interests that hit in the Content Store.
        cache_hit: LatencyCounts = 214 => OrDefault,
        /// Times of Data.
        data: LatencyCounts = 215 => OrDefault,
    }

    /// A step of a histogram.
    #[derive(Debug)]
    struct LatencyStep {
        /// Upper bound of the step, in nanoseconds.
        time_ns: u64 = 217,
        /// Number of packets.
        packets: u64 = 218,
    }
}

/// Histogram of times: buckets about one percent wide, as (upper bound in nanoseconds, number of packets), in ascending
/// order. Empty buckets are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyCounts(pub Vec<(u64, u64)>);

impl LatencyStatus {
    /// Creates a status from recorded histograms.
    pub fn new(one_in: NonZeroU32, measured_ms: u64, times: &LatencyHistograms) -> Self {
        let counts = |way| {
            let steps = times.of(way).iter_recorded();
            LatencyCounts(steps.map(|step| (step.value_iterated_to(), step.count_since_last_iteration())).collect())
        };
        LatencyStatus {
            one_in: Some(one_in),
            measured_ms,
            cache_miss: counts(PacketWay::CacheMiss),
            cache_hit: counts(PacketWay::CacheHit),
            data: counts(PacketWay::Data),
        }
    }

    /// Returns the counts of each kind of packet, with the name of the kind.
    pub fn ways(&self) -> [(&'static str, &LatencyCounts); 3] {
        [("cs_miss", &self.cache_miss), ("cs_hit", &self.cache_hit), ("data", &self.data)]
    }

    /// Adds the measurements of another worker.
    pub fn add(&mut self, other: &LatencyStatus) {
        self.measured_ms = self.measured_ms.saturating_add(other.measured_ms);
        self.cache_miss.add(&other.cache_miss);
        self.cache_hit.add(&other.cache_hit);
        self.data.add(&other.data);
    }

    /// Returns the measurements made after `earlier`; all of them if the measurement was restarted since.
    pub fn since(&self, earlier: &LatencyStatus) -> LatencyStatus {
        if self.one_in != earlier.one_in || self.measured_ms < earlier.measured_ms {
            return self.clone();
        }
        LatencyStatus {
            one_in: self.one_in,
            measured_ms: self.measured_ms - earlier.measured_ms,
            cache_miss: self.cache_miss.since(&earlier.cache_miss),
            cache_hit: self.cache_hit.since(&earlier.cache_hit),
            data: self.data.since(&earlier.data),
        }
    }
}

impl LatencyCounts {
    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// Returns the sum of all times in nanoseconds, each counted as the upper bound of its bucket.
    pub fn total_ns(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(time_ns, count)| sum.saturating_add(time_ns.saturating_mul(count)))
    }

    /// Returns the number of packets that took at most `limit_ns` nanoseconds.
    pub fn within(&self, limit_ns: u64) -> u64 {
        let within = self.0.iter().take_while(|&&(time_ns, _)| time_ns <= limit_ns);
        within.fold(0, |sum, &(_, count)| sum.saturating_add(count))
    }

    /// Returns the quantile for a share from 0 to 1, in nanoseconds; `None` without packets.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let rank = (share * self.packets() as f64).ceil().max(1.0);
        let mut seen = 0.0;
        let step = self.0.iter().find(|&&(_, count)| {
            seen += count as f64;
            seen >= rank
        });
        step.or(self.0.last()).map(|&(time_ns, _)| time_ns)
    }

    fn add(&mut self, other: &LatencyCounts) {
        for &(time_ns, count) in &other.0 {
            match self.0.binary_search_by_key(&time_ns, |&(time_ns, _)| time_ns) {
                Ok(index) => self.0[index].1 = self.0[index].1.saturating_add(count),
                Err(index) => self.0.insert(index, (time_ns, count)),
            }
        }
    }

    fn since(&self, earlier: &LatencyCounts) -> LatencyCounts {
        let before = |time_ns| earlier.0.binary_search_by_key(&time_ns, |&(time_ns, _)| time_ns);
        let more = self.0.iter().map(|&(time_ns, count)| {
            let counted = before(time_ns).map_or(0, |index| earlier.0[index].1);
            (time_ns, count.saturating_sub(counted))
        });
        LatencyCounts(more.filter(|&(_, count)| count > 0).collect())
    }
}

/// One element for each step of the histogram.
impl Value for LatencyCounts {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nested(typ, |writer| {
            for &(time_ns, packets) in &self.0 {
                LatencyStep { time_ns, packets }.write(writer, STEP);
            }
        });
    }

    fn read(value: &[u8], _: FieldId) -> Result<Self, CodecError> {
        let steps = Vec::<LatencyStep>::get(&Fields::parse(value)?, FieldId { typ: STEP, name: "step" })?;
        let mut steps: Vec<_> = steps.iter().map(|step| (step.time_ns, step.packets)).collect();
        // The methods of `LatencyCounts` need ascending order.
        steps.sort_unstable();
        Ok(LatencyCounts(steps))
    }
}

impl Value for NonZeroU32 {
    fn write(&self, writer: &mut Writer, typ: u32) {
        writer.nni(typ, self.get().into());
    }

    fn read(value: &[u8], field: FieldId) -> Result<Self, CodecError> {
        let number = u32::try_from(decode_nni(value)?).ok();
        number.and_then(NonZeroU32::new).ok_or(CodecError::UnknownValue(field.name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn latency_is_read_as_it_was_written() {
        let measured = LatencyStatus {
            one_in: NonZeroU32::new(1024),
            measured_ms: 12_345,
            cache_miss: LatencyCounts(vec![(3_000, 7), (4_000_000_000, u64::MAX)]),
            cache_hit: LatencyCounts::default(),
            data: LatencyCounts(vec![(1, 1)]),
        };
        for status in [measured, LatencyStatus::default()] {
            assert_eq!(decode_items::<LatencyStatus>(&encode_items([status.clone()])), Ok(vec![status]));
        }
        let mut writer = Writer::new();
        writer.nested(LATENCY_STATUS, |writer| {
            writer.nni(ONE_IN, u64::MAX).nni(MEASURED_MS, 0);
        });
        assert!(
            decode_items::<LatencyStatus>(&writer.into_vec()).is_err(),
            "a sampling interval above 32 bits is an error"
        );
    }

    fn counts(steps: &[(u64, u64)]) -> LatencyCounts {
        LatencyCounts(steps.to_vec())
    }

    #[test]
    fn quantiles_are_those_of_the_steps() {
        let times = counts(&[(1_000, 98), (5_000, 1), (90_000, 1)]);
        assert_eq!((times.packets(), times.total_ns()), (100, 98_000 + 95_000));
        for (share, expected_ns) in
            [(0.0, 1_000), (0.5, 1_000), (0.98, 1_000), (0.99, 5_000), (0.999, 90_000), (1.0, 90_000)]
        {
            assert_eq!(times.quantile_ns(share), Some(expected_ns), "{share}");
        }
        assert_eq!([999, 1_000, 89_999, u64::MAX].map(|limit_ns| times.within(limit_ns)), [0, 98, 99, 100]);
        assert_eq!((counts(&[]).quantile_ns(0.5), counts(&[]).packets()), (None, 0));
        // Another forwarder may report any numbers.
        assert_eq!(counts(&[(u64::MAX, u64::MAX), (5, 7)]).total_ns(), u64::MAX);
    }

    #[test]
    fn times_of_several_measurements_are_added() {
        let mut times = counts(&[(10, 5), (30, 2)]);
        times.add(&counts(&[(20, 1), (30, 4), (40, 1)]));
        assert_eq!(times, counts(&[(10, 5), (20, 1), (30, 6), (40, 1)]));
    }

    #[test]
    fn an_interval_is_what_was_added() {
        let status = |measured_ms, data: &[(u64, u64)]| LatencyStatus {
            one_in: NonZeroU32::new(8),
            measured_ms,
            data: counts(data),
            ..LatencyStatus::default()
        };
        let earlier = status(1_000, &[(10, 5), (30, 2)]);
        let later = status(1_500, &[(10, 5), (20, 1), (30, 6)]);
        assert_eq!(later.since(&earlier), status(500, &[(20, 1), (30, 4)]));
        assert_eq!(earlier.since(&later), earlier, "the measurement was restarted");
        assert_eq!(later.since(&LatencyStatus::default()), later);
    }
}
