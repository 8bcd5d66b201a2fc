//! Bounded lock-free rings that carry frames between the input/output threads and the workers.
//!
//! Any thread may push; one thread pops and owns the [`Waker`] of the ring. Pushing does not wake the consumer, so that
//! a burst costs one wake-up: push all of it, then call [`FrameRing::wake`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use namehop_packet::{FaceId, PacketBuffer, Stamp};

use crate::wake::Waker;

/// One link-layer packet: a complete LpPacket, Interest or Data element.
#[derive(Debug)]
pub struct Frame {
    /// Face on which it was received or is to be sent.
    pub face: FaceId,
    /// Identifies the sender: 0 on point-to-point links, a hash of the remote address on multi-access links.
    pub endpoint: u64,
    /// The bytes.
    pub buffer: PacketBuffer,
    /// Time of reception, if latency is measured. For a frame to send: the stamp of the packet that it forwards or
    /// answers.
    pub stamp: Stamp,
}

impl Frame {
    /// Creates a frame without a stamp.
    #[inline]
    pub fn new(face: FaceId, endpoint: u64, buffer: PacketBuffer) -> Frame {
        Frame { face, endpoint, buffer, stamp: Stamp::NONE }
    }
}

/// A bounded ring of frames with one consumer.
pub struct FrameRing {
    queue: ArrayQueue<Frame>,
    waker: Arc<Waker>,
    refused: AtomicU64,
}

impl FrameRing {
    /// Creates a ring for `capacity` frames (at least 1) with a consumer that sleeps on `waker`. Several rings may
    /// share a waker.
    pub fn new(capacity: usize, waker: Arc<Waker>) -> Self {
        FrameRing { queue: ArrayQueue::new(capacity.max(1)), waker, refused: AtomicU64::new(0) }
    }

    /// Pushes a frame without waking the consumer.
    ///
    /// # Errors
    /// Returns the frame if the ring is full; the refusal is counted.
    pub fn push(&self, frame: Frame) -> Result<(), Frame> {
        self.queue.push(frame).inspect_err(|_| {
            self.refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Wakes the consumer if it sleeps; cheap if it does not.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Returns the consumer's waker.
    pub fn waker(&self) -> &Arc<Waker> {
        &self.waker
    }

    /// Moves up to `limit` frames to the end of `out`, oldest first. Returns their number. Consumer only.
    pub fn pop_burst(&self, out: &mut Vec<Frame>, limit: usize) -> usize {
        let mut popped = 0;
        while popped < limit {
            let Some(frame) = self.queue.pop() else { break };
            out.push(frame);
            popped += 1;
        }
        popped
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of frames in the ring.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the maximum number of frames.
    pub fn capacity(&self) -> usize {
        self.queue.capacity()
    }

    /// Returns the number of frames refused because the ring was full.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Decides which worker gets a frame; see [`FrameInlet::divided`].
pub type ChooseWorker = Arc<dyn Fn(FaceId, &[u8]) -> usize + Send + Sync>;

/// The rings from an input thread to all workers; each frame goes into one of them.
#[derive(Clone)]
pub struct FrameInlet {
    rings: Arc<[Arc<FrameRing>]>,
    /// `None` if there is only one worker.
    choose: Option<ChooseWorker>,
}

impl FrameInlet {
    /// Creates the inlet of a single worker.
    pub fn new(ring: Arc<FrameRing>) -> Self {
        FrameInlet { rings: Arc::new([ring]), choose: None }
    }

    /// Creates the inlet of several workers, with their rings in the order of worker numbers. `choose` gets a frame and
    /// the face that received it, and returns the worker that probably owns it, modulo the number of workers. A worker
    /// that gets a packet of another worker transfers it.
    pub fn divided(rings: Vec<Arc<FrameRing>>, choose: ChooseWorker) -> Self {
        FrameInlet { rings: rings.into(), choose: Some(choose) }
    }

    /// Pushes a frame without waking any worker.
    ///
    /// # Errors
    /// Returns the frame if its worker's ring is full; the refusal is counted.
    #[inline]
    pub fn push(&self, frame: Frame) -> Result<(), Frame> {
        self.ring_for(frame.face, frame.buffer.bytes()).push(frame)
    }

    /// Returns the number of frames in the ring that a frame with these bytes would go into.
    pub fn waiting_before(&self, face: FaceId, bytes: &[u8]) -> usize {
        self.ring_for(face, bytes).len()
    }

    #[inline]
    fn ring_for(&self, face: FaceId, bytes: &[u8]) -> &FrameRing {
        let worker = self.choose.as_ref().map_or(0, |choose| choose(face, bytes));
        &self.rings[worker % self.rings.len()]
    }

    /// Wakes the sleeping workers that have frames.
    pub fn wake(&self) {
        match &*self.rings {
            [only] => only.wake(),
            several => several.iter().filter(|ring| !ring.is_empty()).for_each(|ring| ring.wake()),
        }
    }
}

/// The rings from the sockets to all workers. Streams and datagrams have separate rings. The sender of a stream waits
/// while its ring is full, and keeps it full if it sends as fast as it can; a datagram that does not fit is lost.
#[derive(Clone)]
pub struct SocketInlets {
    /// Rings for frames from streams.
    pub streams: FrameInlet,
    /// Rings for datagrams.
    pub datagrams: FrameInlet,
}

impl From<Arc<FrameRing>> for FrameInlet {
    fn from(ring: Arc<FrameRing>) -> Self {
        FrameInlet::new(ring)
    }
}

impl fmt::Debug for FrameRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameRing")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("refused", &self.refused())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use namehop_packet::BufferPool;

    use super::*;

    /// Returns a frame with `number` as endpoint, which identifies it.
    fn frame(pool: &BufferPool, number: u64) -> Frame {
        Frame::new(FaceId(256), number, pool.allocate(0).expect("buffer"))
    }

    #[test]
    fn stamps_take_room_that_frames_have_anyway() {
        assert_eq!(size_of::<Frame>(), 24);
    }

    #[test]
    fn a_full_ring_gives_the_frame_back_and_counts() {
        let (ring, pool) = (FrameRing::new(2, Arc::new(Waker::new())), BufferPool::new(3, 1));
        assert!(ring.push(frame(&pool, 1)).is_ok());
        assert!(ring.push(frame(&pool, 2)).is_ok());
        assert_eq!(ring.push(frame(&pool, 3)).expect_err("full").endpoint, 3);
        let mut out = Vec::new();
        assert_eq!(ring.pop_burst(&mut out, 1), 1);
        assert_eq!(ring.pop_burst(&mut out, 10), 1);
        assert_eq!(ring.pop_burst(&mut out, 10), 0);
        assert_eq!(out.iter().map(|f| f.endpoint).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((ring.refused(), ring.len()), (1, 0));
    }

    #[test]
    fn an_inlet_gives_each_frame_to_its_worker_and_wakes_those_that_got_some() {
        let pool = BufferPool::new(8, 1);
        let rings: Vec<_> = (0..3).map(|_| Arc::new(FrameRing::new(2, Arc::new(Waker::new())))).collect();
        let inlet = FrameInlet::divided(rings.clone(), Arc::new(|face, bytes| face.0 as usize + bytes.len()));
        // Worker 256 modulo 3 is 1.
        assert!(inlet.push(frame(&pool, 1)).is_ok() && inlet.push(frame(&pool, 2)).is_ok());
        assert_eq!(inlet.push(frame(&pool, 3)).expect_err("full").endpoint, 3);
        assert_eq!(rings.iter().map(|ring| ring.len()).collect::<Vec<_>>(), [0, 2, 0]);
        inlet.wake();
        assert_eq!((inlet.waiting_before(FaceId(256), &[]), inlet.waiting_before(FaceId(257), &[])), (2, 0));
        let only = FrameInlet::from(Arc::clone(&rings[1]));
        assert!(only.waiting_before(FaceId(257), &[]) == 2 && only.push(frame(&pool, 4)).is_err());
        assert_eq!(rings[1].refused(), 2);
    }

    #[test]
    fn frames_arrive_in_order_through_a_small_ring_with_a_sleeping_consumer() {
        const COUNT: u64 = 50_000;
        let ring = Arc::new(FrameRing::new(16, Arc::new(Waker::new())));
        let producer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let pool = BufferPool::new(32, 1);
                for number in 0..COUNT {
                    let mut pending = frame(&pool, number);
                    while let Err(back) = ring.push(pending) {
                        ring.wake();
                        thread::yield_now();
                        pending = back;
                    }
                    if number % 3 == 0 {
                        ring.wake();
                    }
                }
                ring.wake();
            })
        };
        let mut expected = 0;
        let mut burst = Vec::new();
        while expected < COUNT {
            let ready = ring.waker().park(Some(Duration::from_secs(60)), || !ring.is_empty());
            assert!(ready, "a wake-up was lost after {expected} frames");
            ring.pop_burst(&mut burst, 8);
            for frame in burst.drain(..) {
                assert_eq!(frame.endpoint, expected);
                expected += 1;
            }
        }
        producer.join().expect("producer");
    }
}
