//! View of the router as a whole.

use std::collections::BTreeMap;
use std::time::Duration;

use namehop_client::nfd::{
    CsDisk, DropCount, GeneralStatus, HandoverCounters, PowerStatus, QueueStatus, ReadvertiseStatus, WorkerStatus,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::PowerView;

/// Version, uptime, table sizes, packet counts, dropped packets by reason, and the status of readvertising.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StatusView {
    /// Program and version.
    pub version: String,
    /// Start of the router.
    pub start_time_unix_ms: u64,
    /// Time of the answer.
    pub current_time_unix_ms: u64,
    /// Time between start and answer.
    pub uptime_s: f64,
    /// Entries of the name table.
    pub name_tree_entries: u64,
    /// FIB prefixes.
    pub fib_entries: u64,
    /// PIT entries.
    pub pit_entries: u64,
    /// Strategy measurements.
    pub measurements_entries: u64,
    /// Content Store entries.
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
    /// PIT entries satisfied by Data.
    pub satisfied_interests: u64,
    /// PIT entries that ended without Data.
    pub unsatisfied_interests: u64,
    /// Dropped packets by layer and reason, including those of destroyed faces; `null` if the forwarder does not report
    /// them.
    #[schema(required)]
    pub drops: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    /// Dropped packets of existing faces.
    #[schema(required)]
    pub face_drops: Option<Vec<FaceDropView>>,
    /// Status of readvertising; `null` if the forwarder does not report it.
    #[schema(required)]
    pub readvertise: Option<Vec<ReadvertiseView>>,
    /// Status of each worker, by index; `null` if the forwarder does not report it.
    #[schema(required)]
    pub workers: Option<Vec<WorkerView>>,
    /// Power of the host; `null` if it is neither measured nor estimated.
    #[schema(required)]
    pub power: Option<PowerView>,
    /// The second tier of the Content Store; `null` if there is none.
    #[schema(required)]
    pub cs_disk: Option<CsDisk>,
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

/// Packets dropped on a face for one reason.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct FaceDropView {
    /// Id of the face.
    pub face_id: u64,
    /// `engine` or `link`.
    pub layer: String,
    /// Stable name in kebab case.
    pub reason: String,
    /// Number of packets.
    pub count: u64,
}

/// One worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WorkerView {
    /// Number of the CPU that it is pinned to; `null` if it is not pinned.
    #[schema(required)]
    pub processor: Option<u64>,
    /// Share of the time since its start that it spent on work, from 0 to 1.
    pub busy_share: f64,
    /// Packets forwarded.
    pub packets: u64,
    /// Entries in its PIT.
    pub pit_entries: u64,
    /// Data in its Content Store.
    pub cs_entries: u64,
    /// Entries of the name dispatch table, out of 65536, that it owns; 0 if there is only one worker.
    pub dispatch_entries: u64,
    /// Packets exchanged with other workers.
    #[serde(flatten)]
    pub handover: HandoverCounters,
    /// The port queues that it serves.
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

/// A routing daemon or a gateway to which routes are announced.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReadvertiseView {
    /// `daemon` or `gateway`.
    pub destination: String,
    /// Name prefix of its commands.
    pub command_prefix: String,
    /// True if there is a route to it.
    pub is_available: bool,
    /// Faces through which it is reached.
    pub face_ids: Vec<u64>,
    /// Prefixes that are announced to it, and accepted.
    pub announced_prefixes: u64,
    /// Prefixes still to be announced.
    pub waiting_prefixes: u64,
    /// Prefixes that it refused.
    pub refused_prefixes: u64,
    /// Prefixes still to be withdrawn.
    pub withdrawing_prefixes: u64,
    /// Prefixes not announced because the limit on prefixes was reached.
    pub left_out_prefixes: u64,
    /// Commands so far, by outcome.
    pub commands: ReadvertiseCommandsView,
    /// The last command that failed.
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
    /// Commands answered with any other status.
    pub refused: u64,
    /// Commands that came back as a Nack.
    pub nack: u64,
    /// Commands that were not answered.
    pub timed_out: u64,
}

/// A command that failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReadvertiseErrorView {
    /// The prefix of the command.
    pub prefix: String,
    /// The reason, as text.
    pub reason: String,
    /// Age of the failure.
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
            cs_disk: own.and_then(|own| own.cs_disk),
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
