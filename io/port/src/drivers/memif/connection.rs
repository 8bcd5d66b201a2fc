//! A connected link: receives frames from one ring and sends frames to the other.
//!
//! Nearly every frame lies in one buffer. Such frames take a fast path, and their bytes are prefetched some frames
//! ahead: they come from another core's cache, and waiting for them is most of the cost of a frame.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use namehop_packet::size::LARGE_BYTES;
use namehop_packet::{BufferPool, PacketBuffer};

use super::message::RingLocation;
use super::ring::{Descriptor, Direction, Piece};
use crate::BURST;
use crate::losses::LossCounters;
use crate::mapping::Mapping;

/// Maximum number of descriptors of one frame.
const MAX_PIECES: usize = 64;
/// Prefetch distance in frames.
const AHEAD: u16 = 4;

/// The peer has violated the protocol; the link has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation;

/// The worker's state of a connected link. It owns the shared memory, so the memory stays mapped while it is in use.
pub(super) struct Connection {
    regions: Vec<Mapping>,
    receive: Direction,
    send: Direction,
    /// The rest of a malformed chain is being skipped.
    is_skipping: bool,
    /// The peer's counter at the last poll of this end.
    looked_at: u16,
    /// Eventfd by which the peer signals frames, if it has provided one. The peer holds it too: see
    /// [`Bell`](super::bell::Bell).
    pub(super) event: Option<OwnedFd>,
}

// SAFETY: the pointers of the rings point into the regions, which move together with them; one thread uses them at a
// time.
unsafe impl Send for Connection {}

/// Result of reading the descriptors of one frame.
enum Gathered {
    /// A complete frame of this many bytes.
    Frame(usize),
    /// Not a frame.
    Malformed,
    /// The peer has not written all descriptors of the frame yet.
    Incomplete,
}

impl Connection {
    /// Makes the server's end, in memory that a client has offered. `None` if a ring is not valid.
    pub(super) fn server(
        regions: Vec<Mapping>,
        to_server: RingLocation,
        to_client: RingLocation,
    ) -> Option<Connection> {
        let (receive, send) = (Direction::server(&regions, to_server)?, Direction::server(&regions, to_client)?);
        receive.reset();
        send.reset();
        receive.want_bell(false);
        Some(Connection { regions, receive, send, is_skipping: false, looked_at: 0, event: None })
    }

    /// Makes the client's end. The rings are initialized for the server; call [`Connection::start`] once the server is
    /// connected.
    pub(super) fn client(
        region: Mapping,
        to_server: RingLocation,
        to_client: RingLocation,
        buffer_bytes: u16,
    ) -> Option<Connection> {
        let regions = vec![region];
        let send = Direction::client(&regions, to_server, buffer_bytes, true)?;
        let receive = Direction::client(&regions, to_client, buffer_bytes, false)?;
        receive.want_bell(false);
        Some(Connection { regions, receive, send, is_skipping: false, looked_at: 0, event: None })
    }

    /// Provides the server with empty buffers.
    pub(super) fn start(&mut self) {
        (0..self.receive.lead()).for_each(|index| self.receive.give_buffer(index));
        self.publish_received();
    }

    fn publish_received(&self) {
        self.receive.publish(self.receive.count.wrapping_add(self.receive.lead()));
    }

    /// Adds up to [`BURST`] frames to `frames`.
    pub(super) fn receive(
        &mut self,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
        losses: &LossCounters,
    ) -> Result<(), Violation> {
        self.looked_at = self.receive.theirs();
        let mut ready = self.looked_at.wrapping_sub(self.receive.count);
        if ready == 0 {
            return Ok(());
        }
        if ready > self.receive.slots() {
            return Err(Violation);
        }
        for number in 0..ready.min(AHEAD) {
            self.receive.ask_for(&self.regions, self.receive.count.wrapping_add(number));
        }
        for _ in 0..BURST {
            if ready == 0 {
                break;
            }
            if ready > AHEAD {
                self.receive.ask_for(&self.regions, self.receive.count.wrapping_add(AHEAD));
            }
            let used = match self.whole_frame() {
                Some(piece) => {
                    keep(copy_in(pool, &[Some(piece)], piece.1), frames, losses);
                    1
                }
                None => self.receive_chain(ready, pool, frames, losses),
            };
            if used == 0 {
                break;
            }
            for _ in 0..used {
                let index = self.receive.count;
                self.receive.give_buffer(index);
                self.receive.count = index.wrapping_add(1);
            }
            ready -= used;
        }
        self.publish_received();
        Ok(())
    }

    /// The next frame, if it lies in one buffer.
    #[inline]
    fn whole_frame(&self) -> Option<Piece> {
        let index = self.receive.count;
        let descriptor = self.receive.read(index);
        if descriptor.continues() || self.is_skipping {
            return None;
        }
        let piece = self.receive.piece(&self.regions, index, descriptor);
        piece.filter(|&(_, length)| length > 0 && length <= LARGE_BYTES)
    }

    /// Receives or skips the next chain of descriptors, of which `ready` are available. Returns how many descriptors it
    /// has used up.
    #[cold]
    fn receive_chain(
        &mut self,
        ready: u16,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
        losses: &LossCounters,
    ) -> u16 {
        let mut pieces: [Option<Piece>; MAX_PIECES] = [None; MAX_PIECES];
        let was_skipping = self.is_skipping;
        let (gathered, used) = self.gather(ready, &mut pieces);
        match gathered {
            Gathered::Frame(length) => keep(copy_in(pool, &pieces[..usize::from(used)], length), frames, losses),
            Gathered::Malformed if was_skipping => {}
            Gathered::Malformed => losses.malformed.add(1),
            Gathered::Incomplete => return 0,
        }
        used
    }

    /// Reads the descriptors of the next frame, of which `ready` are available. Returns the result and how many
    /// descriptors belong to it.
    fn gather(&mut self, ready: u16, pieces: &mut [Option<Piece>; MAX_PIECES]) -> (Gathered, u16) {
        let direction = &self.receive;
        let mut is_bad = self.is_skipping;
        let mut length = 0;
        for (used, place) in (0..ready).zip(pieces.iter_mut()) {
            let index = direction.count.wrapping_add(used);
            let descriptor = direction.read(index);
            *place = direction.piece(&self.regions, index, descriptor);
            length += place.map_or(0, |(_, length)| length);
            is_bad |= place.is_none() || length > LARGE_BYTES;
            if !descriptor.continues() {
                self.is_skipping = false;
                let is_frame = !is_bad && length > 0;
                return (if is_frame { Gathered::Frame(length) } else { Gathered::Malformed }, used + 1);
            }
        }
        if !is_bad && usize::from(ready) < MAX_PIECES && ready < direction.slots() {
            return (Gathered::Incomplete, 0);
        }
        self.is_skipping = true;
        (Gathered::Malformed, ready.min(MAX_PIECES as u16))
    }

    /// Copies frames from the front into the ring, as many as fit. Returns how many frames are done, and how many of
    /// these were dropped because they would never fit.
    pub(super) fn send(&mut self, frames: &[PacketBuffer]) -> Result<(usize, usize), Violation> {
        let (regions, direction) = (self.regions.as_slice(), &mut self.send);
        let mut free = direction.theirs().wrapping_add(direction.lead()).wrapping_sub(direction.count);
        if free > direction.slots() {
            return Err(Violation);
        }
        let ask_for = |direction: &Direction, free: u16, ahead: u16, frame: Option<&PacketBuffer>| {
            if let Some(frame) = frame
                && ahead < free
            {
                direction.ask_for_empty(regions, direction.count.wrapping_add(ahead), frame.bytes().len());
            }
        };
        for ahead in 0..AHEAD {
            ask_for(direction, free, ahead, frames.get(usize::from(ahead)));
        }
        let (mut done, mut lost) = (0, 0);
        for frame in frames {
            ask_for(direction, free, AHEAD, frames.get(done + usize::from(AHEAD)));
            match copy_out(regions, direction, free, frame.bytes())? {
                Some(used) => free -= used,
                // It does not fit into an empty ring, or needs more than MAX_PIECES buffers.
                None if free == direction.slots() || usize::from(free) >= MAX_PIECES => lost += 1,
                None => break,
            }
            done += 1;
        }
        direction.publish(direction.count);
        Ok((done, lost))
    }

    /// Descriptors that were available at the last poll and have not been received.
    pub(super) fn waiting(&self) -> usize {
        self.looked_at.wrapping_sub(self.receive.count).into()
    }

    /// True if the peer has added descriptors since the last [`receive`](Self::receive). The beginning of a frame that
    /// is never completed does not count again.
    pub(super) fn has_more(&self) -> bool {
        self.receive.theirs() != self.looked_at
    }

    /// Asks the peer to signal new frames, or to stop doing so. After asking, check for frames that are already there
    /// ([`has_more`](Self::has_more)).
    pub(super) fn want_bell(&self, is_wanted: bool) {
        self.receive.want_bell(is_wanted);
        // The peer writes frames first and then reads this flag, so the flag must be visible before this end checks for
        // frames.
        fence(Ordering::SeqCst);
    }

    /// True if the peer asks to be signalled for the frames that were sent.
    pub(super) fn wants_bell(&self) -> bool {
        // The peer sets its flag first and then checks for frames, so frames must be visible before the flag is read.
        fence(Ordering::SeqCst);
        self.send.wants_bell()
    }
}

/// Adds the frame to `frames`; without a frame, counts one that found no buffer.
#[inline]
fn keep(frame: Option<PacketBuffer>, frames: &mut Vec<PacketBuffer>, losses: &LossCounters) {
    match frame {
        Some(frame) => frames.push(frame),
        None => losses.no_buffer.add(1),
    }
}

/// Copies a frame from shared memory into a buffer.
#[inline]
fn copy_in(pool: &BufferPool, pieces: &[Option<Piece>], length: usize) -> Option<PacketBuffer> {
    let mut frame = pool.allocate(length)?;
    for &(start, length) in pieces.iter().flatten() {
        let place = frame.append(length)?;
        // SAFETY: the piece was checked to lie inside a mapping, and `place` has its length. The peer may write during
        // the copy; the frame is then garbage, which the peer could have sent as well.
        unsafe { start.as_ptr().copy_to_nonoverlapping(place.as_mut_ptr(), length) };
    }
    Some(frame)
}

/// Copies a frame into the next slots of a ring, of which `free` may be used. Returns the number of slots used; `None`
/// if they are too few.
#[inline]
fn copy_out(regions: &[Mapping], direction: &mut Direction, free: u16, frame: &[u8]) -> Result<Option<u16>, Violation> {
    if free == 0 {
        return Ok(None);
    }
    let index = direction.count;
    let descriptor = direction.empty(index);
    let (start, room) = direction.piece(regions, index, descriptor).ok_or(Violation)?;
    if frame.len() > room {
        return copy_out_in_pieces(regions, direction, free, frame);
    }
    // SAFETY: `start` points to this many bytes in a mapping. If the peer reads or writes them during the copy, only
    // the peer's own frame is damaged.
    unsafe { start.as_ptr().copy_from_nonoverlapping(frame.as_ptr(), frame.len()) };
    direction.write(index, descriptor.holding(frame.len(), false));
    direction.count = index.wrapping_add(1);
    Ok(Some(1))
}

/// Like `copy_out`, for a frame that needs several buffers.
#[cold]
fn copy_out_in_pieces(
    regions: &[Mapping],
    direction: &mut Direction,
    free: u16,
    frame: &[u8],
) -> Result<Option<u16>, Violation> {
    let mut pieces: [Option<(Descriptor, NonNull<u8>, usize)>; MAX_PIECES] = [None; MAX_PIECES];
    let (mut rest, mut used) = (frame.len(), 0);
    for (number, place) in (0..free).zip(pieces.iter_mut()) {
        let index = direction.count.wrapping_add(number);
        let descriptor = direction.empty(index);
        let (start, room) = direction.piece(regions, index, descriptor).ok_or(Violation)?;
        let length = room.min(rest);
        *place = Some((descriptor, start, length));
        rest -= length;
        used = number + 1;
        if rest == 0 {
            break;
        }
    }
    if rest > 0 {
        return Ok(None);
    }
    let mut rest = frame;
    for (number, (descriptor, start, length)) in (0..used).zip(pieces.into_iter().flatten()) {
        let (piece, behind) = rest.split_at(length);
        // SAFETY: `start` points to this many bytes in a mapping. If the peer reads or writes them during the copy,
        // only the peer's own frame is damaged.
        unsafe { start.as_ptr().copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
        rest = behind;
        direction.write(direction.count.wrapping_add(number), descriptor.holding(length, number + 1 < used));
    }
    direction.count = direction.count.wrapping_add(used);
    Ok(Some(used))
}
