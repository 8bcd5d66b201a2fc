//! From the worker to the links: takes frames off the ring, queues them per face, and flushes each face once per round.

use std::rc::Rc;
use std::sync::Arc;

use tokio::task::{coop, yield_now};

use super::shared::{Link, ServiceState, SocketFace};
use super::{stream, udp};
use crate::counters::LinkDrop;
use crate::ring::Frame;

/// Frames dequeued from the ring at once.
const BURST: usize = 1024;
/// Bursts per round; then receiving tasks run. All frames of a round are flushed together.
const BURSTS: usize = 8;

/// Serves the ring from the worker as long as the service runs.
pub(super) async fn run(shared: Rc<ServiceState>) {
    let ring = Arc::clone(&shared.from_worker);
    let mut frames = Vec::with_capacity(BURST);
    let mut dirty = Vec::new();
    let mut stamps = Vec::new();
    loop {
        ring.waker().wait(|| !ring.is_empty()).await;
        for _ in 0..BURSTS {
            if ring.pop_burst(&mut frames, BURST) == 0 {
                break;
            }
            for frame in frames.drain(..) {
                if frame.stamp.is_some() {
                    stamps.push(frame.stamp);
                }
                queue(&shared, frame, &mut dirty);
            }
        }
        for entry in dirty.drain(..) {
            flush(&shared, &entry);
        }
        if !stamps.is_empty() {
            match shared.latency.borrow_mut().as_mut() {
                Some(latency) => latency.note_sent(&mut stamps),
                None => stamps.clear(),
            }
        }
        if ring.is_empty() {
            // A worker on another thread may refill the ring all the time; the budget makes this task yield.
            coop::consume_budget().await;
        } else {
            yield_now().await;
        }
    }
}

fn queue(shared: &Rc<ServiceState>, frame: Frame, dirty: &mut Vec<Rc<SocketFace>>) {
    let Some(entry) = shared.face(frame.face) else {
        // The face was closed while the frame was in the ring.
        return shared.table.link_drops().add(LinkDrop::LinkDown, 1);
    };
    let queued = match &entry.link {
        Link::Stream(link) => stream::queue(shared, &entry, link, &frame.buffer),
        Link::Datagram(link) => {
            shared.silence_looks.plan();
            link.queue(frame.buffer)
        }
        Link::WebSocket(link) => link.queue(&entry.face, &frame.buffer),
    };
    match queued {
        Ok(()) if !entry.dirty.replace(true) => dirty.push(entry),
        Ok(()) => {}
        Err(reason) => entry.face.counters.count_transport_drop(reason),
    }
}

fn flush(shared: &Rc<ServiceState>, entry: &Rc<SocketFace>) {
    entry.dirty.set(false);
    match &entry.link {
        Link::Stream(link) => stream::flush(shared, entry, link),
        Link::Datagram(link) => udp::flush(shared, &link.channel()),
        Link::WebSocket(link) => link.flush(),
    }
}
