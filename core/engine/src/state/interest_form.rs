//! Interests as bytes: rewriting a received one, and rebuilding one from the PIT.

use namehop_packet::{BufferPool, DropReason, PacketBuffer};
use namehop_wire::tlv::{Nni, element_len, put_header, types};
use namehop_wire::{InterestRewrite, MAX_PACKET_SIZE, rewrite_interest};

use crate::pcct::entry::LIFETIME_ABSENT;
use crate::pcct::{Pcct, PitRef};

/// Maximum number of bytes that a rewrite adds: Nonce, HopLimit, and longer LENGTHs.
const REWRITE_GROWTH_BYTES: usize = 16;
const NONCE_BYTES: usize = 4;

/// The fields that differ between the Interests of one PIT entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    pub(crate) nonce: u32,
    pub(crate) hop_limit: Option<u8>,
}

impl Variable {
    /// Overwrites Nonce and HopLimit of an Interest in place, at these offsets; offset 0 means the field is absent.
    #[inline]
    pub(crate) fn write(self, packet: &mut [u8], nonce_at: u16, hop_limit_at: u16) {
        let nonce_at = usize::from(nonce_at);
        if let Some(place) = packet.get_mut(nonce_at..nonce_at + NONCE_BYTES)
            && nonce_at > 0
        {
            place.copy_from_slice(&self.nonce.to_be_bytes());
        }
        if let Some(hop_limit) = self.hop_limit
            && let Some(place) = packet.get_mut(usize::from(hop_limit_at))
            && hop_limit_at > 0
        {
            *place = hop_limit;
        }
    }
}

/// The parts of an Interest that has neither parameters nor a forwarding hint.
struct Parts<'a> {
    name: &'a [u8],
    can_be_prefix: bool,
    must_be_fresh: bool,
    lifetime_ms: Option<u64>,
    variable: Variable,
}

impl Parts<'_> {
    fn value_len(&self) -> usize {
        let flags = if self.can_be_prefix { 2 } else { 0 } + if self.must_be_fresh { 2 } else { 0 };
        let lifetime =
            self.lifetime_ms.map_or(0, |ms| element_len(types::INTEREST_LIFETIME, Nni::new(ms).as_slice().len()));
        let hop_limit = if self.variable.hop_limit.is_some() { 3 } else { 0 };
        element_len(types::NAME, self.name.len())
            + flags
            + element_len(types::NONCE, NONCE_BYTES)
            + lifetime
            + hop_limit
    }

    /// Writes the packet to `out`, which must have exactly its length.
    fn write(&self, out: &mut [u8]) {
        let mut at = put_header(out, types::INTEREST, self.value_len());
        let mut element = |typ: u32, value: &[u8]| {
            at += put_header(&mut out[at..], typ, value.len());
            out[at..at + value.len()].copy_from_slice(value);
            at += value.len();
        };
        element(types::NAME, self.name);
        if self.can_be_prefix {
            element(types::CAN_BE_PREFIX, &[]);
        }
        if self.must_be_fresh {
            element(types::MUST_BE_FRESH, &[]);
        }
        element(types::NONCE, &self.variable.nonce.to_be_bytes());
        if let Some(lifetime_ms) = self.lifetime_ms {
            element(types::INTEREST_LIFETIME, Nni::new(lifetime_ms).as_slice());
        }
        if let Some(hop_limit) = self.variable.hop_limit {
            element(types::HOP_LIMIT, &[hop_limit]);
        }
    }
}

/// Returns a rewritten copy of an Interest.
///
/// # Errors
/// If no buffer is available, or the packet is malformed.
pub(crate) fn rewritten(
    pool: &BufferPool,
    packet: &[u8],
    change: &InterestRewrite,
) -> Result<PacketBuffer, DropReason> {
    let room = packet.len() + REWRITE_GROWTH_BYTES;
    let mut buffer = pool.allocate(room).ok_or(DropReason::NoBuffer)?;
    let out = buffer.append(room).ok_or(DropReason::NoBuffer)?;
    let length = rewrite_interest(packet, change, out).map_err(|_| DropReason::Malformed)?;
    buffer.truncate(length);
    Ok(buffer)
}

/// Builds the pending Interest with this Nonce, and with this HopLimit or none. Returns `None` if no buffer is
/// available.
pub(crate) fn rebuilt(pool: &BufferPool, pcct: &Pcct, pit: PitRef, variable: Variable) -> Option<PacketBuffer> {
    let slot = pcct.pit.slot(pit);
    let lifetime_ms = (slot.lifetime_ms != LIFETIME_ABSENT).then_some(u64::from(slot.lifetime_ms));
    if let Some(packet) = pcct.pit.packet(&pcct.names, pit) {
        // The stored copy has the HopLimit and lifetime, if any, of the Interest that opened the PIT entry.
        let Variable { nonce, hop_limit } = variable;
        let nonce = Some(nonce);
        let change =
            InterestRewrite { nonce, hop_limit, remove_hop_limit: true, lifetime_ms, ..InterestRewrite::default() };
        return rewritten(pool, packet, &change).ok();
    }
    let selectors = slot.selectors();
    let parts = Parts {
        name: pcct.names.name(pit.entry),
        can_be_prefix: selectors.can_be_prefix,
        must_be_fresh: selectors.must_be_fresh,
        lifetime_ms,
        variable,
    };
    let length = element_len(types::INTEREST, parts.value_len());
    if length > MAX_PACKET_SIZE {
        return None;
    }
    let mut buffer = pool.allocate(length)?;
    parts.write(buffer.append(length)?);
    Some(buffer)
}

/// Returns the InterestLifetime in the PIT's representation.
pub(crate) fn kept_lifetime(lifetime_ms: Option<u64>) -> u32 {
    let longest = u64::from(LIFETIME_ABSENT) - 1;
    lifetime_ms.map_or(LIFETIME_ABSENT, |lifetime_ms| lifetime_ms.min(longest) as u32)
}
