//! Packets from and to the controller. Their metadata stand for the program's headers `packet_in` and `packet_out`.

use namehop_p4_lang::value;
use namehop_p4runtime::Status;
use namehop_p4runtime::info::controller_packet_metadata::Metadata;
use namehop_p4runtime::info::{Object, P4Info};
use namehop_p4runtime::message::{PacketIn, PacketMetadata, PacketOut};
use num_bigint::{BigInt, Sign};

use super::bits;

/// The fields of both headers; empty if the program has no such header.
pub struct Headers {
    packet_in: Vec<Metadata>,
    packet_out: Vec<Metadata>,
}

fn bits_of(fields: &[Metadata]) -> u32 {
    fields.iter().map(|field| field.bitwidth as u32).sum()
}

impl Headers {
    /// The headers of a program.
    pub fn of(info: &P4Info) -> Headers {
        let fields = |name: &str| {
            let header = info.controller_packet_metadata.iter().find(|header| header.preamble().name == name);
            header.map(|header| header.metadata.clone()).unwrap_or_default()
        };
        Headers { packet_in: fields("packet_in"), packet_out: fields("packet_out") }
    }

    /// Converts a packet of the controller to the program's form.
    pub fn packet(&self, packet: &PacketOut) -> Result<Vec<u8>, Status> {
        let mut header = BigInt::from(0);
        for field in &self.packet_out {
            let mut given = packet.metadata.iter().filter(|given| given.metadata_id == field.id);
            let (Some(one), None) = (given.next(), given.next()) else {
                let message = format!("packet_out must have metadata {} once", field.name);
                return Err(Status::invalid_argument(message));
            };
            let width = field.bitwidth as u32;
            header = (header << width) | bits::read(&|| format!("metadata {}", field.name), &one.value, width)?;
        }
        if packet.metadata.len() > self.packet_out.len() {
            return Err(Status::invalid_argument("packet_out has metadata that its header does not define"));
        }
        let length = bits_of(&self.packet_out).div_ceil(8) as usize;
        let (_, bytes) = header.to_bytes_be();
        let mut all = vec![0; length.saturating_sub(bytes.len())];
        if length > 0 {
            all.extend(bytes);
        }
        all.extend(&packet.payload);
        Ok(all)
    }

    /// Converts a packet of the program to a message; `None` if the packet is shorter than its header.
    pub fn message(&self, packet: &[u8]) -> Option<PacketIn> {
        let length = bits_of(&self.packet_in).div_ceil(8) as usize;
        let (header, payload) = packet.split_at_checked(length)?;
        let header = BigInt::from_bytes_be(Sign::Plus, header);
        let mut left = bits_of(&self.packet_in);
        let metadata = self.packet_in.iter().map(|field| {
            let width = field.bitwidth as u32;
            left -= width;
            PacketMetadata { metadata_id: field.id, value: bits::write(&((&header >> left) & value::mask(width))) }
        });
        Some(PacketIn { metadata: metadata.collect(), payload: payload.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use namehop_p4runtime::info::controller_packet_metadata::Metadata;
    use namehop_p4runtime::message::{PacketIn, PacketMetadata, PacketOut};

    use super::Headers;

    #[test]
    fn headers_stand_for_metadata() {
        let field = |id, bitwidth| Metadata { id, name: format!("f{id}"), bitwidth };
        let fields = vec![field(1, 9), field(2, 7)];
        let headers = Headers { packet_in: fields.clone(), packet_out: fields };
        let metadata = |id: u32, value: &[u8]| PacketMetadata { metadata_id: id, value: value.to_vec() };
        let (payload, fields) = (b"data".to_vec(), vec![metadata(1, &[1, 2]), metadata(2, &[3])]);
        let packet = PacketOut { payload: payload.clone(), metadata: fields.clone() };
        let bytes = headers.packet(&packet).expect("the packet is valid");
        assert_eq!(bytes, b"\x81\x03data");
        assert_eq!(headers.message(&bytes), Some(PacketIn { payload, metadata: fields }));
        assert_eq!(headers.message(&[1]), None);
        for list in [
            vec![metadata(1, &[1])],
            vec![metadata(1, &[1]), metadata(1, &[1])],
            vec![metadata(1, &[2, 0]), metadata(2, &[0])],
            vec![metadata(1, &[1]), metadata(2, &[0]), metadata(3, &[0])],
        ] {
            assert!(headers.packet(&PacketOut { payload: Vec::new(), metadata: list }).is_err());
        }
        let none = Headers { packet_in: Vec::new(), packet_out: Vec::new() };
        let plain = PacketOut { payload: b"data".to_vec(), metadata: Vec::new() };
        assert_eq!(none.packet(&plain).expect("a packet without metadata is unchanged"), b"data");
        assert_eq!(none.message(b"data"), Some(PacketIn { payload: plain.payload, metadata: Vec::new() }));
    }
}
