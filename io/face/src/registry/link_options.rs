//! The properties of a face that its link service needs.

/// The link service's settings of its face; from [`Face::link_options`](super::Face::link_options).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkOptions {
    /// Largest frame to send, in bytes. A `u16`, so that a worker's record of a face fills two cache lines.
    pub mtu_bytes: u16,
    /// The link keeps packet borders, so larger packets are fragmented. Otherwise it carries whole packets of up to
    /// 8800 bytes, headers included, and the MTU has no effect.
    pub is_datagram: bool,
    /// IncomingFaceId is sent and NextHopFaceId accepted.
    pub local_fields: bool,
    /// Frames are acknowledged and sent again when lost.
    pub reliability: bool,
    /// Packets are marked when the send queue is long.
    pub congestion_marking: bool,
    /// NonDiscovery and PrefixAnnouncement are sent and accepted.
    pub self_learning: bool,
    /// Time that the queue must be above the threshold before packets are marked, in nanoseconds.
    pub base_congestion_marking_interval_ns: u64,
    /// Send-queue length above which congestion begins, in bytes.
    pub default_congestion_threshold_bytes: u64,
}

impl LinkOptions {
    /// Returns the options for a worker: reliability is for the face's home worker only.
    pub(crate) fn of_worker(self, is_home: bool) -> Self {
        LinkOptions { reliability: self.reliability && is_home, ..self }
    }
}
