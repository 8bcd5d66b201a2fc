//! The second tier of the Content Store in `cs/info`: Namehop's own addition.

use namehop_engine::second_tier::{TierReport, TierState};
use namehop_wire::tlv::Writer;

use super::codec::{CodecError, DatasetItem, Fields};

/// TLV-TYPE of the element: even, so that programs that do not know it ignore it, and from the range for application
/// use.
const CS_DISK: u32 = 65_290;
/// TLV-TYPE of the first number in the element; each further number has a TYPE higher by 2.
const FIRST_NUMBER: u32 = 65_292;
/// Count of numbers in the element.
const NUMBERS: usize = 17;

/// State and counters of the second tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsDisk(pub TierReport);

impl CsDisk {
    /// Returns the numbers in the order of the element.
    fn numbers(&self) -> [u64; NUMBERS] {
        let TierReport { status, counters, waiting } = &self.0;
        [
            status.state as u64,
            status.capacity_bytes,
            status.used_bytes,
            status.reads,
            status.writes,
            status.written_bytes,
            status.errors,
            status.checksum_failures,
            status.stalls,
            counters.stored,
            counters.not_stored,
            counters.found,
            counters.not_found,
            counters.timed_out,
            counters.busy,
            *waiting,
            status.erasing_workers,
        ]
    }
}

impl DatasetItem for CsDisk {
    const TYPE: u32 = CS_DISK;

    fn encode_value(&self, writer: &mut Writer) {
        for (typ, number) in (FIRST_NUMBER..).step_by(2).zip(self.numbers()) {
            writer.nni(typ, number);
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        let mut types = (FIRST_NUMBER..).step_by(2);
        // A router of another version may send fewer numbers.
        let mut next =
            || -> Result<u64, CodecError> { Ok(fields.number(types.next().unwrap_or(FIRST_NUMBER))?.unwrap_or(0)) };
        let mut report = TierReport::default();
        let (status, counters) = (&mut report.status, &mut report.counters);
        let state = next()?;
        status.state =
            usize::try_from(state).ok().and_then(|state| TierState::ALL.get(state).copied()).unwrap_or_default();
        for number in [
            &mut status.capacity_bytes,
            &mut status.used_bytes,
            &mut status.reads,
            &mut status.writes,
            &mut status.written_bytes,
            &mut status.errors,
            &mut status.checksum_failures,
            &mut status.stalls,
            &mut counters.stored,
            &mut counters.not_stored,
            &mut counters.found,
            &mut counters.not_found,
            &mut counters.timed_out,
            &mut counters.busy,
            &mut report.waiting,
            &mut status.erasing_workers,
        ] {
            *number = next()?;
        }
        Ok(CsDisk(report))
    }
}
