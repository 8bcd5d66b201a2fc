//! The measured router: this program as a separate process.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;

use namehop_client::controller::{ClientError, Controller};
use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, LatencyStatus};
use namehop_engine::strategy::registry::full_name;
use namehop_traffic::loadgen::ProcessTimes;
use namehop_wire::Name;
use tokio::runtime::Runtime;

use super::place::{Place, RouterSettings};
use super::{ForwarderStatus, LinksError, START_TIMEOUT};
use crate::child::ChildProcess;
use crate::fault::ForwarderFault;

/// Extension of an object file with a strategy.
const OBJECT_FILE: &str = "o";

/// A running router. It is terminated on drop.
pub(super) struct RouterProcess {
    child: ChildProcess,
    runtime: Runtime,
    controller: Controller<Endpoint>,
}

impl RouterProcess {
    /// Starts the router, and loads the strategies that are files.
    pub(super) fn start(
        program: &Path,
        place: &Place,
        strategies: &[String],
        settings: &RouterSettings,
    ) -> Result<RouterProcess, LinksError> {
        let (configuration, log) = (place.folder().join("router.toml"), place.folder().join("router.log"));
        let mut text = place.router_configuration(settings);
        for file in strategies.iter().map(Path::new).filter(|path| is_object_file(path)) {
            let (name, file) = (loaded_name(file), fs::canonicalize(file)?);
            text.push_str(&format!("[[loaded_strategy]]\nname = \"{name}\"\nfile = \"{}\"\n", file.display()));
        }
        fs::write(&configuration, text)?;
        let mut command = Command::new(program);
        command.arg("run").arg("--config").arg(&configuration);
        let mut child = ChildProcess::start(command, &log)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let uri = format!("unix://{}", place.router_socket().display());
        match child.connect(&runtime, &uri, START_TIMEOUT) {
            Ok(endpoint) => Ok(RouterProcess { child, runtime, controller: Controller::new(endpoint) }),
            Err(fault) => Err(LinksError::Router { fault, log: child.log() }),
        }
    }

    /// Sets the strategy of all names, given by name or by the file that it was loaded from.
    pub(super) fn choose(&mut self, strategy: &str) -> Result<(), LinksError> {
        let path = Path::new(strategy);
        let name = if is_object_file(path) { loaded_name(path) } else { strategy.to_owned() };
        let no_strategy = |source| self.failed(ForwarderFault::NoStrategy { name: name.clone(), source });
        let strategy = full_name(&name).map_err(no_strategy)?;
        let parameters =
            ControlParameters { name: Some(Name::default()), strategy: Some(strategy), ..ControlParameters::default() };
        let command = self.controller.command(module::STRATEGY_CHOICE, "set", &parameters);
        let done = self.runtime.block_on(command);
        let rejected = |source| ForwarderFault::Rejected { what: format!("the strategy {name}"), source };
        done.map(drop).map_err(|error| self.failed(rejected(error)))
    }

    pub(super) fn status(&self) -> Result<ForwarderStatus, LinksError> {
        let workers = self.runtime.block_on(self.controller.workers());
        let workers = workers.map_err(|error| self.not_reported("its workers", error))?;
        let Some(running) = workers.iter().map(|worker| worker.running).max() else {
            return Err(self.failed(ForwarderFault::NoWorkers));
        };
        let busy = workers.iter().map(|worker| worker.busy).sum();
        let times = ProcessTimes::of(self.child.id())?;
        let processor_time = Some((times.user, times.system));
        Ok(ForwarderStatus { busy, running, processor_time })
    }

    /// Number of prefixes in the router's FIB.
    pub(super) fn fib_entries(&self) -> Result<u64, LinksError> {
        let status = self.runtime.block_on(self.controller.status());
        Ok(status.map_err(|error| self.not_reported("its status", error))?.fib_entries)
    }

    /// Numbers of hits and misses of the router's Content Store.
    pub(super) fn cache_hits_and_misses(&self) -> Result<(u64, u64), LinksError> {
        let info = self.runtime.block_on(self.controller.cs_info());
        let info = info.map_err(|error| self.not_reported("its Content Store", error))?;
        Ok((info.hits, info.misses))
    }

    /// Starts sampling the latency of packets in the router, for one in `one_in` packets.
    pub(super) fn sample_latency(&self, one_in: NonZeroU32) -> Result<(), LinksError> {
        let parameters = ControlParameters { count: Some(one_in.get().into()), ..ControlParameters::default() };
        let done = self.runtime.block_on(self.controller.command(module::LATENCY, "sample", &parameters));
        let rejected = |source| ForwarderFault::Rejected { what: "sampling of latency".to_owned(), source };
        done.map(drop).map_err(|error| self.failed(rejected(error)))
    }

    /// Returns the sampled latency.
    pub(super) fn latency(&self) -> Result<LatencyStatus, LinksError> {
        let latency = self.runtime.block_on(self.controller.latency());
        latency.map_err(|error| self.not_reported("latency", error))
    }

    /// Checks that the router is running.
    ///
    /// # Errors
    /// Fails if it has ended.
    pub(super) fn check(&mut self) -> Result<(), LinksError> {
        self.child.check().map_err(|fault| self.failed(fault))
    }

    /// Returns the last lines of its log.
    pub(super) fn log(&self) -> String {
        self.child.log()
    }

    fn not_reported(&self, what: &'static str, source: ClientError) -> LinksError {
        self.failed(ForwarderFault::NotReported { what, source })
    }

    fn failed(&self, fault: ForwarderFault) -> LinksError {
        LinksError::Router { fault, log: self.log() }
    }
}

fn is_object_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == OBJECT_FILE)
}

/// Name under which a file is loaded; no built-in strategy has this name.
fn loaded_name(file: &Path) -> String {
    format!("loaded-{}", file.file_stem().unwrap_or_default().to_string_lossy())
}
