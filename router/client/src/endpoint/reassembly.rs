//! Reassembles packets that a forwarder fragmented on a datagram link (NDNLPv2 fragmentation).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use namehop_wire::MAX_PACKET_SIZE;

/// How long an incomplete packet is kept after its newest fragment.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of incomplete packets; the oldest is evicted.
const MAX_PARTIAL: usize = 64;
/// Maximum number of fragments per packet: enough for the largest packet over the smallest link.
const MAX_FRAGMENTS: u64 = 400;

struct Partial {
    fragments: Vec<Option<Vec<u8>>>,
    bytes: usize,
    missing: usize,
    newest: Instant,
    /// Link headers of the packet, which only fragment 0 carries.
    head: Option<Head>,
}

/// Link headers of a whole packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) pit_token: namehop_wire::lp::PitToken,
    pub(super) nack: Option<namehop_wire::lp::NackReason>,
    pub(super) congestion_mark: u64,
}

/// A fragment and its position.
pub(super) struct Piece<'a> {
    pub(super) sequence: u64,
    pub(super) index: u64,
    pub(super) count: u64,
    pub(super) head: Head,
    pub(super) payload: &'a [u8],
}

/// Incomplete packets of one link.
#[derive(Default)]
pub(super) struct Reassembler {
    partial: HashMap<u64, Partial>,
}

impl Reassembler {
    /// Adds a fragment; returns the packet if the fragment completes it. A fragment that contradicts earlier ones is
    /// dropped.
    pub(super) fn accept(&mut self, now: Instant, piece: &Piece<'_>) -> Option<(Vec<u8>, Head)> {
        if piece.count > MAX_FRAGMENTS || piece.index >= piece.count {
            return None;
        }
        let message = piece.sequence.wrapping_sub(piece.index);
        self.partial.retain(|_, partial| now.saturating_duration_since(partial.newest) < TIMEOUT);
        if !self.partial.contains_key(&message) && self.partial.len() >= MAX_PARTIAL {
            let oldest = self.partial.iter().min_by_key(|(_, partial)| partial.newest).map(|(&key, _)| key)?;
            self.partial.remove(&oldest);
        }
        let count = piece.count as usize;
        let partial = self.partial.entry(message).or_insert_with(|| Partial {
            fragments: vec![None; count],
            bytes: 0,
            missing: count,
            newest: now,
            head: None,
        });
        if partial.fragments.len() != count {
            return None;
        }
        let slot = partial.fragments.get_mut(piece.index as usize)?;
        // Fragments that together exceed the maximum packet size are dropped.
        if slot.is_some() || partial.bytes + piece.payload.len() > MAX_PACKET_SIZE {
            return None;
        }
        *slot = Some(piece.payload.to_vec());
        partial.bytes += piece.payload.len();
        partial.missing -= 1;
        partial.newest = now;
        if piece.index == 0 {
            partial.head = Some(piece.head);
        }
        if partial.missing > 0 {
            return None;
        }
        let partial = self.partial.remove(&message)?;
        Some((partial.fragments.into_iter().flatten().flatten().collect(), partial.head?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namehop_wire::lp::PitToken;

    fn piece(sequence: u64, index: u64, count: u64, payload: &[u8], mark: u64) -> Piece<'_> {
        let head = Head { pit_token: PitToken::empty(), nack: None, congestion_mark: mark };
        Piece { sequence, index, count, head, payload }
    }

    #[test]
    fn fragments_in_any_order_make_the_packet_with_the_headers_of_the_first() {
        let now = Instant::now();
        let mut reassembler = Reassembler::default();
        assert!(reassembler.accept(now, &piece(12, 2, 3, b"c", 0)).is_none());
        assert!(reassembler.accept(now, &piece(10, 0, 3, b"a", 9)).is_none());
        assert!(reassembler.accept(now, &piece(10, 0, 3, b"x", 8)).is_none());
        let (packet, head) = reassembler.accept(now, &piece(11, 1, 3, b"b", 0)).unwrap();
        assert_eq!((packet.as_slice(), head.congestion_mark), (b"abc".as_slice(), 9));
    }

    #[test]
    fn contradictions_and_late_fragments_are_dropped() {
        let now = Instant::now();
        let mut reassembler = Reassembler::default();
        assert!(reassembler.accept(now, &piece(1, 5, 3, b"a", 0)).is_none());
        assert!(reassembler.accept(now, &piece(1, 0, 1000, b"a", 0)).is_none());
        assert!(reassembler.accept(now, &piece(20, 0, 2, b"a", 0)).is_none());
        assert!(reassembler.accept(now, &piece(21, 1, 3, b"b", 0)).is_none());
        assert!(reassembler.accept(now + TIMEOUT, &piece(21, 1, 2, b"b", 0)).is_none());
        assert!(reassembler.accept(now + TIMEOUT, &piece(20, 0, 2, b"a", 0)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let now = Instant::now();
        let mut reassembler = Reassembler::default();
        for message in 0..10_000u64 {
            reassembler.accept(now, &piece(message * 10, 0, 2, b"a", 0));
        }
        assert!(reassembler.partial.len() <= MAX_PARTIAL);
        let mut reassembler = Reassembler::default();
        for index in 0..400 {
            assert!(reassembler.accept(now, &piece(index, index, 400, &[1; 1000], 0)).is_none());
        }
        assert_eq!(reassembler.partial[&0].bytes, 8000);
    }
}
