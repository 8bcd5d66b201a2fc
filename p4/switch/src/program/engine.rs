//! The engine of one worker: the program's per-worker memory, and the results that C code returns.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use namehop_packet::raw::Header;
use namehop_packet::{BufferPool, PacketBuffer};

use crate::batches::BatchReport;
use crate::digests::Digests;
use crate::ffi::{self, DROPPED, HEADROOM_BYTES, Host, SLACK_BYTES};

/// Results that the program returns through callbacks, besides frames changed in place.
struct Outcome {
    pool: BufferPool,
    digests: Arc<Digests>,
    sent: Vec<(u32, PacketBuffer)>,
    lost: u64,
    no_buffer: u64,
}

unsafe extern "C" fn sent(owner: *mut c_void, _number: u64, port: u64, bytes: *const u8, length: usize) {
    // SAFETY: `owner` is the pointer that `engine` passed, used only by the thread that is inside `process`; `bytes`
    // has this length.
    let (outcome, bytes) = unsafe { (&mut *owner.cast::<Outcome>(), slice::from_raw_parts(bytes, length)) };
    match outcome.pool.copy_of(bytes) {
        Some(buffer) => outcome.sent.push((port as u32, buffer)),
        None => outcome.no_buffer += 1,
    }
}

unsafe extern "C" fn lost(owner: *mut c_void, _number: u64) {
    // SAFETY: as above.
    unsafe { (*owner.cast::<Outcome>()).lost += 1 };
}

unsafe extern "C" fn digest(owner: *mut c_void, number: u64, bytes: *const u8, length: usize) {
    // The pointer may be invalid for a digest without fields.
    // SAFETY: as above.
    let bytes = if length == 0 { &[] } else { unsafe { slice::from_raw_parts(bytes, length) } };
    // SAFETY: as above.
    unsafe { (*owner.cast::<Outcome>()).digests.put(number as u32, bytes) };
}

/// Packets that were dropped, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fates {
    /// Dropped by the program. Unknown for programs that copy packets.
    pub dropped: u64,
    /// Processing took too many steps or rounds.
    pub lost: u64,
    /// There was no memory for a copy.
    pub no_buffer: u64,
    /// There was no room for the packet with its headers.
    pub oversized: u64,
}

/// The program has an engine for each of its workers already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many workers")]
pub struct TooManyEngines;

/// Processes packets, for one worker.
pub struct Engine {
    host: &'static Host,
    worker: *mut ffi::Worker,
    outcome: *mut Outcome,
    frames: Vec<NonNull<Header>>,
}

// SAFETY: the memory belongs to the holder of the engine, one thread at a time; thread-local state of the C code is
// used only within one call.
unsafe impl Send for Engine {}

impl Engine {
    pub(super) fn new(
        host: &'static Host,
        batch: u32,
        pool: &BufferPool,
        digests: Arc<Digests>,
    ) -> Result<Engine, TooManyEngines> {
        let outcome = Outcome { pool: pool.clone(), digests, sent: Vec::with_capacity(256), lost: 0, no_buffer: 0 };
        let outcome = Box::into_raw(Box::new(outcome));
        // SAFETY: the callbacks below get this pointer, which lives as long as the worker.
        let worker = unsafe { (host.worker_new)(batch, sent, lost, digest, outcome.cast()) };
        let engine = Engine { host, worker, outcome, frames: Vec::new() };
        if worker.is_null() { Err(TooManyEngines) } else { Ok(engine) }
    }

    /// Processes packets, each with its ingress port. Packets that leave are added to `leaving` in order, each with its
    /// egress port.
    pub fn process(&mut self, packets: &mut Vec<(u32, PacketBuffer)>, leaving: &mut Vec<(u32, PacketBuffer)>) -> Fates {
        // SAFETY: it has no other user outside of calls of C code.
        let outcome = unsafe { &mut *self.outcome };
        let (mut fates, pool) = (Fates::default(), outcome.pool.clone());
        packets.retain_mut(|(port, packet)| {
            let fits = with_room(packet, &pool);
            fates.oversized += u64::from(!fits);
            packet.set_port(*port as u16);
            fits
        });
        self.frames.clear();
        self.frames.extend(packets.iter().map(|(_, packet)| packet.as_raw()));
        // SAFETY: the frames are those of `packets`, with room before and behind them, and have no other user during
        // the call; this engine owns the worker; `outcome` is not used until the call has returned.
        unsafe { (self.host.process)(self.worker, self.frames.as_ptr(), self.frames.len()) };
        // SAFETY: as above.
        let outcome = unsafe { &mut *self.outcome };
        fates.lost = std::mem::take(&mut outcome.lost);
        fates.no_buffer = std::mem::take(&mut outcome.no_buffer);
        leaving.append(&mut outcome.sent);
        if !self.host.straight {
            packets.clear();
            return fates;
        }
        for (_, packet) in packets.drain(..) {
            match packet.port() {
                DROPPED => fates.dropped += 1,
                port => leaving.push((u32::from(port), packet)),
            }
        }
        fates
    }

    /// How the batch size was chosen; `None` if it was given.
    pub(crate) fn tuned(&self) -> Option<BatchReport> {
        let mut tuned = ffi::Tuned::default();
        // SAFETY: this engine owns the worker, and no packets are being processed.
        if !unsafe { (self.host.tuned)(self.worker, &raw mut tuned) } {
            return None;
        }
        // SAFETY: the pointer leads to `size_count` numbers in the library.
        let sizes = unsafe { slice::from_raw_parts(self.host.sizes, self.host.size_count.min(ffi::SIZES)) };
        let points: Vec<(u32, f64)> = sizes
            .iter()
            .zip(tuned.cycles)
            .map(|(&size, cycles)| (size, f64::from(cycles)))
            .filter(|(_, cycles)| *cycles > 0.0)
            .collect();
        Some(BatchReport::new(tuned.batch, tuned.choices, &points))
    }

    /// Sets the target of a mirroring session: a port, or the members of a multicast group. Copies are truncated to
    /// `longest_bytes`; 0 means no limit.
    pub fn mirror(&mut self, session: u64, group: bool, target: u64, longest_bytes: u32) {
        // SAFETY: this engine owns the worker.
        unsafe { (self.host.mirror)(self.worker, session, group, target, longest_bytes) }
    }

    /// Removes a mirroring session.
    pub fn unmirror(&mut self, session: u64) {
        // SAFETY: as above.
        unsafe { (self.host.unmirror)(self.worker, session) }
    }

    /// Sets the members of a multicast group, as replication number and port.
    pub fn group(&mut self, group: u64, members: &[(u64, u64)]) {
        // SAFETY: as above.
        unsafe { (self.host.group)(self.worker, group) };
        for (replica, port) in members {
            // SAFETY: as above.
            unsafe { (self.host.member)(self.worker, group, *replica, *port) };
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.worker.is_null() {
            // SAFETY: this is the last use of the worker.
            unsafe { (self.host.worker_free)(self.worker) };
        }
        // SAFETY: the pointer was made from a box, and C code no longer uses it.
        drop(unsafe { Box::from_raw(self.outcome) });
    }
}

/// Ensures room before and behind a packet, if necessary by copying it. Returns false if that is impossible.
fn with_room(packet: &mut PacketBuffer, pool: &BufferPool) -> bool {
    if packet.has_room(HEADROOM_BYTES, SLACK_BYTES) {
        return true;
    }
    let length = packet.bytes().len();
    let Some(mut copy) = pool.allocate(length + SLACK_BYTES) else { return false };
    let done = copy.append(length).map(|to| to.copy_from_slice(packet.bytes())).is_some()
        && copy.has_room(HEADROOM_BYTES, SLACK_BYTES);
    *packet = copy;
    done
}
