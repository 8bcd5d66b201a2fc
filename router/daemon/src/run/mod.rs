//! `namehop run`: runs a router in this process, from start to end.
//!
//! [`run_supervised`] and `startup` have the steps of the start, `control_thread` the steps of the control thread.

mod announce;
mod control_thread;
mod serve;

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use tokio::runtime;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use namehop_config::{Config, ConfigError};
use namehop_disk::DiskCache;
use namehop_face::socket::{SocketCommand, SocketService};
use namehop_manage::authentication::Authenticator;

use crate::logging::{self, LogError};
use crate::memory_budget::Budget;
use crate::startup::{self, RouterParts, StartError};
use crate::supervise::Supervisor;
use crate::{command_times, placement};
use control_thread::{ControlThread, HttpParts};
use namehop_worker::Worker;

/// Most commands that are queued for the socket service.
const SOCKET_COMMANDS: usize = 256;

/// Options of `namehop run`.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Configuration file; `None` for the defaults.
    pub config: Option<PathBuf>,
}

/// The reason why a router did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Logging cannot start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A resource that the router needs is not available.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A part of the router failed, so the router ended.
    #[error("the router ended because of a fault: {0}")]
    Fault(String),
}

/// Runs a router until it is told to stop by SIGINT, SIGTERM or SIGHUP, or until a part of it fails.
///
/// # Errors
/// The reason why the router could not start, or the part that failed. Nothing is left behind then except the saved
/// state.
pub fn run(options: &RunOptions) -> Result<(), RunError> {
    // Start before creating anything that a signal could leave behind, such as the socket file.
    let supervisor = Supervisor::start()
        .map_err(|source| StartError::System { what: "cannot watch for signals and faults", source })?;
    let result = run_supervised(options, &supervisor);
    let result = match (result, supervisor.first_fault()) {
        // The fault is the reason; other errors followed from it.
        (_, Some(fault)) => Err(RunError::Fault(fault)),
        // The router was told to end while it started.
        (Err(RunError::Start(StartError::Stopped)), None) => Ok(()),
        (result, None) => result,
    };
    logging::flush();
    result
}

/// Starts the router step by step, waits for its end, and stops it.
fn run_supervised(options: &RunOptions, supervisor: &Supervisor) -> Result<(), RunError> {
    let config = options.config.as_deref().map_or_else(|| Ok(Config::default()), Config::load)?;
    logging::start(&config.log)?;
    let budget = Budget::of_host(&config);
    budget.log();
    let bounds = budget.bounds;
    let runtime = new_runtime()?;
    let authenticator = Authenticator::new(&startup::security_config(&config, &bounds)).map_err(StartError::Trust)?;
    let destinations = startup::readvertise_destinations(&config)?;
    let RouterParts { sockets, workers, disk, control: parts } = startup::build(&config, &bounds, supervisor)?;
    let authenticator = with_command_times(authenticator, &config);
    let http = HttpParts::prepare(&config)?;
    let (socket_commands, socket_inbox) = mpsc::channel(SOCKET_COMMANDS);
    let handles = parts.handles.clone();
    let forwarding = start_forwarding(sockets, socket_inbox, workers, &config, supervisor)?;

    let supervising = supervisor.clone();
    let control = ControlThread {
        config,
        bounds,
        supervisor: supervising,
        authenticator,
        destinations,
        parts,
        http,
        socket_commands,
    };
    // The supervisor already knows of a panic here. The control thread is gone then, and with it the command channel of
    // the sockets, which end for this reason.
    let serving = AssertUnwindSafe(|| LocalSet::new().block_on(&runtime, control.run(disk.as_ref())));
    let started = panic::catch_unwind(serving);

    supervisor.expect_ends();
    handles.shutdown();
    let _ = forwarding.join();
    // Writes the last Data that the workers have evicted.
    disk.into_iter().for_each(DiskCache::stop);
    Ok(started.unwrap_or(Ok(()))?)
}

/// Gives the authenticator the times of commands before the restart. The state file is locked now, so no other router
/// uses the file beside it.
fn with_command_times(mut authenticator: Authenticator, config: &Config) -> Authenticator {
    if authenticator.checks_times()
        && let Some(record) = command_times::record(config)
    {
        authenticator.remember_times(record);
    }
    authenticator
}

/// Starts the thread of the socket service and, until it needs a thread of its own, of the worker.
fn start_forwarding(
    sockets: SocketService,
    socket_inbox: mpsc::Receiver<SocketCommand>,
    workers: Vec<Worker>,
    config: &Config,
    supervisor: &Supervisor,
) -> Result<JoinHandle<()>, StartError> {
    let cpus = placement::worker_cpus(config, workers.len());
    let idling = placement::idling(&config.forwarding);
    let (watching_sockets, watching_worker) = (supervisor.clone(), supervisor.clone());
    let forward = move || {
        let runtime = match new_runtime() {
            Ok(runtime) => runtime,
            Err(error) => return watching_worker.fault(error.to_string()),
        };
        LocalSet::new().block_on(&runtime, async move {
            let sockets = watching_sockets.watch("socket service", sockets.run(socket_inbox));
            let sockets = tokio::task::spawn_local(sockets);
            watching_worker.watch("forwarding worker", namehop_worker::serve(workers, cpus, idling)).await;
            // The sockets were told to end before the worker; their result is already reported.
            let _ = sockets.await;
        });
    };
    thread::Builder::new()
        .name("forwarding".to_owned())
        .spawn(forward)
        .map_err(|source| StartError::System { what: "cannot start the forwarding thread", source })
}

/// Creates a single-threaded runtime; each of the router's threads with tasks has its own.
fn new_runtime() -> Result<runtime::Runtime, StartError> {
    let system = |source| StartError::System { what: "cannot start the asynchronous runtime", source };
    runtime::Builder::new_current_thread().enable_all().build().map_err(system)
}
