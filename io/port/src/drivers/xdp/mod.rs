//! Ports on network interfaces of the kernel, over AF_XDP sockets (networking/af_xdp in the kernel's documentation).
//!
//! There is one socket for each queue of the interface that a worker serves. For each frame of these queues, the driver
//! of the interface runs a small program (`filter`). It redirects wanted frames to the socket, before the kernel's
//! network stack sees them: NDN frames, frames of wanted VLANs, and packets for the port's own addresses. All other
//! frames go to the kernel. Frames lie in memory that kernel and process share, and their chunks are exchanged through
//! rings (`ring`): receiving takes no system call, and sending takes one for some tens of frames. No call blocks.
//! Frames that the kernel does not accept stay with the caller, or in a ring until the kernel is woken again.
//!
//! DPDK's AF_XDP driver is not used. It makes the kernel wait for busy polling, which stalls an interface that is not
//! configured for it; without busy polling, it blocks for frames on some cards; and it retries without a pause when a
//! link is full.

mod attachment;
mod filter;
mod ring;
mod socket;

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use namehop_face::address::MacAddress;
use namehop_face::uri::{PortScheme, PortUri};
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::BURST;
use crate::backoff::Backoff;
use crate::drivers::packet_socket::socket::Socket as GroupSocket;
use crate::drivers::{
    Access, Driver, DriverTraits, InterfacePort, NO_TRAITS, OnInterface, OpenError, OpenPort, Opener, Spread, Wishes,
    boxed, parse_interface, used_interface,
};
use crate::error::DpdkError;
use crate::losses::{LossCounters, Losses};
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES, take_off_priority_tag};
use crate::wanted::Wanted;
use attachment::Attachment;
use socket::{RECEIVE_CHUNKS, Rings, SEND_CHUNKS, Socket};

/// Chunk size for frames of ordinary Ethernet, and the largest chunk size, in bytes.
const CHUNK_BYTES: usize = 2048;
const MAX_CHUNK_BYTES: usize = 4096;
/// Bytes that the kernel keeps free in front of a received frame.
const HEADROOM_BYTES: usize = 256;
/// Bytes in front of the packet of a frame at most: addresses, type, VLAN tag.
const HEADER_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES;
/// Largest MTU of such ports, in bytes: the packet behind the Ethernet header.
pub const MAX_MTU_BYTES: usize = MAX_CHUNK_BYTES - HEADROOM_BYTES - HEADER_BYTES;

/// State that the port and its queue share.
#[derive(Debug)]
struct Shared {
    socket: Socket,
    losses: LossCounters,
}

/// A port on a network interface, for the thread that manages it.
#[derive(Debug)]
pub struct XdpPort {
    /// One per queue.
    queues: Vec<Arc<Shared>>,
    interface: String,
    attachment: Attachment,
    /// Holds only the multicast group memberships.
    groups: GroupSocket,
}

impl XdpPort {
    /// Opens a port on an interface, for packets of up to `mtu_bytes` behind the Ethernet header, with `queues` queues
    /// or as many as the interface has, if fewer. Frames arrive from now on; the interface chooses the queue of each
    /// frame.
    ///
    /// # Errors
    /// Fails if there is no such interface, no permission (capabilities CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF), if the
    /// MTU is more than [`MAX_MTU_BYTES`], if the interface already has another XDP program or AF_XDP socket, or if the
    /// kernel or the driver does not support it.
    pub fn open(
        interface: &str,
        mtu_bytes: usize,
        queues: usize,
        pool: &BufferPool,
    ) -> Result<(XdpPort, Vec<XdpQueue>), DpdkError> {
        if mtu_bytes > MAX_MTU_BYTES {
            return Err(DpdkError::Unusable(format!(
                "the MTU of {interface} is {mtu_bytes}, but AF_XDP supports at most {MAX_MTU_BYTES}: use \
                 dev://{interface}, or lower the MTU"
            )));
        }
        let failed = |what: &str, error: &io::Error| DpdkError::from_io(format!("{what} {interface}"), error);
        let fits = mtu_bytes + HEADER_BYTES + HEADROOM_BYTES <= CHUNK_BYTES;
        let chunk_bytes = if fits { CHUNK_BYTES } else { MAX_CHUNK_BYTES };
        let groups = GroupSocket::open(interface)?;
        let mut opened = Vec::new();
        for queue in 0..queues.max(1) as u32 {
            match Socket::open(interface, queue, chunk_bytes) {
                Ok((socket, rings)) => opened.push(XdpQueue::new(socket, rings, chunk_bytes, pool)),
                // The interface has no more queues.
                Err(error) if queue > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(failed("open an AF_XDP socket on", &error)),
            }
        }
        let queues: Vec<_> = opened.iter().map(|queue| Arc::clone(&queue.shared)).collect();
        let sockets: Vec<_> = queues.iter().map(|queue| queue.socket.as_fd()).collect();
        let attachment =
            Attachment::new(queues[0].socket.interface, &sockets, |map| filter::program(&Wanted::default(), map))
                .map_err(|error| failed("attach a program to", &error))?;
        let (served, there) = (queues.len(), receive_queues(interface));
        if there > served {
            tracing::warn!(
                interface,
                queues = there,
                "only the first {served} receive queues deliver frames to the port: run `ethtool -L {interface} \
                 combined {served}`"
            );
        }
        let interface = interface.to_owned();
        Ok((XdpPort { queues, interface, attachment, groups }, opened))
    }

    /// Sets the frames that the port receives besides untagged NDN frames. Frames of VLANs are received only if the
    /// driver leaves tags in the frames.
    ///
    /// # Errors
    /// Fails if the kernel has no memory for the program. The program is then unchanged.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        self.attachment
            .replace(|map| filter::program(wanted, map))
            .map_err(|error| DpdkError::from_io(format!("replace the program on {}", self.interface), &error))
    }

    /// Receives every frame from now on, for any hardware address; the kernel receives none.
    ///
    /// # Errors
    /// Fails if the kernel has no memory for the program, or if the interface is gone.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        self.groups.be_promiscuous()?;
        self.receive_only(&Wanted::everything())
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// Fails if the interface accepts no more groups, or is gone.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        self.groups.join(group, join)
    }

    /// Index of the interface, which never changes.
    pub fn interface_index(&self) -> u32 {
        self.queues[0].socket.interface
    }

    /// Frames dropped since the port was opened.
    pub fn losses(&self) -> Losses {
        let of_queue = |shared: &Arc<Shared>| {
            let (own, counted) = (shared.losses.read(), shared.socket.statistics());
            Losses {
                receive_ring_full: counted.rx_dropped + counted.rx_ring_full,
                send_failed: own.send_failed + counted.tx_invalid_descs,
                ..own
            }
        };
        self.queues.iter().map(of_queue).sum()
    }
}

/// Number of receive queues of an interface, from sysfs.
fn receive_queues(interface: &str) -> usize {
    let queues = fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    queues.map_or(0, |queues| {
        queues.flatten().filter(|queue| queue.file_name().as_encoded_bytes().starts_with(b"rx-")).count()
    })
}

/// A receive and a transmit queue of a port, for one worker. The socket closes when both the port and the queue are
/// dropped.
pub struct XdpQueue {
    shared: Arc<Shared>,
    rings: Rings,
    chunk_bytes: usize,
    /// Free chunks for frames to be sent, by their offset.
    free: Vec<u64>,
    /// True if the kernel had not taken all frames from the ring when it was last woken.
    is_waiting: bool,
    backoff: Backoff,
    pool: BufferPool,
}

impl fmt::Debug for XdpQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpQueue").field("free", &self.free.len()).finish_non_exhaustive()
    }
}

impl XdpQueue {
    fn new(socket: Socket, rings: Rings, chunk_bytes: usize, pool: &BufferPool) -> XdpQueue {
        let free = (RECEIVE_CHUNKS..RECEIVE_CHUNKS + SEND_CHUNKS).map(|chunk| u64::from(chunk) * chunk_bytes as u64);
        XdpQueue {
            shared: Arc::new(Shared { socket, losses: LossCounters::default() }),
            rings,
            chunk_bytes,
            free: free.collect(),
            is_waiting: false,
            backoff: Backoff::default(),
            pool: pool.clone(),
        }
    }

    /// Offset of the chunk that contains this offset.
    fn chunk_of(&self, place: u64) -> u64 {
        place & !(self.chunk_bytes as u64 - 1)
    }

    /// Takes back the chunks of frames that were sent.
    fn reclaim(&mut self) {
        let count = self.rings.sent.available();
        for _ in 0..count {
            let place = self.rings.sent.take();
            self.free.push(self.chunk_of(place));
        }
        if count > 0 {
            self.rings.sent.release();
        }
    }

    /// Wakes the kernel to send the frames in the ring; it may take only a few per call.
    fn wake_sender(&mut self) {
        let mut waiting = self.rings.sending.waiting();
        while waiting > 0 && self.rings.sending.must_wake() {
            // Ignore the result: the ring shows how many frames the kernel took.
            let _ = self.shared.socket.wake_sender();
            let left = self.rings.sending.waiting();
            if left >= waiting {
                break;
            }
            waiting = left;
        }
        self.is_waiting = waiting > 0 && self.rings.sending.must_wake();
    }

    /// Pauses before the next attempt if the last one left frames behind: in the ring, or outside if the ring is full.
    fn note_attempt(&mut self, is_full: bool) {
        if self.is_waiting || is_full { self.backoff.fail() } else { self.backoff.reset() }
    }
}

impl PortQueue for XdpQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.is_waiting && !self.backoff.is_pausing() {
            self.wake_sender();
            self.note_attempt(false);
        }
        let count = self.rings.received.available().min(BURST);
        if count == 0 {
            return;
        }
        let mut lost = 0;
        for _ in 0..count {
            let descriptor = self.rings.received.take();
            let place = self.rings.memory.range(descriptor.addr as usize, descriptor.len as usize);
            // SAFETY: the bytes lie in the memory, and the kernel leaves them alone until their chunk is returned to
            // it.
            let bytes = place.map(|place| unsafe { slice::from_raw_parts(place.as_ptr(), descriptor.len as usize) });
            match bytes.and_then(|bytes| self.pool.copy_of(bytes)) {
                Some(mut frame) => {
                    take_off_priority_tag(&mut frame);
                    frames.push(frame);
                }
                None => lost += 1,
            }
            // The ring has room for all chunks.
            let _ = self.rings.fill.put(self.chunk_of(descriptor.addr));
        }
        self.rings.received.release();
        self.rings.fill.publish();
        if self.rings.fill.must_wake() {
            self.shared.socket.wake_receiver();
        }
        if lost > 0 {
            self.shared.losses.no_buffer.add(lost);
        }
    }

    fn waiting(&self) -> usize {
        self.rings.received.available()
    }

    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.backoff.is_pausing() {
            return;
        }
        self.reclaim();
        let (mut done, mut lost) = (0, 0);
        for frame in frames.iter() {
            let bytes = frame.bytes();
            if bytes.len() > self.chunk_bytes {
                // The frame is longer than the interface carries.
                (done, lost) = (done + 1, lost + 1);
                continue;
            }
            let Some(place) = self.free.pop() else { break };
            let Some(target) = self.rings.memory.range(place as usize, bytes.len()) else { break };
            // SAFETY: the bytes lie in the memory, in a chunk that is free: neither the kernel nor a frame uses it.
            unsafe { target.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            // The ring has room for all chunks.
            let _ = self.rings.sending.put(libc::xdp_desc { addr: place, len: bytes.len() as u32, options: 0 });
            done += 1;
        }
        self.rings.sending.publish();
        frames.drain(..done);
        if lost > 0 {
            self.shared.losses.send_failed.add(lost);
        }
        self.wake_sender();
        self.note_attempt(!frames.is_empty());
    }

    fn retry_pause(&self) -> Duration {
        self.backoff.remaining()
    }

    /// `None` while frames wait in the ring, because the kernel has to be woken for them.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_waiting).then(|| self.shared.socket.as_fd())
    }
}

/// The driver of network interfaces over AF_XDP.
pub static DRIVER: Driver = Driver {
    scheme: PortScheme { name: "xdp", parse: parse_interface, separator: Some('?'), can_be_bare: false },
    form: "xdp://INTERFACE",
    meaning: "a network interface past the kernel's network stack",
    traits: DriverTraits { has_several_queues: true, uses_interface: true, has_peer: true, ..NO_TRAITS },
    access: Access::to_device,
    open,
};

fn open(opener: &mut Opener, port: &PortUri, wishes: &Wishes) -> Result<OpenPort, OpenError> {
    let interface = used_interface(port)?;
    let (port, queues) = XdpPort::open(&interface.name, interface.opened.mtu_bytes, wishes.queues, &opener.pool)
        .map_err(|error| OpenError::on_interface(&interface.name, error))?;
    Ok(OpenPort {
        spread: if queues.len() > 1 { Spread::ByDevice } else { Spread::OneQueue },
        queues: boxed(queues),
        address: interface.opened.address,
        mtu_bytes: interface.opened.mtu_bytes,
        device: Box::new(OnInterface { interface, port }),
    })
}

impl InterfacePort for XdpPort {
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
