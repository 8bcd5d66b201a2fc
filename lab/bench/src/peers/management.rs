//! Commands and queries to forwarders in the NFD management protocol: cache settings, cache contents and routes.

use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use namehop_client::controller::{ClientError, Controller};
use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::cs_flags;
use namehop_client::nfd::{ControlParameters, CsInfo};
use namehop_manage::requests::CsSettings;
use namehop_wire::Name;
use tokio::runtime::Runtime;

use crate::fault::ForwarderFault;

/// Commands in flight: as many as forwarders have room for, and enough to keep them busy.
const COMMANDS: usize = 64;
/// Number of times that an unanswered command is sent.
const TRIES: usize = 3;
/// Number of routes that share the second-last component of their names.
const ROUTES_TOGETHER: u64 = 1000;
/// Routes between two progress reports.
const REPORT: u64 = 1000;
/// Maximum age of a dataset: fresh for one second (NFD management protocol), plus the time of its delivery.
const DATASET_FRESHNESS: Duration = Duration::from_millis(1200);
/// Pause between two queries for a new dataset.
const DATASET_PAUSE: Duration = Duration::from_millis(100);

/// A management connection to a forwarder. The routes registered over it are removed with it, and have no producer.
pub(super) struct Management {
    runtime: Runtime,
    controller: Controller<Endpoint>,
}

impl Management {
    pub(super) fn new(runtime: Runtime, endpoint: Endpoint) -> Self {
        Management { runtime, controller: Controller::new(endpoint) }
    }

    /// Sets capacity, admission and serving of the cache.
    ///
    /// # Errors
    /// Fails if the forwarder rejects the settings.
    pub(super) fn set_cache(&self, capacity_packets: u64, admit: bool, serve: bool) -> Result<(), ForwarderFault> {
        let settings = CsSettings {
            capacity_packets: Some(capacity_packets),
            admit: Some(admit),
            serve: Some(serve),
            policy: None,
        };
        let parameters = settings.parameters().unwrap_or_default();
        let done = self.runtime.block_on(self.controller.command(module::CS, "config", &parameters));
        done.map(drop).map_err(|source| rejected("its cache settings (cs/config)".to_owned(), source))
    }

    /// Returns the forwarder's report on its cache.
    ///
    /// # Errors
    /// Fails if the forwarder does not answer.
    pub(super) fn cache(&self) -> Result<CsInfo, ForwarderFault> {
        let info = self.runtime.block_on(self.controller.cs_info());
        info.map_err(|source| ForwarderFault::NotReported { what: "its cache (cs/info)", source })
    }

    /// Returns the number of packets in the cache, once it satisfies `is_wanted`, or once the report cannot be
    /// outdated. NFD serves datasets that are up to a second old.
    ///
    /// # Errors
    /// Fails if the forwarder does not answer.
    pub(super) fn cache_entries_until(&self, is_wanted: impl Fn(u64) -> bool) -> Result<u64, ForwarderFault> {
        let asked_at = Instant::now();
        loop {
            // A query after this time cannot return an old dataset.
            let is_new = asked_at.elapsed() > DATASET_FRESHNESS;
            let entries = self.cache()?.entries;
            if is_new || is_wanted(entries) {
                return Ok(entries);
            }
            std::thread::sleep(DATASET_PAUSE);
        }
    }

    /// Restores the cache settings.
    pub(super) fn restore_cache(&self, before: &CsInfo) -> Result<(), ForwarderFault> {
        let has = |flag| before.flags & flag != 0;
        self.set_cache(before.capacity, has(cs_flags::ADMIT), has(cs_flags::SERVE))
    }

    /// Adds routes number `from` to `to` - 1 to the FIB. NFD's RIB is not used: it takes one command per millisecond,
    /// searches all routes to add one, and adds it long after it has confirmed it.
    ///
    /// # Errors
    /// Fails if the forwarder rejects a route, or if `is_over` ends the work.
    pub(super) fn add_routes(&self, from: u64, to: u64, is_over: impl Fn(u64) -> bool) -> Result<(), ForwarderFault> {
        let controller = &self.controller;
        let add = |number: u64| async move {
            let parameters = ControlParameters { name: Some(route_name(number)), ..ControlParameters::default() };
            let mut tries = 1;
            loop {
                match controller.command(module::FIB, "add-nexthop", &parameters).await {
                    Err(ClientError::Timeout { .. }) if tries < TRIES => tries += 1,
                    done => return done.map(drop),
                }
            }
        };
        self.runtime.block_on(async {
            let mut pending = FuturesUnordered::new();
            let (mut next, mut done) = (from, from);
            loop {
                while next < to && pending.len() < COMMANDS {
                    pending.push(add(next));
                    next += 1;
                }
                match pending.next().await {
                    None => return Ok(()),
                    Some(Ok(())) => done += 1,
                    Some(Err(source)) => {
                        let what = format!("route {} of {to} (fib/add-nexthop)", done + 1);
                        return Err(rejected(what, source));
                    }
                }
                if done % REPORT == 0 && is_over(done) {
                    return Err(ForwarderFault::Interrupted);
                }
            }
        })
    }
}

fn rejected(what: String, source: ClientError) -> ForwarderFault {
    ForwarderFault::Rejected { what, source }
}

/// Names with as many components as the requested ones, so that FIB searches start at the whole name.
fn route_name(number: u64) -> Name {
    let [group, one] = [number / ROUTES_TOGETHER, number % ROUTES_TOGETHER];
    let name = Name::new().append_generic("namehop").append_generic("routes");
    name.append_generic(group.to_string()).append_generic(one.to_string())
}
