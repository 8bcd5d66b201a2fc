//! State shared by the handles and the two tasks of an endpoint, and handling of received frames.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use namehop_wire::lp::{KnowsPitTokens, LpPacket, NackReason, PathMtuProbe, PitToken};
use namehop_wire::security::{Signer, next_signature_time_ms, unix_time_ms};
use namehop_wire::tlv::{self, Writer, types};
use namehop_wire::{DataHeader, DecodeError, Interest, MAX_PACKET_SIZE, Name, NameRef};
use tokio::sync::Notify;
use tracing::debug;

use super::frames::Outgoing;
use super::pending::PendingTable;
use super::reassembly::{Head, Piece, Reassembler};
use super::{Answer, Request};
use crate::target::TransportUri;

type Handler = dyn Fn(&Request<'_>) -> Answer + Send + Sync;
type Watcher = dyn Fn(NameRef<'_>) + Send + Sync;

/// Packet counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointCounters {
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Data received that matched no pending Interest.
    pub unsolicited_data: u64,
    /// Interests received without a matching handler.
    pub unhandled_interests: u64,
    /// Frames received that violate the packet formats.
    pub malformed: u64,
}

/// [`EndpointCounters`] as atomics.
#[derive(Default)]
pub(super) struct AtomicCounters {
    pub(super) out_interests: AtomicU64,
    out_data: AtomicU64,
    out_nacks: AtomicU64,
    in_interests: AtomicU64,
    in_data: AtomicU64,
    in_nacks: AtomicU64,
    unsolicited_data: AtomicU64,
    unhandled_interests: AtomicU64,
    malformed: AtomicU64,
}

impl AtomicCounters {
    pub(super) fn snapshot(&self) -> EndpointCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EndpointCounters {
            out_interests: get(&self.out_interests),
            out_data: get(&self.out_data),
            out_nacks: get(&self.out_nacks),
            in_interests: get(&self.in_interests),
            in_data: get(&self.in_data),
            in_nacks: get(&self.in_nacks),
            unsolicited_data: get(&self.unsolicited_data),
            unhandled_interests: get(&self.unhandled_interests),
            malformed: get(&self.malformed),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Pending Interests and handlers.
#[derive(Default)]
pub(super) struct Table {
    pub(super) pending: PendingTable,
    /// Sorted by prefix length, longest first.
    handlers: Vec<(Name, Arc<Handler>)>,
    pub(super) unsolicited: Option<Arc<Watcher>>,
    pub(super) closed: Option<String>,
    /// Signer of commands; DigestSha256 if absent.
    pub(super) command_signer: Option<Arc<dyn Signer>>,
}

impl Table {
    pub(super) fn set_handler(&mut self, prefix: &Name, handler: Arc<Handler>) {
        self.remove_handler(prefix);
        let length = prefix.len();
        let position = self.handlers.partition_point(|(other, _)| other.len() > length);
        self.handlers.insert(position, (prefix.clone(), handler));
    }

    pub(super) fn remove_handler(&mut self, prefix: &Name) {
        self.handlers.retain(|(other, _)| other != prefix);
    }

    fn handler(&self, name: &NameRef<'_>) -> Option<Arc<Handler>> {
        let found = self.handlers.iter().find(|(prefix, _)| prefix.is_prefix_of(*name));
        found.map(|(_, handler)| Arc::clone(handler))
    }
}

/// State of one connection.
pub(super) struct Shared {
    pub(super) uri: Option<TransportUri>,
    pub(super) local: bool,
    pub(super) outgoing: Outgoing,
    pub(super) counters: AtomicCounters,
    table: Mutex<Table>,
    ended: Notify,
    last_signature_time_ms: AtomicU64,
}

impl Shared {
    pub(super) fn new(uri: Option<TransportUri>, local: bool) -> Self {
        Self {
            uri,
            local,
            outgoing: Outgoing::default(),
            counters: AtomicCounters::default(),
            table: Mutex::default(),
            ended: Notify::new(),
            last_signature_time_ms: AtomicU64::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection and ends all waiting requests with `reason`.
    pub(super) fn close(&self, reason: &str) {
        let handlers = {
            let mut table = self.lock();
            if table.closed.is_none() {
                table.closed = Some(reason.to_owned());
            }
            table.pending.close(reason);
            // Handlers may own clones of the endpoint, so they are dropped outside the lock.
            (std::mem::take(&mut table.handlers), table.unsolicited.take())
        };
        drop(handlers);
        self.outgoing.close();
        self.ended.notify_waiters();
    }

    pub(super) async fn wait_closed(&self) -> String {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(reason) = &self.lock().closed {
                return reason.clone();
            }
            ended.await;
        }
    }

    pub(super) fn next_signature_time_ms(&self) -> u64 {
        let now = unix_time_ms();
        let next = |last: u64| next_signature_time_ms(last, now);
        let update = |last| Some(next(last));
        match self.last_signature_time_ms.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update) {
            Ok(last) | Err(last) => next(last),
        }
    }

    /// Tells the forwarder that this side returns PIT tokens, so that the forwarder looks up pending Interests by
    /// token.
    pub(super) fn report_token_support(&self) {
        self.outgoing.push(|writer| {
            writer.raw(&KnowsPitTokens::Tells.frame());
        });
    }

    /// Handles one frame. Only datagram links, which fragment, pass a reassembler.
    pub(super) fn receive(self: &Arc<Self>, frame: &[u8], reassembler: Option<&mut Reassembler>) {
        if let Err(error) = self.try_receive(frame, reassembler) {
            count(&self.counters.malformed);
            debug!(reason = error.name(), bytes = frame.len(), "frame dropped");
        }
    }

    fn try_receive(self: &Arc<Self>, frame: &[u8], reassembler: Option<&mut Reassembler>) -> Result<(), DecodeError> {
        let packet = LpPacket::decode(frame)?;
        if packet.knows_pit_tokens == Some(KnowsPitTokens::Asks) {
            self.report_token_support();
        }
        if let Some(PathMtuProbe::Probe(number)) = packet.path_mtu_probe {
            self.outgoing.push(|writer| {
                writer.raw(&PathMtuProbe::answer(number));
            });
        }
        let Some(payload) = packet.fragment else { return Ok(()) };
        let head = Head {
            pit_token: packet.pit_token,
            nack: packet.nack,
            congestion_mark: packet.congestion_mark.unwrap_or(0),
        };
        let count = packet.frag_count.unwrap_or(1);
        if count <= 1 {
            return self.network_packet(payload, head, packet.incoming_face_id);
        }
        let (Some(sequence), Some(reassembler)) = (packet.sequence, reassembler) else {
            return Ok(());
        };
        let piece = Piece { sequence, index: packet.frag_index.unwrap_or(0), count, head, payload };
        match reassembler.accept(Instant::now(), &piece) {
            Some((whole, head)) => self.network_packet(&whole, head, packet.incoming_face_id),
            None => Ok(()),
        }
    }

    fn network_packet(
        self: &Arc<Self>,
        packet: &[u8],
        head: Head,
        incoming_face_id: Option<u64>,
    ) -> Result<(), DecodeError> {
        let typ = tlv::read_single_element(packet)?.typ;
        match (typ, head.nack) {
            (types::INTEREST, Some(reason)) => {
                let interest = Interest::decode(packet)?;
                count(&self.counters.in_nacks);
                self.lock().pending.reject(&interest, reason);
            }
            (types::INTEREST, None) => {
                let interest = Interest::decode(packet)?;
                count(&self.counters.in_interests);
                self.interest(packet, &interest, head, incoming_face_id);
            }
            (types::DATA, None) => {
                let name = DataHeader::decode(packet)?.name;
                count(&self.counters.in_data);
                let watcher = {
                    let mut table = self.lock();
                    let satisfied = table.pending.satisfy(name, packet, head.congestion_mark)?;
                    if satisfied > 0 {
                        return Ok(());
                    }
                    table.unsolicited.clone()
                };
                count(&self.counters.unsolicited_data);
                if let Some(watcher) = watcher {
                    watcher(name);
                }
            }
            _ => return Err(DecodeError::UnexpectedType),
        }
        Ok(())
    }

    fn interest(self: &Arc<Self>, packet: &[u8], interest: &Interest<'_>, head: Head, incoming_face_id: Option<u64>) {
        let handler = self.lock().handler(&interest.name);
        let Some(handler) = handler else {
            count(&self.counters.unhandled_interests);
            return;
        };
        let request = Request {
            interest,
            packet,
            pit_token: head.pit_token,
            congestion_mark: head.congestion_mark,
            incoming_face_id,
            shared: self,
        };
        match handler(&request) {
            Answer::Data(data) => request.responder().send_data(&data),
            Answer::Nack(reason) => request.responder().send_nack(reason, packet),
            Answer::None => {}
        }
    }
}

/// A handle for answering one Interest later.
#[derive(Clone)]
pub struct Responder {
    shared: Arc<Shared>,
    pit_token: PitToken,
}

impl Responder {
    pub(super) fn new(shared: Arc<Shared>, pit_token: PitToken) -> Self {
        Self { shared, pit_token }
    }

    /// Sends a Data element. A Data larger than the maximum packet size is dropped.
    pub fn send_data(&self, packet: &[u8]) {
        if self.send(LpFields::default(), packet) {
            count(&self.shared.counters.out_data);
        }
    }

    /// Sends a Nack for `interest`, the complete received element.
    pub fn send_nack(&self, reason: NackReason, interest: &[u8]) {
        if self.send(LpFields { nack: Some(reason), ..LpFields::default() }, interest) {
            count(&self.shared.counters.out_nacks);
        }
    }

    /// Sends a packet with the Interest's PIT token. If the token does not fit, the packet is sent without it:
    /// forwarders close streams with oversized packets, and can find the Interest by name.
    fn send(&self, fields: LpFields, packet: &[u8]) -> bool {
        let with_token = LpFields { pit_token: self.pit_token, ..fields };
        let fitting = [with_token, fields].into_iter().find(|fields| fields.fits(packet));
        match fitting {
            Some(fields) => self.shared.outgoing.push(|writer| write_lp(writer, &fields, packet)),
            None => debug!(bytes = packet.len(), "packet is too large to send"),
        }
        fitting.is_some()
    }
}

/// Link headers used by this crate.
#[derive(Clone, Copy, Default)]
pub(crate) struct LpFields {
    pub(crate) pit_token: PitToken,
    pub(crate) nack: Option<NackReason>,
    pub(crate) congestion_mark: u64,
}

/// Bytes of TYPE and LENGTH of an LpPacket and its Fragment, for packets of nearly maximum size.
const ENVELOPE_BYTES: usize = 4 + 4;
/// Bytes of TYPE and LENGTH of a PIT token.
const TOKEN_HEADER_BYTES: usize = 2;
/// Bytes of a Nack with NackReason, in the longest encoding.
const NACK_BYTES: usize = 4 + 4 + 8;
/// Bytes of a CongestionMark, in the longest encoding.
const CONGESTION_MARK_BYTES: usize = 4 + 8;

impl LpFields {
    fn is_empty(&self) -> bool {
        self.pit_token.is_empty() && self.nack.is_none() && self.congestion_mark == 0
    }

    /// Returns true if `fragment` with these headers does not exceed the maximum packet size.
    fn fits(&self, fragment: &[u8]) -> bool {
        let mut length = fragment.len();
        if !self.is_empty() {
            length += ENVELOPE_BYTES;
        }
        if !self.pit_token.is_empty() {
            length += TOKEN_HEADER_BYTES + self.pit_token.as_slice().len();
        }
        if self.nack.is_some() {
            length += NACK_BYTES;
        }
        if self.congestion_mark > 0 {
            length += CONGESTION_MARK_BYTES;
        }
        length <= MAX_PACKET_SIZE
    }
}

/// Appends `fragment` in an LpPacket with its link headers, or bare if there are none.
pub(crate) fn write_lp(writer: &mut Writer, fields: &LpFields, fragment: &[u8]) {
    let LpFields { pit_token, nack, congestion_mark } = *fields;
    if fields.is_empty() {
        writer.raw(fragment);
        return;
    }
    writer.nested(types::LP_PACKET, |writer| {
        if !pit_token.is_empty() {
            writer.element(types::LP_PIT_TOKEN, pit_token.as_slice());
        }
        if let Some(reason) = nack {
            writer.nested(types::LP_NACK, |writer| {
                if reason != NackReason::NONE {
                    writer.nni(types::LP_NACK_REASON, reason.code());
                }
            });
        }
        if congestion_mark > 0 {
            writer.nni(types::LP_CONGESTION_MARK, congestion_mark);
        }
        writer.element(types::LP_FRAGMENT, fragment);
    });
}
