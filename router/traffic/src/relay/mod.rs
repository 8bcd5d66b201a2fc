//! A relay that carries UDP datagrams between two peers as a link with limits would: for experiments with loss, delay and queues where
//! the system has no such links.
//!
//! One peer sends to the relay's address, and whoever does so first is that peer; the other peer is known from the start. Each
//! direction has a thread that receives and one that sends when it is time. Everything that came is counted as carried or as
//! gone for one of the named reasons.

mod direction;
mod line;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

pub use direction::DirectionCounts;
use direction::{Direction, Port};
#[cfg(test)]
pub(crate) use line::Fate;
pub use line::Impairments;
pub(crate) use line::Line;

/// How often threads look whether the relay ends.
const PATIENCE: Duration = Duration::from_millis(50);
/// Room for what the system receives before the relay reads it; as much of it as the system allows.
const BUFFER_BYTES: usize = 8 << 20;

/// What a relay is between, and what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelayConfig {
    /// Where the first peer sends to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The second peer.
    pub to: SocketAddr,
    /// From the first peer to the second.
    pub forth: Impairments,
    /// From the second to the first.
    pub back: Impairments,
    /// Where chance begins.
    pub seed: u64,
}

/// A running relay.
pub struct Relay {
    address: SocketAddr,
    forth: Arc<Direction>,
    back: Arc<Direction>,
    is_ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Relay {
    /// Starts to relay.
    ///
    /// # Errors
    /// A socket cannot be opened or bound.
    pub fn start(config: &RelayConfig) -> io::Result<Relay> {
        let listening = open(config.listen)?;
        let any: SocketAddr = if config.to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let sending = open(any)?;
        sending.connect(config.to)?;
        let address = listening.local_addr()?;
        let (listening, sending) = (Arc::new(listening), Arc::new(sending));
        // The first peer is known once it has sent something.
        let first = Arc::new(OnceLock::new());
        let is_ending = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let forth = Arc::new(Direction::new(Line::new(config.forth, config.seed), began));
        let back = Arc::new(Direction::new(Line::new(config.back, config.seed.wrapping_add(1)), began));
        let near = Port::new(Arc::clone(&listening), Some(first));
        let far = Port::new(sending, None);
        let mut threads = Vec::new();
        for (direction, from, to) in [(&forth, &near, &far), (&back, &far, &near)] {
            let (receiving, from, ending) = (Arc::clone(direction), from.clone(), Arc::clone(&is_ending));
            threads.push(spawn("relay-receive", move || receiving.receive(&from, &ending))?);
            let (sending, to, ending) = (Arc::clone(direction), to.clone(), Arc::clone(&is_ending));
            threads.push(spawn("relay-send", move || sending.send(&to, &ending))?);
        }
        Ok(Relay { address, forth, back, is_ending, threads })
    }

    /// Where the first peer sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What happened so far: from the first peer to the second, and back.
    pub fn counts(&self) -> [DirectionCounts; 2] {
        [self.forth.counts(), self.back.counts()]
    }

    /// Ends the relay; what is on its way counts as such.
    ///
    /// # Errors
    /// One of the sockets failed while the relay ran.
    pub fn end(mut self) -> io::Result<[DirectionCounts; 2]> {
        self.stop()?;
        Ok(self.counts())
    }

    /// Has one of the sockets failed? Then [`end`](Self::end) says how.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.is_ending.store(true, Ordering::Relaxed);
        [&self.forth, &self.back].into_iter().for_each(|direction| direction.wake());
        let ends =
            self.threads.drain(..).map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("panic"))));
        ends.collect::<Vec<_>>().into_iter().collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Nobody asks any more how it went.
        let _ = self.stop();
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // Best effort: the system may allow less.
    let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES);
    let _ = setsockopt(&socket, sockopt::SndBuf, &BUFFER_BYTES);
    setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    Ok(socket)
}

fn spawn(name: &str, work: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

#[cfg(test)]
mod tests;
