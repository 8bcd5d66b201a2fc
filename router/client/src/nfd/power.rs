//! Power of the host: `status/power`. Namehop's own addition to the NFD management protocol. One item if the power is
//! known, otherwise none.
//!
//! Forwarders without this dataset do not answer. The TLV-TYPE numbers are from the range for application use.

use namehop_wire::tlv::Writer;

use super::codec::{CodecError, DatasetItem, Fields, put_optional, put_optional_text};

/// Power over about the last second, and energy since the start of the router. Whole numbers, because datasets hold
/// integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerStatus {
    /// The server model that the figures were estimated with; `None` where energy was measured.
    pub estimated_with: Option<String>,
    /// Energy per forwarded packet, in nanojoules: the energy of all parts, including that used by other programs,
    /// divided by the number of these packets. `None` without packets.
    pub nanojoules_per_packet: Option<u64>,
    /// Parts of the host; none contains another.
    pub parts: Vec<PowerPart>,
}

/// A part of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerPart {
    /// Name given by the operating system (`package-0`, `dram-0`) or by the model (`cpu`, `memory`, `nic`, `chassis`).
    pub name: String,
    /// Power, in milliwatts.
    pub milliwatts: u64,
    /// Energy since the start of the router, in millijoules.
    pub millijoules: u64,
}

impl PowerStatus {
    /// Returns the power of all parts, in milliwatts.
    pub fn milliwatts(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.milliwatts))
    }
}
/// TLV-TYPE of the item.
const POWER_STATUS: u32 = 200;
const ESTIMATED_WITH: u32 = 201;
const NANOJOULES_PER_PACKET: u32 = 202;
const PART: u32 = 203;
const PART_NAME: u32 = 204;
const MILLIWATTS: u32 = 205;
const MILLIJOULES: u32 = 206;

impl DatasetItem for PowerStatus {
    const TYPE: u32 = POWER_STATUS;

    fn encode_value(&self, writer: &mut Writer) {
        put_optional_text(writer, ESTIMATED_WITH, self.estimated_with.as_deref());
        put_optional(writer, NANOJOULES_PER_PACKET, self.nanojoules_per_packet);
        for PowerPart { name, milliwatts, millijoules } in &self.parts {
            writer.nested(PART, |writer| {
                writer.element(PART_NAME, name.as_bytes()).nni(MILLIWATTS, *milliwatts).nni(MILLIJOULES, *millijoules);
            });
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(PowerStatus {
            estimated_with: fields.text(ESTIMATED_WITH, "server")?,
            nanojoules_per_packet: fields.number(NANOJOULES_PER_PACKET)?,
            parts: fields.all(PART).map(decode_part).collect::<Result<_, _>>()?,
        })
    }
}

fn decode_part(value: &[u8]) -> Result<PowerPart, CodecError> {
    let fields = Fields::parse(value)?;
    Ok(PowerPart {
        name: fields.required_text(PART_NAME, "part name")?,
        milliwatts: fields.required_number(MILLIWATTS, "power")?,
        millijoules: fields.required_number(MILLIJOULES, "energy")?,
    })
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
