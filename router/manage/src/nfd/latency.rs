//! Times that packets stay in the router: `status/latency`. Namehop's own addition to the NFD management protocol. One
//! item.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use std::num::NonZeroU32;

use namehop_wire::tlv::Writer;

use super::codec::{CodecError, DatasetItem, Fields};
use crate::server::{LatencyCounts, LatencyStatus};

/// TLV-TYPE of the item.
const LATENCY_STATUS: u32 = 210;
const ONE_IN: u32 = 211;
const MEASURED_MS: u32 = 212;
const CACHE_MISS: u32 = 213;
const CACHE_HIT: u32 = 214;
const DATA: u32 = 215;
const STEP: u32 = 216;
const TIME_NS: u32 = 217;
const PACKETS: u32 = 218;

impl DatasetItem for LatencyStatus {
    const TYPE: u32 = LATENCY_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        let LatencyStatus { one_in, measured_ms, cache_miss, cache_hit, data } = self;
        writer.nni(ONE_IN, one_in.map_or(0, |one_in| one_in.get().into())).nni(MEASURED_MS, *measured_ms);
        for (way, counts) in [(CACHE_MISS, cache_miss), (CACHE_HIT, cache_hit), (DATA, data)] {
            writer.nested(way, |writer| {
                for &(time_ns, packets) in &counts.0 {
                    writer.nested(STEP, |writer| {
                        writer.nni(TIME_NS, time_ns).nni(PACKETS, packets);
                    });
                }
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        let one_in = fields.required_number(ONE_IN, "sampling interval")?;
        let counts = |way| fields.find(way).map(decode_counts).transpose().map(Option::unwrap_or_default);
        Ok(LatencyStatus {
            one_in: u32::try_from(one_in)
                .map(NonZeroU32::new)
                .map_err(|_| CodecError::UnknownValue("sampling interval"))?,
            measured_ms: fields.required_number(MEASURED_MS, "time")?,
            cache_miss: counts(CACHE_MISS)?,
            cache_hit: counts(CACHE_HIT)?,
            data: counts(DATA)?,
        })
    }
}

fn decode_counts(value: &[u8]) -> Result<LatencyCounts, CodecError> {
    let step = |value| {
        let fields = Fields::parse(value)?;
        Ok((fields.required_number(TIME_NS, "packet time")?, fields.required_number(PACKETS, "number of packets")?))
    };
    let mut steps: Vec<(u64, u64)> = Fields::parse(value)?.all(STEP).map(step).collect::<Result<_, CodecError>>()?;
    // The methods of `LatencyCounts` need ascending order.
    steps.sort_unstable();
    Ok(LatencyCounts(steps))
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
}
