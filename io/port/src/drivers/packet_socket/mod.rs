//! Ports on network interfaces of the kernel, over packet sockets (packet(7)).
//!
//! The kernel puts received NDN frames into a shared ring, so polling takes no system call. Frames are sent in bursts,
//! one system call each, directly from their mbufs. No call blocks: frames that the kernel does not accept stay with
//! the caller, who tries again after [`PortQueue::retry_pause`]. Frames pass the traffic control of the interface, so
//! shaping applies to them and capture tools see them.
//!
//! A filter in the kernel passes only NDN frames, so that other traffic of a shared interface neither fills the ring
//! nor wakes a worker. It also passes frames of wanted VLANs (IEEE 802.1Q), and IP and ARP packets for the port's own
//! addresses ([`PacketPort::receive_only`]). The kernel removes VLAN tags; the port inserts them again, so that frames
//! are as they were on the link. A tag that carries only a priority (VLAN 0) is ignored and stays removed. Frames that
//! this host sends on the interface are not received. A port can have several queues, each with its own socket
//! (`fanout`).

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

use namehop_face::address::MacAddress;
use namehop_face::uri::{PortScheme, PortUri};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::drivers::{
    Access, Driver, DriverTraits, InterfacePort, NO_TRAITS, OnInterface, OpenError, OpenPort, Opener, Spread, Wishes,
    boxed, parse_interface, used_interface,
};
use crate::error::DpdkError;
use crate::losses::{LossCounters, Losses};
use crate::wanted::Wanted;
use receive::ReceiveRing;
use send::Sender;
use socket::Socket;

/// Longest frame of a port on an interface, in bytes, including the Ethernet header.
pub const MAX_FRAME_BYTES: usize = receive::MAX_FRAME_BYTES;

/// State that the port and its queue share.
#[derive(Debug)]
struct Shared {
    socket: Socket,
    losses: LossCounters,
    /// Frames dropped because the receive ring was full; the sum of the kernel's counter, which each read resets.
    receive_ring_full: AtomicU64,
}

/// A port on a network interface, for the thread that manages it.
#[derive(Debug)]
pub struct PacketPort {
    /// One per queue. The first one holds the multicast group memberships.
    queues: Vec<Arc<Shared>>,
    /// Frames that the filters currently pass.
    wanted: Mutex<Wanted>,
}

impl PacketPort {
    /// Opens a port on an interface with `queues` queues, at least one. Frames arrive from now on; those longer than
    /// `frame_bytes` are truncated. UDP packets are spread over the queues by addresses and ports; all other frames
    /// come to the first queue.
    ///
    /// # Errors
    /// Fails if there is no such interface, no permission (capability CAP_NET_RAW), or no memory for the rings, or if
    /// the kernel cannot divide frames among several queues.
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
            // Before any socket has a filter that passes frames, because each socket would then receive all of them.
            fanout::join(&opened.iter().map(|queue| &queue.shared.socket).collect::<Vec<_>>())?;
        }
        let queues: Vec<_> = opened.iter().map(|queue| Arc::clone(&queue.shared)).collect();
        let wanted = Wanted::default();
        queues.iter().try_for_each(|queue| queue.socket.attach_filter(&wanted))?;
        Ok((PacketPort { queues, wanted: Mutex::new(wanted) }, opened))
    }

    /// Sets the frames that the port receives besides untagged NDN frames. Initially there are none.
    ///
    /// # Errors
    /// Fails if the kernel has no memory for the filter. The filters are then unchanged.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        let mut before = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = self.queues.iter().try_for_each(|queue| queue.socket.attach_filter(wanted));
        if attached.is_ok() {
            *before = wanted.clone();
        } else {
            // Restore the old filters, which fitted.
            self.queues.iter().try_for_each(|queue| queue.socket.attach_filter(&before))?;
        }
        attached
    }

    /// Receives every frame from now on, for any hardware address.
    ///
    /// # Errors
    /// Fails if the interface is gone.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        self.queues[0].socket.be_promiscuous()?;
        self.receive_only(&Wanted::everything())
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// Fails if the interface accepts no more groups, or is gone.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        self.queues[0].socket.join(group, join)
    }

    /// Index of the interface, which never changes.
    pub fn interface_index(&self) -> u32 {
        self.queues[0].socket.interface_index()
    }

    /// Frames dropped since the port was opened. Call it from one thread at a time.
    pub fn losses(&self) -> Losses {
        let of_queue = |shared: &Arc<Shared>| {
            let new = u64::from(shared.socket.take_drops());
            let receive_ring_full = shared.receive_ring_full.fetch_add(new, Ordering::Relaxed) + new;
            Losses { receive_ring_full, ..shared.losses.read() }
        };
        self.queues.iter().map(of_queue).sum()
    }
}

/// A receive and a transmit queue of a port, for one worker. The socket closes when both the port and the queue are
/// dropped.
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

    /// A lower bound, at least half of the frames that wait; 0 if they are fewer than a burst.
    fn waiting(&self) -> usize {
        self.ring.waiting()
    }

    /// Sends frames from the front of `frames` and removes them; frames that did not fit stay.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        let lost = self.sender.send(&self.shared.socket, frames);
        if lost > 0 {
            self.shared.losses.send_failed.add(lost);
        }
    }

    /// Time until frames that stayed are worth another attempt.
    fn retry_pause(&self) -> Duration {
        self.sender.retry_pause()
    }

    /// Call it before sleeping until the queue is readable: an interface that went down leaves a socket error behind,
    /// which would end every sleep at once.
    fn prepare_to_sleep(&mut self) {
        self.shared.socket.clear_error();
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.socket.as_fd())
    }
}

/// The driver of network interfaces, through packet sockets of the kernel.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme { name: "dev", parse: parse_interface, separator: Some('?'), can_be_bare: false },
    form: "dev://INTERFACE",
    meaning: "a network interface",
    traits: DriverTraits { has_several_queues: true, uses_interface: true, has_peer: true, ..NO_TRAITS },
    access: Access::to_device,
    open,
};

fn open(opener: &mut Opener, port: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    let interface = used_interface(port)?;
    let frame_bytes = (interface.opened.mtu_bytes + wishes.header_bytes).min(MAX_FRAME_BYTES);
    let (port, queues) = PacketPort::open(&interface.name, frame_bytes, wishes.queues, &opener.pool)
        .map_err(|error| OpenError::on_interface(&interface.name, error))?;
    Ok(OpenPort {
        spread: if queues.len() > 1 { Spread::ByPorts } else { Spread::OneQueue },
        queues: boxed(queues),
        address: interface.opened.address,
        mtu_bytes: frame_bytes - wishes.header_bytes,
        device: Box::new(OnInterface { interface, port }),
    })
}

impl InterfacePort for PacketPort {
    fn losses(&self) -> Losses {
        self.losses()
    }

    fn join(&self, group: MacAddress, join: bool) -> Result<(), DpdkError> {
        self.join(group, join)
    }

    fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        self.receive_only(wanted)
    }

    fn receive_everything(&self) -> Result<(), DpdkError> {
        self.receive_everything()
    }
}
