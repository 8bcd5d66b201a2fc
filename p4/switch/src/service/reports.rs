//! Collects digests of a program into the lists that controllers ask for.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use namehop_p4_compile::description::DigestDescription;
use namehop_p4runtime::Status;
use namehop_p4runtime::device::{Parts, Undo};
use namehop_p4runtime::info::Object;
use namehop_p4runtime::message::digest_entry::Config as DigestConfig;
use namehop_p4runtime::message::entity::Entity as Kind;
use namehop_p4runtime::message::update::Type as UpdateType;
use namehop_p4runtime::message::{DigestEntry, DigestList, Entity, P4Data};
use namehop_p4runtime::operator::TakeReportsResponse;
use namehop_p4runtime::operator::take_reports_response::Report;

use super::{Running, cells, parts, place, places};
use crate::objects::cells::unpack;

/// Maximum number of digests in a list.
const MOST_IN_LIST: usize = 256;
/// Maximum number of digests that are taken in one call.
const BURST: usize = 1024;

/// A digest type that a controller has subscribed to.
#[derive(Clone)]
struct Wanted {
    config: DigestConfig,
    waiting: Vec<P4Data>,
    since: Instant,
}

/// All subscriptions, by index of the digest type.
#[derive(Default)]
pub struct Reports {
    wanted: BTreeMap<usize, Wanted>,
    lists: u64,
}

impl Wanted {
    fn is_due(&self) -> bool {
        let most = usize::try_from(self.config.max_list_size).ok().filter(|most| (1..=MOST_IN_LIST).contains(most));
        let pause = Duration::from_nanos(u64::try_from(self.config.max_timeout_ns).unwrap_or_default());
        !self.waiting.is_empty()
            && (self.waiting.len() >= most.unwrap_or(MOST_IN_LIST) || self.since.elapsed() >= pause)
    }
}

impl Running {
    pub(super) fn change_digest(&self, update: UpdateType, given: &DigestEntry) -> Result<(), Status> {
        let place = place(&self.info.digests, "digest", given.digest_id)?;
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        match (update, reports.wanted.contains_key(&place)) {
            (UpdateType::Insert, true) => return Err(Status::already_exists("the digest is already configured")),
            (UpdateType::Modify | UpdateType::Delete, false) => {
                return Err(Status::not_found("the digest is not configured"));
            }
            _ => {}
        }
        if update == UpdateType::Delete {
            reports.wanted.remove(&place);
            return Ok(());
        }
        let config = given.config.unwrap_or_default();
        if config.max_list_size < 0 || config.max_timeout_ns < 0 || config.ack_timeout_ns < 0 {
            return Err(Status::invalid_argument("sizes and times of a digest must not be below 0"));
        }
        let waiting = reports.wanted.remove(&place).map(|known| known.waiting).unwrap_or_default();
        reports.wanted.insert(place, Wanted { config, waiting, since: Instant::now() });
        Ok(())
    }

    /// Returns a function that undoes a change of a subscription.
    pub(super) fn keep_wanted(&self, place: usize) -> Undo<'_> {
        let before = self.reports.lock().unwrap_or_else(PoisonError::into_inner).wanted.get(&place).cloned();
        Box::new(move || {
            let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
            let now = reports.wanted.remove(&place);
            if let Some(mut before) = before {
                // Keep the digests that are waiting now.
                if let Some(now) = now {
                    before.waiting = now.waiting;
                }
                reports.wanted.insert(place, before);
            }
            Ok(())
        })
    }

    pub(super) fn read_digests(&self, given: &DigestEntry) -> Result<Parts<'_>, Status> {
        let asked = places(&self.info.digests, "digest", given.digest_id)?;
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let known = asked.into_iter().filter_map(|place| Some((place, reports.wanted.get(&place)?.config)));
        let entry = |(place, config): (usize, DigestConfig)| {
            let digest_id = self.info.digests[place].preamble().id;
            Entity { entity: Some(Kind::DigestEntry(DigestEntry { digest_id, config: Some(config) })) }
        };
        let found: Vec<Entity> = known.map(entry).collect();
        Ok(parts(found.into_iter().map(Ok)))
    }

    /// The next list that is full, or has reached its timeout.
    pub(super) fn due_reports(&self) -> Option<DigestList> {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        // Without subscriptions, leave the digests to the operator.
        if reports.wanted.is_empty() {
            return None;
        }
        for _ in 0..BURST {
            if reports.wanted.values().any(Wanted::is_due) {
                break;
            }
            let Some(report) = self.objects.live.program.digests.take() else { break };
            let place = report.number as usize;
            let state = self.objects.state();
            let (Some(wanted), Some(described)) =
                (reports.wanted.get_mut(&place), state.description.digests.get(place))
            else {
                self.objects.live.program.digests.count_dropped();
                continue;
            };
            let data = value_of(described, report.bytes());
            if wanted.waiting.is_empty() {
                wanted.since = Instant::now();
            }
            wanted.waiting.push(data);
        }
        let (place, wanted) = reports.wanted.iter_mut().find(|(_, wanted)| wanted.is_due())?;
        let (digest_id, data) = (self.info.digests[*place].preamble().id, std::mem::take(&mut wanted.waiting));
        reports.lists += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(DigestList { digest_id, list_id: reports.lists, data, timestamp: now.as_nanos() as i64 })
    }

    /// Takes waiting digests for the operator: digests that no controller has requested.
    pub(super) fn waiting_reports(&self, most: u32) -> TakeReportsResponse {
        let digests = &self.objects.live.program.digests;
        let mut reports = Vec::new();
        while reports.len() < (most as usize).min(BURST)
            && let Some(digest) = digests.take()
        {
            let state = self.objects.state();
            let place = digest.number as usize;
            let (Some(info), Some(described)) = (self.info.digests.get(place), state.description.digests.get(place))
            else {
                continue;
            };
            reports.push(Report { digest_id: info.preamble().id, value: Some(value_of(described, digest.bytes())) });
        }
        TakeReportsResponse { reports, dropped: digests.dropped() }
    }
}

/// The value of a digest, from its packed parts.
fn value_of(described: &DigestDescription, bytes: &[u8]) -> P4Data {
    let (leaves, _) = described.shape.leaves();
    cells::data(&described.shape, &mut unpack(&leaves, bytes).into_iter())
}
