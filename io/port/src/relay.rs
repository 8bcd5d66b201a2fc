//! Ports on lines that take a system call per frame or may block: a separate thread makes the calls. The worker's end
//! is two bounded rings; the worker makes a system call only to wake the thread and before it sleeps.

use std::fmt;
use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use namehop_packet::{BufferPool, PacketBuffer, PortQueue};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::BURST;
use crate::error::DpdkError;
use crate::losses::{LossCounters, Losses};
use crate::priority_tag::take_off_priority_tag;

/// Slots of each ring.
const SLOTS: usize = 1024;

/// The device that the thread serves.
pub(crate) trait Line: Send + 'static {
    /// Descriptor that is readable when a frame can be received, if there is one.
    fn bell(&self) -> Option<BorrowedFd<'_>>;

    /// Receives some frames without blocking, and returns when to try again.
    ///
    /// # Errors
    /// Fails if the line has ended for good.
    fn receive(&mut self, inlet: &mut Inlet<'_>) -> io::Result<Again>;

    /// Sends a frame, or buffers it until `flush`. Returns how many frames were dropped, including buffered ones.
    fn send(&mut self, frame: &[u8]) -> usize;

    /// Sends the buffered frames; called when there is no other frame to send. Returns how many were dropped.
    fn flush(&mut self) -> usize {
        0
    }
}

/// When a line may have another frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Now.
    AtOnce,
    /// When its bell is readable.
    AtBell,
    /// After a pause.
    After(Duration),
    /// After the port was started, or never.
    Never,
}

/// State that worker, thread and manager of a port share.
#[derive(Debug)]
struct Shared {
    incoming: ArrayQueue<PacketBuffer>,
    outgoing: ArrayQueue<PacketBuffer>,
    /// Readable when a sleeping worker has to poll.
    bell: EventFd,
    is_worker_asleep: AtomicBool,
    /// Readable when the thread has to poll.
    call: EventFd,
    is_thread_asleep: AtomicBool,
    is_started: AtomicBool,
    is_stopping: AtomicBool,
    has_ended: AtomicBool,
    /// The line will receive no more frames.
    is_exhausted: AtomicBool,
    /// Counted by the thread.
    losses: LossCounters,
    ring_full: AtomicU64,
}

impl Shared {
    /// True if the line has ended by itself; it then sends no more frames.
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    fn wake_thread(&self) {
        // The write fails only if the counter is full, and then it is readable anyway.
        let _ = self.call.write(1);
    }
}

/// Where a line delivers the frames that it receives.
pub(crate) struct Inlet<'a> {
    shared: &'a Shared,
    pool: &'a BufferPool,
}

impl Inlet<'_> {
    /// True if the port was started.
    pub(crate) fn is_started(&self) -> bool {
        self.shared.is_started.load(Ordering::Relaxed)
    }

    /// Number of frames that still fit into the ring.
    pub(crate) fn room(&self) -> usize {
        SLOTS - self.shared.incoming.len()
    }

    /// Pool for the buffers of received frames.
    pub(crate) fn pool(&self) -> &BufferPool {
        self.pool
    }

    /// Delivers a frame to the worker; a frame that does not fit into the ring is dropped and counted.
    pub(crate) fn push(&mut self, mut frame: PacketBuffer) {
        take_off_priority_tag(&mut frame);
        if self.shared.incoming.push(frame).is_err() {
            self.shared.ring_full.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a frame that was dropped because no buffer was free.
    pub(crate) fn lost_for_memory(&mut self) {
        self.shared.losses.no_buffer.add(1);
    }

    /// Counts data that cannot be a frame.
    pub(crate) fn lost_malformed(&mut self) {
        self.shared.losses.malformed.add(1);
    }
}

/// A port, for the thread that manages it. Closes on drop.
#[derive(Debug)]
pub struct RelayPort {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl RelayPort {
    /// Starts the thread of a line. `name` is the kind of port, for error messages.
    pub(crate) fn open(line: impl Line, name: &str, pool: &BufferPool) -> Result<(RelayPort, RelayQueue), DpdkError> {
        let refused = |error: io::Error| DpdkError::from_io(format!("start the thread of a {name} port"), &error);
        let event = || EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let shared = Arc::new(Shared {
            incoming: ArrayQueue::new(SLOTS),
            outgoing: ArrayQueue::new(SLOTS),
            bell: event().map_err(|error| refused(error.into()))?,
            is_worker_asleep: AtomicBool::new(false),
            call: event().map_err(|error| refused(error.into()))?,
            is_thread_asleep: AtomicBool::new(false),
            is_started: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_exhausted: AtomicBool::new(false),
            losses: LossCounters::default(),
            ring_full: AtomicU64::new(0),
        });
        let (theirs, pool) = (Arc::clone(&shared), pool.clone());
        let thread =
            Builder::new().name(name.to_owned()).spawn(move || serve(line, &theirs, &pool)).map_err(refused)?;
        Ok((RelayPort { shared: Arc::clone(&shared), thread: Some(thread) }, RelayQueue { shared }))
    }

    /// Starts the port: the line may deliver frames from now on.
    pub fn start(&self) {
        self.shared.is_started.store(true, Ordering::Relaxed);
        self.shared.wake_thread();
    }

    /// True if the line has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// True if the line will receive no more frames and both rings are empty.
    pub fn is_done(&self) -> bool {
        let Shared { incoming, outgoing, is_exhausted, .. } = &*self.shared;
        is_exhausted.load(Ordering::Acquire) && incoming.is_empty() && outgoing.is_empty()
    }

    /// Frames dropped since the port was opened.
    pub fn losses(&self) -> Losses {
        Losses { receive_ring_full: self.shared.ring_full.load(Ordering::Relaxed), ..self.shared.losses.read() }
    }
}

impl Drop for RelayPort {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.wake_thread();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of a port panicked");
        }
    }
}

fn serve(mut line: impl Line, shared: &Shared, pool: &BufferPool) {
    if let Err(error) = carry(&mut line, shared, pool) {
        tracing::info!(%error, "a port has stopped after an error");
    }
    shared.has_ended.store(true, Ordering::SeqCst);
    // A worker that adds frames after this sees the flag and takes them back.
    shared.losses.send_failed.add(iter::from_fn(|| shared.outgoing.pop()).count());
}

/// Moves frames in both directions until the port closes or the line ends.
fn carry(line: &mut impl Line, shared: &Shared, pool: &BufferPool) -> io::Result<()> {
    let mut inlet = Inlet { shared, pool };
    loop {
        // A port that closes first sends the frames that wait.
        let is_stopping = shared.is_stopping.load(Ordering::SeqCst);
        let most = if is_stopping { SLOTS } else { BURST };
        let (mut sent, mut lost) = (0, 0);
        while sent < most
            && let Some(frame) = shared.outgoing.pop()
        {
            sent += 1;
            lost += line.send(frame.bytes());
        }
        if sent > 0 && (is_stopping || shared.outgoing.is_empty()) {
            lost += line.flush();
        }
        if lost > 0 {
            shared.losses.send_failed.add(lost);
        }
        if is_stopping {
            return Ok(());
        }
        let again = line.receive(&mut inlet)?;
        if !shared.incoming.is_empty() && shared.is_worker_asleep.swap(false, Ordering::SeqCst) {
            let _ = shared.bell.write(1);
        }
        if again == Again::Never && shared.is_started.load(Ordering::Relaxed) {
            shared.is_exhausted.store(true, Ordering::Release);
        }
        if again == Again::AtOnce || sent == BURST {
            continue;
        }
        shared.is_thread_asleep.store(true, Ordering::SeqCst);
        if shared.outgoing.is_empty() {
            sleep(line, shared, again)?;
        }
        shared.is_thread_asleep.store(false, Ordering::SeqCst);
    }
}

fn sleep(line: &impl Line, shared: &Shared, again: Again) -> io::Result<()> {
    let timeout = match again {
        Again::After(pause) => PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX),
        _ => PollTimeout::NONE,
    };
    let call = PollFd::new(shared.call.as_fd(), PollFlags::POLLIN);
    let bell = line.bell().filter(|_| again == Again::AtBell).map(|bell| PollFd::new(bell, PollFlags::POLLIN));
    let mut both: Vec<PollFd<'_>> = [Some(call), bell].into_iter().flatten().collect();
    match poll(&mut both, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    // An empty counter is not an error.
    let _ = shared.call.read();
    Ok(())
}

/// The queues of a port, for the worker.
pub struct RelayQueue {
    shared: Arc<Shared>,
}

impl fmt::Debug for RelayQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayQueue").field("received", &self.shared.incoming.len()).finish_non_exhaustive()
    }
}

impl PortQueue for RelayQueue {
    fn receive(&mut self, frames: &mut Vec<PacketBuffer>) {
        for _ in 0..BURST {
            let Some(frame) = self.shared.incoming.pop() else { break };
            frames.push(frame);
        }
    }

    /// Once the line has ended, frames stay in `frames`; they count as dropped when the port is taken out of use.
    fn transmit(&mut self, frames: &mut Vec<PacketBuffer>) {
        if self.shared.has_ended() {
            return;
        }
        let room = SLOTS - self.shared.outgoing.len();
        for frame in frames.drain(..room.min(frames.len())) {
            // There is room: this is the only producer.
            let _ = self.shared.outgoing.push(frame);
        }
        if self.shared.has_ended() {
            frames.extend(iter::from_fn(|| self.shared.outgoing.pop()));
            return;
        }
        if self.shared.is_thread_asleep.swap(false, Ordering::SeqCst) {
            self.shared.wake_thread();
        }
    }

    fn bell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.bell.as_fd())
    }

    fn prepare_to_sleep(&mut self) {
        // Mark all signals so far as seen.
        let _ = self.shared.bell.read();
        self.shared.is_worker_asleep.store(true, Ordering::SeqCst);
        if !self.shared.incoming.is_empty() {
            let _ = self.shared.bell.write(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::yield_now;

    use super::*;

    /// A line that ends after the first burst that it has sent.
    struct Fragile(Arc<AtomicU64>);

    impl Line for Fragile {
        fn bell(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn receive(&mut self, _: &mut Inlet<'_>) -> io::Result<Again> {
            match self.0.load(Ordering::SeqCst) {
                0 => Ok(Again::Never),
                _ => Err(io::Error::other("the interface was removed")),
            }
        }

        fn send(&mut self, _: &[u8]) -> usize {
            self.0.fetch_add(1, Ordering::SeqCst);
            0
        }
    }

    #[test]
    fn each_frame_for_a_line_that_ends_was_sent_or_counts_as_lost_or_stays() {
        let pool = BufferPool::new(1024, 1);
        let sent = Arc::new(AtomicU64::new(0));
        let (port, mut queue) = RelayPort::open(Fragile(Arc::clone(&sent)), "fragile", &pool).expect("opened");
        let mut frames: Vec<_> = (0..500).map(|_| pool.copy_of(&[1; 60]).expect("a buffer")).collect();
        queue.transmit(&mut frames);
        while !port.has_ended() || !queue.shared.outgoing.is_empty() {
            yield_now();
        }
        queue.transmit(&mut frames);
        let (sent, left) = (sent.load(Ordering::SeqCst), frames.len() as u64);
        // The thread updates its counter last.
        while sent + left + port.losses().send_failed < 500 {
            yield_now();
        }
        assert!((1..500).contains(&sent), "{sent} frames were sent before the end");
        assert_eq!(sent + left + port.losses().send_failed, 500);
    }
}
