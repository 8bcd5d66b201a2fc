//! Status datasets as versioned, segmented Data.
//!
//! An Interest for a dataset creates a new version and is answered with its segment 0. The content is kept for one
//! second after the last request, so that the client can fetch the other segments. Segments are built and signed on
//! request. Requests that arrive while a version is being built get that version. [`streams`](super::streams) serves
//! datasets that may be very long.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use namehop_client::nfd::{Element, FaceQueryFilter};
use namehop_wire::data::content_type;
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::Nni;
use namehop_wire::tlv::types::SEGMENT_NAME_COMPONENT;
use namehop_wire::{ComponentRef, MAX_PACKET_SIZE, Name};

use super::dispatcher::{Request, VERB_END};
use super::reply::{ReplyTo, data};
use super::status::{Content, Making};
use super::streams::Source;
use super::verbs::bad_request;
use super::{ControlPlane, Management};

/// Payload of a segment, in bytes.
pub(super) const SEGMENT_BYTES: usize = 8000;
/// Maximum length of a dataset name with version, in bytes, for which a segment fits into a packet.
const MAX_NAME_BYTES: usize = MAX_PACKET_SIZE - SEGMENT_BYTES - 200;
/// How long a version is kept after the last request, in milliseconds.
const KEPT_MS: u64 = 1000;
/// Maximum size of all stored versions together, in bytes; the oldest is evicted first.
const MAX_STORED_BYTES: usize = 256 << 20;

/// Builds the content of a dataset as a whole.
type Make<C> = Box<dyn FnOnce(Rc<Management<C>>) -> Making>;

/// The requested dataset.
enum Wanted<C: 'static> {
    Whole(Make<C>),
    Stream(fn(&Management<C>) -> Source),
}

#[derive(Debug)]
struct Version {
    content: Vec<u8>,
    expires_at_ms: u64,
}

/// Stored versions, and datasets being built.
#[derive(Debug, Default)]
pub(super) struct DatasetStore {
    /// By name with version; versions increase with time.
    versions: BTreeMap<(u64, Name), Version>,
    stored_bytes: usize,
    last_version: u64,
    building: HashMap<Name, Vec<ReplyTo>>,
}

impl DatasetStore {
    /// Returns a new version number: the time in microseconds, or the last number plus one if that is larger.
    pub(super) fn next_version(&mut self) -> u64 {
        self.last_version = unix_time_ms().saturating_mul(1000).max(self.last_version + 1);
        self.last_version
    }

    fn insert(&mut self, version: u64, name: Name, content: Vec<u8>, now_ms: u64) {
        self.stored_bytes += content.len();
        self.versions.insert((version, name), Version { content, expires_at_ms: now_ms + KEPT_MS });
        while self.stored_bytes > MAX_STORED_BYTES && self.versions.len() > 1 {
            if let Some((_, oldest)) = self.versions.pop_first() {
                self.stored_bytes -= oldest.content.len();
            }
        }
    }

    pub(super) fn expire(&mut self, now_ms: u64) {
        let stored_bytes = &mut self.stored_bytes;
        self.versions.retain(|_, version| {
            let is_kept = version.expires_at_ms > now_ms;
            if !is_kept {
                *stored_bytes -= version.content.len();
            }
            is_kept
        });
    }

    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.versions.values().map(|version| version.expires_at_ms).min()
    }

    /// Returns one segment as Data; `None` if the version or segment does not exist.
    fn segment(&mut self, version: u64, name: &Name, segment: u64, now_ms: u64) -> Option<Vec<u8>> {
        let key = (version, name.clone());
        let stored = self.versions.get_mut(&key).filter(|stored| stored.expires_at_ms > now_ms)?;
        let last = (stored.content.len().max(1) - 1) / SEGMENT_BYTES;
        let index = usize::try_from(segment).ok().filter(|&index| index <= last)?;
        let start = index * SEGMENT_BYTES;
        let payload = &stored.content[start..stored.content.len().min(start + SEGMENT_BYTES)];
        stored.expires_at_ms = now_ms + KEPT_MS;
        let segment_name = name.clone().append_version(version).append_segment(segment);
        let last = Nni::new(last as u64);
        let final_block_id = ComponentRef::new(SEGMENT_NAME_COMPONENT, last.as_slice()).ok();
        data(segment_name.as_ref(), content_type::BLOB, payload, final_block_id)
    }
}

impl<C: ControlPlane> Management<C> {
    pub(super) fn serve_dataset(self: &Rc<Self>, request: &Request<'_>, module: &[u8], verb: &[u8]) {
        let name = request.interest.name;
        let Some(dataset) = Self::find_dataset(module, verb) else { return };
        if name.value().len() > MAX_NAME_BYTES {
            return;
        }
        let (length, wanted) = match dataset.content {
            Content::Streamed(source) => (VERB_END, Wanted::Stream(source)),
            Content::Whole(make) => (VERB_END, Wanted::Whole(Box::new(make))),
            Content::Filtered(make) => {
                let Some(filter) = name.get(VERB_END).filter(|component| component.is_generic()) else { return };
                match FaceQueryFilter::decode(filter.value) {
                    Ok(filter) => (VERB_END + 1, Wanted::Whole(Box::new(move |this| make(this, filter)))),
                    Err(error) => {
                        let response = bad_request(format!("malformed FaceQueryFilter: {error}"));
                        return self.reject_dataset(&request.reply_to(), &response);
                    }
                }
            }
        };
        let can_be_prefix = request.interest.can_be_prefix;
        let mut rest = name.suffix(length).components();
        match (rest.next(), rest.next(), rest.next()) {
            (None, ..) if can_be_prefix => match wanted {
                Wanted::Whole(make) => self.start_dataset(make, request.reply_to()),
                Wanted::Stream(source) => self.start_stream(source(self), request.reply_to()),
            },
            (Some(version), segment, None) => {
                let segment = match segment {
                    None if can_be_prefix => Some(0),
                    None => None,
                    Some(segment) => segment.as_segment(),
                };
                if let (Some(version), Some(segment)) = (version.as_version(), segment) {
                    let name = name.prefix(length).to_owned();
                    if let Wanted::Stream(_) = wanted {
                        return self.answer_from_stream(&name, version, segment, request.reply_to());
                    }
                    let packet = self.datasets.borrow_mut().segment(version, &name, segment, self.now_ms());
                    if let Some(packet) = packet {
                        self.send(request.token, &packet);
                    }
                }
            }
            _ => {}
        }
    }

    fn start_dataset(self: &Rc<Self>, make: Make<C>, to: ReplyTo) {
        let name = to.name.clone();
        {
            let mut store = self.datasets.borrow_mut();
            if let Some(waiting) = store.building.get_mut(name.value()) {
                return waiting.push(to);
            }
            store.building.insert(name.clone(), vec![to]);
        }
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let mut content = make(Rc::clone(&this)).await;
            content.shrink_to_fit();
            this.finish_dataset(name, content);
        });
    }

    fn finish_dataset(&self, name: Name, content: Vec<u8>) {
        let now_ms = self.now_ms();
        let (packet, waiting) = {
            let mut store = self.datasets.borrow_mut();
            let version = store.next_version();
            store.insert(version, name.clone(), content, now_ms);
            let waiting = store.building.remove(name.value()).unwrap_or_default();
            (store.segment(version, &name, 0, now_ms), waiting)
        };
        self.due_earlier.notify_one();
        let Some(packet) = packet else { return };
        for to in waiting {
            self.send(to.token, &packet);
        }
    }
}
