//! Datasets that may be gigabytes long: the FIB, the RIB, and `/localhost/nfd/fib/snapshot`, Namehop's own dataset,
//! which holds the FIB in the format of files to load.
//!
//! They are built while the client fetches them, and only the latest segments are kept; clients should request segments
//! approximately in order. A client costs the router a bounded amount of memory. One Interest occupies the control
//! thread for a small part of a millisecond; longer work pauses in between.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Poll;

use namehop_client::nfd::{self, Element, FibEntry, NextHopRecord, RibEntry};
use namehop_packet::FaceId;

use crate::fib_file::SnapshotWriter;
use namehop_engine::fib::FibCursor;
use namehop_face::FaceUri;
use namehop_face::registry::{FacePersistency, FaceTable};
use namehop_wire::data::content_type;
use namehop_wire::tlv::types::{NAME, SEGMENT_NAME_COMPONENT};
use namehop_wire::tlv::{Nni, Writer};
use namehop_wire::{ComponentRef, Name};
use tokio::task::yield_now;

use super::dataset::SEGMENT_BYTES;
use super::reply::{ReplyTo, data};
use super::{ControlPlane, Management};
use crate::rib::Cursor;

/// Maximum distance of a requested segment after the last one built.
const AHEAD: u64 = 2048;
/// Number of latest segments kept per stream.
const KEPT: usize = 2048;
/// How long a stream is kept after the last request, in milliseconds.
const KEPT_MS: u64 = 10_000;
/// Maximum number of streams; the least recently requested one is dropped first.
const MAX_STREAMS: usize = 64;
/// Maximum size of the kept segments of all streams, in bytes; the least recently requested stream is dropped first.
const MAX_KEPT_BYTES: usize = 128 << 20;
/// Entries, or slots of a table, visited at once.
const PORTION: usize = 256;
/// Portions built for an Interest before other tasks run.
const PORTIONS_AT_ONCE: usize = 8;

/// The table that a stream reads, and the position to continue from.
#[derive(Debug)]
pub(super) enum Source {
    Snapshot(SnapshotWriter, FibCursor),
    Fib(FibCursor),
    Rib(Cursor),
}

/// A dataset being fetched.
#[derive(Debug)]
struct Stream {
    dataset: Name,
    version: u64,
    /// `None` when everything has been read.
    source: Option<Source>,
    /// Content that is not in a segment yet.
    rest: Vec<u8>,
    segments: VecDeque<Vec<u8>>,
    /// Number of the first segment kept.
    first: u64,
    expires_at_ms: u64,
}

/// Datasets being fetched, in order of the last request.
#[derive(Debug, Default)]
pub(super) struct Streams(VecDeque<Stream>);

impl Streams {
    pub(super) fn expire(&mut self, now_ms: u64) {
        self.0.retain(|stream| stream.expires_at_ms > now_ms);
    }

    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.0.iter().map(|stream| stream.expires_at_ms).min()
    }

    /// Returns the number of streams and their kept bytes.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.0.len(), self.0.iter().map(Stream::kept_bytes).sum())
    }

    /// Returns the stream with this version and moves it to the end of the list.
    fn find(&mut self, dataset: &Name, version: u64) -> Option<&mut Stream> {
        let position = self.0.iter().position(|stream| stream.version == version && stream.dataset == *dataset)?;
        let stream = self.0.remove(position)?;
        self.0.push_back(stream);
        self.0.back_mut()
    }

    /// Drops the least recently requested streams until the limits are met; always keeps the last one.
    fn limit(&mut self) {
        let mut kept_bytes: usize = self.0.iter().map(Stream::kept_bytes).sum();
        while self.0.len() > MAX_STREAMS || (kept_bytes > MAX_KEPT_BYTES && self.0.len() > 1) {
            kept_bytes -= self.0.pop_front().map_or(0, |stream| stream.kept_bytes());
        }
    }
}

impl Stream {
    /// Returns the number of the segment after the last one built.
    fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    fn kept_bytes(&self) -> usize {
        self.segments.len() * SEGMENT_BYTES + self.rest.len()
    }

    /// Cuts the read content into segments. The last byte is held back until it is known whether more follows, so that
    /// the last segment can be marked as the last.
    fn cut(&mut self) {
        let is_whole = self.source.is_none();
        let cut =
            if is_whole { self.rest.len() } else { self.rest.len().saturating_sub(1) / SEGMENT_BYTES * SEGMENT_BYTES };
        self.segments.extend(self.rest[..cut].chunks(SEGMENT_BYTES).map(<[u8]>::to_vec));
        self.rest.drain(..cut);
        if is_whole && self.end() == 0 {
            self.segments.push_back(Vec::new());
        }
        while self.segments.len() > KEPT {
            self.segments.pop_front();
            self.first += 1;
        }
    }

    /// Returns one segment as Data; `None` if it does not exist or has been dropped.
    fn segment(&self, segment: u64) -> Option<Vec<u8>> {
        let index = usize::try_from(segment.checked_sub(self.first)?).ok()?;
        let payload = self.segments.get(index)?;
        let segment_name = self.dataset.clone().append_version(self.version).append_segment(segment);
        let last = self.source.is_none().then(|| Nni::new(self.end() - 1));
        let final_block_id =
            last.as_ref().and_then(|last| ComponentRef::new(SEGMENT_NAME_COMPONENT, last.as_slice()).ok());
        data(segment_name.as_ref(), content_type::BLOB, payload, final_block_id)
    }
}

/// Returns the word for a face in a snapshot, from which the face can be found or created again. `None` for on-demand
/// faces and the internal face.
fn word_of(faces: &FaceTable, face: FaceId) -> Option<String> {
    let face = faces.get(face)?;
    let is_ours = face.persistency() != FacePersistency::OnDemand && *face.remote_uri() != FaceUri::Internal;
    is_ours.then(|| match face.remote_uri().is_multicast() {
        true => format!("{} {}", face.remote_uri(), face.local_uri()),
        false => face.remote_uri().to_string(),
    })
}

impl<C: ControlPlane> Management<C> {
    /// Starts a new version of a dataset and answers with its first segment.
    pub(super) fn start_stream(self: &Rc<Self>, source: Source, to: ReplyTo) {
        let version = self.datasets.borrow_mut().next_version();
        let dataset = to.name.clone();
        self.streams.borrow_mut().0.push_back(Stream {
            dataset: dataset.clone(),
            version,
            source: Some(source),
            rest: Vec::new(),
            segments: VecDeque::new(),
            first: 0,
            expires_at_ms: 0,
        });
        self.answer_from_stream(&dataset, version, 0, to);
        self.due_earlier.notify_one();
    }

    /// Returns the FIB from its start, as a snapshot.
    pub(super) fn snapshot_source(&self) -> Source {
        let prefixes = self.control.with_fib(|fib| fib.len() as u64);
        Source::Snapshot(SnapshotWriter::new(prefixes), FibCursor::default())
    }

    /// Answers with a segment, if it exists.
    pub(super) fn answer_from_stream(self: &Rc<Self>, dataset: &Name, version: u64, segment: u64, to: ReplyTo) {
        for _ in 0..PORTIONS_AT_ONCE {
            if let Poll::Ready(packet) = self.poll_segment(dataset, version, segment) {
                return self.answer_with(&to, packet);
            }
        }
        let (this, dataset) = (Rc::clone(self), dataset.clone());
        tokio::task::spawn_local(async move {
            let packet = loop {
                yield_now().await;
                if let Poll::Ready(packet) = this.poll_segment(&dataset, version, segment) {
                    break packet;
                }
            };
            this.answer_with(&to, packet);
        });
    }

    fn answer_with(&self, to: &ReplyTo, packet: Option<Vec<u8>>) {
        if let Some(packet) = packet {
            self.send(to.token, &packet);
        }
    }

    /// Returns one segment as Data; `None` if it does not exist or has been dropped. If the segment is not built yet,
    /// builds another portion and returns `Pending`, unless it is complete then.
    fn poll_segment(&self, dataset: &Name, version: u64, segment: u64) -> Poll<Option<Vec<u8>>> {
        let mut streams = self.streams.borrow_mut();
        let Some(stream) = streams.find(dataset, version) else { return Poll::Ready(None) };
        stream.expires_at_ms = self.now_ms() + KEPT_MS;
        if segment >= stream.end().saturating_add(AHEAD) {
            return Poll::Ready(None);
        }
        if segment >= stream.end() {
            let Some(source) = stream.source.take() else { return Poll::Ready(None) };
            stream.source = self.read_portion(source, &mut stream.rest);
            stream.cut();
        }
        let packet = match segment < stream.end() {
            true => Poll::Ready(stream.segment(segment)),
            false if stream.source.is_none() => Poll::Ready(None),
            false => Poll::Pending,
        };
        streams.limit();
        packet
    }

    /// Appends the next portion of a source; returns the position to continue from.
    fn read_portion(&self, source: Source, out: &mut Vec<u8>) -> Option<Source> {
        match source {
            Source::Snapshot(mut writer, from) => {
                let faces = self.control.faces();
                let next = self.control.with_fib(|fib| {
                    fib.visit_entries(from, PORTION, |prefix, nexthops| {
                        writer.push(prefix, nexthops, |face| word_of(faces, face));
                    })
                });
                if next.is_none() {
                    writer.finish();
                }
                out.extend(writer.take_output());
                next.map(|next| Source::Snapshot(writer, next))
            }
            Source::Fib(from) => self.read_fib(from, PORTION, out).map(Source::Fib),
            Source::Rib(from) => self.read_rib(from, PORTION, out).map(Source::Rib),
        }
    }

    /// Appends about `portion` entries of the FIB, encoded as in `fib/list`; returns the position to continue from.
    pub(super) fn read_fib(&self, from: FibCursor, portion: usize, out: &mut Vec<u8>) -> Option<FibCursor> {
        let mut writer = Writer::new();
        let next = self.control.with_fib(|fib| {
            fib.visit_entries(from, portion, |name, next_hops| {
                writer.nested(FibEntry::TYPE, |writer| {
                    writer.element(NAME, name.value());
                    for next_hop in next_hops.iter() {
                        let record = NextHopRecord { face_id: next_hop.face.0.into(), cost: next_hop.cost };
                        record.encode(writer);
                    }
                });
            })
        });
        out.extend(writer.into_vec());
        next
    }

    /// Appends the entries in the next `portion` slots of the RIB, encoded as in `rib/list`; returns the position to
    /// continue from.
    pub(super) fn read_rib(&self, from: Cursor, portion: usize, out: &mut Vec<u8>) -> Option<Cursor> {
        let mut writer = Writer::new();
        let now_ms = self.now_ms();
        let next = self.routes.borrow().rib.visit_entries(from, portion, |name, routes| {
            let routes = routes
                .map(|route| nfd::Route {
                    face_id: route.face.0.into(),
                    origin: route.origin,
                    cost: route.cost,
                    flags: route.flags,
                    expiration_period_ms: route.expires_at_ms.map(|at_ms| at_ms.saturating_sub(now_ms)),
                })
                .collect();
            RibEntry { name: name.to_owned(), routes }.encode(&mut writer);
        });
        out.extend(writer.into_vec());
        next
    }
}
