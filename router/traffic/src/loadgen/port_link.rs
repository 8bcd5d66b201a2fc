//! A link over a port: packets are written into its frames and read from them directly.
//!
//! Packets of usual size cost only one copy in each direction. Larger ones are fragmented and reassembled by the
//! routers' link service (NDNLPv2, without reliability). Every frame dropped on this side is counted by reason.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use namehop_face::link_service::Reassembler;
use namehop_face::{Face, FaceFlags, FaceTable, LinkDrop, LinkService};
use namehop_packet::{BufferPool, IncomingBurst, LinkFields, Outgoing, PacketBuffer, PacketKind, Timestamp};
use namehop_port::BURST;
use namehop_port::encapsulation::{Framing, Header, Peer};
use namehop_port::faces::face_params;
use namehop_wire::lp::{KnowsPitTokens, LpHeader, LpPacket, PathMtuProbe, encode_header, header_len};
use namehop_wire::tlv::{read_var_number, types};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::LoadError;
use super::address::PortAddress;
use super::link::{Link, LinkCounts, add_loss};
use super::open_port::OpenPort;

/// Maximum number of frames waiting for the port.
const MAX_WAITING: usize = 4096;
/// Maximum number of packets in reassembly.
const PARTIAL_PACKETS: usize = 1024;
/// How long an idle port is polled before its thread sleeps: a few times the cost of sleeping and waking up.
const POLL_FOR: Duration = Duration::from_micros(100);
/// Pause between polls of a port that cannot wake the thread, or while frames wait to be sent.
const SHORT_PAUSE: Duration = Duration::from_micros(50);

/// Behavior of a link when no packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Returns at once; for a thread with its own CPU.
    Polls,
    /// Waits, and sleeps after `POLL_FOR`.
    Sleeps,
}

/// A link over a port.
pub struct PortLink {
    port: OpenPort,
    pool: BufferPool,
    idle: Idle,
    framing: Framing,
    peer: Peer,
    /// Header put on each frame.
    header: Header,
    /// Header of the last frame from the peer.
    last: Option<Header>,
    mtu_bytes: usize,
    /// Fragments large packets.
    service: LinkService,
    face: Arc<Face>,
    reassembler: Reassembler,
    incoming: IncomingBurst,
    began: Instant,
    received: Vec<PacketBuffer>,
    /// Frames that the port has not taken yet.
    waiting: Vec<PacketBuffer>,
    /// Without the counts of the port and the reassembler.
    counts: LinkCounts,
}

impl PortLink {
    /// Opens the port of a link. Links of one thread share a buffer pool, because a thread is fast with only one.
    ///
    /// # Errors
    /// Returns [`LoadError::Port`] if the port cannot be opened.
    pub fn open(address: &PortAddress, idle: Idle, pool: &BufferPool) -> Result<PortLink, LoadError> {
        let port = OpenPort::open(address, pool)?;
        let peer = address.peer();
        let mut params = face_params(peer, address.local(), port.mtu_bytes());
        // The packet itself determines whether it carries a PIT token, so the link service must keep tokens.
        params.flags = FaceFlags::PIT_TOKENS_ON;
        let refused = |error: namehop_face::FaceTableError| LoadError::Configuration(error.to_string());
        let face = FaceTable::with_limit(1).insert(params).map_err(refused)?;
        Ok(PortLink {
            idle,
            framing: peer.framing(),
            peer,
            header: Header::new(peer, &port.address()),
            last: None,
            mtu_bytes: port.mtu_bytes(),
            service: LinkService::new(Arc::clone(&face), 0),
            face,
            reassembler: Reassembler::new(0, PARTIAL_PACKETS),
            incoming: IncomingBurst::default(),
            began: Instant::now(),
            received: Vec::with_capacity(BURST),
            waiting: Vec::with_capacity(MAX_WAITING),
            counts: LinkCounts::default(),
            port,
            pool: pool.clone(),
        })
    }

    /// Returns true if a peer is connected, as far as the port can tell.
    pub fn is_connected(&self) -> bool {
        self.port.is_connected()
    }

    /// Returns the number of frames sent and received.
    pub fn moved(&self) -> u64 {
        self.counts.frames_sent + self.counts.frames_received
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.began.elapsed().as_nanos() as u64)
    }

    /// Passes waiting frames to the port. Returns true if it took any.
    fn transmit(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let before = self.waiting.len();
        self.port.queue.transmit(&mut self.waiting);
        let taken = before - self.waiting.len();
        self.counts.frames_sent += taken as u64;
        taken > 0
    }

    /// Adds a frame to the waiting ones.
    #[inline]
    fn enqueue(&mut self, mut frame: PacketBuffer) {
        match self.header.put_on(&mut frame, &self.pool) {
            true => self.waiting.push(frame),
            false => self.lose(LinkDrop::NoBuffer),
        }
    }

    /// Counts a packet to send as dropped.
    #[cold]
    fn lose(&mut self, reason: LinkDrop) {
        add_loss(&mut self.counts.send_losses, reason.name(), 1);
    }

    /// Counts a received frame as dropped.
    #[cold]
    fn lose_received(&mut self, reason: LinkDrop) {
        add_loss(&mut self.counts.receive_losses, reason.name(), 1);
    }

    /// Sends a packet larger than a frame as fragments.
    #[cold]
    fn send_fragments(&mut self, packet: &[u8]) {
        // Consumers and producers use no other link fields.
        let Ok(LpPacket { fragment: Some(fragment), pit_token, nack, .. }) = LpPacket::decode(packet) else {
            return self.lose(LinkDrop::PacketTooLong);
        };
        let Some(buffer) = self.pool.copy_of(fragment) else { return self.lose(LinkDrop::NoBuffer) };
        let kind = match (fragment.first().map(|first| u32::from(*first)), nack) {
            (_, Some(_)) => PacketKind::Nack,
            (Some(types::INTEREST), None) => PacketKind::Interest,
            _ => PacketKind::Data,
        };
        let fields = LinkFields { pit_token, nack, ..LinkFields::default() };
        let outgoing = Outgoing { face: self.face.id(), kind, buffer, fields };
        let (now, mut frames) = (self.now(), Vec::new());
        match self.service.send(now, outgoing, 0, &self.pool, &mut frames) {
            Ok(()) => frames.into_iter().for_each(|frame| self.enqueue(frame)),
            Err(reason) => self.lose(reason),
        }
    }

    /// Answers a field specific to Namehop: tells the router that this side returns PIT tokens, so that the router
    /// looks up pending Interests by token, or that a probe of the path MTU has arrived.
    #[cold]
    fn answer(&mut self, frame: &[u8]) {
        match self.pool.copy_of(frame) {
            Some(frame) => self.enqueue(frame),
            None => self.lose(LinkDrop::NoBuffer),
        }
    }

    /// Removes the header from a frame after checking that it came from the peer.
    #[inline]
    fn unwrap(&mut self, frame: &mut PacketBuffer) -> Result<(), LinkDrop> {
        let header = match self.last {
            Some(last) if last.is_on(frame.bytes()) => last,
            _ => {
                let received = self.framing.read(frame.bytes(), &self.port.address())?;
                if received.peer != self.peer {
                    return Err(received.peer.drop_without_face());
                }
                self.last = Some(received.header);
                received.header
            }
        };
        header.take_off(frame)
    }

    /// Handles a frame with a sequence number, which may be a fragment.
    #[cold]
    fn receive_numbered(&mut self, frame: PacketBuffer, each: &mut dyn FnMut(&[u8])) {
        let now = self.now();
        let mut incoming = std::mem::take(&mut self.incoming);
        let received = self.service.receive(now, frame, 0, &self.pool, &mut self.reassembler, &mut incoming);
        if let Err(reason) = received {
            self.lose_received(reason);
        }
        for packet in incoming.kinds().into_iter().flat_map(|packets| packets.drain(..)) {
            let (mut buffer, fields) = (packet.buffer, packet.fields);
            let header = LpHeader {
                pit_token: fields.pit_token,
                nack: fields.nack,
                congestion_mark: (fields.congestion_mark > 0).then_some(fields.congestion_mark),
                ..LpHeader::default()
            };
            let packet_bytes = buffer.bytes().len();
            if !header.is_empty() {
                let Some(room) = buffer.prepend(header_len(&header, packet_bytes)) else {
                    self.lose_received(LinkDrop::HeaderTooLong);
                    continue;
                };
                encode_header(&header, packet_bytes, room);
            }
            each(buffer.bytes());
        }
        self.incoming = incoming;
    }

    /// Sleeps for at most `limit`, or until frames may have arrived.
    fn rest(&mut self, limit: Duration) -> io::Result<()> {
        let queue = &mut self.port.queue;
        queue.prepare_to_sleep();
        let mut limit = queue.longest_sleep().map_or(limit, |longest| limit.min(longest));
        if !self.waiting.is_empty() {
            limit = limit.min(queue.retry_pause().max(SHORT_PAUSE));
        }
        let Some(bell) = queue.bell() else {
            thread::sleep(limit.min(SHORT_PAUSE));
            return Ok(());
        };
        match ppoll(&mut [PollFd::new(bell, PollFlags::POLLIN)], Some(TimeSpec::from(limit)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Link for PortLink {
    fn receive(&mut self, patience: Duration, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut began = None;
        loop {
            let has_sent = self.transmit();
            self.port.queue.receive(&mut self.received);
            if has_sent || !self.received.is_empty() || self.idle == Idle::Polls || patience.is_zero() {
                break;
            }
            let waited = began.get_or_insert_with(Instant::now).elapsed();
            if waited >= patience || !self.is_connected() {
                break;
            }
            if waited < POLL_FOR {
                std::hint::spin_loop();
            } else {
                self.rest(patience - waited)?;
            }
        }
        if self.reassembler.waiting() > 0 {
            let now = self.now();
            self.reassembler.expire(now);
        }
        self.counts.frames_received += self.received.len() as u64;
        let mut received = std::mem::take(&mut self.received);
        for mut frame in received.drain(..) {
            match self.unwrap(&mut frame) {
                Ok(()) if is_numbered(frame.bytes()) => self.receive_numbered(frame, each),
                Ok(()) if frame.bytes() == KnowsPitTokens::Asks.frame() => self.answer(&KnowsPitTokens::Tells.frame()),
                Ok(()) => match PathMtuProbe::probe_number(frame.bytes()) {
                    Some(number) => self.answer(&PathMtuProbe::answer(number)),
                    None => each(frame.bytes()),
                },
                Err(reason) => self.lose_received(reason),
            }
        }
        self.received = received;
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], ends: &[usize]) -> io::Result<()> {
        let mut start = 0;
        // Bursts sent at once reuse the same few buffers, which stay in the cache.
        for burst in ends.chunks(BURST) {
            for &end in burst {
                let packet = &bytes[start..end];
                start = end;
                if self.waiting.len() >= MAX_WAITING {
                    self.lose(LinkDrop::SendQueueFull);
                } else if packet.len() > self.mtu_bytes {
                    self.send_fragments(packet);
                } else if let Some(frame) = self.pool.copy_of(packet) {
                    self.enqueue(frame);
                } else {
                    self.lose(LinkDrop::NoBuffer);
                }
            }
            self.transmit();
        }
        Ok(())
    }

    fn room(&self) -> usize {
        MAX_WAITING - self.waiting.len().min(MAX_WAITING)
    }

    fn counts(&self) -> LinkCounts {
        let (mut counts, losses) = (self.counts.clone(), self.port.losses());
        counts.frames_waiting = self.waiting.len() as u64;
        // The port took these frames but failed to send them.
        counts.frames_sent = counts.frames_sent.saturating_sub(losses.send_failed);
        add_loss(&mut counts.send_losses, LinkDrop::SendFailed.name(), losses.send_failed);
        let of_face = |reason| self.face.counters.link_drop(reason);
        for (reason, count) in [
            (LinkDrop::ReceiveRingFull, losses.receive_ring_full),
            (LinkDrop::NoBuffer, losses.no_buffer),
            (LinkDrop::MalformedFrame, losses.malformed),
            // Fragments of packets that stayed incomplete.
            (LinkDrop::ReassemblyTimeout, of_face(LinkDrop::ReassemblyTimeout)),
            (LinkDrop::ReassemblyEvicted, of_face(LinkDrop::ReassemblyEvicted)),
        ] {
            add_loss(&mut counts.receive_losses, reason.name(), count);
        }
        counts
    }
}

/// Returns true if a link packet starts with a field of fragments (Sequence, FragIndex or FragCount), which precede all
/// other fields.
#[inline]
fn is_numbered(frame: &[u8]) -> bool {
    const FIRST: u8 = types::LP_SEQUENCE as u8;
    const LAST: u8 = types::LP_FRAG_COUNT as u8;
    let [typ, rest @ ..] = frame else { return false };
    if u32::from(*typ) != types::LP_PACKET {
        return false;
    }
    let Ok((_, length_bytes)) = read_var_number(rest) else { return false };
    matches!(rest.get(length_bytes), Some(FIRST..=LAST))
}
