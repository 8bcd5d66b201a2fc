//! Metrics of faces. Each face has its own lines, except that on-demand faces to other hosts share lines, by scheme.

use std::fmt;
use std::sync::atomic::Ordering;

use namehop_face::{Face, LinkDrop};
use namehop_packet::DropReason;
use prometheus_client::metrics::MetricType;

use super::Snapshot;
use super::gone::{DirectionSums, FaceSums};
use super::render::{Family, Labels, Metrics};

/// A source of lines in each metric of faces: one face, or all on-demand faces of one scheme to other hosts.
struct LabelledFace<'a> {
    counts: FaceCounts<'a>,
    id: String,
    remote: String,
    local: String,
}

enum FaceCounts<'a> {
    Face(&'a Face),
    OnDemand(Box<FaceSums>),
}

impl LabelledFace<'_> {
    /// Returns the identifying labels; further labels follow them.
    fn labels<'a>(&'a self) -> Labels<'a, 3> {
        [("face", &self.id), ("remote", &self.remote), ("local", &self.local)]
    }

    fn directions(&self) -> [(&'static str, DirectionSums); 2] {
        let [received, sent] = match &self.counts {
            FaceCounts::Face(face) => {
                let counters = &face.counters;
                [
                    DirectionSums::of(counters, |worker| &worker.received),
                    DirectionSums::of(counters, |worker| &worker.sent),
                ]
            }
            FaceCounts::OnDemand(sums) => sums.directions,
        };
        [("in", received), ("out", sent)]
    }
}

pub(super) fn faces(metrics: &mut Metrics<'_>, snapshot: &Snapshot) -> fmt::Result {
    let (unsolicited, known): (Vec<_>, Vec<_>) =
        snapshot.faces.iter().map(AsRef::as_ref).partition(|face| face.is_unsolicited());
    let known = known.into_iter().map(|face: &Face| LabelledFace {
        counts: FaceCounts::Face(face),
        id: face.id().to_string(),
        remote: face.remote_uri().to_string(),
        local: face.local_uri().to_string(),
    });
    let unsolicited = snapshot.gone.with(unsolicited.into_iter());
    let together = unsolicited.into_iter().map(|(scheme, sums)| LabelledFace {
        counts: FaceCounts::OnDemand(Box::new(sums)),
        id: "on-demand".to_owned(),
        remote: scheme,
        local: String::new(),
    });
    let faces: Vec<LabelledFace<'_>> = known.chain(together).collect();
    metrics.family("face_packets", "Network-layer packets of a face", MetricType::Counter, |family| {
        for face in &faces {
            let [id, remote, local] = face.labels();
            for (direction, sums) in face.directions() {
                for (kind, count) in [("interest", sums.interests), ("data", sums.data), ("nack", sums.nacks)] {
                    family.line(&[id, remote, local, ("direction", direction), ("kind", kind)], count)?;
                }
            }
        }
        Ok(())
    })?;
    direction_family(metrics, &faces, "face_bytes", "Bytes of a face, link-layer headers included", |sums| sums.bytes)?;
    direction_family(metrics, &faces, "face_frames", "Link-layer packets of a face", |sums| sums.frames)?;
    metrics.family("face_drops", "Packets discarded on a face", MetricType::Counter, |family| {
        faces.iter().try_for_each(|face| face_drops(family, face))
    })?;
    let counter = MetricType::Counter;
    face_family(
        metrics,
        &faces,
        "face_congestion_marks",
        "Packets marked as congested",
        counter,
        |counts| match counts {
            FaceCounts::Face(face) => face.counters.sum(|worker| worker.congestion_marks.get()),
            FaceCounts::OnDemand(sums) => sums.congestion_marks,
        },
    )?;
    face_family(metrics, &faces, "face_retransmissions", "Link-layer packets retransmitted", counter, |counts| {
        match counts {
            FaceCounts::Face(face) => face.counters.sum(|worker| worker.retransmissions.get()),
            FaceCounts::OnDemand(sums) => sums.retransmissions,
        }
    })?;
    let gauge = MetricType::Gauge;
    face_family(
        metrics,
        &faces,
        "face_up",
        "Whether the link is up; for on-demand faces, their number",
        gauge,
        |counts| match counts {
            FaceCounts::Face(face) => face.is_up().into(),
            FaceCounts::OnDemand(sums) => sums.faces,
        },
    )?;
    face_family(metrics, &faces, "face_send_queue_bytes", "Bytes waiting to be sent", gauge, |counts| match counts {
        FaceCounts::Face(face) => face.send_queue_bytes.load(Ordering::Relaxed) as u64,
        FaceCounts::OnDemand(sums) => sums.send_queue_bytes,
    })
}

/// Writes the drops of a face for reasons that occurred. The label includes the layer, because both layers can run out
/// of buffers.
fn face_drops(family: &mut Family<'_>, face: &LabelledFace<'_>) -> fmt::Result {
    let [id, remote, local] = face.labels();
    let mut line = |layer: &str, reason: &str, count: u64| match count {
        0 => Ok(()),
        count => family.line(&[id, remote, local, ("layer", layer), ("reason", reason)], count),
    };
    match &face.counts {
        FaceCounts::Face(face) => {
            let counters = &face.counters;
            LinkDrop::ALL.iter().try_for_each(|&reason| line("link", reason.name(), counters.link_drop(reason)))?;
            DropReason::ALL.iter().try_for_each(|&reason| line("engine", reason.name(), counters.engine_drop(reason)))
        }
        FaceCounts::OnDemand(sums) => {
            sums.link_drops.iter().try_for_each(|(reason, &count)| line("link", reason, count))?;
            sums.engine_drops.iter().try_for_each(|(reason, &count)| line("engine", reason, count))
        }
    }
}

fn direction_family(
    metrics: &mut Metrics<'_>,
    faces: &[LabelledFace<'_>],
    name: &str,
    help: &str,
    value: impl Fn(DirectionSums) -> u64,
) -> fmt::Result {
    metrics.family(name, help, MetricType::Counter, |family| {
        for face in faces {
            let [id, remote, local] = face.labels();
            for (direction, sums) in face.directions() {
                family.line(&[id, remote, local, ("direction", direction)], value(sums))?;
            }
        }
        Ok(())
    })
}

fn face_family(
    metrics: &mut Metrics<'_>,
    faces: &[LabelledFace<'_>],
    name: &str,
    help: &str,
    metric_type: MetricType,
    value: impl Fn(&FaceCounts<'_>) -> u64,
) -> fmt::Result {
    metrics.family(name, help, metric_type, |family| {
        faces.iter().try_for_each(|face| family.line(&face.labels(), value(&face.counts)))
    })
}
