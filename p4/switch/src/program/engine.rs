//! What one worker processes packets with: the program's memory for it, and what comes back from C.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use namehop_packet::raw::Header;
use namehop_packet::{BufferPool, PacketBuffer};

use crate::batches::BatchReport;
use crate::digests::Digests;
use crate::ffi::{self, DROPPED, HEADROOM_BYTES, Host, SLACK_BYTES};

/// What the program gives back beside frames in place.
struct Outcome {
    pool: BufferPool,
    digests: Arc<Digests>,
    sent: Vec<(u32, PacketBuffer)>,
    lost: u64,
    no_buffer: u64,
}

unsafe extern "C" fn sent(owner: *mut c_void, _number: u64, port: u64, bytes: *const u8, length: usize) {
    // SAFETY: it is what `engine` gave, and used by the thread alone that is in `process`; so many bytes are there.
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
    // There may be no memory behind a report without bits.
    // SAFETY: as above.
    let bytes = if length == 0 { &[] } else { unsafe { slice::from_raw_parts(bytes, length) } };
    // SAFETY: as above.
    unsafe { (*owner.cast::<Outcome>()).digests.put(number as u32, bytes) };
}

/// What became of packets, besides those that leave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fates {
    /// The program dropped them. Not known of programs that copy packets.
    pub dropped: u64,
    /// The program did not come to an end with them: too many steps or rounds.
    pub lost: u64,
    /// There was no memory for a copy.
    pub no_buffer: u64,
    /// There was no room for them with headers.
    pub oversized: u64,
}

/// What one worker processes packets with.
pub struct Engine {
    host: &'static Host,
    worker: *mut ffi::Worker,
    outcome: *mut Outcome,
    frames: Vec<NonNull<Header>>,
}

// SAFETY: the memory belongs to whoever has the engine, one thread at a time; what C keeps for each thread is only used within one
// call.
unsafe impl Send for Engine {}

impl Engine {
    pub(super) fn new(
        host: &'static Host,
        batch: u32,
        pool: &BufferPool,
        digests: Arc<Digests>,
    ) -> Result<Engine, String> {
        let outcome = Outcome { pool: pool.clone(), digests, sent: Vec::with_capacity(256), lost: 0, no_buffer: 0 };
        let outcome = Box::into_raw(Box::new(outcome));
        // SAFETY: the functions below get this pointer, which lives as long as the worker.
        let worker = unsafe { (host.worker_new)(batch, sent, lost, digest, outcome.cast()) };
        let engine = Engine { host, worker, outcome, frames: Vec::new() };
        if worker.is_null() { Err("there are too many workers".to_owned()) } else { Ok(engine) }
    }

    /// Takes packets, each with the port that it came from, through the program. Those that leave are added to `leaving` with the port
    /// that they leave by, in their order.
    pub fn process(&mut self, packets: &mut Vec<(u32, PacketBuffer)>, leaving: &mut Vec<(u32, PacketBuffer)>) -> Fates {
        // SAFETY: nobody else uses it outside of calls of C.
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
        // SAFETY: the packets are those of the list, with room before and behind them, and nobody looks at them meanwhile; the worker
        // is ours, and `outcome` is not used until the call has ended.
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

    /// How the batch was chosen, when it is chosen by measuring.
    pub(crate) fn tuned(&self) -> Option<BatchReport> {
        let mut tuned = ffi::Tuned::default();
        // SAFETY: the worker is ours, and nobody processes packets meanwhile.
        if !unsafe { (self.host.tuned)(self.worker, &raw mut tuned) } {
            return None;
        }
        // SAFETY: a list of so many numbers, in the library.
        let sizes = unsafe { slice::from_raw_parts(self.host.sizes, self.host.size_count.min(ffi::SIZES)) };
        let points: Vec<(u32, f64)> = sizes
            .iter()
            .zip(tuned.cycles)
            .map(|(&size, cycles)| (size, f64::from(cycles)))
            .filter(|(_, cycles)| *cycles > 0.0)
            .collect();
        Some(BatchReport::new(tuned.batch, tuned.choices, &points))
    }

    /// Copies of a mirroring session go to a port, or to the members of a multicast group, with so many bytes at most, 0 for any number.
    pub fn mirror(&mut self, session: u64, group: bool, target: u64, longest_bytes: u32) {
        // SAFETY: the worker is ours; so below.
        unsafe { (self.host.mirror)(self.worker, session, group, target, longest_bytes) }
    }

    /// A session has no copies any more.
    pub fn unmirror(&mut self, session: u64) {
        // SAFETY: as above.
        unsafe { (self.host.unmirror)(self.worker, session) }
    }

    /// A multicast group has these members, and no others: replication number and port.
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
            // SAFETY: nobody uses it any more.
            unsafe { (self.host.worker_free)(self.worker) };
        }
        // SAFETY: made from a box, and C has no use for it any more.
        drop(unsafe { Box::from_raw(self.outcome) });
    }
}

/// Sees to it that there is room before and behind a packet, in another buffer where that is needed.
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
