//! A measured forwarder: its start, the preparation of its cache and FIB, and its turns.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::CsInfo;
use namehop_client::target::{Family, HostPort, TransportUri};
use namehop_traffic::loadgen::{self, Load, LoadConfig, LoadReport, Role, process_tree, resident_bytes};
use namehop_wire::Name;
use namehop_wire::security::DigestSigner;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::cases::{CacheCase, Case, SocketKind};
use super::figures::Turn;
use super::management::Management;
use super::processors::stay_on;
use super::spec::{ForwarderSpec, Placeholders, Way};
use super::{PeersError, PeersParameters};
use crate::child::ChildProcess;
use crate::fault::ForwarderFault;

/// Time limit for the forwarder to open its socket.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for filling its cache.
const FILL_TIMEOUT: Duration = Duration::from_secs(60);
/// Length of each load that fills the cache.
const FILL_PIECE: Duration = Duration::from_millis(300);
/// Interests in flight while the cache is filled.
const FILL_WINDOW: usize = 256;
/// Fill level at which a cache counts as full. Some forwarders keep a part free, or divide the cache among threads.
const FULL: f64 = 0.9;
/// Hit share at which a cache counts as warm.
const ANSWERS: f64 = 0.995;
/// Maximum number of entries of an emptied cache: each thread may keep its last one.
const EMPTY: u64 = 64;
/// Lifetime of Interests, after which they count as lost.
const LIFETIME: Duration = Duration::from_secs(1);
/// FreshnessPeriod of Data, longer than any measurement.
const FRESHNESS_MS: u64 = 3_600_000;
/// Time for the system to report that no process listens on a UDP port.
const REFUSAL: Duration = Duration::from_millis(100);

/// A running forwarder. On drop, a forwarder started here is terminated, and the cache settings of an attached one are
/// restored.
pub(super) struct Forwarder {
    name: String,
    /// Declared before the folder that it uses, so that it is dropped first.
    child: Option<ChildProcess>,
    _folder: Option<TempDir>,
    pid: u32,
    socket: PathBuf,
    port: u16,
    management: Management,
    /// Cache settings to be restored.
    cache_before: Option<CsInfo>,
    /// State that the cache is prepared for: case, bytes of Data, number of names.
    cache: Option<(CacheCase, usize, u64)>,
    routes: u64,
}

impl Forwarder {
    pub(super) fn start(spec: &ForwarderSpec, program: &Path, processors: &[usize]) -> Result<Forwarder, PeersError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match &spec.way {
            Way::Namehop => {
                let words = [&program.to_string_lossy(), "run", "--config", "{folder}/namehop.toml"].map(str::to_owned);
                Self::run(spec, &words, true, processors, runtime)
            }
            Way::Command(words) => Self::run(spec, words, false, processors, runtime),
            Way::Attach { socket, port, pid } => Self::attach(spec, socket, *port, *pid, runtime),
        }
    }

    fn run(
        spec: &ForwarderSpec,
        words: &[String],
        is_own: bool,
        processors: &[usize],
        runtime: Runtime,
    ) -> Result<Forwarder, PeersError> {
        let failed = |fault, log| PeersError::Forwarder { name: spec.name.clone(), fault: Box::new(fault), log };
        let folder = tempfile::Builder::new().prefix("namehop-peers-").tempdir()?;
        let (socket, port) = (folder.path().join("nfd.sock"), free_port()?);
        let placeholders = Placeholders { folder: folder.path(), socket: &socket, port };
        let words = if is_own {
            fs::write(folder.path().join("namehop.toml"), own_configuration(&socket, port))?;
            words.iter().map(|word| word.replace("{folder}", &folder.path().to_string_lossy())).collect()
        } else {
            placeholders.fill(words).map_err(|fault| failed(fault, String::new()))?
        };
        let log = folder.path().join("log.txt");
        // A process inherits the CPUs of the thread that starts it.
        let start = || {
            stay_on(processors)?;
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            ChildProcess::start(command, &log)
        };
        let started = thread::scope(|scope| scope.spawn(start).join());
        let started = started.unwrap_or_else(|_| Err(std::io::Error::other("the thread starting it panicked")));
        let not_run = |source| ForwarderFault::Program { program: words[0].clone(), source };
        let mut child = started.map_err(|error| failed(not_run(error), String::new()))?;
        let endpoint = child
            .connect(&runtime, &format!("unix://{}", socket.display()), START_TIMEOUT)
            .map_err(|fault| failed(fault, child.log()))?;
        Ok(Forwarder {
            name: spec.name.clone(),
            pid: child.id(),
            child: Some(child),
            _folder: Some(folder),
            socket,
            port,
            management: Management::new(runtime, endpoint),
            cache_before: None,
            cache: None,
            routes: 0,
        })
    }

    fn attach(
        spec: &ForwarderSpec,
        socket: &Path,
        port: u16,
        pid: Option<u32>,
        runtime: Runtime,
    ) -> Result<Forwarder, PeersError> {
        let failed = |fault| {
            let fault = Box::new(fault);
            PeersError::Forwarder { name: spec.name.clone(), fault, log: String::new() }
        };
        let uri = format!("unix://{}", socket.display());
        let peer = UnixStream::connect(socket)
            .and_then(|stream| Ok(getsockopt(&stream, PeerCredentials)?))
            .map_err(|source| failed(ForwarderFault::AddressNotReachable { at: uri.clone(), source }))?;
        // The pid is 0 in another namespace, and 1 if the service manager created the socket.
        let listener = u32::try_from(peer.pid()).ok().filter(|&pid| pid > 1);
        let pid = pid.or(listener).ok_or_else(|| failed(ForwarderFault::UnknownProcess(socket.to_owned())))?;
        let connected = runtime.block_on(Endpoint::connect(Some(&uri)));
        let endpoint = connected.map_err(|error| failed(ForwarderFault::NotReachable(error)))?;
        let management = Management::new(runtime, endpoint);
        let cache_before = Some(management.cache().map_err(failed)?);
        let (name, socket) = (spec.name.clone(), socket.to_owned());
        let (child, _folder, cache, routes) = (None, None, None, 0);
        Ok(Forwarder { name, child, _folder, pid, socket, port, management, cache_before, cache, routes })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the last lines of its log, if it was started here.
    pub(super) fn log(&self) -> String {
        self.child.as_ref().map(ChildProcess::log).unwrap_or_default()
    }

    /// Checks that the forwarder listens on the given kinds of sockets.
    ///
    /// # Errors
    /// Returns an error that says what to do.
    pub(super) fn check_listeners(&self, sockets: &[SocketKind]) -> Result<(), PeersError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        for &socket in sockets {
            let listens = match socket {
                SocketKind::Unix => Ok(()),
                SocketKind::Tcp => TcpStream::connect(address).map(drop),
                SocketKind::Udp => udp_is_not_refused(address),
            };
            listens.map_err(|source| PeersError::Forwarder {
                name: self.name.clone(),
                fault: Box::new(ForwarderFault::NoListener { socket: socket.to_string(), address, source }),
                log: self.log(),
            })?;
        }
        Ok(())
    }

    /// Prepares cache and FIB for a case. Calls `show` with each step.
    ///
    /// # Errors
    /// See [`ForwarderFault`].
    pub(super) fn prepare(
        &mut self,
        case: &Case,
        cache_packets: u64,
        stop: &Arc<AtomicBool>,
        show: &dyn Fn(String),
    ) -> Result<(), ForwarderFault> {
        self.check()?;
        let name = self.name.clone();
        if case.routes > self.routes {
            self.management.add_routes(self.routes, case.routes, |done| {
                show(format!("{name}: {done} of {} routes", case.routes));
                stop.load(Ordering::Relaxed)
            })?;
            self.routes = case.routes;
        }
        let wanted = (case.cache, case.payload_bytes, case.names(cache_packets));
        if self.cache == Some(wanted)
            || (case.cache == CacheCase::MissEmpty && self.cache.is_some_and(|cache| cache.0 == case.cache))
        {
            return Ok(());
        }
        show(format!("{name}: preparing the cache, {}", case.cache));
        self.cache = None;
        match case.cache {
            CacheCase::MissEmpty => self.empty_cache(case, cache_packets, stop)?,
            CacheCase::HitFew => {
                self.empty_cache(case, cache_packets, stop)?;
                self.management.set_cache(cache_packets, true, true)?;
                self.warm_cache(case, wanted.2, stop)?;
            }
            CacheCase::MissFull => self.fill_cache(case, cache_packets, stop)?,
            CacheCase::HitFull => {
                self.fill_cache(case, cache_packets, stop)?;
                self.warm_cache(case, wanted.2, stop)?;
            }
        }
        self.cache = Some(wanted);
        Ok(())
    }

    /// Empties the cache, and disables admission. Some forwarders evict Data only when other Data is inserted.
    fn empty_cache(&self, case: &Case, cache_packets: u64, stop: &Arc<AtomicBool>) -> Result<(), ForwarderFault> {
        if self.management.cache()?.entries > EMPTY {
            self.management.set_cache(1, true, true)?;
            self.load(case, FILL_WINDOW, 0, Duration::ZERO, FILL_PIECE, stop)?;
            let left = self.management.cache_entries_until(|entries| entries <= EMPTY)?;
            if left > EMPTY {
                return Err(ForwarderFault::NotEmptied(left));
            }
        }
        self.management.set_cache(cache_packets, false, true)
    }

    fn fill_cache(&self, case: &Case, cache_packets: u64, stop: &Arc<AtomicBool>) -> Result<(), ForwarderFault> {
        self.management.set_cache(cache_packets, true, true)?;
        let end = Instant::now() + FILL_TIMEOUT;
        let mut exchanges = 0;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            exchanges += self.load(case, FILL_WINDOW, 0, Duration::ZERO, FILL_PIECE, stop)?.exchanges;
            let entries = self.management.cache()?.entries;
            // A limit in bytes may be reached before the number of packets; then the cache counts as full after twice
            // that number.
            if entries as f64 >= FULL * cache_packets as f64 || (exchanges > 2 * cache_packets && entries > EMPTY) {
                return Ok(());
            }
        }
        Err(ForwarderFault::NotFilled { packets: cache_packets, seconds: FILL_TIMEOUT.as_secs() })
    }

    /// Requests the same names until the cache answers all of them. Each load starts with the first name, so it must be
    /// long enough to request all names.
    fn warm_cache(&self, case: &Case, names: u64, stop: &Arc<AtomicBool>) -> Result<(), ForwarderFault> {
        let end = Instant::now() + FILL_TIMEOUT;
        let (mut hits, mut piece) = (0.0, FILL_PIECE);
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            let report = self.load(case, FILL_WINDOW, names, Duration::ZERO, piece, stop)?;
            hits = hit_share(&report);
            if report.exchanges < names {
                piece = (2 * piece).min(FILL_TIMEOUT / 4);
            } else if hits >= ANSWERS {
                return Ok(());
            }
        }
        Err(ForwarderFault::NotWarm { percent: 100.0 * hits, seconds: FILL_TIMEOUT.as_secs() })
    }

    /// Measures one turn.
    ///
    /// # Errors
    /// See [`ForwarderFault`].
    pub(super) fn turn(
        &mut self,
        case: &Case,
        parameters: &PeersParameters,
        stop: &Arc<AtomicBool>,
    ) -> Result<Turn, ForwarderFault> {
        self.check()?;
        let names = case.names(parameters.cache_packets);
        let report = self.load(case, case.window, names, parameters.warm_up, parameters.turn, stop);
        self.check()?;
        let report = report?;
        if report.exchanges == 0 && !stop.load(Ordering::Relaxed) {
            let LoadReport { interests, nacks, malformed, .. } = report;
            return Err(ForwarderFault::NoAnswer { interests, nacks, malformed });
        }
        let cached_packets = self.management.cache()?.entries;
        let hit_share = hit_share(&report);
        Ok(Turn { report, hit_share, resident_bytes: resident_bytes(&process_tree(self.pid)), cached_packets })
    }

    fn check(&mut self) -> Result<(), ForwarderFault> {
        self.child.as_mut().map_or(Ok(()), ChildProcess::check)
    }

    fn load(
        &self,
        case: &Case,
        window: usize,
        names: u64,
        warm_up: Duration,
        duration: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<LoadReport, ForwarderFault> {
        let on_loopback = || HostPort { host: Ipv4Addr::LOCALHOST.to_string(), port: self.port, family: Family::V4 };
        let control = TransportUri::Unix(self.socket.clone());
        let uri = match case.socket {
            SocketKind::Unix => control.clone(),
            SocketKind::Tcp => TransportUri::Tcp(on_loopback()),
            SocketKind::Udp => TransportUri::Udp(on_loopback()),
        };
        // Data of different sizes have different names, so that a cache does not return Data of another size.
        let prefix = Name::new().append_generic("namehop").append_generic("peers");
        let load = Load {
            prefix: prefix.append_generic(case.payload_bytes.to_string()),
            in_flight: window.min(usize::try_from(names).ok().filter(|&names| names > 0).unwrap_or(usize::MAX)),
            payload_bytes: case.payload_bytes,
            names,
            freshness_ms: FRESHNESS_MS,
            lifetime: LIFETIME,
        };
        let config = LoadConfig {
            role: Role::Both,
            consumer: uri.clone(),
            producer: uri,
            control: Some(control),
            signer: Arc::new(DigestSigner),
            load,
            warm_up,
            duration,
            pid: Some(self.pid),
        };
        Ok(loadgen::run(&config, stop)?)
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if let Some(before) = &self.cache_before
            && let Err(fault) = self.management.restore_cache(before)
        {
            tracing::warn!(name = self.name, "{fault}; the original cache settings were not restored");
        }
    }
}

/// Share of the Interests that the cache answered, 0 to 1.
fn hit_share(report: &LoadReport) -> f64 {
    1.0 - (report.served_measured as f64 / report.exchanges.max(1) as f64).min(1.0)
}

fn own_configuration(socket: &Path, port: u16) -> String {
    format!(
        "[log]\nlevel = \"warn\"\n[faces.unix]\npath = \"{}\"\n[faces.tcp]\nlisten = [\"127.0.0.1:{port}\"]\n\
         [faces.udp]\nlisten = [\"127.0.0.1:{port}\"]\n[faces.websocket]\nlisten = []\n[metrics]\nenabled = false\n\
         [state]\nenabled = false\n",
        socket.display()
    )
}

/// Returns a port that is currently unused on TCP and UDP.
fn free_port() -> std::io::Result<u16> {
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
}

/// Sends an empty link packet, and checks that the system does not report the port as closed.
fn udp_is_not_refused(address: SocketAddr) -> std::io::Result<()> {
    let idle_packet = [namehop_wire::tlv::types::LP_PACKET as u8, 0];
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(REFUSAL))?;
    socket.send(&idle_packet)?;
    match socket.recv(&mut [0; 16]) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}
