//! Module `cs`: settings of the Content Store, and erasing of Data.

use namehop_client::nfd::numbers::{cs_flags, status_code};
use namehop_client::nfd::{self, ControlParameters, ControlResponse, CsDisk, CsPolicyCounters, DiskState, FieldSet};
use namehop_engine::engine::{CsChange, CsCounters, CsInfo};
use namehop_engine::second_tier::{TierReport, TierState};
use namehop_store::{PolicyChoice, PolicyKind};

use super::reply::not_saved;
use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management, StateChange};

/// Maximum number of Data that one `cs/erase` erases, so that it never holds up forwarding for long.
const ERASE_LIMIT: u64 = 256;

fn flags(info: &CsInfo) -> u64 {
    let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    bit(info.admit, cs_flags::ADMIT) | bit(info.serve, cs_flags::SERVE)
}

/// Converts to the dataset `cs/info`.
pub(super) fn cs_info(info: &CsInfo) -> nfd::CsInfo {
    nfd::CsInfo {
        capacity: info.capacity as u64,
        flags: flags(info),
        entries: info.entries as u64,
        hits: info.hits,
        misses: info.misses,
        policy: Some(info.policy.to_string()),
        by_policy: info.by_policy.used().map(policy_counters).collect(),
        disk: info.second_tier.map(cs_disk),
    }
}

fn cs_disk(TierReport { status, counters, waiting }: TierReport) -> CsDisk {
    CsDisk {
        state: match status.state {
            TierState::Starting => DiskState::Starting,
            TierState::Working => DiskState::Working,
            TierState::Stalled => DiskState::Stalled,
            TierState::Failed => DiskState::Failed,
        },
        capacity_bytes: status.capacity_bytes,
        used_bytes: status.used_bytes,
        reads: status.counters.reads,
        writes: status.counters.writes,
        written_bytes: status.counters.written_bytes,
        errors: status.counters.errors,
        checksum_failures: status.counters.checksum_failures,
        stalls: status.counters.stalls,
        stored: counters.stored,
        not_stored: counters.not_stored,
        hits: counters.found,
        misses: counters.not_found,
        timeouts: counters.timed_out,
        busy: counters.busy,
        waiting,
        erasing_workers: status.erasing_workers,
    }
}

fn policy_counters((policy, counters): (PolicyKind, CsCounters)) -> CsPolicyCounters {
    let CsCounters { hits, misses, insertions, evictions, rejections } = counters;
    CsPolicyCounters { policy: policy.name().to_owned(), hits, misses, insertions, evictions, rejections }
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const CS_VERBS: &[Verb<C>] = &[
        Verb {
            name: "config",
            required: FieldSet::NONE,
            optional: FieldSet::CAPACITY.with(FieldSet::FLAGS).with(FieldSet::MASK).with(FieldSet::POLICY),
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.configure_cs(parameters).await })),
        },
        Verb {
            name: "erase",
            required: FieldSet::NAME,
            optional: FieldSet::COUNT,
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.erase_cs(parameters).await })),
        },
    ];

    async fn configure_cs(&self, parameters: ControlParameters) -> ControlResponse {
        let (flags_wanted, mask) = (parameters.flags.unwrap_or(0), parameters.mask.unwrap_or(0));
        let wanted = |bit: u64| (mask & bit != 0).then_some(flags_wanted & bit != 0);
        let policy = match parameters.policy.as_deref().map(str::parse::<PolicyChoice>).transpose() {
            Ok(policy) => policy,
            Err(error) => return bad_request(error.to_string()),
        };
        let change = CsChange {
            policy,
            capacity: parameters.capacity.map(|capacity| usize::try_from(capacity).unwrap_or(usize::MAX)),
            admit: wanted(cs_flags::ADMIT),
            serve: wanted(cs_flags::SERVE),
        };
        // The requested settings are saved. How much of them takes effect depends on the available memory.
        if change != CsChange::default()
            && let Err(error) = self.control.save(StateChange::ContentStore(change))
        {
            return not_saved(&error);
        }
        let info = self.control.configure_cs(change).await;
        if let Some(wanted) = policy.filter(|wanted| *wanted != info.policy) {
            self.control.withdraw();
            return ControlResponse::new(
                status_code::INTERNAL_ERROR,
                format!(
                    "there is no memory for the policy '{wanted}', the cache keeps '{}'; give the policy smaller \
                     settings, or the cache a smaller capacity",
                    info.policy
                ),
            );
        }
        ControlResponse::ok(&ControlParameters {
            capacity: Some(info.capacity as u64),
            flags: Some(flags(&info)),
            policy: Some(info.policy.to_string()),
            ..ControlParameters::default()
        })
    }

    async fn erase_cs(&self, parameters: ControlParameters) -> ControlResponse {
        if parameters.count == Some(0) {
            return bad_request("Count must be at least 1".to_owned());
        }
        let wanted = parameters.count.unwrap_or(u64::MAX);
        let limit = wanted.min(ERASE_LIMIT);
        let name = parameters.name.unwrap_or_default();
        if let Err(error) = self.control.save(StateChange::CsErased(name.as_ref())) {
            return not_saved(&error);
        }
        let erased = self.control.erase_cs(name.clone(), limit as usize).await as u64;
        ControlResponse::ok(&ControlParameters {
            name: Some(name),
            count: Some(erased),
            // Tells the client that more Data may be left, so it repeats the command.
            capacity: (erased == ERASE_LIMIT && wanted > ERASE_LIMIT).then_some(ERASE_LIMIT),
            ..ControlParameters::default()
        })
    }
}
