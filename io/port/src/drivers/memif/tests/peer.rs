//! A client that sends what a test specifies, and the shared memory as it sees it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::drivers::memif::channel::{Channel, Received};
use crate::drivers::memif::handshake::hello;
use crate::drivers::memif::memory::Offer;
use crate::drivers::memif::message::{Message, RingLocation, VERSION};
use crate::mapping::Mapping;

pub(super) const LOG2_SLOTS: u8 = 4;
pub(super) const SLOTS: u16 = 1 << LOG2_SLOTS;
pub(super) const BUFFER_BYTES: u16 = 512;
/// Offsets in the header of a ring.
pub(super) const FLAGS: usize = 4;
pub(super) const HEAD: usize = 6;
pub(super) const TAIL: usize = 64;
/// Offset of the descriptors, behind the header.
pub(super) const DESCRIPTORS: usize = 128;

/// Waits for the next message; `None` once the connection has ended.
pub(super) fn hear(channel: &Channel) -> Option<(Message, Option<OwnedFd>)> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match channel.receive() {
            Received::Message(message, descriptor) => return Some((message, descriptor)),
            Received::End(_) => return None,
            Received::Nothing => std::thread::sleep(Duration::from_millis(1)),
        }
        assert!(Instant::now() < end, "a message must arrive within 10 s");
    }
}

/// Sends a message. The error is the peer's reason for closing the connection.
pub(super) fn say(channel: &Channel, message: &Message, descriptor: Option<&OwnedFd>) -> Result<(), String> {
    channel.send(message, descriptor.map(AsFd::as_fd));
    match hear(channel) {
        Some((Message::Ack | Message::Connected, _)) => Ok(()),
        Some((Message::Disconnect { reason }, _)) => Err(reason),
        other => panic!("{other:?}"),
    }
}

/// The parameters that a client sends; valid by default.
pub(super) struct Story {
    pub(super) offer: Offer,
    pub(super) id: u32,
    pub(super) region_bytes: u64,
    pub(super) region_index: u16,
    pub(super) to_server: RingLocation,
    pub(super) to_client: RingLocation,
    pub(super) file: Option<OwnedFd>,
    pub(super) bell: Option<OwnedFd>,
}

impl Story {
    pub(super) fn new() -> Story {
        let offer = Offer::new(LOG2_SLOTS, BUFFER_BYTES).expect("memory");
        for place in [offer.to_server, offer.to_client] {
            // SAFETY: the cookie of a ring, which lies in the mapping.
            unsafe { offer.mapping.at(place.offset as usize).cast::<u32>().write_volatile(0x03E3_1F20) };
        }
        Story {
            id: 9,
            region_bytes: offer.mapping.bytes() as u64,
            region_index: 0,
            to_server: offer.to_server,
            to_client: offer.to_client,
            file: Some(offer.file.try_clone().expect("descriptor")),
            bell: Some(EventFd::from_flags(EfdFlags::empty()).expect("event").into()),
            offer,
        }
    }

    /// Runs the handshake. The error is the server's reason for rejecting it.
    pub(super) fn tell(&self, socket: &Path) -> Result<Channel, String> {
        let channel = Channel::connect(socket).expect("listening");
        assert_eq!(hear(&channel).map(|(message, _)| message), Some(hello()));
        say(&channel, &Message::Init { version: VERSION, id: self.id, is_ethernet: true }, None)?;
        let region = Message::AddRegion { index: self.region_index, bytes: self.region_bytes };
        say(&channel, &region, self.file.as_ref())?;
        for (is_to_server, place) in [(true, self.to_server), (false, self.to_client)] {
            say(&channel, &Message::AddRing { is_to_server, index: 0, place }, self.bell.as_ref())?;
        }
        say(&channel, &Message::Connect, None)?;
        Ok(channel)
    }
}

/// Shared memory as a peer sees it: it can write any value at any offset.
pub(super) struct Shared<'a>(pub(super) &'a Mapping);

impl Shared<'_> {
    pub(super) fn write<T: Copy>(&self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= self.0.bytes());
        // SAFETY: the range was just checked to lie inside the mapping. The other end uses volatile reads.
        unsafe { self.0.at(offset).cast::<T>().write_unaligned(value) };
    }

    pub(super) fn read(&self, offset: usize) -> u16 {
        // SAFETY: as above.
        unsafe { self.0.at(offset).cast::<u16>().read_volatile() }
    }

    pub(super) fn descriptor(&self, ring: RingLocation, slot: u16, flags: u16, region: u16, length: u32, offset: u32) {
        let place = ring.offset as usize + DESCRIPTORS + usize::from(slot) * 16;
        self.write(place, flags);
        self.write(place + 2, region);
        self.write(place + 4, length);
        self.write(place + 8, offset);
    }
}
