//! Power of the host, as the control plane reports it.

/// Power over about the last second, and energy since the start of the router. Whole numbers, because datasets hold
/// integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerStatus {
    /// The server model that the figures were estimated with; `None` where energy was measured.
    pub estimated_with: Option<String>,
    /// Energy per forwarded packet, in nanojoules: the energy of all parts, including that used by other programs,
    /// divided by the number of these packets. `None` without packets.
    pub nanojoules_per_packet: Option<u64>,
    /// Parts of the host; none contains another.
    pub parts: Vec<PowerPart>,
}

/// A part of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerPart {
    /// Name given by the operating system (`package-0`, `dram-0`) or by the model (`cpu`, `memory`, `nic`, `chassis`).
    pub name: String,
    /// Power, in milliwatts.
    pub milliwatts: u64,
    /// Energy since the start of the router, in millijoules.
    pub millijoules: u64,
}

impl PowerStatus {
    /// Returns the power of all parts, in milliwatts.
    pub fn milliwatts(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.milliwatts))
    }
}
