//! The sink, measured for comparison with a router: a loop that moves frames from one port to the other and knows
//! nothing of NDN.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PacketBuffer};
use namehop_traffic::loadgen::OpenPort;
use namehop_worker::pin_to_processor;

use super::place::{Place, SIDES};
use super::port::End;
use super::{ForwarderStatus, LinksError};

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    busy_ns: AtomicU64,
}

/// A running sink. Its thread ends on drop.
pub(super) struct Sink {
    shared: Arc<Shared>,
    started: Instant,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    pub(super) fn start(place: &Place, pool: &BufferPool, processor: usize) -> Result<Sink, LinksError> {
        let mut ports = Vec::new();
        for side in SIDES {
            let header = place.header(side, End::Forwarder);
            ports.push((OpenPort::open(&place.port_address(side, End::Forwarder)?, pool)?, header));
        }
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("sink".to_owned()).spawn(move || {
            if let Err(error) = pin_to_processor(processor) {
                tracing::warn!(%error, processor, "cannot pin the sink to its CPU");
            }
            run(ports, &of_thread);
        })?;
        Ok(Sink { shared, started: Instant::now(), thread: Some(thread) })
    }

    pub(super) fn status(&self) -> ForwarderStatus {
        let busy = Duration::from_nanos(self.shared.busy_ns.load(Ordering::Relaxed));
        ForwarderStatus { busy, running: self.started.elapsed(), processor_time: None }
    }

    /// Checks that the sink is running.
    ///
    /// # Errors
    /// Fails if its thread has ended.
    pub(super) fn check(&self) -> Result<(), LinksError> {
        match &self.thread {
            Some(thread) if !thread.is_finished() => Ok(()),
            _ => Err(io::Error::other("the sink's thread ended").into()),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the sink's thread panicked");
        }
    }
}

fn run(mut ports: Vec<(OpenPort, Vec<u8>)>, shared: &Shared) {
    // Frames not yet transmitted, by port.
    let mut waiting: [Vec<PacketBuffer>; 2] = Default::default();
    let mut before = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let mut worked = false;
        for from in [0, 1] {
            let to = 1 - from;
            let already = waiting[to].len();
            ports[from].0.queue.receive(&mut waiting[to]);
            let (port, header) = &mut ports[to];
            for frame in &mut waiting[to][already..] {
                if let Some(place) = frame.bytes_mut().get_mut(..header.len()) {
                    place.copy_from_slice(header);
                }
            }
            let queued = waiting[to].len();
            port.queue.transmit(&mut waiting[to]);
            worked |= queued > already || waiting[to].len() < queued;
        }
        let now = Instant::now();
        if worked {
            shared.busy_ns.fetch_add((now - before).as_nanos() as u64, Ordering::Relaxed);
        }
        before = now;
    }
}
