//! Packets of attacks and of well-behaved exchanges.

use std::sync::atomic::{AtomicU64, Ordering};

use namehop_wire::Name;
use namehop_wire::builder::{InterestBuilder, InterestSignatureOptions};
use namehop_wire::lp::{LpHeader, PitToken, encode_packet};
use namehop_wire::security::Signer;
use namehop_wire::tlv::{Writer, types};

use super::options::Failure;

/// SignatureType 200, NullSignature: forwarders do not verify signatures of Data.
const NULL_SIGNATURE: u64 = 200;

/// Returns a nonce that no earlier call returned: a permutation of a counter.
pub fn nonce() -> [u8; 4] {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let start = u64::from(std::process::id()) << 20;
    let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    (number as u32).wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Returns the prefix with a number, the form of all names here.
pub fn numbered(prefix: &Name, number: u64) -> Name {
    prefix.clone().append_generic(number.to_be_bytes())
}

/// Returns the number in a name with this prefix.
pub fn number_of(prefix: &Name, name: &[u8]) -> Option<u64> {
    let (rest, number) = name.split_last_chunk::<8>()?;
    let rest = rest.strip_prefix(prefix.value())?;
    (rest == [types::GENERIC_NAME_COMPONENT as u8, 8]).then(|| u64::from_be_bytes(*number))
}

/// Optional fields of an Interest.
#[derive(Default, Clone)]
pub struct Extras {
    pub lifetime_ms: Option<u64>,
    pub hint: Option<Name>,
}

/// Encodes an Interest for a name VALUE.
pub fn interest(name: &[u8], extras: &Extras) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.nested(types::INTEREST, |writer| {
        writer.element(types::NAME, name);
        if let Some(hint) = &extras.hint {
            writer.nested(types::FORWARDING_HINT, |writer| {
                writer.element(types::NAME, hint.value());
            });
        }
        writer.element(types::NONCE, &nonce());
        if let Some(lifetime_ms) = extras.lifetime_ms {
            writer.nni(types::INTEREST_LIFETIME, lifetime_ms);
        }
    });
    writer.into_vec()
}

/// Encodes a Data for a name VALUE.
pub fn data(name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.nested(types::DATA, |writer| {
        writer.element(types::NAME, name);
        writer.element(types::CONTENT, content);
        writer.nested(types::SIGNATURE_INFO, |writer| {
            writer.nni(types::SIGNATURE_TYPE, NULL_SIGNATURE);
        });
        writer.element(types::SIGNATURE_VALUE, &[]);
    });
    writer.into_vec()
}

/// Splits a packet into frames with at most `piece_bytes` of it each; the first one carries the PIT token.
pub fn frames(packet: &[u8], token: PitToken, sequence: u64, piece_bytes: usize) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = packet.chunks(piece_bytes).collect();
    let frame = |(index, piece): (usize, &&[u8])| {
        let mut header = LpHeader::default();
        if index == 0 {
            header.pit_token = token;
        }
        if pieces.len() > 1 {
            header.sequence = Some(sequence + index as u64);
            header.frag_index = Some(index as u64);
            header.frag_count = Some(pieces.len() as u64);
        }
        encode_packet(&header, Some(piece))
    };
    pieces.iter().enumerate().map(frame).collect()
}

/// Encodes the first of two fragments; the second one is never sent.
pub fn first_fragment(sequence: u64, payload: &[u8]) -> Vec<u8> {
    let header = LpHeader { sequence: Some(sequence), frag_index: Some(0), frag_count: Some(2), ..LpHeader::default() };
    encode_packet(&header, Some(payload))
}

/// Encodes a command to add a route for `prefix` under `/localhost/nfd` or `/localhop/nfd`. Without `face` the next hop
/// is the face that the command arrives on.
pub fn registration(zone: &str, prefix: &Name, face: Option<u64>, signer: &dyn Signer) -> Result<Vec<u8>, Failure> {
    registration_at(zone, prefix, face, signer, &InterestSignatureOptions::now()?)
}

/// Encodes the same command, signed with the given options.
pub fn registration_at(
    zone: &str,
    prefix: &Name,
    face: Option<u64>,
    signer: &dyn Signer,
    options: &InterestSignatureOptions,
) -> Result<Vec<u8>, Failure> {
    let mut parameters = Writer::new();
    parameters.nested(types::nfd::CONTROL_PARAMETERS, |writer| {
        writer.element(types::NAME, prefix.value());
        if let Some(face) = face {
            writer.nni(types::nfd::FACE_ID, face);
        }
    });
    let name: Name = format!("/{zone}/nfd/rib/register").parse()?;
    let command =
        InterestBuilder::new(name.append_generic(parameters.as_slice())).must_be_fresh(true).lifetime_ms(4000);
    Ok(command.sign(signer, options)?)
}
