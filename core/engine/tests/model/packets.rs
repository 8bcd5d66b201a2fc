//! Packets of the reference model: plain owned structs, and their encoding by the NDN packet specification.
//!
//! Nothing of the router's own packet code is used, so that a misunderstanding there cannot be hidden here.

use ring::digest::{SHA256, digest};

/// TLV-TYPE and value of a name component.
pub type Component = (u32, Vec<u8>);
/// A name.
pub type Name = Vec<Component>;

/// Type of a generic component.
pub const GENERIC: u32 = 8;
/// Type of an implicit digest component.
pub const IMPLICIT_DIGEST: u32 = 1;

/// An Interest without its nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interest {
    pub name: Name,
    pub can_be_prefix: bool,
    pub must_be_fresh: bool,
    pub hints: Vec<Name>,
    pub lifetime_ms: Option<u64>,
    pub hop_limit: Option<u8>,
}

/// Data, identified by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    pub name: Name,
    pub freshness_ms: Option<u64>,
    pub digest: Vec<u8>,
}

/// Returns a name of generic components from a URI such as `/a/b`.
pub fn name(uri: &str) -> Name {
    uri.split('/').filter(|part| !part.is_empty()).map(|part| (GENERIC, part.as_bytes().to_vec())).collect()
}

/// Returns a readable form of a name; components that are not generic are in hexadecimal.
pub fn uri(name: &Name) -> String {
    let component = |(typ, value): &Component| match *typ {
        GENERIC => format!("/{}", String::from_utf8_lossy(value)),
        _ => format!("/{typ}={}", hexadecimal(value)),
    };
    name.iter().map(component).collect()
}

/// Returns the first bytes in hexadecimal, which suffice to distinguish digests.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn number(value: u64) -> Vec<u8> {
    match value {
        0..=252 => vec![value as u8],
        253..=0xFFFF => [&[253], &(value as u16).to_be_bytes()[..]].concat(),
        0x1_0000..=0xFFFF_FFFF => [&[254], &(value as u32).to_be_bytes()[..]].concat(),
        _ => [&[255], &value.to_be_bytes()[..]].concat(),
    }
}

fn element(typ: u32, value: &[u8]) -> Vec<u8> {
    [number(u64::from(typ)), number(value.len() as u64), value.to_vec()].concat()
}

fn integer(value: u64) -> Vec<u8> {
    match value {
        0..=0xFF => vec![value as u8],
        0x100..=0xFFFF => (value as u16).to_be_bytes().to_vec(),
        0x1_0000..=0xFFFF_FFFF => (value as u32).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    }
}

/// Returns the Name VALUE.
pub fn name_value(name: &Name) -> Vec<u8> {
    name.iter().flat_map(|(typ, value)| element(*typ, value)).collect()
}

/// Returns the complete Interest.
pub fn encode_interest(interest: &Interest, nonce: Option<u32>) -> Vec<u8> {
    let mut value = element(7, &name_value(&interest.name));
    if interest.can_be_prefix {
        value.extend(element(33, &[]));
    }
    if interest.must_be_fresh {
        value.extend(element(18, &[]));
    }
    if !interest.hints.is_empty() {
        let hints: Vec<u8> = interest.hints.iter().flat_map(|hint| element(7, &name_value(hint))).collect();
        value.extend(element(30, &hints));
    }
    if let Some(nonce) = nonce {
        value.extend(element(10, &nonce.to_be_bytes()));
    }
    if let Some(lifetime_ms) = interest.lifetime_ms {
        value.extend(element(12, &integer(lifetime_ms)));
    }
    if let Some(hop_limit) = interest.hop_limit {
        value.extend(element(34, &[hop_limit]));
    }
    element(5, &value)
}

/// Returns complete Data with this content and a DigestSha256 signature, and its description.
pub fn encode_data(name: &Name, freshness_ms: Option<u64>, content: &[u8]) -> (Vec<u8>, Data) {
    let mut signed = element(7, &name_value(name));
    if let Some(freshness_ms) = freshness_ms {
        signed.extend(element(20, &element(25, &integer(freshness_ms))));
    }
    signed.extend(element(21, content));
    signed.extend(element(22, &element(27, &[0])));
    let signature = digest(&SHA256, &signed);
    signed.extend(element(23, signature.as_ref()));
    let packet = element(6, &signed);
    let data = Data { name: name.clone(), freshness_ms, digest: digest(&SHA256, &packet).as_ref().to_vec() };
    (packet, data)
}

/// Returns whether this Data answers an Interest with this name (NDN packet specification, "CanBePrefix" and "Data").
pub fn matches(name: &Name, can_be_prefix: bool, data: &Data) -> bool {
    let mut full_name = data.name.clone();
    full_name.push((IMPLICIT_DIGEST, data.digest.clone()));
    if name.len() == full_name.len() && name.last().is_some_and(|(typ, _)| *typ == IMPLICIT_DIGEST) {
        return *name == full_name;
    }
    if can_be_prefix { data.name.starts_with(name) } else { data.name == *name }
}
