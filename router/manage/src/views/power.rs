//! Views of the power of the host.

use namehop_client::nfd::{PowerPart, PowerStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// Power over about the last second, and energy since the start of the router.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PowerView {
    /// `measured` with the counters of the CPUs, or `estimated` with the model of a server.
    pub source: String,
    /// The server model of the estimate; `null` if measured.
    #[schema(required)]
    pub server: Option<String>,
    /// Power of all parts.
    pub watts: f64,
    /// Energy of all parts, including that used by other programs, per forwarded packet; `null` without packets.
    #[schema(required)]
    pub nanojoules_per_packet: Option<u64>,
    /// Parts of the host; none contains another.
    pub parts: Vec<PowerPartView>,
}

/// A part of the host.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PowerPartView {
    /// Name given by the operating system (`package-0`, `dram-0`) or by the model (`cpu`, `memory`, `nic`, `chassis`).
    pub name: String,
    /// Power of the part.
    pub watts: f64,
    /// Energy of the part since the start of the router.
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
