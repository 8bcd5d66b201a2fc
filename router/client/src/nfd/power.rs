//! Power of the host: `status/power`. Namehop's own addition to the NFD management protocol. One item if the power is
//! known, otherwise none.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use super::record::records;

records! {
    /// Power over about the last second, and energy since the start of the router. Whole numbers, because datasets hold
    /// integers.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PowerStatus(200) {
        /// The server model that the figures were estimated with; `None` where energy was measured.
        estimated_with: Option<String> = 201,
        /// Energy per forwarded packet, in nanojoules: the energy of all parts, including that used by other programs,
        /// divided by the number of these packets. `None` without packets.
        nanojoules_per_packet: Option<u64> = 202,
        /// Parts of the host; none contains another.
        parts: Vec<PowerPart> = 203,
    }

    /// A part of the host.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct PowerPart {
        /// Name given by the operating system (`package-0`, `dram-0`) or by the model (`cpu`, `memory`, `nic`,
        /// `chassis`).
        name: String = 204,
        /// Power, in milliwatts.
        milliwatts: u64 = 205,
        /// Energy since the start of the router, in millijoules.
        millijoules: u64 = 206,
    }
}

impl PowerStatus {
    /// Returns the power of all parts, in milliwatts.
    pub fn milliwatts(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.milliwatts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::{decode_items, encode_items};
    use super::*;

    #[test]
    fn power_is_read_as_it_was_written() {
        let part =
            |name: &str, number| PowerPart { name: name.to_owned(), milliwatts: number, millijoules: number + 1 };
        let measured = PowerStatus {
            estimated_with: None,
            nanojoules_per_packet: Some(350),
            parts: vec![part("package-0", 10_000), part("dram-0", u64::MAX - 1)],
        };
        let estimated = PowerStatus {
            estimated_with: Some("rack 3".to_owned()),
            nanojoules_per_packet: None,
            parts: vec![part("chassis", 34_200)],
        };
        assert_eq!((measured.milliwatts(), estimated.milliwatts()), (u64::MAX, 34_200));
        for status in [measured, estimated, PowerStatus::default()] {
            assert_eq!(decode_items::<PowerStatus>(&encode_items([status.clone()])), Ok(vec![status]));
        }
    }
}
