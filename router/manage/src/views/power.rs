//! Views of the power of the host.

use serde::Serialize;
use utoipa::ToSchema;

use crate::server::{PowerPart, PowerStatus};

/// Power over the last second or so, and energy since the start of the router.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PowerView {
    /// `measured` by the processors' counters, or `estimated` with the description of a server.
    pub source: String,
    /// The server whose description it was estimated with; `null` when measured.
    #[schema(required)]
    pub server: Option<String>,
    /// Power of all parts.
    pub watts: f64,
    /// Energy of all parts, whoever used it, for each packet that the router forwarded; `null` without packets.
    #[schema(required)]
    pub nanojoules_per_packet: Option<u64>,
    /// Parts of the computer; none is part of another.
    pub parts: Vec<PowerPartView>,
}

/// A part of the computer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PowerPartView {
    /// As the operating system calls it (`package-0`, `dram-0`), or the model (`cpu`, `memory`, `nic`, `chassis`).
    pub name: String,
    /// Its power.
    pub watts: f64,
    /// Its energy since the start of the router.
    pub joules: f64,
}

impl From<&PowerStatus> for PowerView {
    fn from(status: &PowerStatus) -> Self {
        let source = if status.estimated_with.is_some() { "estimated" } else { "measured" };
        PowerView {
            source: source.to_owned(),
            server: status.estimated_with.clone(),
            watts: thousandths(status.milliwatts()),
            nanojoules_per_packet: status.nanojoules_per_packet,
            parts: status.parts.iter().map(PowerPartView::from).collect(),
        }
    }
}

impl From<&PowerPart> for PowerPartView {
    fn from(PowerPart { name, milliwatts, millijoules }: &PowerPart) -> Self {
        PowerPartView { name: name.clone(), watts: thousandths(*milliwatts), joules: thousandths(*millijoules) }
    }
}

fn thousandths(number: u64) -> f64 {
    number as f64 / 1e3
}
