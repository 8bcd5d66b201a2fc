//! The UDP source port that encodes the name of a packet.
//!
//! Network cards and routers choose queues and paths by the addresses and ports of UDP. Tunnels therefore put a hash of
//! their content into the source port (RFC 7348 section 5, RFC 8085 section 5.1.1). Here it is a hash of the first two
//! components of the name, which also assign packets to workers. So packets of one name keep their order, and names
//! spread over the queues of the receiver. Interest and Data of a name have the same port, whichever router sends them.
//! The hash has no secret, because routers must agree; so a sender that chooses names can direct them to one queue.

use namehop_wire::tlv::{Reader, read_var_number, types};

/// Number of hashed name components.
const COMPONENTS: usize = 2;
/// The lowest source port; the range ends at 65535. These dynamic ports are never assigned (RFC 6335 section 6).
pub(crate) const FIRST_PORT: u16 = 49_152;
/// The number of source ports is two to the power of this.
const PORT_BITS: u32 = 14;
/// An odd number without a pattern: the fractional part of the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the source port for a frame: a bare packet, or an LpPacket. `None` if the frame contains no complete name
/// prefix, for example a later fragment.
#[inline]
pub(crate) fn source_port(frame: &[u8]) -> Option<u16> {
    let (mut typ, mut value) = open(frame)?;
    if typ == types::LP_PACKET.into() {
        (typ, value) = open(fragment(value)?)?;
    }
    if typ != types::INTEREST.into() && typ != types::DATA.into() {
        return None;
    }
    let name = Reader::new(value).read_typed(types::NAME).ok()?.value;
    let mut components = Reader::new(name);
    for _ in 0..COMPONENTS {
        if components.is_empty() {
            break;
        }
        components.read_element().ok()?;
    }
    Some(port_of(&name[..components.position()]))
}

/// Returns the TYPE of an element and the available part of its VALUE: the first fragment of a packet does not contain
/// all of it.
fn open(element: &[u8]) -> Option<(u64, &[u8])> {
    let (typ, type_bytes) = read_var_number(element).ok()?;
    let (_, length_bytes) = read_var_number(&element[type_bytes..]).ok()?;
    Some((typ, &element[type_bytes + length_bytes..]))
}

/// Returns the packet, or its first part, from the fields of an LpPacket.
fn fragment(fields: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader::new(fields);
    loop {
        let field = fields.read_element().ok()?;
        match field.typ {
            types::LP_FRAG_INDEX if field.value.iter().any(|&byte| byte != 0) => return None,
            types::LP_FRAGMENT => return Some(field.value),
            _ => {}
        }
    }
}

/// Hashes eight bytes at a time by multiplying each word into the state; the upper half of a product depends on all
/// bits of the word.
fn port_of(components: &[u8]) -> u16 {
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        (product >> 64) as u64 ^ product as u64
    };
    let (words, rest) = components.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let state = words.iter().fold(components.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    let state = mix(state, u64::from_le_bytes(last));
    FIRST_PORT + (state.wrapping_mul(MULTIPLIER) >> (u64::BITS - PORT_BITS)) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn element(typ: u8, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![typ];
        match value.len() {
            length @ 0..253 => bytes.push(length as u8),
            length => bytes.extend([253, (length >> 8) as u8, length as u8]),
        }
        bytes.extend_from_slice(value);
        bytes
    }

    fn name(components: &[&str]) -> Vec<u8> {
        let components: Vec<u8> = components.iter().flat_map(|text| element(8, text.as_bytes())).collect();
        element(7, &components)
    }

    fn interest(components: &[&str]) -> Vec<u8> {
        element(5, &[name(components), element(10, &[1, 2, 3, 4])].concat())
    }

    #[test]
    fn interest_and_data_of_a_name_have_one_port_and_only_two_components_count() {
        let port = source_port(&interest(&["a", "b", "c"]));
        assert!(port.is_some_and(|port| port >= FIRST_PORT));
        let data = element(6, &[name(&["a", "b", "other"]), element(21, &[0; 400])].concat());
        let token = element(0x62, &[9; 8]);
        let in_link_packet = element(0x64, &[token, element(0x50, &data)].concat());
        for same in [data, in_link_packet, interest(&["a", "b"])] {
            assert_eq!(source_port(&same), port);
        }
        for other in [&["a", "c"][..], &["a"], &[], &["b", "a"]] {
            let other = source_port(&interest(other));
            assert!(other.is_some() && other != port);
        }
    }

    #[test]
    fn the_hash_is_the_same_in_every_version() {
        assert_eq!(source_port(&interest(&["example", "video"])), Some(58_746));
        assert_eq!(source_port(&interest(&[])), Some(49_152));
    }

    #[test]
    fn fragments_have_the_port_of_their_first_one() {
        let packet = interest(&["a", "b", &"c".repeat(300)]);
        let port = source_port(&packet);
        let part = |index: u8, bytes: &[u8]| {
            let fields = [element(0x51, &[0; 8]), element(0x52, &[index]), element(0x53, &[2]), element(0x50, bytes)];
            element(0x64, &fields.concat())
        };
        assert_eq!(source_port(&part(0, &packet)), port);
        // The name continues in the second fragment, so the first one is not enough.
        assert_eq!(source_port(&part(0, &packet[..100])), None);
        let data = element(6, &[name(&["a", "b"]), element(21, &[0; 400])].concat());
        assert_eq!(source_port(&part(0, &data[..100])), port);
        assert_eq!(source_port(&part(1, &data[100..])), None);
    }

    #[test]
    fn names_spread_over_the_ports() {
        let ports: HashSet<_> = (0..1000).filter_map(|n| source_port(&interest(&["a", &n.to_string()]))).collect();
        assert!(ports.len() > 950, "{}", ports.len());
        let queues: HashSet<_> = ports.iter().map(|port| port % 8).collect();
        assert_eq!(queues.len(), 8);
    }

    #[test]
    fn what_has_no_name_has_no_port() {
        for bytes in
            [&[][..], &[5], &[5, 0], &[0x64, 0], &[0x64, 2, 0x50, 0], &[7, 1, 0], &[5, 2, 8, 0], &[5, 4, 7, 2, 8, 9]]
        {
            assert_eq!(source_port(bytes), None, "{bytes:?}");
        }
    }
}
