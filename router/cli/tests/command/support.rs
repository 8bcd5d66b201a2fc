//! Runs the `namehop` binary in tests, against the loopback forwarder or a router of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use namehop_client::testing::Loopback;

/// Time limit of a test's waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with a socket, and the forwarder that listens on it.
pub struct Scene {
    directory: tempfile::TempDir,
    socket: PathBuf,
    forwarder: Option<Forwarder>,
}

enum Forwarder {
    Loopback(Loopback, tokio::sync::oneshot::Sender<()>, JoinHandle<()>),
    Router(Child),
}

/// Output and exit code of a command.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Returns the output; the command must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.out, self.err);
        self.out
    }

    /// Returns the output as JSON; the command must have succeeded.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).expect("the output is JSON")
    }

    /// Returns the text on standard error; the command must have failed with this code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self.err
    }
}

impl Scene {
    /// Creates a scene without a forwarder.
    pub fn empty() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let socket = directory.path().join("nfd.sock");
        Self { directory, socket, forwarder: None }
    }

    /// Creates a scene with the loopback forwarder.
    pub fn with_loopback() -> Self {
        let mut scene = Self::empty();
        let (ready, listening) = mpsc::channel();
        let (end, ended) = tokio::sync::oneshot::channel();
        let path = scene.socket.clone();
        let loopback = Loopback::new();
        let listening_loopback = loopback.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                listening_loopback.listen(&path).expect("a socket");
                ready.send(()).expect("the test waits");
                let _ = ended.await;
            });
        });
        listening.recv().expect("the forwarder listens");
        scene.forwarder = Some(Forwarder::Loopback(loopback, end, thread));
        scene
    }

    /// Creates a scene with a router that listens only on its socket.
    pub fn with_router() -> Self {
        let mut scene = Self::empty();
        scene.start_router("");
        scene
    }

    /// Starts a router with this text at the end of its configuration.
    pub fn start_router(&mut self, extra: &str) {
        let config = self.path("namehop.toml");
        let text = format!(
            "[log]\nlevel = \"warn\"\n[faces.unix]\npath = \"{}\"\n[faces.tcp]\nlisten = []\n\
             [faces.udp]\nlisten = [\"127.0.0.1:0\"]\n[faces.websocket]\nlisten = []\n\
             [metrics]\nenabled = false\n[state]\nfile = \"{}\"\n{extra}",
            self.socket.display(),
            self.path("state.json").display()
        );
        std::fs::write(&config, text).expect("a configuration file");
        let log = std::fs::File::create(self.path("log")).expect("a log file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_namehop"));
        command.args(["run", "--config"]).arg(&config).stdout(Stdio::null()).stderr(log);
        let router = command.spawn().expect("the router starts");
        self.forwarder = Some(Forwarder::Router(router));
        let log = self.path("log");
        wait_until(|| self.socket.exists(), || std::fs::read_to_string(&log).unwrap_or_default());
    }

    /// Returns the path of a file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until the prefix is registered at the loopback forwarder.
    pub fn wait_for_route(&self, prefix: &str) {
        let Some(Forwarder::Loopback(loopback, ..)) = &self.forwarder else {
            panic!("the scene must have a loopback forwarder")
        };
        let routes = || loopback.routes();
        wait_until(|| routes().iter().any(|(known, _)| known.to_string() == prefix), || format!("{:?}", routes()));
    }

    /// Returns the prefixes that producers have unregistered at the loopback forwarder.
    pub fn unregistered(&self) -> Vec<String> {
        match &self.forwarder {
            Some(Forwarder::Loopback(loopback, ..)) => {
                loopback.unregistered().iter().map(ToString::to_string).collect()
            }
            _ => panic!("the scene must have a loopback forwarder"),
        }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_namehop"));
        command.args(arguments.split_whitespace()).current_dir(self.directory.path());
        command.env("NDN_CLIENT_TRANSPORT", format!("unix://{}", self.socket.display())).env_remove("NAMEHOP_LOG");
        command.env_remove("NAMEHOP_SIGNING_KEY").env_remove("NAMEHOP_CERTIFICATE");
        command
    }

    /// Runs a command to completion.
    pub fn run(&self, arguments: &str) -> Ran {
        self.command(arguments).stdin(Stdio::null()).output().expect("the binary runs").into()
    }

    /// Runs a command to completion while its standard input stays open.
    pub fn run_with_open_input(&self, arguments: &str) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let input = child.stdin.take();
        let ran = child.wait_with_output().expect("the binary ends").into();
        drop(input);
        ran
    }

    /// Runs a command to completion with a closed reader of its standard output.
    pub fn run_with_closed_output(&self, arguments: &str) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        drop(child.stdout.take());
        child.wait_with_output().expect("the binary ends").into()
    }

    /// Runs a command to completion with the key and certificate in environment variables.
    pub fn run_as(&self, key: &str, certificate: &str, arguments: &str) -> Ran {
        let mut command = self.command(arguments);
        command.env("NAMEHOP_SIGNING_KEY", key).env("NAMEHOP_CERTIFICATE", certificate);
        command.stdin(Stdio::null()).output().expect("the binary runs").into()
    }

    /// Starts a command in the background with this standard input.
    pub fn start(&self, arguments: &str, input: &Path) -> Background {
        let input = std::fs::File::open(input).expect("the input exists");
        let said = self.path(&format!("stderr-{}", arguments.replace(['/', ' '], "_")));
        let stderr = std::fs::File::create(&said).expect("a file");
        let mut command = self.command(arguments);
        let child = command.stdin(input).stdout(Stdio::null()).stderr(stderr).spawn().expect("the binary runs");
        Background { child, said }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        match self.forwarder.take() {
            Some(Forwarder::Loopback(_, end, thread)) => {
                drop(end);
                let _ = thread.join();
            }
            Some(Forwarder::Router(mut child)) => {
                let _ = child.kill();
                let _ = child.wait();
            }
            None => {}
        }
    }
}

/// A command in the background.
pub struct Background {
    child: Child,
    said: PathBuf,
}

impl Background {
    /// Waits for this text on standard error and returns all text so far.
    pub fn wait_for(&mut self, text: &str) -> String {
        let said = || std::fs::read_to_string(&self.said).unwrap_or_default();
        wait_until(|| said().contains(text), said);
        said()
    }

    /// Waits for the end of the command and returns its exit code.
    pub fn code(&mut self) -> i32 {
        self.child.wait().expect("the command ends").code().unwrap_or(-1)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(done: impl Fn() -> bool, explain: impl Fn() -> String) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "the expected output did not appear; the output was: {}", explain());
        thread::sleep(Duration::from_millis(20));
    }
}
