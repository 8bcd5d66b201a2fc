//! Ports on network interfaces of the kernel, over packet sockets (packet(7)).
//!
//! The kernel puts received NDN frames into a ring that both share, so looking for frames takes no system call; frames are
//! sent in bursts of one system call, straight from their mbufs. Nothing here waits: what the kernel does not take now
//! stays with the caller, who tries again after [`PortQueue::retry_pause`]. Frames go through the traffic control of the
//! interface, so that shaping applies to them and tools that capture see them.
//!
//! A filter in the kernel passes NDN frames only, so that the other traffic of a shared interface neither fills the ring nor
//! wakes anybody. Frames with a VLAN tag (IEEE 802.1Q) pass when somebody wants those of that VLAN, and packets of the Internet and ARP
//! when they are for one of the port's own addresses ([`PacketPort::receive_only`]). The kernel takes tags off; they are put back, so that frames are as they were on the link. A
//! tag that names no VLAN but a priority (identifier 0) does not count and stays off. What this computer sends on the interface
//! is not received. There can be several queues, each a socket of its own (`fanout`).

mod fanout;
mod filter;
mod receive;
mod send;
pub(crate) mod socket;
mod unfinished;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::error::DpdkError;
use crate::losses::{LossCounters, Losses};
use crate::wanted::Wanted;
use receive::ReceiveRing;
use send::Sender;
use socket::Socket;

/// Longest frame that a port on an interface can carry, in bytes, Ethernet header included.
pub const MAX_FRAME_BYTES: usize = receive::MAX_FRAME_BYTES;

/// What the two ends of a queue have in common.
#[derive(Debug)]
struct Shared {
    socket: Socket,
    losses: LossCounters,
    /// Frames that found the receive ring full; added up from what the kernel says since it was last asked.
    receive_ring_full: AtomicU64,
}

/// A port on a network interface, for the thread that manages it.
#[derive(Debug)]
pub struct PacketPort {
    /// One for each queue. The first one has the memberships in multicast groups.
    queues: Vec<Arc<Shared>>,
    /// What passes their filters.
    wanted: Mutex<Wanted>,
}

impl PacketPort {
    /// Opens a port on an interface with so many queues, at least one. Frames arrive from now on, those longer than `frame_bytes` cut
    /// off: packets of UDP on the queue that their addresses and ports choose, all others on the first one.
    ///
    /// # Errors
    /// When there is no such interface, no permission (capability CAP_NET_RAW), or no memory for the rings; or when the kernel cannot
    /// divide frames among several queues.
    pub fn open(
        interface: &str,
        frame_bytes: usize,
        queues: usize,
        pool: &BufferPool,
    ) -> Result<(PacketPort, Vec<PacketQueue>), DpdkError> {
        let mut opened = Vec::new();
        for _ in 0..queues.max(1) {
            let socket = Socket::open(interface)?;
            let ring = ReceiveRing::new(&socket, frame_bytes)?;
            socket.bind()?;
            let shared = Shared { socket, losses: LossCounters::default(), receive_ring_full: AtomicU64::new(0) };
            let (shared, sender) = (Arc::new(shared), Sender::new());
            opened.push(PacketQueue { shared, ring, sender, pool: pool.clone() });
        }
        if let [_, _, ..] = &opened[..] {
            // Before any has a filter that lets something through, which would come to each of them.
            fanout::join(&opened.iter().map(|queue| &queue.shared.socket).collect::<Vec<_>>())?;
        }
        let queues: Vec<_> = opened.iter().map(|queue| Arc::clone(&queue.shared)).collect();
        let wanted = Wanted::default();
        queues.iter().try_for_each(|queue| queue.socket.attach_filter(&wanted))?;
        Ok((PacketPort { queues, wanted: Mutex::new(wanted) }, opened))
    }

    /// Receives this from now on besides NDN frames without a tag, and nothing else. Initially nothing else is wanted.
    ///
    /// # Errors
    /// When the kernel has no memory for the filter. Then nothing has changed.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        let mut before = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = self.queues.iter().try_for_each(|queue| queue.socket.attach_filter(wanted));
        if attached.is_ok() {
            *before = wanted.clone();
        } else {
            // What fitted before still fits.
            self.queues.iter().try_for_each(|queue| queue.socket.attach_filter(&before))?;
        }
        attached
    }

    /// Receives every frame from now on, whoever it is for.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        self.queues[0].socket.be_promiscuous()?;
        self.receive_only(&Wanted::everything())
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// When the interface takes no more groups, or is gone.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        self.queues[0].socket.join(group, join)
    }

    /// Number of the interface that it is on, for life.
    pub fn interface_index(&self) -> u32 {
        self.queues[0].socket.interface_index()
    }

    /// Frames lost since the port was opened. One thread at a time.
    pub fn losses(&self) -> Losses {
        let of_queue = |shared: &Arc<Shared>| {
            let new = u64::from(shared.socket.take_drops());
            let receive_ring_full = shared.receive_ring_full.fetch_add(new, Ordering::Relaxed) + new;
            Losses { receive_ring_full, ..shared.losses.read() }
        };
        self.queues.iter().map(of_queue).sum()
    }
}

/// A receive and a transmit queue of a port, for one worker. It closes when both ends are gone.
pub struct PacketQueue {
    shared: Arc<Shared>,
    ring: ReceiveRing,
    sender: Sender,
    pool: BufferPool,
}

impl PortQueue for PacketQueue {
    /// Adds up to [`BURST`](crate::BURST) received frames to `frames`.
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        let lost = self.ring.receive(&self.pool, frames);
        if lost > 0 {
            self.shared.losses.no_buffer.add(lost);
        }
    }

    /// To the half.
    fn waiting(&self) -> usize {
        self.ring.waiting()
    }

    /// Sends frames from the front and takes them out; those that stay did not fit.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        let lost = self.sender.send(&self.shared.socket, frames);
        if lost > 0 {
            self.shared.losses.send_failed.add(lost);
        }
    }

    /// How long it will take until frames that stayed are worth another attempt.
    fn retry_pause(&self) -> Duration {
        self.sender.retry_pause()
    }

    /// To be called before sleeping until the queue is readable: an interface that went down leaves an error behind, which
    /// would end every sleep at once.
    fn prepare_to_sleep(&mut self) {
        self.shared.socket.clear_error();
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.socket.as_fd())
    }
}
