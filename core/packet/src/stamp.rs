//! Receive times of packets, for packets with a measured time in the router.
//!
//! A stamp fits into padding that packets have anyway, and is small enough to travel with every packet, measured or
//! not.

/// Nanoseconds of one tick of a stamp.
const TICK_NS: u64 = 4;
/// Bits below the ticks, which hold the way of the packet.
const WAY_BITS: u32 = 2;
/// Maximum tick count, after which ticks wrap around to 0.
const TICKS_MASK: u32 = u32::MAX >> WAY_BITS;

/// What a router does with a received packet: the three cases of "NDN-DPDK: NDN Forwarding at 100 Gbps on Commodity
/// Hardware" (ICN 2020, section 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketWay {
    /// An Interest that misses in the Content Store and is sent to an upstream.
    CacheMiss,
    /// An Interest that hits in the Content Store and is satisfied from there.
    CacheHit,
    /// Data that is sent to a downstream.
    Data,
}

impl PacketWay {
    /// All ways.
    pub const ALL: [PacketWay; 3] = [PacketWay::CacheMiss, PacketWay::CacheHit, PacketWay::Data];
}

/// Receive time of a packet, if its time in the router is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of packets that are not measured.
    pub const NONE: Stamp = Stamp(0);
    /// Longest measurable time in nanoseconds: 4.3 seconds. Longer times are reported modulo this value.
    pub const RANGE_NS: u64 = TICK_NS * (TICKS_MASK as u64 + 1);

    /// Makes the stamp of a packet received at `now_ns`, by the same clock as the argument of
    /// [`elapsed_ns`](Self::elapsed_ns).
    pub const fn at(now_ns: u64) -> Stamp {
        Stamp((ticks(now_ns) << WAY_BITS) | 1)
    }

    /// Returns true if the packet is measured.
    #[inline]
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }

    /// Returns the same time with the way of the packet.
    pub const fn on(self, way: PacketWay) -> Stamp {
        Stamp((self.0 & !((1 << WAY_BITS) - 1)) | (way as u32 + 1))
    }

    /// Returns the way that [`on`](Self::on) set; `None` for a packet that is not measured.
    pub const fn way(self) -> Option<PacketWay> {
        match self.0 & ((1 << WAY_BITS) - 1) {
            0 => None,
            way => Some(PacketWay::ALL[way as usize - 1]),
        }
    }

    /// Returns the time since the packet was received in nanoseconds, with a resolution of 4 ns.
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
    fn time_is_measured_across_the_end_of_the_ticks() {
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
