//! View of the router as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::{CsDiskView, PowerView};
use crate::nfd::{CsDisk, DropCount, GeneralStatus, ReadvertiseStatus};
use crate::server::{HandoverCounters, PowerStatus, QueueStatus, WorkerStatus};

/// Version, uptime, table sizes and packet counts, every discarded packet by reason, and who is told of the routes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StatusView {
    /// Program and version.
    pub version: String,
    /// When the router started.
    pub start_time_unix_ms: u64,
    /// When it answered.
    pub current_time_unix_ms: u64,
    /// What lies between these.
    pub uptime_s: f64,
    /// Entries of the table of names.
    pub name_tree_entries: u64,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// Pending Interests.
    pub pit_entries: u64,
    /// Strategy measurements.
    pub measurements_entries: u64,
    /// Data in the Content Store.
    pub cs_entries: u64,
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Pending Interests that ended with Data.
    pub satisfied_interests: u64,
    /// Pending Interests that ended without.
    pub unsatisfied_interests: u64,
    /// Discarded packets by layer, then by reason, those of faces that are gone included; `null` where the forwarder does not
    /// tell.
    #[schema(required)]
    pub drops: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    /// The same by face, of faces that exist.
    #[schema(required)]
    pub face_drops: Option<Vec<FaceDropView>>,
    /// Who is told of the routes; `null` where the forwarder does not tell.
    #[schema(required)]
    pub readvertise: Option<Vec<ReadvertiseView>>,
    /// What each worker does, by number; `null` where the forwarder does not tell.
    #[schema(required)]
    pub workers: Option<Vec<WorkerView>>,
    /// What the computer takes of power; `null` where that is neither measured nor estimated.
    #[schema(required)]
    pub power: Option<PowerView>,
    /// The second tier of the Content Store; `null` where there is none.
    #[schema(required)]
    pub cs_disk: Option<CsDiskView>,
}

/// Namehop's own datasets, beyond `status/general`, which all forwarders have.
#[derive(Debug, Clone, Copy)]
pub struct OwnDatasets<'a> {
    /// `status/drops`.
    pub drops: &'a [DropCount],
    /// `status/readvertise`.
    pub readvertise: &'a [ReadvertiseStatus],
    /// `status/workers`.
    pub workers: &'a [WorkerStatus],
    /// `status/power`.
    pub power: Option<&'a PowerStatus>,
    /// From `cs/info`.
    pub cs_disk: Option<CsDisk>,
}

/// Packets discarded on a face for one reason.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FaceDropView {
    /// The face.
    pub face_id: u64,
    /// `engine` or `link`.
    pub layer: String,
    /// Stable name in kebab case.
    pub reason: String,
    /// Packets.
    pub count: u64,
}

/// One worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WorkerView {
    /// Number of the processor it is pinned to; `null` when it is not.
    #[schema(required)]
    pub processor: Option<usize>,
    /// Share of the time since its start in which it had something to do, from 0 to 1.
    pub busy_share: f64,
    /// Packets that it has forwarded.
    pub packets: u64,
    /// Its pending Interests.
    pub pit_entries: u64,
    /// Data in its Content Store.
    pub cs_entries: u64,
    /// Entries of the name dispatch table, out of 65536, that lead to it; 0 when there is only one worker.
    pub dispatch_entries: u64,
    /// What it and the others hand to each other.
    #[serde(flatten)]
    pub handover: HandoverCounters,
    /// The queues of ports that it has.
    pub queues: Vec<QueueStatus>,
}

impl From<&WorkerStatus> for WorkerView {
    fn from(status: &WorkerStatus) -> Self {
        let running_s = status.running.as_secs_f64();
        WorkerView {
            processor: status.processor,
            busy_share: if running_s > 0.0 { status.busy.as_secs_f64() / running_s } else { 0.0 },
            packets: status.packets,
            pit_entries: status.pit_entries,
            cs_entries: status.cs_entries,
            dispatch_entries: status.dispatch_entries,
            handover: status.handover,
            queues: status.queues.clone(),
        }
    }
}

/// A routing daemon or a gateway that is told of routes.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReadvertiseView {
    /// `daemon` or `gateway`.
    pub destination: String,
    /// Where its commands go.
    pub command_prefix: String,
    /// Is there a route to it?
    pub is_available: bool,
    /// Faces that lead there.
    pub face_ids: Vec<u64>,
    /// Prefixes that it knows of.
    pub announced_prefixes: u64,
    /// Prefixes that it is to be told of.
    pub waiting_prefixes: u64,
    /// Prefixes that it has refused.
    pub refused_prefixes: u64,
    /// Prefixes that are gone and that it is to forget.
    pub withdrawing_prefixes: u64,
    /// Prefixes for which there was no room.
    pub left_out_prefixes: u64,
    /// Commands so far, by how they ended.
    pub commands: ReadvertiseCommandsView,
    /// What went wrong last.
    #[schema(required)]
    pub last_error: Option<ReadvertiseErrorView>,
}

/// Commands to a routing daemon or a gateway.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReadvertiseCommandsView {
    /// Announcements that were accepted.
    pub announced: u64,
    /// Withdrawals that were accepted.
    pub withdrawn: u64,
    /// Answers of any other status.
    pub refused: u64,
    /// Nacks.
    pub nack: u64,
    /// No answer.
    pub timed_out: u64,
}

/// A command that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReadvertiseErrorView {
    /// The prefix.
    pub prefix: String,
    /// In words.
    pub reason: String,
    /// How long ago.
    pub age_s: f64,
}

impl From<&ReadvertiseStatus> for ReadvertiseView {
    fn from(status: &ReadvertiseStatus) -> Self {
        let counters = status.counters;
        ReadvertiseView {
            destination: status.destination.clone(),
            command_prefix: status.command_prefix.to_string(),
            is_available: !status.face_ids.is_empty(),
            face_ids: status.face_ids.clone(),
            announced_prefixes: status.announced_prefixes,
            waiting_prefixes: status.waiting_prefixes,
            refused_prefixes: status.refused_prefixes,
            withdrawing_prefixes: status.withdrawing_prefixes,
            left_out_prefixes: counters.left_out,
            commands: ReadvertiseCommandsView {
                announced: counters.announced,
                withdrawn: counters.withdrawn,
                refused: counters.refused,
                nack: counters.nacked,
                timed_out: counters.timed_out,
            },
            last_error: status.last_error.as_ref().map(|error| ReadvertiseErrorView {
                prefix: error.prefix.to_string(),
                reason: error.reason.clone(),
                age_s: Duration::from_millis(error.age_ms).as_secs_f64(),
            }),
        }
    }
}

impl StatusView {
    /// Creates the view from the dataset `status/general` and, if the forwarder has them, Namehop's own datasets.
    pub fn new(status: GeneralStatus, own: Option<OwnDatasets<'_>>) -> Self {
        let uptime = Duration::from_millis(status.current_timestamp_ms.saturating_sub(status.start_timestamp_ms));
        Self {
            version: status.version,
            start_time_unix_ms: status.start_timestamp_ms,
            current_time_unix_ms: status.current_timestamp_ms,
            uptime_s: uptime.as_secs_f64(),
            name_tree_entries: status.name_tree_entries,
            fib_entries: status.fib_entries,
            pit_entries: status.pit_entries,
            measurements_entries: status.measurements_entries,
            cs_entries: status.cs_entries,
            in_interests: status.in_interests,
            in_data: status.in_data,
            in_nacks: status.in_nacks,
            out_interests: status.out_interests,
            out_data: status.out_data,
            out_nacks: status.out_nacks,
            satisfied_interests: status.satisfied_interests,
            unsatisfied_interests: status.unsatisfied_interests,
            drops: own.map(|own| totals(own.drops)),
            face_drops: own.map(|own| of_faces(own.drops)),
            readvertise: own.map(|own| own.readvertise.iter().map(ReadvertiseView::from).collect()),
            workers: own.map(|own| own.workers.iter().map(WorkerView::from).collect()),
            power: own.and_then(|own| own.power).map(PowerView::from),
            cs_disk: own.and_then(|own| own.cs_disk).map(CsDiskView::from),
        }
    }
}

fn totals(drops: &[DropCount]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut totals = BTreeMap::from(["engine", "link"].map(|layer| (layer.to_owned(), BTreeMap::new())));
    for drop in drops.iter().filter(|drop| drop.face_id.is_none()) {
        totals.entry(drop.layer.clone()).or_default().insert(drop.reason.clone(), drop.count);
    }
    totals
}

fn of_faces(drops: &[DropCount]) -> Vec<FaceDropView> {
    let view = |drop: &DropCount| {
        let (layer, reason) = (drop.layer.clone(), drop.reason.clone());
        Some(FaceDropView { face_id: drop.face_id?, layer, reason, count: drop.count })
    };
    drops.iter().filter_map(view).collect()
}
