//! Packets of the load: only name, Nonce and token vary.

use namehop_bench::workload::Workload;
use namehop_wire::lp::{LpHeader, PitToken, encode_packet};
use namehop_wire::tlv::{Writer, types};

/// Size of the content of each Data packet, in bytes.
const PAYLOAD_BYTES: usize = 128;
const FRESHNESS_MS: u64 = 10_000;
/// Size of HMAC and digest signatures, in bytes.
const SIGNATURE_BYTES: usize = 32;

fn name(workload: &Workload, number: u64) -> Vec<u8> {
    let mut name = vec![0; workload.name_bytes()];
    workload.write_name(number, &mut name);
    name
}

/// Encodes an Interest for name number `number`.
pub fn interest(workload: &Workload, number: u64, nonce: u32) -> Vec<u8> {
    let mut packet = Writer::new();
    packet.nested(types::INTEREST, |packet| {
        packet.element(types::NAME, &name(workload, number));
        packet.element(types::NONCE, &nonce.to_be_bytes());
    });
    packet.into_vec()
}

/// Encodes the Data with name number `number`.
pub fn data(workload: &Workload, number: u64) -> Vec<u8> {
    let mut packet = Writer::new();
    packet.nested(types::DATA, |packet| {
        packet.element(types::NAME, &name(workload, number));
        packet.nested(types::META_INFO, |meta| {
            meta.nni(types::FRESHNESS_PERIOD, FRESHNESS_MS);
        });
        packet.element(types::CONTENT, &[0x2A; PAYLOAD_BYTES]);
        packet.nested(types::SIGNATURE_INFO, |info| {
            info.nni(types::SIGNATURE_TYPE, 0);
        });
        packet.element(types::SIGNATURE_VALUE, &[0; SIGNATURE_BYTES]);
    });
    packet.into_vec()
}

/// Encodes a frame with this packet and token.
pub fn frame(packet: &[u8], token: PitToken) -> Vec<u8> {
    encode_packet(&LpHeader { pit_token: token, ..LpHeader::default() }, Some(packet))
}
