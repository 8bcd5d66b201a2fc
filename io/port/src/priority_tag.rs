//! IEEE 802.1Q tags that carry a priority and no VLAN. Ports ignore and remove them.

use namehop_packet::PacketBuffer;

/// Ethernet type of tagged frames, and the lengths of a tag and of the addresses before it, in bytes.
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];
pub(crate) const TAG_BYTES: usize = 4;
pub(crate) const ADDRESSES_BYTES: usize = 12;
/// The VLAN bits in the second half of a tag.
const VLAN_BITS: u16 = 0x0FFF;

/// Removes a tag that carries only a priority from a frame.
#[inline]
pub(crate) fn take_off_priority_tag(frame: &mut PacketBuffer) {
    let bytes = frame.bytes_mut();
    if let Some(&[high, low]) = bytes.get(ADDRESSES_BYTES + 2..ADDRESSES_BYTES + TAG_BYTES)
        && bytes[ADDRESSES_BYTES..ADDRESSES_BYTES + 2] == ETHERTYPE_VLAN
        && u16::from_be_bytes([high, low]) & VLAN_BITS == 0
    {
        bytes.copy_within(..ADDRESSES_BYTES, TAG_BYTES);
        frame.trim_front(TAG_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use namehop_packet::BufferPool;

    use super::*;

    #[test]
    fn tags_of_priority_come_off_and_those_of_vlans_stay() {
        let pool = BufferPool::new(4, 4);
        let addresses = [7; ADDRESSES_BYTES];
        for (tag, is_kept) in [([0x81, 0, 0xE0, 0], false), ([0x81, 0, 0, 7], true), ([0x86, 0x24, 0, 0], true)] {
            let bytes = [addresses.as_slice(), &tag, b"rest"].concat();
            let mut frame = pool.copy_of(&bytes).expect("a buffer");
            take_off_priority_tag(&mut frame);
            let short = [addresses.as_slice(), b"rest"].concat();
            assert_eq!(frame.bytes(), if is_kept { &bytes } else { &short }, "{tag:?}");
        }
        for length in 0..ADDRESSES_BYTES + TAG_BYTES {
            let bytes = vec![0x81; length];
            let mut frame = pool.copy_of(&bytes).expect("a buffer");
            take_off_priority_tag(&mut frame);
            assert_eq!(frame.bytes(), bytes);
        }
    }
}
