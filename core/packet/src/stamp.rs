//! The moment at which a packet was received, for the few packets whose time in the router is measured.
//!
//! A stamp is as large as the gap that frames have anyway, and small enough to travel with every packet, measured or not.

/// Nanoseconds of one tick of a stamp.
const TICK_NS: u64 = 4;
/// Bits below the ticks, which say what became of the packet.
const WAY_BITS: u32 = 2;
/// What ticks are counted up to, before they begin at 0 again.
const TICKS_MASK: u32 = u32::MAX >> WAY_BITS;

/// What a router does with a packet that it has received: the three that "NDN-DPDK: NDN Forwarding at 100 Gbps on Commodity Hardware"
/// (ICN 2020, section 7.4) tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketWay {
    /// An Interest that the Content Store cannot answer: it goes on to an upstream.
    CacheMiss,
    /// An Interest that the Content Store answers with Data.
    CacheHit,
    /// Data that goes on to a downstream.
    Data,
}

impl PacketWay {
    /// All of them.
    pub const ALL: [PacketWay; 3] = [PacketWay::CacheMiss, PacketWay::CacheHit, PacketWay::Data];
}

/// When a packet was received, if its time in the router is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp(u32);

impl Stamp {
    /// Of packets that are not measured.
    pub const NONE: Stamp = Stamp(0);
    /// The longest time that can be told, in nanoseconds: 4.3 seconds. A longer one looks like the rest of its division by this.
    pub const RANGE_NS: u64 = TICK_NS * (TICKS_MASK as u64 + 1);

    /// Of a packet that is received now, by a clock that its sender shares with whoever [asks](Self::elapsed_ns) later.
    pub const fn at(now_ns: u64) -> Stamp {
        Stamp((ticks(now_ns) << WAY_BITS) | 1)
    }

    /// Whether the packet is measured.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The same moment, and what has become of the packet.
    pub const fn on(self, way: PacketWay) -> Stamp {
        Stamp((self.0 & !((1 << WAY_BITS) - 1)) | (way as u32 + 1))
    }

    /// What has become of the packet: that of [`on`](Self::on); of a packet that is not measured, `None`.
    pub const fn way(self) -> Option<PacketWay> {
        match self.0 & ((1 << WAY_BITS) - 1) {
            0 => None,
            way => Some(PacketWay::ALL[way as usize - 1]),
        }
    }

    /// Time since the packet was received, in nanoseconds, to 4 of them.
    pub const fn elapsed_ns(self, now_ns: u64) -> u64 {
        TICK_NS * (ticks(now_ns).wrapping_sub(self.0 >> WAY_BITS) & TICKS_MASK) as u64
    }
}

const fn ticks(now_ns: u64) -> u32 {
    (now_ns / TICK_NS) as u32 & TICKS_MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_across_the_end_of_the_ticks() {
        for received_ns in [0, 4, 1_000_000_004, Stamp::RANGE_NS - 4, Stamp::RANGE_NS, 10_000_000_000_000] {
            let stamp = Stamp::at(received_ns);
            assert!(stamp.is_some());
            for way in PacketWay::ALL {
                assert_eq!(stamp.on(way).way(), Some(way));
                for elapsed_ns in [0, 4, 40_000, Stamp::RANGE_NS - 4] {
                    assert_eq!(stamp.on(way).elapsed_ns(received_ns + elapsed_ns), elapsed_ns, "{received_ns}");
                }
            }
        }
        assert!(!Stamp::NONE.is_some() && Stamp::NONE.way().is_none());
    }
}
