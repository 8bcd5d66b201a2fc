//! A relay that carries UDP datagrams between two peers over a simulated link, for experiments with loss, delay and
//! queues where the system has no such links.
//!
//! The first peer sends to the relay's address; the first sender there becomes that peer. The second peer is
//! configured. Each direction has a receiving and a sending thread. Every received datagram is counted as carried or as
//! dropped for a named reason.

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

/// How often threads check whether the relay is stopping.
const PATIENCE: Duration = Duration::from_millis(50);
/// Requested socket buffer size in bytes, for datagrams that the relay has not read yet; the system may grant less.
const BUFFER_BYTES: usize = 8 << 20;

/// Configuration of a relay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelayConfig {
    /// Address that the first peer sends to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Address of the second peer.
    pub to: SocketAddr,
    /// Impairments from the first peer to the second.
    pub forth: Impairments,
    /// Impairments from the second peer to the first.
    pub back: Impairments,
    /// Seed of the random numbers.
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
    /// Opens the sockets and starts the threads.
    ///
    /// # Errors
    /// Fails if a socket cannot be opened or bound.
    pub fn start(config: &RelayConfig) -> io::Result<Relay> {
        let listening = open(config.listen)?;
        let any: SocketAddr = if config.to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let sending = open(any)?;
        sending.connect(config.to)?;
        let address = listening.local_addr()?;
        let (listening, sending) = (Arc::new(listening), Arc::new(sending));
        // Set by the first peer's first datagram.
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

    /// Returns the address that the first peer sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the current counters: from the first peer to the second, and back.
    pub fn counts(&self) -> [DirectionCounts; 2] {
        [self.forth.counts(), self.back.counts()]
    }

    /// Stops the relay and returns the final counters; undelivered datagrams count as in flight.
    ///
    /// # Errors
    /// Returns the error of a socket that failed while the relay ran.
    pub fn end(mut self) -> io::Result<[DirectionCounts; 2]> {
        self.stop()?;
        Ok(self.counts())
    }

    /// Returns true if a socket failed; [`end`](Self::end) then returns the error.
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
        // The counters and errors are not needed.
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
