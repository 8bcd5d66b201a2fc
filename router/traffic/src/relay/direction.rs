//! The datagrams in flight in one direction, and the two threads that receive and send them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use serde::Serialize;

use super::PATIENCE;
use super::line::{Fate, Line};

/// Largest datagram.
const DATAGRAM_BYTES: usize = 65_536;
/// Maximum number of datagrams in flight: bounds memory, far above what links hold.
const MOST_ON_THE_WAY: usize = 1 << 18;

/// Counters of one direction, in datagrams unless they say bytes. Received and duplicated datagrams are carried,
/// dropped for one of these reasons, or in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DirectionCounts {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub carried: u64,
    /// Bytes sent.
    pub carried_bytes: u64,
    /// Dropped at random, as configured.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub queue_full: u64,
    /// Additional copies of duplicated datagrams, as configured.
    pub duplicated: u64,
    /// Delayed so that later datagrams overtake them, as configured.
    pub held_back: u64,
    /// Dropped because the first peer was not known yet, or because the sender is not a peer.
    pub strangers: u64,
    /// Dropped because the system refused to send.
    pub refused: u64,
    /// Dropped by the system because the relay read too slowly, which is not configured. Not counted as received.
    pub overrun: u64,
    /// Datagrams in flight.
    pub on_the_way: u64,
}

/// A socket and its peer.
#[derive(Clone)]
pub(super) struct Port {
    socket: Arc<UdpSocket>,
    /// Peer of an unconnected socket; set by its first datagram.
    peer: Option<Arc<OnceLock<SocketAddr>>>,
}

impl Port {
    pub(super) fn new(socket: Arc<UdpSocket>, peer: Option<Arc<OnceLock<SocketAddr>>>) -> Self {
        Port { socket, peer }
    }

    /// Returns true if `sender` is the socket's peer. The first sender becomes the peer.
    fn is_peer(&self, sender: Option<SocketAddr>) -> bool {
        match (&self.peer, sender) {
            (None, _) => true,
            (Some(peer), Some(sender)) => *peer.get_or_init(|| sender) == sender,
            (Some(_), None) => false,
        }
    }

    fn send(&self, datagram: &[u8]) -> SendOutcome {
        let sent = match &self.peer {
            None => self.socket.send(datagram),
            Some(peer) => match peer.get() {
                Some(peer) => self.socket.send_to(datagram, peer),
                None => return SendOutcome::Nowhere,
            },
        };
        if sent.is_ok() { SendOutcome::Yes } else { SendOutcome::Refused }
    }
}

enum SendOutcome {
    Yes,
    Refused,
    Nowhere,
}

/// A datagram in flight: arrival time, sequence number, bytes.
type Flying = Reverse<(Duration, u64, Arc<[u8]>)>;

struct DirectionState {
    line: Line,
    flying: BinaryHeap<Flying>,
    next_number: u64,
    counts: DirectionCounts,
}

/// One direction of the relay.
pub(super) struct Direction {
    state: Mutex<DirectionState>,
    /// Signals that a datagram now arrives before all others, or that the relay is stopping.
    earlier: Condvar,
    began: Instant,
}

impl Direction {
    pub(super) fn new(line: Line, began: Instant) -> Self {
        let state =
            DirectionState { line, flying: BinaryHeap::new(), next_number: 0, counts: DirectionCounts::default() };
        Direction { state: Mutex::new(state), earlier: Condvar::new(), began }
    }

    fn state(&self) -> MutexGuard<'_, DirectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> DirectionCounts {
        let state = self.state();
        DirectionCounts { on_the_way: state.flying.len() as u64, ..state.counts }
    }

    /// Wakes the sending thread to check whether the relay is stopping.
    pub(super) fn wake(&self) {
        self.earlier.notify_all();
    }

    /// Receives datagrams until the relay stops.
    pub(super) fn receive(&self, port: &Port, is_ending: &AtomicBool) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let mut control = cmsg_space!(u32);
        // The system's overrun counter starts with the socket and has 32 bits.
        let mut overruns = 0_u32;
        while !is_ending.load(Ordering::Relaxed) {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let message =
                recvmsg::<SockaddrStorage>(port.socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
            let (bytes, sender, overruns_now) = match message {
                Ok(message) => {
                    let overruns_now = message.cmsgs()?.find_map(|control| match control {
                        ControlMessageOwned::RxqOvfl(count) => Some(count),
                        _ => None,
                    });
                    (message.bytes, message.address.and_then(socket_address), overruns_now)
                }
                // A peer that is not running yet causes an ICMP error.
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut state = self.state();
            if let Some(now) = overruns_now {
                state.counts.overrun += u64::from(now.wrapping_sub(overruns));
                overruns = now;
            }
            state.counts.received += 1;
            if !port.is_peer(sender) {
                state.counts.strangers += 1;
            } else if state.take_in(self.began.elapsed(), &buffer[..bytes]) {
                self.earlier.notify_one();
            }
        }
        Ok(())
    }

    /// Sends datagrams when they are due, until the relay stops.
    pub(super) fn send(&self, port: &Port, is_ending: &AtomicBool) -> io::Result<()> {
        let mut state = self.state();
        while !is_ending.load(Ordering::Relaxed) {
            let now = self.began.elapsed();
            let wait = match state.flying.peek() {
                Some(Reverse((at, ..))) if *at <= now => Duration::ZERO,
                Some(Reverse((at, ..))) => *at - now,
                None => PATIENCE,
            };
            if !wait.is_zero() {
                state = self.earlier.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(Reverse((_, _, datagram))) = state.flying.pop() else { continue };
            // Release the lock, so that the receiving thread does not wait for the system call.
            drop(state);
            let sent = port.send(&datagram);
            state = self.state();
            match sent {
                SendOutcome::Yes => {
                    state.counts.carried += 1;
                    state.counts.carried_bytes += datagram.len() as u64;
                }
                SendOutcome::Refused => state.counts.refused += 1,
                SendOutcome::Nowhere => state.counts.strangers += 1,
            }
        }
        Ok(())
    }
}

impl DirectionState {
    /// Handles a received datagram. Returns true if a datagram now arrives before all others.
    fn take_in(&mut self, now: Duration, datagram: &[u8]) -> bool {
        if self.flying.len() >= MOST_ON_THE_WAY {
            self.counts.queue_full += 1;
            return false;
        }
        let first = self.flying.peek().map(|Reverse((at, ..))| *at);
        match self.line.pass(now, datagram.len()) {
            Fate::Lost => {
                self.counts.lost += 1;
                false
            }
            Fate::QueueFull => {
                self.counts.queue_full += 1;
                false
            }
            Fate::Arrives { at, again, is_held_back } => {
                let datagram: Arc<[u8]> = datagram.into();
                self.counts.held_back += u64::from(is_held_back);
                self.counts.duplicated += u64::from(again.is_some());
                for at in [Some(at), again].into_iter().flatten() {
                    self.flying.push(Reverse((at, self.next_number, Arc::clone(&datagram))));
                    self.next_number += 1;
                }
                first.is_none_or(|first| at < first)
            }
        }
    }
}

fn socket_address(address: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}
