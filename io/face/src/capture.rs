//! Capture: copies of the frames, or of a sample of them, that a worker receives and sends, to be written to a file.
//!
//! Each worker has its own [`CaptureRecorder`] while frames are captured, and none otherwise. All memory of a recorder
//! is allocated before the worker gets it; frames that do not fit are counted as lost. The reader gets the frames by
//! swapping the recorder for an empty one. So threads share nothing on the packet path, and a worker never waits.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use namehop_packet::FaceId;
use namehop_wire::lp::LpPacket;
use namehop_wire::tlv::{Reader, read_var_number, types};
use namehop_wire::{MAX_PACKET_SIZE, Name};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Space of a recorder for the bytes of frames.
const ROOM_BYTES: usize = 4 << 20;
/// Space of a recorder for frames.
const ROOM_FRAMES: usize = 1 << 16;
/// All frames, as [`CaptureRequest::sample_millionths`].
pub const ALL_MILLIONTHS: u32 = 1_000_000;
/// `/localhost` as a Name VALUE. The management commands that control a capture have such names.
const LOCALHOST: &[u8] = b"\x08\x09localhost";

/// Which frames to capture, and how much of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureRequest {
    /// Frames with packets under this name prefix. Frames without a name, such as acknowledgements and later fragments,
    /// are captured only if it is `/`; frames with names under `/localhost` only if it is itself under `/localhost`.
    pub prefix: Name,
    /// Only frames of this face; `None` for all faces.
    pub face: Option<FaceId>,
    /// The probability with which each frame is captured, in millionths: from 1 to [`ALL_MILLIONTHS`].
    pub sample_millionths: u32,
    /// Maximum number of bytes kept of each frame.
    pub snap_bytes: usize,
}

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It came in.
    Received,
    /// It went out.
    Sent,
}

/// A captured frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Time of capture, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The face.
    pub face: FaceId,
    /// The direction.
    pub direction: Direction,
    /// Length of the frame in bytes.
    pub length: usize,
    /// The first bytes of the frame, at most [`CaptureRequest::snap_bytes`].
    pub bytes: &'a [u8],
}

/// The clock of all recorders of one capture: steady after its creation.
#[derive(Debug, Clone, Copy)]
pub struct CaptureClock {
    started: Instant,
    started_unix_ns: u64,
}

impl CaptureClock {
    /// Creates a clock that starts at the present system time.
    pub fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        CaptureClock { started: Instant::now(), started_unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX) }
    }

    fn now_ns(&self) -> u64 {
        self.started_unix_ns.saturating_add(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for CaptureClock {
    fn default() -> Self {
        CaptureClock::new()
    }
}

#[derive(Debug, Clone, Copy)]
struct Note {
    unix_ns: u64,
    face: FaceId,
    direction: Direction,
    length: u32,
    /// Offset of its bytes; they end at the start of the next note.
    start: u32,
}

/// The captured frames of one worker; see the module documentation.
#[derive(Debug)]
pub struct CaptureRecorder {
    request: Arc<CaptureRequest>,
    clock: CaptureClock,
    random: SplitMix64,
    /// Number of frames to skip before the next one that is considered.
    until_next: u64,
    notes: Vec<Note>,
    bytes: Vec<u8>,
    lost: u64,
}

impl CaptureRecorder {
    /// Creates an empty recorder.
    pub fn new(request: Arc<CaptureRequest>, clock: CaptureClock) -> Box<Self> {
        Self::with_room(request, clock, ROOM_FRAMES, ROOM_BYTES)
    }

    fn with_room(request: Arc<CaptureRequest>, clock: CaptureClock, frames: usize, bytes: usize) -> Box<Self> {
        let nothing = Note { unix_ns: 0, face: FaceId::INVALID, direction: Direction::Received, length: 0, start: 0 };
        let mut recorder = CaptureRecorder {
            request,
            clock,
            random: SplitMix64::seed_from_u64(RandomState::new().hash_one(frames)),
            until_next: 0,
            // Written to, so that the system maps the memory before a worker needs it.
            notes: vec![Note { length: 1, ..nothing }; frames],
            bytes: vec![1; bytes],
            lost: 0,
        };
        recorder.clear();
        recorder.until_next = recorder.gap();
        Box::new(recorder)
    }

    /// Removes all captured frames, and keeps the memory.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.bytes.clear();
        self.lost = 0;
    }

    /// Returns the captured frames, in order of time.
    pub fn frames(&self) -> impl Iterator<Item = Captured<'_>> {
        let ends = self.notes.iter().skip(1).map(|next| next.start as usize).chain([self.bytes.len()]);
        self.notes.iter().zip(ends).map(|(note, end)| Captured {
            unix_ns: note.unix_ns,
            face: note.face,
            direction: note.direction,
            length: note.length as usize,
            bytes: &self.bytes[note.start as usize..end],
        })
    }

    /// Returns the number of frames that did not fit.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of frames to skip before the next one. Each frame is captured with the same probability, so
    /// these numbers have a geometric distribution.
    fn gap(&mut self) -> u64 {
        if self.request.sample_millionths >= ALL_MILLIONTHS {
            return 0;
        }
        let probability = f64::from(self.request.sample_millionths.max(1)) / f64::from(ALL_MILLIONTHS);
        // Greater than 0 and at most 1.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (uniform.ln() / (-probability).ln_1p()) as u64
    }

    /// Captures the requested ones of the frames that were just received or sent; `of` returns the face and the bytes
    /// of a frame.
    pub fn record<T>(&mut self, direction: Direction, frames: &[T], of: impl Fn(&T) -> (FaceId, &[u8])) {
        let mut index = self.until_next;
        if index < frames.len() as u64 {
            let unix_ns = self.clock.now_ns();
            while let Some(frame) = usize::try_from(index).ok().and_then(|index| frames.get(index)) {
                let (face, bytes) = of(frame);
                self.take(unix_ns, face, direction, bytes);
                index = index.saturating_add(1).saturating_add(self.gap());
            }
        }
        self.until_next = index - frames.len() as u64;
    }

    fn take(&mut self, unix_ns: u64, face: FaceId, direction: Direction, frame: &[u8]) {
        if self.request.face.is_some_and(|wanted| wanted != face) || !self.is_wanted(frame) {
            return;
        }
        let kept = &frame[..frame.len().min(self.request.snap_bytes)];
        let has_room =
            self.notes.len() < self.notes.capacity() && kept.len() <= self.bytes.capacity() - self.bytes.len();
        let (true, Ok(start), Ok(length)) = (has_room, u32::try_from(self.bytes.len()), u32::try_from(frame.len()))
        else {
            self.lost += 1;
            return;
        };
        self.notes.push(Note { unix_ns, face, direction, length, start });
        self.bytes.extend_from_slice(kept);
    }

    fn is_wanted(&self, frame: &[u8]) -> bool {
        let prefix = self.request.prefix.value();
        match name_value(frame) {
            Some(name) => name.starts_with(prefix) && (!name.starts_with(LOCALHOST) || prefix.starts_with(LOCALHOST)),
            None => prefix.is_empty(),
        }
    }
}

/// Returns the Name VALUE of the packet in a frame. The frame may hold only the first fragment of the packet.
fn name_value(frame: &[u8]) -> Option<&[u8]> {
    let packet = LpPacket::decode(frame).ok().filter(|packet| packet.frag_index.unwrap_or(0) == 0)?.fragment?;
    let (kind, type_bytes) = read_var_number(packet).ok()?;
    let (_, length_bytes) = read_var_number(packet.get(type_bytes..)?).ok()?;
    let is_packet = [types::INTEREST, types::DATA].into_iter().any(|known| kind == u64::from(known));
    let value = packet.get(type_bytes + length_bytes..).filter(|_| is_packet)?;
    Some(Reader::new(value).read_typed(types::NAME).ok()?.value)
}

const _: () = assert!(ROOM_BYTES <= u32::MAX as usize && ROOM_BYTES > 2 * MAX_PACKET_SIZE);

#[cfg(test)]
mod tests {
    use namehop_wire::lp::{LpHeader, encode_packet};
    use namehop_wire::security::DigestSigner;
    use namehop_wire::{DataBuilder, InterestBuilder};

    use super::*;

    fn request(prefix: &str) -> CaptureRequest {
        let prefix = prefix.parse().expect("a name");
        CaptureRequest { prefix, face: None, sample_millionths: ALL_MILLIONTHS, snap_bytes: MAX_PACKET_SIZE }
    }

    fn recorder(request: CaptureRequest) -> Box<CaptureRecorder> {
        CaptureRecorder::with_room(Arc::new(request), CaptureClock::new(), 1_000, 100_000)
    }

    fn interest(name: &str) -> Vec<u8> {
        InterestBuilder::new(name.parse::<namehop_wire::Name>().expect("a name")).build().expect("fits")
    }

    fn record(recorder: &mut CaptureRecorder, face: u32, frames: &[Vec<u8>]) {
        recorder.record(Direction::Received, frames, |frame| (FaceId(face), frame));
    }

    #[test]
    fn frames_are_chosen_by_face_and_name() {
        let name: Name = "/A/data".parse().expect("a name");
        let data = DataBuilder::new(name).content([0; 500]).sign(&DigestSigner);
        let data = data.expect("fits");
        let in_lp = encode_packet(&LpHeader { congestion_mark: Some(1), ..LpHeader::default() }, Some(&data));
        let fragment =
            |index| LpHeader { sequence: Some(7), frag_index: Some(index), frag_count: Some(2), ..LpHeader::default() };
        let first = encode_packet(&fragment(0), Some(&data[..100]));
        let second = encode_packet(&fragment(1), Some(&data[100..]));
        let idle = encode_packet(&LpHeader { tx_sequence: Some(1), ..LpHeader::default() }, None);
        let frames = [
            interest("/A/1"),
            interest("/AB"),
            interest("/localhost/nfd/x"),
            data,
            in_lp,
            first,
            second,
            idle,
            b"\xff".to_vec(),
        ];
        for (prefix, expected) in [
            ("/", vec![0, 1, 3, 4, 5, 6, 7, 8]),
            ("/A", vec![0, 3, 4, 5]),
            ("/A/1", vec![0]),
            ("/localhost", vec![2]),
            ("/other", vec![]),
        ] {
            let mut recorder = recorder(request(prefix));
            record(&mut recorder, 256, &frames);
            let expected: Vec<&[u8]> = expected.into_iter().map(|index: usize| &frames[index][..]).collect();
            assert_eq!(recorder.frames().map(|frame| frame.bytes).collect::<Vec<_>>(), expected, "{prefix}");
        }
        let mut recorder = recorder(CaptureRequest { face: Some(FaceId(257)), ..request("/") });
        record(&mut recorder, 256, &frames);
        assert_eq!(recorder.frames().count(), 0);
        record(&mut recorder, 257, &frames[..1]);
        assert_eq!(recorder.frames().next().map(|frame| frame.face), Some(FaceId(257)));
    }

    #[test]
    fn long_frames_are_cut_and_what_has_no_room_is_counted() {
        let request = Arc::new(CaptureRequest { snap_bytes: 10, ..request("/") });
        let before_ns = CaptureClock::new().now_ns();
        let mut recorder = CaptureRecorder::with_room(Arc::clone(&request), CaptureClock::new(), 3, 1_000);
        let frames =
            [interest("/long/enough/1"), b"\x01".to_vec(), interest("/long/enough/2"), interest("/long/enough/3")];
        recorder.record(Direction::Sent, &frames, |frame| (FaceId(1), frame));
        let kept: Vec<_> = recorder.frames().map(|frame| (frame.length, frame.bytes.to_vec())).collect();
        let expected: Vec<_> =
            frames[..3].iter().map(|frame| (frame.len(), frame[..frame.len().min(10)].to_vec())).collect();
        assert_eq!((kept, recorder.lost()), (expected, 1));
        assert!(recorder.frames().all(|frame| frame.unix_ns >= before_ns && frame.direction == Direction::Sent));
        recorder.clear();
        assert_eq!((recorder.frames().count(), recorder.lost()), (0, 0));
        // The space for bytes is limited, too.
        let mut recorder = CaptureRecorder::with_room(request, CaptureClock::new(), 100, 25);
        recorder.record(Direction::Sent, &frames, |frame| (FaceId(1), frame));
        assert_eq!((recorder.frames().count(), recorder.lost()), (3, 1));
    }

    #[test]
    fn a_sample_is_as_large_as_asked_for_however_frames_come() {
        for millionths in [500_000, 20_000] {
            let mut recorder = CaptureRecorder::with_room(
                Arc::new(CaptureRequest { sample_millionths: millionths, ..request("/") }),
                CaptureClock::new(),
                400_000,
                400_000,
            );
            let frame = vec![0];
            for length in (0..80).cycle().take(8_000) {
                record(&mut recorder, 1, &vec![frame.clone(); length]);
            }
            let expected = 316_000.0 * f64::from(millionths) / 1e6;
            let deviations = (recorder.frames().count() as f64 - expected).abs() / expected.sqrt();
            assert!(
                deviations < 6.0,
                "{millionths}: {} packets sampled, expected {expected}",
                recorder.frames().count()
            );
        }
    }
}
