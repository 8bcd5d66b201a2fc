//! Cuts packets that are too large for the link (NDNLPv2 fragmentation).
//!
//! Network-layer headers go on fragment 0 only, so it has less space for the packet than the others. The overhead is
//! reserved as it will be on the wire, not for the longest numbers that a field could hold. With the smallest MTU this
//! makes 294 fragments, instead of more than [`MAX_FRAGMENTS`].

use namehop_wire::lp::{LpHeader, header_len};

use super::reassembler::MAX_FRAGMENTS;
use crate::counters::LinkDrop;

/// Sizes of the pieces of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentPlan {
    /// Bytes in fragment 0.
    pub first_bytes: usize,
    /// Bytes in each further fragment; the last one may have fewer.
    pub further_bytes: usize,
    /// Number of fragments.
    pub count: usize,
}

impl FragmentPlan {
    /// Plans fragments of a packet of `packet_bytes` for frames of at most `mtu_bytes`. `network` holds the headers of
    /// fragment 0; `protected` reserves space for TxSequence.
    ///
    /// # Errors
    /// [`LinkDrop::HeaderTooLong`] if the headers leave no space for the packet, [`LinkDrop::TooManyFragments`].
    pub fn new(
        network: &LpHeader<'_>,
        protected: bool,
        packet_bytes: usize,
        mtu_bytes: usize,
    ) -> Result<FragmentPlan, LinkDrop> {
        let share = |header: &LpHeader<'_>| {
            let longest = LpHeader {
                sequence: Some(u64::MAX),
                frag_index: Some(MAX_FRAGMENTS - 1),
                frag_count: Some(MAX_FRAGMENTS),
                tx_sequence: protected.then_some(u64::MAX),
                ..*header
            };
            let header_bytes = header_len(&longest, mtu_bytes);
            let share = mtu_bytes.checked_sub(header_bytes).filter(|&bytes| bytes > 0);
            share.ok_or(LinkDrop::HeaderTooLong)
        };
        let first_bytes = share(network)?.min(packet_bytes);
        let further_bytes = share(&LpHeader::default())?;
        let count = 1 + (packet_bytes - first_bytes).div_ceil(further_bytes);
        if count as u64 > MAX_FRAGMENTS {
            return Err(LinkDrop::TooManyFragments);
        }
        Ok(FragmentPlan { first_bytes, further_bytes, count })
    }

    /// Returns the part of `packet` in fragment `index`.
    pub fn piece<'a>(&self, packet: &'a [u8], index: usize) -> &'a [u8] {
        if index == 0 {
            return &packet[..self.first_bytes];
        }
        let start = self.first_bytes + (index - 1) * self.further_bytes;
        let end = packet.len().min(start + self.further_bytes);
        &packet[start..end]
    }

    /// Returns the headers of fragment `index`. `first_tx_sequence` is the TxSequence of fragment 0, if the packet is
    /// protected.
    pub fn header<'a>(
        &self,
        network: &LpHeader<'a>,
        first_sequence: u64,
        first_tx_sequence: Option<u64>,
        index: usize,
    ) -> LpHeader<'a> {
        let fields = if index == 0 { *network } else { LpHeader::default() };
        LpHeader {
            sequence: Some(first_sequence.wrapping_add(index as u64)),
            frag_index: Some(index as u64),
            frag_count: Some(self.count as u64),
            tx_sequence: first_tx_sequence.map(|first| first + index as u64),
            ..fields
        }
    }
}
