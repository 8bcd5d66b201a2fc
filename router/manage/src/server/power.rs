//! What the computer takes of power, as the control plane tells it.

/// Power over the last second or so, and energy since the start of the router. Whole numbers, as datasets have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerStatus {
    /// The server whose description the figures were computed with; `None` where energy was measured.
    pub estimated_with: Option<String>,
    /// Energy of a packet that the router forwarded, in nanojoules: all energy of the parts, whoever used it, divided by these packets.
    /// `None` when there were none.
    pub nanojoules_per_packet: Option<u64>,
    /// Parts of the computer; none is part of another.
    pub parts: Vec<PowerPart>,
}

/// A part of the computer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerPart {
    /// As the operating system calls it (`package-0`, `dram-0`), or the model (`cpu`, `memory`, `nic`, `chassis`).
    pub name: String,
    /// Power, in milliwatts.
    pub milliwatts: u64,
    /// Energy since the start of the router, in millijoules.
    pub millijoules: u64,
}

impl PowerStatus {
    /// Power of all parts, in milliwatts.
    pub fn milliwatts(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.milliwatts))
    }
}
