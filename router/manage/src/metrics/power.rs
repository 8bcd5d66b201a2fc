//! The metrics of power.

use std::fmt;

use namehop_client::nfd::PowerStatus;
use prometheus_client::metrics::MetricType;

use super::render::Metrics;

/// Writes power, energy, and energy per packet, if they are known. A label tells measured from estimated values.
pub(super) fn power(metrics: &mut Metrics<'_>, power: Option<&PowerStatus>) -> fmt::Result {
    let Some(power) = power else { return Ok(()) };
    let source = ("source", if power.estimated_with.is_some() { "estimated" } else { "measured" });
    metrics.family("power_watts", "Power of a part of the host", MetricType::Gauge, |family| {
        power
            .parts
            .iter()
            .try_for_each(|part| family.line_f64(&[source, ("part", &part.name)], part.milliwatts as f64 / 1e3))
    })?;
    metrics.family(
        "energy_joules",
        "Energy used by a part of the host since the start of the router",
        MetricType::Counter,
        |family| {
            power
                .parts
                .iter()
                .try_for_each(|part| family.line_f64(&[source, ("part", &part.name)], part.millijoules as f64 / 1e3))
        },
    )?;
    let Some(energy) = power.nanojoules_per_packet else { return Ok(()) };
    let help = "Energy of all parts per forwarded packet";
    metrics.family("packet_energy_nanojoules", help, MetricType::Gauge, |family| family.line(&[source], energy))
}
