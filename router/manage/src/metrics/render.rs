//! Renders a snapshot in the OpenMetrics text format. Every metric begins with `namehop_`, has its unit in its name,
//! and a line of help.

use std::fmt;

use namehop_client::nfd::ReadvertiseStatus;
use namehop_engine::second_tier::{TierReport, TierState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Snapshot;
use super::faces::faces;
use super::latency::latency;
use super::power::power;
use super::workers::workers;

/// Renders the snapshot as text.
pub fn render(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("namehop");
    registry.register_collector(Box::new(SnapshotCollector(snapshot.clone())));
    let mut text = String::new();
    // Writing into a string fails only if a collector fails, and this one does not.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct SnapshotCollector(Snapshot);

impl Collector for SnapshotCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics = Metrics(encoder);
        router(&mut metrics, &self.0)?;
        engine(&mut metrics, &self.0)?;
        tables(&mut metrics, &self.0)?;
        workers(&mut metrics, &self.0.workers)?;
        power(&mut metrics, self.0.power.as_ref())?;
        latency(&mut metrics, &self.0.latency)?;
        readvertise(&mut metrics, &self.0.readvertise)?;
        faces(&mut metrics, &self.0)
    }
}

/// Labels of one line.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

pub(super) struct Metrics<'a>(DescriptorEncoder<'a>);

impl Metrics<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// Writes declared counters ([`namehop_packet::counters!`]).
    fn counters(&mut self, mut counters: impl Iterator<Item = (&'static str, &'static str, u64)>) -> fmt::Result {
        counters.try_for_each(|(name, help, value)| self.counter(name, help, value))
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauge_f64(name, help, value as f64)
    }

    fn gauge_f64(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// Writes one metric, with lines that differ in their labels.
    pub(super) fn family(
        &mut self,
        name: &str,
        help: &str,
        metric_type: MetricType,
        write: impl FnOnce(&mut Family<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let is_counter = matches!(metric_type, MetricType::Counter);
        let encoder = self.0.encode_descriptor(name, help, None, metric_type)?;
        write(&mut Family { encoder, is_counter })
    }

    /// Writes one metric of histograms that differ in their labels.
    pub(super) fn histograms(
        &mut self,
        name: &str,
        help: &str,
        write: impl FnOnce(&mut Family<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Histogram, write)
    }
}

pub(super) struct Family<'a> {
    encoder: MetricEncoder<'a>,
    is_counter: bool,
}

impl Family<'_> {
    pub(super) fn line<const N: usize>(&mut self, labels: &Labels<'_, N>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_family(labels)?;
        if self.is_counter {
            ConstCounter::new(value).encode(encoder)
        } else {
            ConstGauge::new(value as f64).encode(encoder)
        }
    }

    /// Writes a histogram: sum and number of its values, and its buckets as (upper bound, number of values).
    pub(super) fn histogram<const N: usize>(
        &mut self,
        labels: &Labels<'_, N>,
        sum: f64,
        count: u64,
        buckets: &[(f64, u64)],
    ) -> fmt::Result {
        self.encoder.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, buckets, None)
    }

    /// Writes a line with a floating-point value.
    pub(super) fn line_f64<const N: usize>(&mut self, labels: &Labels<'_, N>, value: f64) -> fmt::Result {
        let encoder = self.encoder.encode_family(labels)?;
        if self.is_counter { ConstCounter::new(value).encode(encoder) } else { ConstGauge::new(value).encode(encoder) }
    }
}

fn router(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    metrics.gauge_f64("uptime_seconds", "Time since the start of the router", snapshot.uptime_seconds)?;
    metrics.gauge("buffers_in_use", "Packet buffers in use", snapshot.engine.buffers_in_use as u64)?;
    match resident_memory_bytes() {
        Some(bytes) => metrics.gauge("process_resident_memory_bytes", "Memory of the process in RAM", bytes),
        None => Ok(()),
    }
}

/// Returns the memory of this process in RAM, in bytes, if the operating system reports it.
fn resident_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn engine(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    let counters = &snapshot.engine.counters;
    let packets = [
        ("in", "interest", counters.in_interests),
        ("in", "data", counters.in_data),
        ("in", "nack", counters.in_nacks),
        ("out", "interest", counters.out_interests),
        ("out", "data", counters.out_data),
        ("out", "nack", counters.out_nacks),
    ];
    metrics.family("packets", "Network-layer packets of the forwarding engine", MetricType::Counter, |family| {
        packets
            .iter()
            .try_for_each(|&(direction, kind, count)| family.line(&[("direction", direction), ("kind", kind)], count))
    })?;
    metrics.family("drops", "Packets discarded, including those of closed faces", MetricType::Counter, |family| {
        let engine = counters.drops.iter().map(|(reason, count)| ("engine", reason.name(), count));
        let link = snapshot.link_drops.iter().map(|&(reason, count)| ("link", reason.name(), count));
        engine
            .chain(link)
            .try_for_each(|(layer, reason, count)| family.line(&[("layer", layer), ("reason", reason)], count))
    })?;
    metrics.counters(counters.metrics())?;
    let by_policy = &snapshot.engine.cs.by_policy;
    metrics.family("cs_policy", "Events of the Content Store by policy", MetricType::Counter, |family| {
        by_policy.used().try_for_each(|(policy, counters)| {
            counters
                .metrics()
                .try_for_each(|(event, _, count)| family.line(&[("policy", policy.name()), ("event", event)], count))
        })
    })
}

fn tables(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    let (sizes, cs) = (&snapshot.engine.sizes, &snapshot.engine.cs);
    for (name, help, size) in [
        ("name_entries", "Entries of the PIT-CS composite table", sizes.pcct as u64),
        ("pit_entries", "Pending Interests", sizes.pit as u64),
        ("cs_entries", "Data packets in the Content Store", sizes.cs as u64),
        ("cs_capacity_packets", "Data packets that the Content Store may hold", cs.capacity as u64),
        ("cs_admit_enabled", "Whether the Content Store admits Data", cs.admit.into()),
        ("cs_serve_enabled", "Whether Interests are answered from the Content Store", cs.serve.into()),
        ("measurements_entries", "Prefixes with strategy measurements", sizes.measurements as u64),
        ("dead_nonces", "Nonces in the Dead Nonce List", sizes.dead_nonces as u64),
        ("fib_entries", "Prefixes with next hops", snapshot.fib_entries),
        ("fib_waiting", "Removed FIB entries that are not freed yet, because a worker is stuck", snapshot.fib_waiting),
        ("rib_entries", "Prefixes with routes", snapshot.rib_entries),
        ("rib_routes", "Routes", snapshot.rib_routes),
        ("faces", "Faces", snapshot.faces.len() as u64),
    ] {
        metrics.gauge(name, help, size)?;
    }
    table_memory(metrics, &snapshot.table_memory)?;
    cs.second_tier.map_or(Ok(()), |tier| second_tier(metrics, &tier))
}

/// Writes the memory of tables by contents.
fn table_memory(metrics: &mut Metrics<'_>, tables: &[(&'static str, usize, usize)]) -> fmt::Result {
    if tables.is_empty() {
        return Ok(());
    }
    let help =
        "Memory of tables by contents: resident in RAM, and reserved address space, which takes RAM only when used";
    metrics.family("table_memory_bytes", help, MetricType::Gauge, |family| {
        tables.iter().try_for_each(|&(contents, reserved, resident)| {
            family.line(&[("contents", contents), ("state", "resident")], resident as u64)?;
            family.line(&[("contents", contents), ("state", "reserved")], reserved as u64)
        })
    })
}

/// Writes the metrics of the second tier of the Content Store.
fn second_tier(metrics: &mut Metrics<'_>, TierReport { status, counters, waiting }: &TierReport) -> fmt::Result {
    metrics.gauge("cs_disk_capacity_bytes", "Capacity of the disk cache in bytes", status.capacity_bytes)?;
    metrics.gauge(
        "cs_disk_used_bytes",
        "Bytes of the disk cache that have been written at least once",
        status.used_bytes,
    )?;
    metrics.gauge("cs_disk_waiting_interests", "Interests waiting for a disk read", *waiting)?;
    metrics.gauge(
        "cs_disk_erasing_workers",
        "Workers with erasures not yet recorded on the disk",
        status.erasing_workers,
    )?;
    metrics.family(
        "cs_disk_state",
        "State of the disk cache: 1 for the current state",
        MetricType::Gauge,
        |family| {
            let mut states = TierState::ALL.iter();
            states.try_for_each(|state| family.line(&[("state", state.name())], u64::from(*state == status.state)))
        },
    )?;
    metrics.counters(counters.metrics().chain(status.counters.metrics()))
}

fn readvertise(metrics: &mut Metrics<'_>, destinations: &[ReadvertiseStatus]) -> fmt::Result {
    metrics.family(
        "readvertise_commands",
        "Commands that announce routes to a routing daemon or gateway, by result",
        MetricType::Counter,
        |family| {
            destinations.iter().try_for_each(|destination| {
                let counters = &destination.counters;
                [
                    ("announced", counters.announced),
                    ("withdrawn", counters.withdrawn),
                    ("refused", counters.refused),
                    ("nack", counters.nacked),
                    ("timed-out", counters.timed_out),
                ]
                .iter()
                .try_for_each(|&(result, count)| {
                    family.line(&[("destination", &destination.destination), ("result", result)], count)
                })
            })
        },
    )?;
    metrics.family(
        "readvertise_left_out",
        "Prefixes not announced because the limit on prefixes was reached",
        MetricType::Counter,
        |family| {
            destinations
                .iter()
                .try_for_each(|status| family.line(&[("destination", &status.destination)], status.counters.left_out))
        },
    )?;
    metrics.family(
        "readvertise_prefixes",
        "Prefixes to announce to a routing daemon or gateway, by state",
        MetricType::Gauge,
        |family| {
            destinations.iter().try_for_each(|status| {
                [
                    ("announced", status.announced_prefixes),
                    ("waiting", status.waiting_prefixes),
                    ("refused", status.refused_prefixes),
                    ("withdrawing", status.withdrawing_prefixes),
                ]
                .iter()
                .try_for_each(|&(state, count)| {
                    family.line(&[("destination", &status.destination), ("state", state)], count)
                })
            })
        },
    )?;
    metrics.family(
        "readvertise_available",
        "Whether there is a route to a routing daemon or gateway",
        MetricType::Gauge,
        |family| {
            destinations.iter().try_for_each(|status| {
                family.line(&[("destination", &status.destination)], (!status.face_ids.is_empty()).into())
            })
        },
    )
}
