//! Writing a snapshot in the OpenMetrics text format. Every metric begins with `namehop_`, has its unit in its name, and a
//! line of help.

use std::fmt;
use std::sync::Arc;

use namehop_face::counters::DirectionCounters;
use namehop_face::{Face, LinkDrop};
use namehop_forward::counters::DropReason;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::Snapshot;

/// The snapshot as text.
pub fn render(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix("namehop");
    registry.register_collector(Box::new(SnapshotCollector(snapshot.clone())));
    let mut text = String::new();
    // Writing into a string fails only when a collector does, and this one does not.
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
        faces(&mut metrics, &self.0.faces)
    }
}

/// Labels of one line.
type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

struct Metrics<'a>(DescriptorEncoder<'a>);

impl Metrics<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.gauge_f64(name, help, value as f64)
    }

    fn gauge_f64(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// Lines of one metric that differ in their labels.
    fn family(
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
}

struct Family<'a> {
    encoder: MetricEncoder<'a>,
    is_counter: bool,
}

impl Family<'_> {
    fn line<const N: usize>(&mut self, labels: &Labels<'_, N>, value: u64) -> fmt::Result {
        let encoder = self.encoder.encode_family(labels)?;
        if self.is_counter {
            ConstCounter::new(value).encode(encoder)
        } else {
            ConstGauge::new(value as f64).encode(encoder)
        }
    }
}

fn router(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    metrics.gauge_f64("uptime_seconds", "Time since the start of the router", snapshot.uptime_seconds)?;
    metrics.gauge("buffers_in_use", "Packet buffers in use", snapshot.buffers_in_use)?;
    match resident_memory_bytes() {
        Some(bytes) => metrics.gauge("process_resident_memory_bytes", "Memory of the process in RAM", bytes),
        None => Ok(()),
    }
}

/// Memory of this process in RAM, where the operating system tells.
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
    metrics.family("drops", "Packets discarded, on faces that are gone too", MetricType::Counter, |family| {
        let engine = counters.drops.iter().map(|(reason, count)| ("engine", reason.name(), count));
        let link = snapshot.link_drops.iter().map(|&(reason, count)| ("link", reason.name(), count));
        engine
            .chain(link)
            .try_for_each(|(layer, reason, count)| family.line(&[("layer", layer), ("reason", reason)], count))
    })?;
    for (name, help, count) in [
        ("satisfied_interests", "Pending Interests that ended with Data", counters.satisfied_interests),
        ("unsatisfied_interests", "Pending Interests that ended without Data", counters.unsatisfied_interests),
        ("aggregated_interests", "Interests that joined a pending one", counters.aggregated_interests),
        ("cs_hits", "Interests answered from the Content Store", counters.cs_hits),
        ("cs_misses", "Interests that the Content Store could not answer", counters.cs_misses),
        ("cs_rejected", "Data that could not be cached although policy allowed it", counters.cs_rejected),
        ("pit_evictions", "Pending Interests given up to make room for new ones", counters.pit_evictions),
        ("lost_events", "Self-learning events that the control plane did not fetch in time", counters.lost_events),
    ] {
        metrics.counter(name, help, count)?;
    }
    Ok(())
}

fn tables(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    let (engine, content_store) = (&snapshot.engine, &snapshot.content_store);
    for (name, help, size) in [
        ("name_entries", "Entries of the PIT-CS composite table", engine.name_entries),
        ("pit_entries", "Pending Interests", engine.pit_entries),
        ("cs_entries", "Data packets in the Content Store", engine.cs_entries),
        ("cs_capacity_packets", "Data packets that the Content Store may hold", content_store.capacity),
        ("cs_admit_enabled", "Whether Data is taken into the Content Store", content_store.admit.into()),
        ("cs_serve_enabled", "Whether Interests are answered from the Content Store", content_store.serve.into()),
        ("measurements_entries", "Prefixes with strategy measurements", engine.measurements_entries),
        ("dead_nonces", "Nonces in the Dead Nonce List", snapshot.dead_nonces),
        ("fib_entries", "Prefixes with next hops", snapshot.fib_entries),
        ("rib_entries", "Prefixes with routes", snapshot.rib_entries),
        ("rib_routes", "Routes", snapshot.rib_routes),
        ("faces", "Faces", snapshot.faces.len() as u64),
    ] {
        metrics.gauge(name, help, size)?;
    }
    Ok(())
}

/// A face with its labels.
struct LabelledFace<'a> {
    face: &'a Face,
    id: String,
    remote: String,
    local: String,
}

impl LabelledFace<'_> {
    /// The labels that say which face it is, before others.
    fn labels<'a>(&'a self) -> Labels<'a, 3> {
        [("face", &self.id), ("remote", &self.remote), ("local", &self.local)]
    }

    fn directions(&self) -> [(&'static str, &DirectionCounters); 2] {
        let counters = &self.face.counters.worker;
        [("in", &counters.received), ("out", &counters.sent)]
    }
}

fn faces(metrics: &mut Metrics<'_>, faces: &[Arc<Face>]) -> fmt::Result {
    let faces: Vec<LabelledFace<'_>> = faces
        .iter()
        .map(|face| LabelledFace {
            face,
            id: face.id().to_string(),
            remote: face.remote_uri().to_string(),
            local: face.local_uri().to_string(),
        })
        .collect();
    metrics.family("face_packets", "Network-layer packets of a face", MetricType::Counter, |family| {
        for face in &faces {
            let [id, remote, local] = face.labels();
            for (direction, counters) in face.directions() {
                for (kind, counters) in
                    [("interest", &counters.interests), ("data", &counters.data), ("nack", &counters.nacks)]
                {
                    let labels = [id, remote, local, ("direction", direction), ("kind", kind)];
                    family.line(&labels, counters.packets.get())?;
                }
            }
        }
        Ok(())
    })?;
    direction_family(metrics, &faces, "face_bytes", "Bytes of a face, link-layer headers included", |counters| {
        counters.bytes.get()
    })?;
    direction_family(metrics, &faces, "face_frames", "Link-layer packets of a face", |counters| counters.frames.get())?;
    metrics.family("face_drops", "Packets discarded on a face", MetricType::Counter, |family| {
        faces.iter().try_for_each(|face| face_drops(family, face))
    })?;
    face_counter(metrics, &faces, "face_congestion_marks", "Packets that a face marked as congested", |face| {
        face.counters.worker.congestion_marks.get()
    })?;
    face_counter(metrics, &faces, "face_retransmissions", "Link-layer packets that a face sent again", |face| {
        face.counters.worker.retransmissions.get()
    })?;
    metrics.family("face_up", "Whether the link of a face works", MetricType::Gauge, |family| {
        faces.iter().try_for_each(|face| family.line(&face.labels(), face.face.is_up().into()))
    })?;
    metrics.family("face_send_queue_bytes", "Bytes waiting to be sent on a face", MetricType::Gauge, |family| {
        faces.iter().try_for_each(|face| {
            let waiting = face.face.send_queue_bytes.load(std::sync::atomic::Ordering::Relaxed);
            family.line(&face.labels(), waiting as u64)
        })
    })
}

/// Reasons that occurred. The label says in which layer, because both can run out of buffers.
fn face_drops(family: &mut Family<'_>, face: &LabelledFace<'_>) -> fmt::Result {
    let [id, remote, local] = face.labels();
    let counters = &face.face.counters;
    let link = LinkDrop::ALL.iter().map(|&reason| ("link", reason.name(), counters.link_drop(reason)));
    let engine =
        DropReason::ALL.iter().map(|&reason| ("engine", reason.name(), counters.worker.engine_drops.get(reason as u8)));
    for (layer, reason, count) in link.chain(engine).filter(|(.., count)| *count > 0) {
        family.line(&[id, remote, local, ("layer", layer), ("reason", reason)], count)?;
    }
    Ok(())
}

fn direction_family(
    metrics: &mut Metrics<'_>,
    faces: &[LabelledFace<'_>],
    name: &str,
    help: &str,
    value: impl Fn(&DirectionCounters) -> u64,
) -> fmt::Result {
    metrics.family(name, help, MetricType::Counter, |family| {
        for face in faces {
            let [id, remote, local] = face.labels();
            for (direction, counters) in face.directions() {
                family.line(&[id, remote, local, ("direction", direction)], value(counters))?;
            }
        }
        Ok(())
    })
}

fn face_counter(
    metrics: &mut Metrics<'_>,
    faces: &[LabelledFace<'_>],
    name: &str,
    help: &str,
    value: impl Fn(&Face) -> u64,
) -> fmt::Result {
    metrics.family(name, help, MetricType::Counter, |family| {
        faces.iter().try_for_each(|face| family.line(&face.labels(), value(face.face)))
    })
}
