//! Ports on network interfaces of the kernel, over AF_XDP sockets (networking/af_xdp in the kernel's documentation).
//!
//! There is a socket for each queue of the interface that a worker is to have.
//! The driver of the interface runs a small program for each frame of these queues (`filter`), which hands wanted frames
//! over before the kernel itself looks at them: NDN frames, those of wanted VLANs, and packets for the port's own addresses. All
//! others stay with the kernel. Frames lie in memory that kernel and process share, and their places go back and forth in rings
//! (`ring`): receiving takes no system call, and sending takes one for some tens of frames. Nothing here waits; what the kernel does not
//! take now stays with the caller, or in a ring of which the kernel is reminded.
//!
//! DPDK has a driver for such sockets. It has the kernel wait for being polled, so that an interface that is not set up for this
//! stalls; without that it waits for frames itself on some cards; and it tries again without a pause when a link is full.

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

use namehop_packet::{BufferPool, PacketBuffer, PortQueue};

use crate::BURST;
use crate::backoff::Backoff;
use crate::error::DpdkError;
use crate::losses::{LossCounters, Losses};
use crate::packet_socket::socket::Socket as GroupSocket;
use crate::priority_tag::{ADDRESSES_BYTES, TAG_BYTES, take_off_priority_tag};
use crate::wanted::Wanted;
use attachment::Attachment;
use socket::{RECEIVE_CHUNKS, Rings, SEND_CHUNKS, Socket};

/// A place for a frame of ordinary Ethernet, and the largest that there can be.
const CHUNK_BYTES: usize = 2048;
const MAX_CHUNK_BYTES: usize = 4096;
/// What the kernel keeps free in front of a received frame.
const HEADROOM_BYTES: usize = 256;
/// What stands in front of the packet of a frame at most: addresses, type, tag of a VLAN.
const HEADER_BYTES: usize = ADDRESSES_BYTES + 2 + TAG_BYTES;
/// Largest packet behind the Ethernet header that such ports carry, in bytes.
pub const MAX_MTU_BYTES: usize = MAX_CHUNK_BYTES - HEADROOM_BYTES - HEADER_BYTES;

/// What the two ends of a queue have in common.
#[derive(Debug)]
struct Shared {
    socket: Socket,
    losses: LossCounters,
}

/// A port on a network interface, for the thread that manages it.
#[derive(Debug)]
pub struct XdpPort {
    /// One for each queue.
    queues: Vec<Arc<Shared>>,
    interface: String,
    attachment: Attachment,
    /// Has the memberships in multicast groups, and nothing else.
    groups: GroupSocket,
}

impl XdpPort {
    /// Opens a port on an interface, for packets of up to `mtu_bytes` behind the Ethernet header, with so many queues or as many as the
    /// interface has. Frames arrive from now on, each on the queue that the interface chooses.
    ///
    /// # Errors
    /// When there is no such interface, no permission (capabilities CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF), the MTU is more than
    /// [`MAX_MTU_BYTES`], somebody else has a program or such a socket there, or kernel or driver cannot do it.
    pub fn open(
        interface: &str,
        mtu_bytes: usize,
        queues: usize,
        pool: &BufferPool,
    ) -> Result<(XdpPort, Vec<XdpQueue>), DpdkError> {
        if mtu_bytes > MAX_MTU_BYTES {
            return Err(DpdkError::Unusable(format!(
                "the MTU of {interface} is {mtu_bytes}; AF_XDP carries at most {MAX_MTU_BYTES}: dev://{interface} carries more"
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
                // The interface has no more.
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
                "frames of the first {served} receive queues alone come to the port: `ethtool -L {interface} combined {served}`"
            );
        }
        let interface = interface.to_owned();
        Ok((XdpPort { queues, interface, attachment, groups }, opened))
    }

    /// Receives this from now on besides NDN frames without a tag, and nothing else: of VLANs if the driver leaves tags in the frames.
    ///
    /// # Errors
    /// When the kernel has no memory for the program. Then nothing has changed.
    pub fn receive_only(&self, wanted: &Wanted) -> Result<(), DpdkError> {
        self.attachment
            .replace(|map| filter::program(wanted, map))
            .map_err(|error| DpdkError::from_io(format!("replace the program on {}", self.interface), &error))
    }

    /// Receives every frame from now on, whoever it is for; nothing is left for the kernel.
    ///
    /// # Errors
    /// When the kernel has no memory for the program, or the interface is gone.
    pub fn receive_everything(&self) -> Result<(), DpdkError> {
        self.groups.be_promiscuous()?;
        self.receive_only(&Wanted::everything())
    }

    /// Joins or leaves an Ethernet multicast group.
    ///
    /// # Errors
    /// When the interface takes no more groups, or is gone.
    pub fn join(&self, group: [u8; 6], join: bool) -> Result<(), DpdkError> {
        self.groups.join(group, join)
    }

    /// Number of the interface that it is on, for life.
    pub fn interface_index(&self) -> u32 {
        self.queues[0].socket.interface
    }

    /// Frames lost since the port was opened.
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

/// Receive queues of an interface, as far as the system says.
fn receive_queues(interface: &str) -> usize {
    let queues = fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    queues.map_or(0, |queues| {
        queues.flatten().filter(|queue| queue.file_name().as_encoded_bytes().starts_with(b"rx-")).count()
    })
}

/// A receive and a transmit queue of a port, for one worker. It closes when both ends are gone.
pub struct XdpQueue {
    shared: Arc<Shared>,
    rings: Rings,
    chunk_bytes: usize,
    /// Places for frames to be sent, by their offset.
    free: Vec<u64>,
    /// The kernel had not taken all frames out of the ring when it was last reminded.
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

    /// Where the chunk begins in which this place lies.
    fn chunk_of(&self, place: u64) -> u64 {
        place & !(self.chunk_bytes as u64 - 1)
    }

    /// Takes back the places of frames that were sent.
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

    /// Reminds the kernel of the frames in the ring, of which it may take a few at a time.
    fn wake_sender(&mut self) {
        let mut waiting = self.rings.sending.waiting();
        while waiting > 0 && self.rings.sending.must_wake() {
            // Whatever it says: how many it took is seen in the ring.
            let _ = self.shared.socket.wake_sender();
            let left = self.rings.sending.waiting();
            if left >= waiting {
                break;
            }
            waiting = left;
        }
        self.is_waiting = waiting > 0 && self.rings.sending.must_wake();
        if self.is_waiting { self.backoff.fail() } else { self.backoff.reset() }
    }
}

impl PortQueue for XdpQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.is_waiting && !self.backoff.is_pausing() {
            self.wake_sender();
        }
        let count = self.rings.received.available().min(BURST);
        if count == 0 {
            return;
        }
        let mut lost = 0;
        for _ in 0..count {
            let descriptor = self.rings.received.take();
            let place = self.rings.memory.range(descriptor.addr as usize, descriptor.len as usize);
            // SAFETY: the bytes lie in the memory, and the kernel leaves them alone until their place is given back.
            let bytes = place.map(|place| unsafe { slice::from_raw_parts(place.as_ptr(), descriptor.len as usize) });
            match bytes.and_then(|bytes| self.pool.copy_of(bytes)) {
                Some(mut frame) => {
                    take_off_priority_tag(&mut frame);
                    frames.push(frame);
                }
                None => lost += 1,
            }
            // There is room for all places.
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
                // Larger than the interface carries.
                (done, lost) = (done + 1, lost + 1);
                continue;
            }
            let Some(place) = self.free.pop() else { break };
            let Some(target) = self.rings.memory.range(place as usize, bytes.len()) else { break };
            // SAFETY: the bytes lie in the memory, in a chunk that neither the kernel nor a frame has.
            unsafe { target.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            // There is room for all places.
            let _ = self.rings.sending.put(libc::xdp_desc { addr: place, len: bytes.len() as u32, options: 0 });
            done += 1;
        }
        self.rings.sending.publish();
        frames.drain(..done);
        if lost > 0 {
            self.shared.losses.send_failed.add(lost);
        }
        self.wake_sender();
        if !frames.is_empty() {
            self.backoff.fail();
        }
    }

    fn retry_pause(&self) -> Duration {
        self.backoff.remaining()
    }

    /// None while frames wait in the ring, of which the kernel has to be reminded.
    fn bell(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_waiting).then(|| self.shared.socket.as_fd())
    }
}
