//! Module `capture`: copies of frames, for clients that write them to a file. Namehop's own addition to the NFD
//! management protocol. Its verbs are commands because only authorized requesters may see other hosts' traffic.
//!
//! One capture runs at a time. Its client fetches the captured frames periodically; a capture that is not read expires.
//! The captured frames form a byte stream, and each request gives its offset. A client that lost a response repeats the
//! request.

use std::rc::Rc;

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{CapturedFrame, ControlParameters, ControlResponse, FieldSet};
use namehop_client::nfd::{encode_frame, encode_piece};
use namehop_face::capture::{ALL_MILLIONTHS, CaptureRecorder, CaptureRequest, Direction};
use namehop_packet::FaceId;
use namehop_wire::MAX_PACKET_SIZE;

use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management};

/// A capture that is not read expires after this time, in milliseconds.
const ABANDONED_AFTER_MS: u64 = 10_000;
/// Bytes of the stream in a response, which has to fit into a Data packet.
const PIECE_BYTES: usize = 7_000;

/// The capture that runs, if any.
#[derive(Default)]
pub(super) struct Captures {
    running: Option<Running>,
    /// Number of captures that have been started.
    started: u64,
}

struct Running {
    /// Distinguishes this capture from later ones.
    number: u64,
    /// The part of the stream that was collected last. More is collected only after it was read to its end, so its size
    /// is bounded by the workers' capture buffers.
    part: Vec<u8>,
    /// Offset of `part` in the stream, in bytes.
    begin: u64,
    /// Time of the last read.
    taken_ms: u64,
}

impl Running {
    fn end(&self) -> u64 {
        self.begin + self.part.len() as u64
    }

    /// Appends frames that the workers have captured, in order of time, after discarding the bytes before the offset
    /// `read`. Bytes remain only if another request has collected frames at the same time.
    fn append(&mut self, read: u64, mut frames: Vec<CapturedFrame>, lost: u64) {
        frames.sort_by_key(|frame| frame.unix_ns);
        if read == self.end() {
            self.begin = read;
            self.part.clear();
        }
        frames.iter().for_each(|frame| encode_frame(frame, &mut self.part));
        if lost > 0 {
            encode_frame(&CapturedFrame::only_lost(lost), &mut self.part);
        }
    }
}

impl Captures {
    fn start(&mut self, now_ms: u64) {
        self.started += 1;
        self.running = Some(Running { number: self.started, part: Vec::new(), begin: 0, taken_ms: now_ms });
    }

    /// Returns the time at which the capture expires if it is not read.
    pub(super) fn next_expiry_ms(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.taken_ms + ABANDONED_AFTER_MS)
    }
}

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const CAPTURE_VERBS: &[Verb<C>] = &[
        Verb {
            name: "start",
            // Count is the sampling probability in millionths, Mtu the number of bytes kept of each frame.
            required: FieldSet::NAME.with(FieldSet::COUNT),
            optional: FieldSet::FACE_ID.with(FieldSet::MTU),
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.start_capture(parameters).await })),
        },
        Verb {
            name: "take",
            // Count is the offset in the stream, in bytes.
            required: FieldSet::COUNT,
            optional: FieldSet::NONE,
            action: Action::Task(|this, parameters, _| Box::pin(async move { this.take_captured(parameters).await })),
        },
        Verb {
            name: "stop",
            required: FieldSet::NONE,
            optional: FieldSet::NONE,
            action: Action::Task(|this, _, _| Box::pin(async move { this.stop_capture().await })),
        },
    ];

    async fn start_capture(&self, parameters: ControlParameters) -> ControlResponse {
        let sample = u32::try_from(parameters.count.unwrap_or(0)).unwrap_or(0);
        if !(1..=ALL_MILLIONTHS).contains(&sample) {
            return bad_request(format!("Count must be a probability in millionths, from 1 to {ALL_MILLIONTHS}"));
        }
        let snap_bytes =
            parameters.mtu_bytes.map_or(MAX_PACKET_SIZE, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let face = match parameters.face_id.map(u32::try_from) {
            None => None,
            Some(Ok(id)) if self.control.faces().get(FaceId(id)).is_some() => Some(FaceId(id)),
            Some(_) => return ControlResponse::new(status_code::NOT_FOUND, "the face does not exist"),
        };
        if self.captures.borrow().running.is_some() {
            let text = "a capture is running; retry later: an unread capture ends after 10 seconds";
            return ControlResponse::new(status_code::CONFLICT, text);
        }
        self.captures.borrow_mut().start(self.now_ms());
        self.due_earlier.notify_one();
        let prefix = parameters.name.clone().unwrap_or_default();
        let snap_bytes = snap_bytes.min(MAX_PACKET_SIZE);
        self.control.capture(Some(CaptureRequest { prefix, face, sample_millionths: sample, snap_bytes })).await;
        ControlResponse::ok(&ControlParameters { mtu_bytes: Some(snap_bytes as u64), ..parameters })
    }

    /// Returns the stream from the requested offset, as much as fits.
    async fn take_captured(&self, parameters: ControlParameters) -> ControlResponse {
        let position = parameters.count.unwrap_or(0);
        let (number, is_at_end) = match &mut self.captures.borrow_mut().running {
            None => return no_capture(),
            Some(running) => {
                running.taken_ms = self.now_ms();
                (running.number, position == running.end())
            }
        };
        let (mut frames, mut lost) = (Vec::new(), 0);
        if is_at_end {
            let collect = |recorder: &CaptureRecorder| {
                frames.extend(recorder.frames().map(|frame| CapturedFrame {
                    unix_ns: frame.unix_ns,
                    face: frame.face.0.into(),
                    is_sent: frame.direction == Direction::Sent,
                    length: frame.length as u64,
                    bytes: frame.bytes.to_vec(),
                    lost: 0,
                }));
                lost += recorder.lost();
            };
            self.control.captured(collect).await;
        }
        // The capture may have been stopped meanwhile, and another one started.
        let mut captures = self.captures.borrow_mut();
        let Some(running) = captures.running.as_mut().filter(|running| running.number == number) else {
            return no_capture();
        };
        if !frames.is_empty() || lost > 0 {
            running.append(position, frames, lost);
        }
        let from = position.checked_sub(running.begin).and_then(|from| usize::try_from(from).ok());
        let Some(rest) = from.and_then(|from| running.part.get(from..)) else {
            return bad_request(format!(
                "Count must be an offset in the stream, now from {} to {}",
                running.begin,
                running.end()
            ));
        };
        let mut response = ControlResponse::new(status_code::OK, "OK");
        response.body = encode_piece(&rest[..rest.len().min(PIECE_BYTES)]);
        response
    }

    async fn stop_capture(&self) -> ControlResponse {
        self.captures.borrow_mut().running = None;
        self.control.capture(None).await;
        ControlResponse::ok(&ControlParameters::default())
    }

    /// Ends a capture that was not read in time.
    pub(super) fn expire_capture(self: &Rc<Self>, now_ms: u64) {
        let mut captures = self.captures.borrow_mut();
        if captures.next_expiry_ms().is_some_and(|expiry_ms| expiry_ms <= now_ms) {
            captures.running = None;
            let this = Rc::clone(self);
            tokio::task::spawn_local(async move {
                // Another capture may have been started meanwhile.
                if this.captures.borrow().running.is_none() {
                    this.control.capture(None).await;
                }
            });
        }
    }
}

fn no_capture() -> ControlResponse {
    ControlResponse::new(status_code::NOT_FOUND, "no capture is running: it was stopped, or not read for 10 seconds")
}
