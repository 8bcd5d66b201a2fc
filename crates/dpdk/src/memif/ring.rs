//! Rings of descriptors in memory that another process writes to as well, whenever it likes and whatever it likes.
//!
//! Nothing that is read from there is trusted: every number is read once, checked, and only the checked copy is used. The client
//! of a link does not read where its own buffers lie at all.
//!
//! A ring to the server is filled by the client, who counts up `head`; the server counts up `tail` as it takes frames out. In the ring to
//! the client the client provides empty buffers and counts up `head`; the server fills them and counts up `tail`.

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering, fence};

use namehop_packet::pool::LARGE_BYTES;
use namehop_packet::{BufferPool, PacketBuffer};

use super::memory::{first_buffer, ring_bytes};
use super::message::{MAX_LOG2_SLOTS, RingLocation};
use crate::BURST;
use crate::losses::LossCounters;
use crate::mapping::Mapping;

/// What stands in front of the descriptors: cookie, flags and head on one cache line, tail on another.
pub(super) const RING_HEADER_BYTES: usize = 128;
/// One descriptor: flags, region (16 bits each), length, offset, metadata (32 bits each).
pub(super) const DESCRIPTOR_BYTES: usize = 16;
const COOKIE: u32 = 0x03E3_1F20;
/// Flag of a ring whose reader wants no bell to be rung.
const NO_BELL: u16 = 1;
/// Flag of a descriptor whose frame continues in the next one.
const CONTINUES: u16 = 1;
/// Descriptors of one frame, at most.
const MAX_PIECES: usize = 64;

/// The peer does not keep to the protocol; the link cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation;

/// One piece of a frame: bytes in shared memory that are known to be inside of it.
type Piece = (NonNull<u8>, usize);

#[derive(Debug, Clone, Copy)]
struct Descriptor {
    flags: u16,
    region: u16,
    length: u32,
    offset: u32,
}

/// A ring that is known to lie inside its region.
struct Ring {
    start: NonNull<u8>,
    slots: u16,
}

impl Ring {
    fn new(regions: &[Mapping], place: RingLocation) -> Option<Ring> {
        if place.log2_slots > MAX_LOG2_SLOTS || !place.offset.is_multiple_of(4) {
            return None;
        }
        let region = regions.get(usize::from(place.region))?;
        let start = region.range(place.offset as usize, ring_bytes(place.log2_slots))?;
        Some(Ring { start, slots: 1 << place.log2_slots })
    }

    fn cookie(&self) -> &AtomicU32 {
        // SAFETY: the header lies in the mapping, which outlives the ring; it is aligned to 4 bytes; all access is atomic.
        unsafe { AtomicU32::from_ptr(self.start.cast().as_ptr()) }
    }

    fn number(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as for the cookie.
        unsafe { AtomicU16::from_ptr(self.start.add(offset).cast().as_ptr()) }
    }

    fn flags(&self) -> &AtomicU16 {
        self.number(4)
    }

    fn head(&self) -> &AtomicU16 {
        self.number(6)
    }

    fn tail(&self) -> &AtomicU16 {
        self.number(64)
    }

    fn place_of(&self, index: u16) -> NonNull<u8> {
        let slot = usize::from(index & (self.slots - 1));
        // SAFETY: the ring with all its descriptors lies in the mapping.
        unsafe { self.start.add(RING_HEADER_BYTES + slot * DESCRIPTOR_BYTES) }
    }

    fn read(&self, index: u16) -> Descriptor {
        let place = self.place_of(index);
        // SAFETY: the descriptor lies in the mapping and is aligned to 4 bytes. Volatile: the peer may write meanwhile, so each
        // part is read exactly once. Any bytes are valid numbers.
        unsafe {
            Descriptor {
                flags: place.cast::<u16>().read_volatile(),
                region: place.add(2).cast::<u16>().read_volatile(),
                length: place.add(4).cast::<u32>().read_volatile(),
                offset: place.add(8).cast::<u32>().read_volatile(),
            }
        }
    }

    fn write(&self, index: u16, descriptor: Descriptor) {
        let place = self.place_of(index);
        // SAFETY: as in `read`.
        unsafe {
            place.cast::<u16>().write_volatile(descriptor.flags);
            place.add(2).cast::<u16>().write_volatile(descriptor.region);
            place.add(4).cast::<u32>().write_volatile(descriptor.length);
            place.add(8).cast::<u32>().write_volatile(descriptor.offset);
        }
    }
}

/// Where a client's own buffers for a ring are, in its only region.
#[derive(Debug, Clone, Copy)]
struct OwnBuffers {
    first: usize,
    bytes: u16,
}

/// One direction of a link.
struct Direction {
    ring: Ring,
    /// There at the client's end.
    own: Option<OwnBuffers>,
    /// Frames received or sent so far, as a number that wraps around.
    count: u16,
}

impl Direction {
    /// At the client's end all slots but those in use are this end's to fill, at the server's those that the client
    /// provides.
    fn lead(&self) -> u16 {
        if self.own.is_some() { self.ring.slots } else { 0 }
    }

    /// The descriptor of an own buffer that holds `length` bytes, and where it is.
    fn own_buffer(&self, index: u16, own: OwnBuffers, length: usize, flags: u16) -> (Descriptor, usize) {
        let slot = usize::from(index & (self.ring.slots - 1));
        let offset = own.first + slot * usize::from(own.bytes);
        (Descriptor { flags, region: 0, length: length as u32, offset: offset as u32 }, offset)
    }

    /// The bytes that a descriptor names; `None` when they are not in shared memory.
    fn piece(&self, regions: &[Mapping], index: u16, descriptor: Descriptor) -> Option<Piece> {
        let length = descriptor.length as usize;
        let start = match self.own {
            Some(own) if length <= usize::from(own.bytes) => {
                regions.first()?.range(self.own_buffer(index, own, length, 0).1, length)
            }
            Some(_) => None,
            None => regions.get(usize::from(descriptor.region))?.range(descriptor.offset as usize, length),
        };
        start.map(|start| (start, length))
    }
}

/// What the worker has of a link that is connected. Owns the memory, so nothing vanishes while it is in use.
pub(super) struct Connection {
    regions: Vec<Mapping>,
    receive: Direction,
    send: Direction,
    /// The rest of a chain that cannot be a frame is being skipped.
    is_skipping: bool,
    /// What the peer had counted up to when this end looked last.
    looked_at: u16,
    /// The eventfd by which the peer tells of frames, if it has given one. It has it, too: see [`Bell`](super::bell::Bell).
    pub(super) event: Option<OwnedFd>,
}

// SAFETY: the pointers of the rings are into the regions, which move along with them; one thread uses them at a time.
unsafe impl Send for Connection {}

/// How frames were taken from a ring.
enum Gathered {
    /// So many descriptors, whose pieces are a frame of so many bytes.
    Frame(usize),
    /// Not a frame.
    Malformed,
    /// The rest is still to come.
    Incomplete,
}

impl Connection {
    /// The server's end, in memory that a client has offered.
    pub(super) fn server(
        regions: Vec<Mapping>,
        to_server: RingLocation,
        to_client: RingLocation,
    ) -> Option<Connection> {
        let direction = |place| Some(Direction { ring: Ring::new(&regions, place)?, own: None, count: 0 });
        let (receive, send) = (direction(to_server)?, direction(to_client)?);
        if [&receive, &send].iter().any(|direction| direction.ring.cookie().load(Ordering::Relaxed) != COOKIE) {
            return None;
        }
        for ring in [&receive.ring, &send.ring] {
            ring.head().store(0, Ordering::Relaxed);
            ring.tail().store(0, Ordering::Relaxed);
        }
        receive.ring.flags().store(NO_BELL, Ordering::Relaxed);
        Some(Connection { regions, receive, send, is_skipping: false, looked_at: 0, event: None })
    }

    /// The client's end. The rings are ready for the server to look at; [`Connection::start`] follows when the server is
    /// connected.
    pub(super) fn client(
        region: Mapping,
        to_server: RingLocation,
        to_client: RingLocation,
        buffer_bytes: u16,
    ) -> Option<Connection> {
        let regions = vec![region];
        let direction = |place: RingLocation, is_to_server| {
            let own =
                OwnBuffers { first: first_buffer(place.log2_slots, buffer_bytes, is_to_server), bytes: buffer_bytes };
            Some(Direction { ring: Ring::new(&regions, place)?, own: Some(own), count: 0 })
        };
        let (send, receive) = (direction(to_server, true)?, direction(to_client, false)?);
        for ring in [&send.ring, &receive.ring] {
            ring.cookie().store(COOKIE, Ordering::Relaxed);
        }
        receive.ring.flags().store(NO_BELL, Ordering::Relaxed);
        Some(Connection { regions, receive, send, is_skipping: false, looked_at: 0, event: None })
    }

    /// Gives the server empty buffers.
    pub(super) fn start(&mut self) {
        for index in 0..self.receive.lead() {
            self.give_buffer(index);
        }
        self.publish_received();
    }

    fn give_buffer(&self, index: u16) {
        if let Some(own) = self.receive.own {
            let (descriptor, _) = self.receive.own_buffer(index, own, usize::from(own.bytes), 0);
            self.receive.ring.write(index, descriptor);
        }
    }

    fn publish_received(&self) {
        let direction = &self.receive;
        let place = if direction.own.is_some() { direction.ring.head() } else { direction.ring.tail() };
        place.store(direction.count.wrapping_add(direction.lead()), Ordering::Release);
    }

    /// Adds up to [`BURST`] frames to `frames`.
    pub(super) fn receive(
        &mut self,
        pool: &BufferPool,
        frames: &mut Vec<PacketBuffer>,
        losses: &LossCounters,
    ) -> Result<(), Violation> {
        let direction = &self.receive;
        let theirs = if direction.own.is_some() { direction.ring.tail() } else { direction.ring.head() };
        self.looked_at = theirs.load(Ordering::Acquire);
        let mut ready = self.looked_at.wrapping_sub(direction.count);
        if ready == 0 {
            return Ok(());
        }
        if ready > direction.ring.slots {
            return Err(Violation);
        }
        let mut pieces: [Option<Piece>; MAX_PIECES] = [None; MAX_PIECES];
        for _ in 0..BURST {
            if ready == 0 {
                break;
            }
            let was_skipping = self.is_skipping;
            let (gathered, used) = self.gather(ready, &mut pieces);
            match gathered {
                Gathered::Frame(length) => match copy_in(pool, &pieces[..usize::from(used)], length) {
                    Some(frame) => frames.push(frame),
                    None => losses.no_buffer.add(1),
                },
                Gathered::Malformed if was_skipping => {}
                Gathered::Malformed => losses.malformed.add(1),
                Gathered::Incomplete => break,
            }
            for _ in 0..used {
                let index = self.receive.count;
                self.give_buffer(index);
                self.receive.count = index.wrapping_add(1);
            }
            ready -= used;
        }
        self.publish_received();
        Ok(())
    }

    /// Looks at the descriptors of the next frame, of which `ready` are there, and says how many they are.
    fn gather(&mut self, ready: u16, pieces: &mut [Option<Piece>; MAX_PIECES]) -> (Gathered, u16) {
        let direction = &self.receive;
        let mut is_bad = self.is_skipping;
        let mut length = 0;
        for (used, place) in (0..ready).zip(pieces.iter_mut()) {
            let index = direction.count.wrapping_add(used);
            let descriptor = direction.ring.read(index);
            *place = direction.piece(&self.regions, index, descriptor);
            length += place.map_or(0, |(_, length)| length);
            is_bad |= place.is_none() || length > LARGE_BYTES;
            if descriptor.flags & CONTINUES == 0 {
                self.is_skipping = false;
                let is_frame = !is_bad && length > 0;
                return (if is_frame { Gathered::Frame(length) } else { Gathered::Malformed }, used + 1);
            }
        }
        if !is_bad && usize::from(ready) < MAX_PIECES && ready < direction.ring.slots {
            return (Gathered::Incomplete, 0);
        }
        self.is_skipping = true;
        (Gathered::Malformed, ready.min(MAX_PIECES as u16))
    }

    /// Copies frames out, from the front, as many as fit. Returns how many are done with, and how many of those were lost
    /// because they would never fit.
    pub(super) fn send(&mut self, frames: &[PacketBuffer]) -> Result<(usize, usize), Violation> {
        let direction = &mut self.send;
        let theirs = if direction.own.is_some() { direction.ring.tail() } else { direction.ring.head() };
        let lead = direction.lead();
        let mut free = theirs.load(Ordering::Acquire).wrapping_add(lead).wrapping_sub(direction.count);
        if free > direction.ring.slots {
            return Err(Violation);
        }
        let (mut done, mut lost) = (0, 0);
        for frame in frames {
            match copy_out(&self.regions, direction, free, frame.bytes())? {
                Some(used) => free -= used,
                // Not even into an empty ring.
                None if free == direction.ring.slots || usize::from(free) >= MAX_PIECES => lost += 1,
                None => break,
            }
            done += 1;
        }
        let mine = if direction.own.is_some() { direction.ring.head() } else { direction.ring.tail() };
        mine.store(direction.count, Ordering::Release);
        Ok((done, lost))
    }

    /// Whether the peer has put anything into the ring since this end has [looked](Self::receive). The beginning of a frame whose rest
    /// never comes is nothing new.
    pub(super) fn has_more(&self) -> bool {
        let direction = &self.receive;
        let theirs = if direction.own.is_some() { direction.ring.tail() } else { direction.ring.head() };
        theirs.load(Ordering::Acquire) != self.looked_at
    }

    /// Has the peer ring this end's bell for frames from now on, or not any more. Those that are there already are
    /// [to be looked for](Self::has_more) after this.
    pub(super) fn want_bell(&self, is_wanted: bool) {
        self.receive.ring.flags().store(if is_wanted { 0 } else { NO_BELL }, Ordering::Relaxed);
        // The peer puts frames there before it looks whether the bell is wanted.
        fence(Ordering::SeqCst);
    }

    /// Whether the peer wants its bell to be rung for what was sent.
    pub(super) fn wants_bell(&self) -> bool {
        // The peer says so before it looks whether there are frames, so this is read after they were put there.
        fence(Ordering::SeqCst);
        self.send.ring.flags().load(Ordering::Relaxed) & NO_BELL == 0
    }
}

/// Copies a frame into an mbuf.
fn copy_in(pool: &BufferPool, pieces: &[Option<Piece>], length: usize) -> Option<PacketBuffer> {
    let mut frame = pool.allocate(length)?;
    for &(start, length) in pieces.iter().flatten() {
        let place = frame.append(length)?;
        // SAFETY: the piece was found inside a mapping, and `place` has its length. The peer may write while this copies; then the
        // frame is garbage, which it could have sent as well.
        unsafe { start.as_ptr().copy_to_nonoverlapping(place.as_mut_ptr(), length) };
    }
    Some(frame)
}

/// Copies a frame into the next slots of a ring, of which `free` may be used. Returns how many it took; `None` when they are too few.
fn copy_out(regions: &[Mapping], direction: &mut Direction, free: u16, frame: &[u8]) -> Result<Option<u16>, Violation> {
    let mut pieces: [Option<(Descriptor, NonNull<u8>)>; MAX_PIECES] = [None; MAX_PIECES];
    let (mut rest, mut used) = (frame.len(), 0);
    for (number, place) in (0..free).zip(pieces.iter_mut()) {
        let index = direction.count.wrapping_add(number);
        let descriptor = match direction.own {
            Some(own) => direction.own_buffer(index, own, usize::from(own.bytes), 0).0,
            None => direction.ring.read(index),
        };
        let (start, room) = direction.piece(regions, index, descriptor).ok_or(Violation)?;
        let length = room.min(rest);
        *place = Some((Descriptor { length: length as u32, flags: 0, ..descriptor }, start));
        rest -= length;
        used = number + 1;
        if rest == 0 {
            break;
        }
    }
    if rest > 0 || used == 0 {
        return Ok(None);
    }
    let mut rest = frame;
    for (number, (mut descriptor, start)) in (0..used).zip(pieces.into_iter().flatten()) {
        let (piece, behind) = rest.split_at(descriptor.length as usize);
        // SAFETY: as many bytes are in a mapping at `start`. The peer may read or write them meanwhile: its loss.
        unsafe { start.as_ptr().copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
        rest = behind;
        descriptor.flags = if number + 1 < used { CONTINUES } else { 0 };
        direction.ring.write(direction.count.wrapping_add(number), descriptor);
    }
    direction.count = direction.count.wrapping_add(used);
    Ok(Some(used))
}
