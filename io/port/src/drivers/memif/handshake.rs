//! The connection handshake, server and client side, one message at a time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::channel::Channel;
use super::connection::Connection;
use super::memory::{Offer, is_event, map_offered};
use super::message::{MAX_LOG2_SLOTS, MAX_REGIONS, Message, RingLocation, VERSION};

/// Result of processing one message.
pub(super) enum Step {
    /// The handshake continues.
    Continue,
    /// Both ends are ready. The descriptor is the eventfd of the peer's receive ring.
    Ready(Connection, Option<OwnedFd>),
    /// The handshake failed; the reason may be sent to the peer.
    Failed(&'static str),
}

/// A ring as the client offered it, with its eventfd.
type OfferedRing = (RingLocation, Option<OwnedFd>);

/// The server's side, once the client has named the link.
#[derive(Default)]
pub(super) struct Acceptance {
    regions: Vec<(OwnedFd, u64)>,
    to_server: Option<OfferedRing>,
    to_client: Option<OfferedRing>,
}

/// The server's greeting.
pub(super) fn hello() -> Message {
    Message::Hello { min_version: VERSION, max_version: VERSION, max_log2_slots: MAX_LOG2_SLOTS }
}

impl Acceptance {
    /// Processes a message of the client.
    pub(super) fn step(&mut self, channel: &Channel, message: Message, descriptor: Option<OwnedFd>) -> Step {
        match message {
            Message::AddRegion { index, bytes } => {
                let is_next = usize::from(index) == self.regions.len() && index < MAX_REGIONS;
                let Some(file) = descriptor.filter(|_| is_next) else {
                    return Step::Failed("unexpected or missing region");
                };
                self.regions.push((file, bytes));
            }
            Message::AddRing { is_to_server, index, place } => {
                let ring = if is_to_server { &mut self.to_server } else { &mut self.to_client };
                if index != 0 || ring.is_some() {
                    return Step::Failed("more than one ring per direction");
                }
                *ring = Some((place, descriptor.filter(|bell| is_event(bell.as_fd()))));
            }
            Message::Connect => return self.connect(channel),
            _ => return Step::Failed("unexpected message"),
        }
        if channel.send(&Message::Ack, None) {
            Step::Continue
        } else {
            Step::Failed("the peer does not read its messages")
        }
    }

    fn connect(&mut self, channel: &Channel) -> Step {
        let (Some((to_server, own_bell)), Some((to_client, bell))) = (self.to_server.take(), self.to_client.take())
        else {
            return Step::Failed("a ring is missing");
        };
        let regions = match map_offered(&self.regions) {
            Ok(regions) => regions,
            Err(error) => return Step::Failed(error),
        };
        let Some(mut connection) = Connection::server(regions, to_server, to_client) else {
            return Step::Failed("invalid ring");
        };
        connection.event = own_bell;
        match channel.send(&Message::Connected, None) {
            true => Step::Ready(connection, bell),
            false => Step::Failed("the peer does not read its messages"),
        }
    }
}

/// The client's side.
pub(super) struct Request {
    id: u32,
    log2_slots: u8,
    buffer_bytes: u16,
    /// Messages still to be sent; each waits for the answer to the one before it.
    script: VecDeque<(Message, Option<OwnedFd>)>,
    connection: Option<(Connection, OwnedFd)>,
}

impl Request {
    /// Starts a request for the link with this id.
    pub(super) fn new(id: u32, log2_slots: u8, buffer_bytes: u16) -> Request {
        Request { id, log2_slots, buffer_bytes, script: VecDeque::new(), connection: None }
    }

    /// Processes a message of the server.
    pub(super) fn step(&mut self, channel: &Channel, message: Message) -> Step {
        match message {
            Message::Hello { min_version, max_version, max_log2_slots } if self.connection.is_none() => {
                if !(min_version..=max_version).contains(&VERSION) {
                    return Step::Failed("unsupported memif version");
                }
                let log2_slots = self.log2_slots.min(max_log2_slots);
                if self.prepare(log2_slots).is_err() {
                    return Step::Failed("out of memory");
                }
            }
            Message::Ack if self.connection.is_some() => {}
            Message::Connected if self.script.is_empty() => {
                let Some((mut connection, bell)) = self.connection.take() else {
                    return Step::Failed("unexpected message");
                };
                connection.start();
                return Step::Ready(connection, Some(bell));
            }
            _ => return Step::Failed("unexpected message"),
        }
        match self.script.pop_front() {
            Some((message, descriptor)) => {
                let sent = channel.send(&message, descriptor.as_ref().map(AsFd::as_fd));
                if sent { Step::Continue } else { Step::Failed("the peer does not read its messages") }
            }
            None => Step::Failed("unexpected message"),
        }
    }

    /// Creates the shared memory and queues the messages that offer it.
    fn prepare(&mut self, log2_slots: u8) -> io::Result<()> {
        let Offer { file, mapping, to_server, to_client, bells } = Offer::new(log2_slots, self.buffer_bytes)?;
        let bytes = mapping.bytes() as u64;
        let [server_bell, client_bell] = bells.map(OwnedFd::from);
        let bell = server_bell.try_clone()?;
        let mut connection = Connection::client(mapping, to_server, to_client, self.buffer_bytes)
            .ok_or_else(|| io::Error::other("the rings do not fit into the region"))?;
        connection.event = Some(client_bell.try_clone()?);
        self.script = VecDeque::from([
            (Message::Init { version: VERSION, id: self.id, is_ethernet: true }, None),
            (Message::AddRegion { index: 0, bytes }, Some(file)),
            (Message::AddRing { is_to_server: true, index: 0, place: to_server }, Some(server_bell)),
            (Message::AddRing { is_to_server: false, index: 0, place: to_client }, Some(client_bell)),
            (Message::Connect, None),
        ]);
        self.connection = Some((connection, bell));
        Ok(())
    }
}
