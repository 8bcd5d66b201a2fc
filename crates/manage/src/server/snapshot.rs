//! The dataset `/localhost/nfd/fib/snapshot`, which only Namehop has: the FIB in the form that it is loaded from.
//!
//! It may be gigabytes long. So it is made as it is fetched, a few segments ahead, and only the latest segments are kept;
//! segments are to be asked for about in order.

use std::collections::VecDeque;

use namehop_face::FaceUri;
use namehop_face::registry::{FacePersistency, FaceTable};
use namehop_forward::face::FaceId;
use namehop_forward::fib::FibCursor;
use namehop_forward::fib::file::SnapshotWriter;
use namehop_wire::data::content_type;
use namehop_wire::tlv::Nni;
use namehop_wire::tlv::types::SEGMENT_NAME_COMPONENT;
use namehop_wire::{ComponentRef, Name};

use super::dataset::SEGMENT_BYTES;
use super::reply::data;
use super::{ControlPlane, Management};

/// Segments made at once, at most, for one that is asked for.
const AHEAD: u64 = 2048;
/// Segments that can still be asked for.
const KEPT: usize = 4096;
/// How long a snapshot goes on after it was last asked for, in milliseconds.
const KEPT_MS: u64 = 10_000;
/// Snapshots being fetched at a time; the oldest gives way.
const MAX_SNAPSHOTS: usize = 4;
/// Prefixes written between two looks at whether there is enough.
const PORTION: usize = 1024;

/// A snapshot being fetched.
#[derive(Debug)]
struct Snapshot {
    version: u64,
    writer: SnapshotWriter,
    /// Where the FIB is to be read on; `None` when all is read.
    cursor: Option<FibCursor>,
    /// What does not fill a segment yet.
    rest: Vec<u8>,
    segments: VecDeque<Vec<u8>>,
    /// Number of the first segment kept.
    first: u64,
    expires_at_ms: u64,
}

/// Snapshots being fetched, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Snapshots(VecDeque<Snapshot>);

impl Snapshots {
    pub(super) fn expire(&mut self, now_ms: u64) {
        self.0.retain(|snapshot| snapshot.expires_at_ms > now_ms);
    }

    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.0.iter().map(|snapshot| snapshot.expires_at_ms).min()
    }
}

impl Snapshot {
    /// Number of the segment after the last one made.
    fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// Takes what was written; keeps whole segments of it, or all at the end.
    fn cut(&mut self) {
        self.rest.extend(self.writer.take_output());
        let is_last = self.cursor.is_none();
        let whole = self.rest.len() / SEGMENT_BYTES * SEGMENT_BYTES;
        let cut = if is_last { self.rest.len() } else { whole };
        self.segments.extend(self.rest[..cut].chunks(SEGMENT_BYTES).map(<[u8]>::to_vec));
        self.rest.drain(..cut);
        while self.segments.len() > KEPT {
            self.segments.pop_front();
            self.first += 1;
        }
    }
}

/// The word for a face in a snapshot: from which it can be found or made again. None for faces that others make.
fn word_of(faces: &FaceTable, face: FaceId) -> Option<String> {
    let face = faces.get(face)?;
    let is_ours = face.persistency() != FacePersistency::OnDemand && *face.remote_uri() != FaceUri::Internal;
    is_ours.then(|| match face.remote_uri().is_multicast() {
        true => format!("{} {}", face.remote_uri(), face.local_uri()),
        false => face.remote_uri().to_string(),
    })
}

impl<C: ControlPlane> Management<C> {
    /// Begins a snapshot; returns its first segment as Data.
    pub(super) fn start_snapshot(&self, name: &Name) -> Option<Vec<u8>> {
        let version = self.datasets.borrow_mut().next_version();
        let prefixes = self.control.with_fib(|fib| fib.len() as u64);
        let snapshot = Snapshot {
            version,
            writer: SnapshotWriter::new(prefixes),
            cursor: Some(FibCursor::default()),
            rest: Vec::new(),
            segments: VecDeque::new(),
            first: 0,
            expires_at_ms: 0,
        };
        {
            let snapshots = &mut self.snapshots.borrow_mut().0;
            if snapshots.len() == MAX_SNAPSHOTS {
                snapshots.pop_front();
            }
            snapshots.push_back(snapshot);
        }
        self.due_earlier.notify_one();
        self.snapshot_segment(name, version, 0)
    }

    /// One segment as Data; `None` when there is none, or none any more.
    pub(super) fn snapshot_segment(&self, name: &Name, version: u64, segment: u64) -> Option<Vec<u8>> {
        let mut snapshots = self.snapshots.borrow_mut();
        let snapshot = snapshots.0.iter_mut().find(|snapshot| snapshot.version == version)?;
        snapshot.expires_at_ms = self.now_ms() + KEPT_MS;
        if segment >= snapshot.end().saturating_add(AHEAD) {
            return None;
        }
        while segment >= snapshot.end() {
            let from = snapshot.cursor?;
            let faces = self.control.faces();
            snapshot.cursor = self.control.with_fib(|fib| {
                fib.visit_entries(from, PORTION, |prefix, nexthops| {
                    snapshot.writer.push(prefix, nexthops, |face| word_of(faces, face));
                })
            });
            if snapshot.cursor.is_none() {
                snapshot.writer.finish();
            }
            snapshot.cut();
        }
        let index = usize::try_from(segment.checked_sub(snapshot.first)?).ok()?;
        let payload = snapshot.segments.get(index)?;
        let segment_name = name.clone().append_version(version).append_segment(segment);
        let last = snapshot.cursor.is_none().then(|| Nni::new(snapshot.end() - 1));
        let final_block_id =
            last.as_ref().and_then(|last| ComponentRef::new(SEGMENT_NAME_COMPONENT, last.as_slice()).ok());
        data(segment_name.as_ref(), content_type::BLOB, payload, final_block_id)
    }
}
