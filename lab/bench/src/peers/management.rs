//! What is told to forwarders and asked of them by the NFD management protocol: their cache, and routes.

use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use namehop_manage::client::{ClientError, Controller};
use namehop_manage::nfd::names::module;
use namehop_manage::nfd::numbers::cs_flags;
use namehop_manage::nfd::{ControlParameters, CsInfo};
use namehop_manage::requests::CsSettings;
use namehop_traffic::endpoint::Endpoint;
use namehop_wire::Name;
use tokio::runtime::Runtime;

/// Commands under way at a time: as many as forwarders have room for, and enough to keep them busy.
const COMMANDS: usize = 64;
/// How often a command is sent that nobody answers.
const TRIES: usize = 3;
/// Routes whose names have their second component in common.
const ROUTES_TOGETHER: u64 = 1000;
/// Routes between two reports of how far it is.
const REPORT: u64 = 1000;
/// Datasets stay fresh for one second (NFD management protocol), and somewhat longer on their way.
const DATASET_FRESHNESS: Duration = Duration::from_millis(1200);
/// Between two looks whether a dataset is another one.
const DATASET_PAUSE: Duration = Duration::from_millis(100);

/// A connection over which a forwarder is managed. Its routes lead to nobody and go with it.
pub(super) struct Management {
    runtime: Runtime,
    controller: Controller<Endpoint>,
}

impl Management {
    pub(super) fn new(runtime: Runtime, endpoint: Endpoint) -> Self {
        Management { runtime, controller: Controller::new(endpoint) }
    }

    /// Sets up the cache.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn set_cache(&self, capacity_packets: u64, admit: bool, serve: bool) -> Result<(), String> {
        let settings = CsSettings {
            capacity_packets: Some(capacity_packets),
            admit: Some(admit),
            serve: Some(serve),
            policy: None,
        };
        let parameters = settings.parameters().unwrap_or_default();
        let done = self.runtime.block_on(self.controller.command(module::CS, "config", &parameters));
        done.map(drop).map_err(|error| format!("did not take the settings of its cache (cs/config): {error}"))
    }

    /// What it says of its cache.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn cache(&self) -> Result<CsInfo, String> {
        let info = self.runtime.block_on(self.controller.cs_info());
        info.map_err(|error| format!("says nothing of its cache (cs/info): {error}"))
    }

    /// How many Data it says are in its cache, once that is what is waited for, or could not be an older answer any more: NFD gives
    /// datasets from a copy that is up to a second old.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn cache_entries_until(&self, is_wanted: impl Fn(u64) -> bool) -> Result<u64, String> {
        let asked_at = Instant::now();
        loop {
            // Asked for after that time, an answer is none from before.
            let is_new = asked_at.elapsed() > DATASET_FRESHNESS;
            let entries = self.cache()?.entries;
            if is_new || is_wanted(entries) {
                return Ok(entries);
            }
            std::thread::sleep(DATASET_PAUSE);
        }
    }

    /// Puts the cache back to what it was.
    pub(super) fn restore_cache(&self, before: &CsInfo) -> Result<(), String> {
        let has = |flag| before.flags & flag != 0;
        self.set_cache(before.capacity, has(cs_flags::ADMIT), has(cs_flags::SERVE))
    }

    /// Adds routes from the one with number `from` on, so that there are `to` of them: to the FIB, because NFD takes one command for each
    /// millisecond for its RIB, looks at all routes to add one there, and adds it long after it has said so.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn add_routes(&self, from: u64, to: u64, is_over: impl Fn(u64) -> bool) -> Result<(), String> {
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
                    Some(Err(error)) => {
                        return Err(format!("did not take route {} of {to} (fib/add-nexthop): {error}", done + 1));
                    }
                }
                if done % REPORT == 0 && is_over(done) {
                    return Err("was interrupted".to_owned());
                }
            }
        })
    }
}

/// Names of as many components as those that are asked for, so that searches in the FIB begin at the whole name.
fn route_name(number: u64) -> Name {
    let [group, one] = [number / ROUTES_TOGETHER, number % ROUTES_TOGETHER];
    let name = Name::new().append_generic("namehop").append_generic("routes");
    name.append_generic(group.to_string()).append_generic(one.to_string())
}
