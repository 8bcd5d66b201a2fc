//! The loop of the control thread: management commands of applications and of neighbours, and events of the engines.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::time::sleep_until;
use tracing::{debug, info, warn};

use namehop_engine::engine::EngineEvent;
use namehop_face::LinkDrop;
use namehop_manage::server::{ControlPlane, Management};
use namehop_packet::FaceId;

use crate::control::Control;
use crate::neighbours::NeighbourQueue;
use crate::supervise::Supervisor;
use namehop_worker::WorkerRings;

/// Most frames that the control thread dequeues from its ring at once.
const CONTROL_BURST: usize = 256;
/// Most commands of neighbours, and events of engines, that the control thread handles before it serves local
/// applications again. Each may need a signature verification, which takes some tenths of a millisecond.
const MAX_OTHERS_AT_ONCE: usize = 8;

/// Serves management commands and events of the engines until the router ends.
pub(super) async fn serve(management: &Rc<Management<Control>>, rings: &WorkerRings, supervisor: &Supervisor) {
    let mut frames = Vec::with_capacity(CONTROL_BURST);
    let (from_worker, from_neighbours) = (&rings.to_control, &rings.to_control_from_neighbours);
    let mut neighbours = NeighbourQueue::new(Instant::now());
    let waker = Arc::clone(from_worker.waker());
    let has_work =
        || !from_worker.is_empty() || !from_neighbours.is_empty() || management.control().workers().has_events();
    let ended = supervisor.ended();
    tokio::pin!(ended);
    loop {
        let next_command_at = neighbours.next_command_at(Instant::now());
        tokio::select! {
            biased;
            _ = &mut ended => break,
            () = waker.wait(has_work) => {}
            () = sleep_until(next_command_at.unwrap_or_else(Instant::now).into()), if next_command_at.is_some() => {}
        }
        from_worker.pop_burst(&mut frames, CONTROL_BURST);
        for frame in frames.drain(..) {
            management.receive(frame.buffer.bytes());
        }
        from_neighbours.pop_burst(&mut frames, from_neighbours.capacity());
        for frame in frames.drain(..) {
            if let Some((face, _)) = neighbours.push(frame.face, frame.buffer) {
                count_refused(management.control(), face);
            }
        }
        let now = Instant::now();
        for buffer in std::iter::from_fn(|| neighbours.pop(now)).take(MAX_OTHERS_AT_ONCE) {
            management.receive(buffer.bytes());
        }
        let next_event = || management.control().workers().next_event();
        for (worker, event) in std::iter::from_fn(next_event).take(MAX_OTHERS_AT_ONCE) {
            engine_event(management, worker, event);
        }
        // Commands that wait for other threads continue in their own tasks.
        tokio::task::yield_now().await;
    }
}

/// Counts a command of a neighbour that was dropped because the queue is full.
fn count_refused(control: &Control, face: FaceId) {
    match control.faces().get(face) {
        Some(face) => face.counters.count_transport_drop(LinkDrop::TooManyCommands),
        None => control.faces().link_drops().add(LinkDrop::TooManyCommands, 1),
    }
}

fn engine_event(management: &Rc<Management<Control>>, worker: usize, event: EngineEvent) {
    match event {
        EngineEvent::RouteLearned { face, announcement } => match management.learn_route(&announcement, face) {
            Ok(prefix) => info!(%prefix, %face, "route learned from a prefix announcement"),
            Err(error) => debug!(%face, %error, "prefix announcement rejected"),
        },
        EngineEvent::RouteForgotten { prefix, face } => {
            management.forget_learned_route(prefix.as_ref(), face);
        }
        EngineEvent::LimitReached { reason, face } => {
            let setting = reason.setting().unwrap_or_default();
            warn!(%face, %reason, "packets are dropped at a limit; to avoid this, raise {setting} in [forwarding]");
        }
        EngineEvent::Traced(trace) => management.traced(worker, &trace),
        EngineEvent::AnnouncementWanted { request, name } => {
            let announcement = management.find_announcement(name.as_ref());
            management.control().workers().announcement_reply(worker, request, announcement);
        }
    }
}
