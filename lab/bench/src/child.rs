//! Child processes that a measurement starts, and that end with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use namehop_client::endpoint::Endpoint;
use namehop_traffic::loadgen::process_tree;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::runtime::Runtime;

use crate::fault::ForwarderFault;

/// Time that a process has to end before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(10);
/// Lines of the log shown in errors.
const LOG_LINES: usize = 10;

/// A running process and its descendants. All of them are terminated on drop.
pub(crate) struct ChildProcess {
    child: Child,
    log: PathBuf,
}

impl ChildProcess {
    /// Starts a command without standard input, and with its output written to the file `log`.
    ///
    /// # Errors
    /// Fails if the log file cannot be created, or the program cannot be run.
    pub(crate) fn start(mut command: Command, log: &Path) -> io::Result<Self> {
        let output = File::create(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(ChildProcess { child: command.spawn()?, log: log.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Connects to a socket that the process opens, and retries until `limit` has passed.
    ///
    /// # Errors
    /// Fails if the process has ended, or if the socket is not reachable in time.
    pub(crate) fn connect(
        &mut self,
        runtime: &Runtime,
        uri: &str,
        limit: Duration,
    ) -> Result<Endpoint, ForwarderFault> {
        let limit = Instant::now() + limit;
        loop {
            match runtime.block_on(Endpoint::connect(Some(uri))) {
                Ok(endpoint) => return Ok(endpoint),
                Err(error) if Instant::now() > limit => return Err(ForwarderFault::NotReachable(error)),
                Err(_) => {}
            }
            match self.child.try_wait() {
                Ok(None) => thread::sleep(TICK),
                Ok(Some(status)) => return Err(ForwarderFault::NotStarted(status)),
                Err(error) => return Err(ForwarderFault::NotMonitored(error)),
            }
        }
    }

    /// Checks that the process is running.
    ///
    /// # Errors
    /// Fails if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), ForwarderFault> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(ForwarderFault::Ended(status)),
            Err(error) => Err(ForwarderFault::NotMonitored(error)),
        }
    }

    /// Returns the last lines of the log.
    pub(crate) fn log(&self) -> String {
        let text = match fs::read(&self.log) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => format!("nothing ({error})"),
        };
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for ChildProcess {
    /// Terminates the whole process tree, and kills what remains after [`END_TIMEOUT`]. Descendants are terminated too,
    /// because programs started by a shell may outlive it.
    fn drop(&mut self) {
        let tree = process_tree(self.child.id());
        let mut has_ended = !matches!(self.child.try_wait(), Ok(None));
        if has_ended {
            return;
        }
        for &pid in &tree {
            send(pid, Signal::SIGTERM);
        }
        let limit = Instant::now() + END_TIMEOUT;
        while (!has_ended || tree[1..].iter().any(|&pid| is_alive(pid))) && Instant::now() < limit {
            thread::sleep(TICK);
            has_ended = !matches!(self.child.try_wait(), Ok(None));
        }
        for &pid in tree[1..].iter().filter(|&&pid| is_alive(pid)) {
            send(pid, Signal::SIGKILL);
        }
        if !has_ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn send(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // The process may have ended already.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// True if a process is running. A zombie counts as ended.
fn is_alive(pid: u32) -> bool {
    let state = |text: String| text.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(state).is_some_and(|state| state != 'Z')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_has_started_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        // A shell that waits for another shell, which waits for a program.
        command.args(["-c", "sh -c 'echo started; sleep 60; true' & wait"]);
        let mut child = ChildProcess::start(command, &log).expect("started");
        let end = Instant::now() + Duration::from_secs(20);
        while !child.log().contains("started") || process_tree(child.id()).len() < 3 {
            assert!(Instant::now() < end, "{}", child.log());
            thread::sleep(TICK);
        }
        child.check().expect("running");
        let tree = process_tree(child.id());
        drop(child);
        assert!(tree.iter().all(|&pid| !is_alive(pid)), "{tree:?}");
    }

    #[test]
    fn one_that_ends_says_how() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such option; exit 3"]);
        let mut child = ChildProcess::start(command, &folder.path().join("log")).expect("started");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let uri = format!("unix://{}", folder.path().join("socket").display());
        let refused = child.connect(&runtime, &uri, Duration::from_secs(20)).err().expect("a fault").to_string();
        assert!(refused.contains("did not start") && refused.contains('3'), "{refused}");
        assert_eq!(child.log(), "no such option");
        assert!(child.check().is_err());
    }
}
