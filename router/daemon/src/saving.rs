//! Saving: decides which changes by command survive a restart, and writes them to the state file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use namehop_client::nfd::Code;
use namehop_client::nfd::numbers::origin;
use tracing::{error, info, warn};

use namehop_disk::ErasureWatch;
use namehop_engine::engine::{CsChange, CsConfig};
use namehop_face::FaceUri;
use namehop_face::registry::{Face, FacePersistency, FaceTable};
use namehop_manage::rib::Route;
use namehop_manage::server::{NotSaved, StateChange};
use namehop_packet::FaceId;
use namehop_wire::security::unix_time_ms;
use namehop_wire::{Name, NameRef};

use crate::faulty_strategies::FaultyStrategies;
use crate::state::{
    ContentStoreRecord, FaceRecord, Journal, LoadedStrategyRecord, Record, RouteKey, RouteRecord, RouteTerms,
    SavedState, StateError, StrategyRecord, identity,
};

/// Smallest difference from the monotonic clock, in milliseconds, that counts as setting the time of day.
const CLOCK_TOLERANCE_MS: u64 = 2000;

/// Maximum number of erasures remembered for a disk that does not accept them; one more is replaced by an erasure of
/// all Data.
const MAX_ERASURES: usize = 64;

/// The state of saving.
pub struct Saving {
    faces: Arc<FaceTable>,
    journal: RefCell<Option<Journal>>,
    /// Whether the last change could not be saved.
    is_failing: Cell<bool>,
    /// The last requested Content Store settings, whether or not there was room for them.
    cs: Cell<CsConfig>,
    /// Whether a command chose the policy; else the policy comes from the configuration, also after the next start.
    is_policy_chosen: Cell<bool>,
    clock: ClockWatch,
    /// Whether the file may contain expiry times.
    has_expiries: Cell<bool>,
    erasures: Erasures,
    faulty_strategies: FaultyStrategies,
}

/// Erasures of Data in the state file. A second tier of the Content Store that fails or stalls cannot record an
/// erasure, and a restart must not bring erased Data back. So the state file holds an erasure until the disk has
/// recorded it.
struct Erasures {
    /// `None` if Data on disk does not survive a restart.
    disk: Option<ErasureWatch>,
    /// Prefixes in the file.
    pending: RefCell<BTreeSet<String>>,
    /// Number of erase commands that are being executed.
    running: Cell<usize>,
}

impl Erasures {
    /// Returns the record to save for the erasure of a prefix; `None` if none is needed.
    fn record_of(&self, prefix: NameRef<'_>) -> Option<Record> {
        self.disk.as_ref()?;
        let pending = self.pending.borrow();
        let prefix = if pending.len() < MAX_ERASURES { prefix.to_string() } else { Name::new().to_string() };
        (!pending.contains(&prefix)).then_some(Record::DiskErasure(prefix))
    }
}

/// Marks an erase command as being executed, until dropped.
pub struct ErasingNow<'a>(&'a Cell<usize>);

impl Drop for ErasingNow<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Detects that the time of day was set: it then disagrees with the monotonic clock, on which the expiry times of
/// routes are based.
struct ClockWatch {
    started: Instant,
    /// Time of day at `started`, calculated from the time of day at the last check.
    start_unix_ms: Cell<u64>,
}

impl ClockWatch {
    fn new() -> Self {
        ClockWatch { started: Instant::now(), start_unix_ms: Cell::new(unix_time_ms()) }
    }

    /// Returns by how many milliseconds the clock was set since the last call, positive if forward; `None` if it was
    /// not set.
    fn look(&self, now_unix_ms: u64) -> Option<i64> {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let start_unix_ms = now_unix_ms.saturating_sub(elapsed_ms);
        let by_ms = start_unix_ms.checked_signed_diff(self.start_unix_ms.get()).unwrap_or(i64::MAX);
        (by_ms.unsigned_abs() >= CLOCK_TOLERANCE_MS).then(|| {
            self.start_unix_ms.set(start_unix_ms);
            by_ms
        })
    }
}

impl Saving {
    /// Creates the state of saving into `journal`; without a journal nothing survives a restart. `saved` is the initial
    /// content of the journal, and `cs` the configured settings of the Content Store. `disk` reports which erasures the
    /// second tier of the Content Store has recorded.
    pub fn new(
        faces: Arc<FaceTable>,
        journal: Option<Journal>,
        saved: &SavedState,
        cs: CsConfig,
        disk: Option<ErasureWatch>,
    ) -> Self {
        let faulty_strategies =
            journal.as_ref().map(|journal| FaultyStrategies::beside(journal.path())).unwrap_or_default();
        let change = saved.content_store.clone().map(CsChange::from).unwrap_or_default();
        Saving {
            faces,
            journal: RefCell::new(journal),
            is_failing: Cell::new(false),
            cs: Cell::new(cs.changed(change)),
            is_policy_chosen: Cell::new(change.policy.is_some()),
            clock: ClockWatch::new(),
            has_expiries: Cell::new(saved.routes.values().any(|terms| terms.expires_unix_ms.is_some())),
            erasures: Erasures { disk, pending: RefCell::new(saved.disk_erasures.clone()), running: Cell::new(0) },
            faulty_strategies,
        }
    }

    /// Returns a description of the restored settings and their file; `None` if there is nothing to restore.
    pub fn description(&self, saved: &SavedState) -> Option<String> {
        let journal = self.journal.borrow();
        Some(format!("{} from {}", saved.summary()?, journal.as_ref()?.path().display()))
    }

    /// Returns the loaded strategies that ended the router by a fault.
    pub fn faulty_strategies(&self) -> &FaultyStrategies {
        &self.faulty_strategies
    }

    /// Saves a change if it must survive a restart.
    ///
    /// # Errors
    /// The file cannot be written; nothing has changed.
    pub fn save(&self, change: StateChange<'_>) -> Result<(), NotSaved> {
        self.follow_clock();
        let Some(journal) = &mut *self.journal.borrow_mut() else { return Ok(()) };
        let Some(record) = self.record_of(journal, change) else {
            // Nothing is saved, so `withdraw` must remove nothing.
            journal.keep();
            return Ok(());
        };
        match journal.append(&record) {
            Ok(()) => {
                if self.is_failing.replace(false) {
                    info!(file = %journal.path().display(), "the state file is writable again");
                }
                match record {
                    Record::ContentStore(settings) => {
                        let change = CsChange::from(settings);
                        self.cs.set(self.cs.get().changed(change));
                        self.is_policy_chosen.set(change.policy.is_some());
                    }
                    Record::Route(route) if route.terms.expires_unix_ms.is_some() => self.has_expiries.set(true),
                    Record::DiskErasure(prefix) => {
                        self.erasures.pending.borrow_mut().insert(prefix);
                    }
                    Record::StrategyLoaded(loaded) => self.faulty_strategies.forget(&loaded.name),
                    Record::StrategyUnloaded(name) => self.faulty_strategies.forget(&name),
                    _ => {}
                }
                Ok(())
            }
            Err(error) => {
                let reason = self.report(&error);
                Err(NotSaved(format!(
                    "nothing was changed, because the change could not be saved ({reason}); free disk space or make \
                     the state file writable, then send the command again"
                )))
            }
        }
    }

    /// Logs that changes cannot be saved, once and not for each command, and returns the reason.
    fn report(&self, error: &StateError) -> String {
        let reason = match error {
            StateError::Io { path, source } => format!("state file {}: {source}", path.display()),
            error => error.to_string(),
        };
        if !self.is_failing.replace(true) {
            error!(
                reason,
                "cannot save changes, so commands that make any are refused; free disk space, make the file writable, \
                 or set `enabled = false` in section [state]; the router retries with each command"
            );
        }
        reason
    }

    /// Writes the state file again if it was deleted or replaced, so that the next start finds it even without further
    /// changes. To be called at intervals and at the end.
    pub fn restore_if_missing(&self) {
        if let Some(journal) = &mut *self.journal.borrow_mut()
            && let Err(error) = journal.restore_if_missing()
        {
            self.report(&error);
        }
    }

    /// Adjusts the saved expiry times if the time of day was set. To be called at intervals.
    pub fn follow_clock(&self) {
        let Some(by_ms) = self.clock.look(unix_time_ms()) else { return };
        info!(by_ms, "the system clock was set");
        if self.has_expiries.get()
            && let Some(journal) = &mut *self.journal.borrow_mut()
            && let Err(error) = journal.append(&Record::ClockSet(by_ms))
        {
            warn!(%error, "cannot adjust the saved expiry times of routes to the clock");
        }
    }

    /// Marks a [saved](Self::save) erasure as being executed while the result lives. To be called before control
    /// returns to other tasks.
    pub fn erasing_now(&self) -> ErasingNow<'_> {
        let running = &self.erasures.running;
        running.set(running.get() + 1);
        ErasingNow(running)
    }

    /// Removes the erasures from the file once the disk has recorded them. To be called at intervals and at the end.
    pub fn follow_erasures(&self) {
        let Erasures { disk, pending, running } = &self.erasures;
        if pending.borrow().is_empty() || running.get() > 0 || !disk.as_ref().is_some_and(ErasureWatch::is_all_written)
        {
            return;
        }
        if let Some(journal) = &mut *self.journal.borrow_mut() {
            match journal.append(&Record::DiskErasuresWritten) {
                Ok(()) => journal.keep(),
                // Retried later; until then a restart erases more than necessary.
                Err(error) => {
                    self.report(&error);
                    return;
                }
            }
        }
        pending.borrow_mut().clear();
    }

    /// Removes the last saved change from the file.
    pub fn withdraw(&self) {
        if let Some(journal) = &mut *self.journal.borrow_mut()
            && let Err(error) = journal.withdraw()
        {
            warn!(%error, "a refused change stays in the state file: the next start will apply it again");
        }
    }

    /// Writes all saved changes to the disk.
    pub fn sync(&self) {
        if let Some(journal) = &*self.journal.borrow()
            && let Err(error) = journal.sync()
        {
            warn!(%error, "cannot sync the state file: a crash of the host may lose saved state");
        }
    }

    fn record_of(&self, journal: &Journal, change: StateChange<'_>) -> Option<Record> {
        let on_file = |face: &Face| Some(face_identity(face)).filter(|identity| journal.knows_face(identity));
        match change {
            StateChange::FaceCreated(face) | StateChange::FaceUpdated(face) if is_permanent(face) => {
                Some(Record::Face(face_record(face)))
            }
            StateChange::FaceCreated(_) => None,
            // The file has nothing to remove about faces that it does not know.
            StateChange::FaceUpdated(face) => on_file(face).map(Record::FaceForgotten),
            StateChange::FaceDestroyed(face) => on_file(face).map(Record::FaceRemoved),
            StateChange::RouteRegistered { prefix, route, lifetime_ms } => {
                self.route_record(prefix, route, lifetime_ms).map(Record::Route)
            }
            StateChange::RouteUnregistered { prefix, face, origin: origin::STATIC } => {
                self.route_key(prefix, face).map(Record::RouteRemoved)
            }
            StateChange::RouteUnregistered { .. } => None,
            StateChange::StrategySet { prefix, strategy } => Some(Record::Strategy(StrategyRecord {
                prefix: prefix.to_string(),
                strategy: strategy.as_ref().to_string(),
            })),
            StateChange::StrategyUnset(prefix) => Some(Record::StrategyRemoved(prefix.to_string())),
            StateChange::StrategyLoaded { name, object } => {
                Some(Record::StrategyLoaded(LoadedStrategyRecord::new(name, object)))
            }
            StateChange::StrategyUnloaded(name) => Some(Record::StrategyUnloaded(name.to_owned())),
            StateChange::ContentStore(change) => {
                let is_policy_chosen = self.is_policy_chosen.get() || change.policy.is_some();
                Some(Record::ContentStore(ContentStoreRecord::new(self.cs.get().changed(change), is_policy_chosen)))
            }
            StateChange::CsErased(prefix) => self.erasures.record_of(prefix),
        }
    }

    /// Returns the record of a static route if its face can be created again after a restart; `None` for other routes.
    fn route_record(&self, prefix: NameRef<'_>, route: &Route, lifetime_ms: Option<u64>) -> Option<RouteRecord> {
        if route.origin != origin::STATIC {
            return None;
        }
        // Uses the current time of day: the one at the start may have been wrong.
        let expires_unix_ms = lifetime_ms.map(|lifetime_ms| unix_time_ms().saturating_add(lifetime_ms));
        let terms = RouteTerms { cost: route.cost, flags: route.flags, expires_unix_ms, lifetime_ms };
        Some(RouteRecord { key: self.route_key(prefix, route.face)?, terms })
    }

    fn route_key(&self, prefix: NameRef<'_>, face: FaceId) -> Option<RouteKey> {
        let face = self.faces.get(face)?;
        (face.persistency() != FacePersistency::OnDemand).then(|| RouteKey {
            prefix: prefix.to_string(),
            face: face.remote_uri().to_string(),
            local: distinguishing_local_uri(&face),
        })
    }
}

fn is_permanent(face: &Face) -> bool {
    face.persistency() == FacePersistency::Permanent
}

/// Returns the local URI if faces of several interfaces may have the same remote URI.
fn distinguishing_local_uri(face: &Face) -> Option<String> {
    // On a memif without Ethernet the only face has the same local and remote URI.
    let local = face.local_uri();
    let is_on_port = local.options().is_some() && *local != *face.remote_uri();
    let is_shared = is_on_port || face.remote_uri().is_multicast() || matches!(face.remote_uri(), FaceUri::Ethernet(_));
    is_shared.then(|| local.to_string())
}

/// Returns the key of the face in the saved state.
fn face_identity(face: &Face) -> String {
    identity(&face.remote_uri().to_string(), distinguishing_local_uri(face).as_deref()).into_owned()
}

fn face_record(face: &Face) -> FaceRecord {
    FaceRecord {
        uri: face.remote_uri().to_string(),
        local_uri: distinguishing_local_uri(face),
        persistency: face.persistency().code(),
        flags: face.flags().0,
        mtu: face.requested_mtu_bytes(),
        base_congestion_marking_interval_ns: Some(face.base_congestion_marking_interval_ns()),
        default_congestion_threshold_bytes: Some(face.default_congestion_threshold_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_was_set_is_noticed_and_only_once() {
        let clock = ClockWatch::new();
        let start = clock.start_unix_ms.get();
        assert_eq!(clock.look(start + 500), None);
        let by_ms = clock.look(start + 3_600_000).expect("noticed");
        assert!((3_590_000..=3_600_000).contains(&by_ms), "{by_ms}");
        assert_eq!(clock.look(start + 3_600_000), None);
        let by_ms = clock.look(start).expect("noticed");
        assert!((-3_610_000..=-3_590_000).contains(&by_ms), "{by_ms}");
    }
}
