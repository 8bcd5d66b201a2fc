//! The management server: answers the NFD management protocol on the router's internal face and owns the RIB.
//!
//! [`Management`] lives on the control thread (a tokio current-thread runtime with a `LocalSet`). It is given the
//! link-layer packets that the forwarding engine sends to the internal face and hands its answers to a function. Commands
//! that need nobody else (routes, next hops, strategies) are carried out before [`Management::receive`] returns; those
//! that wait for another thread run as local tasks, so that a slow connection attempt delays nobody.

mod capture;
mod control_plane;
mod cs;
mod dataset;
mod dispatcher;
mod face_events;
mod faces;
mod fib;
mod fib_update;
mod inside;
mod latency;
mod learned_routes;
mod loaded_prefixes;
mod loaded_strategies;
mod ndt;
mod power;
mod readvertise;
mod reply;
mod rib;
mod status;
mod strategy_choice;
mod streams;
mod trace;
mod verbs;

#[cfg(test)]
pub(crate) mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use namehop_face::socket::FaceEvent;
use namehop_wire::security::unix_time_ms;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

pub use control_plane::{
    ControlPlane, DispatchEntry, DispatchError, EngineStatus, HandoverCounters, NotSaved, QueueStatus, StateChange,
    WorkerStatus,
};
pub use inside::{Inside, PlaceInTable, RouterEnds};
pub use latency::{LatencyCounts, LatencyStatus};
pub use learned_routes::AnnouncementError;
pub use power::{PowerPart, PowerStatus};
pub use rib::RouteError;

use crate::authentication::Authenticator;
use crate::metrics::GoneFaces;
use capture::Captures;
use dataset::DatasetStore;
use face_events::FaceEvents;
use fib::DirectNextHops;
use loaded_prefixes::LoadedPrefixes;
use readvertise::Readvertise;
use rib::Routes;
use streams::Streams;
use trace::Traces;

/// The management server. See the [module documentation](self).
pub struct Management<C> {
    control: C,
    authenticator: RefCell<Authenticator>,
    routes: RefCell<Routes>,
    readvertise: RefCell<Readvertise>,
    direct_next_hops: RefCell<DirectNextHops>,
    loaded_prefixes: RefCell<LoadedPrefixes>,
    streams: RefCell<Streams>,
    traces: RefCell<Traces>,
    captures: RefCell<Captures>,
    datasets: RefCell<DatasetStore>,
    events: RefCell<FaceEvents>,
    gone: RefCell<GoneFaces>,
    output: Box<dyn Fn(Vec<u8>)>,
    started: Instant,
    start_unix_ms: Cell<u64>,
    /// Something may be due earlier than what [`run`](Self::run) waits for.
    due_earlier: Notify,
}

impl<C: ControlPlane> Management<C> {
    /// A server without routes. `output` takes the frames for the internal face.
    pub fn new(control: C, authenticator: Authenticator, output: impl Fn(Vec<u8>) + 'static) -> Rc<Self> {
        let routes = Routes::with_limits(authenticator.remote_route_limits());
        Rc::new(Management {
            control,
            authenticator: RefCell::new(authenticator),
            routes: RefCell::new(routes),
            readvertise: RefCell::default(),
            direct_next_hops: RefCell::default(),
            loaded_prefixes: RefCell::default(),
            streams: RefCell::default(),
            traces: RefCell::default(),
            captures: RefCell::default(),
            datasets: RefCell::default(),
            events: RefCell::default(),
            gone: RefCell::default(),
            output: Box::new(output),
            started: Instant::now(),
            start_unix_ms: Cell::new(unix_time_ms()),
            due_earlier: Notify::new(),
        })
    }

    /// The router.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Milliseconds since the server was made: the clock of route expiry.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sums over on-demand faces that are gone.
    pub fn gone_faces(&self) -> GoneFaces {
        self.gone.borrow().clone()
    }

    /// Number of routes and of names that have some.
    pub fn rib_sizes(&self) -> (usize, usize) {
        let routes = self.routes.borrow();
        (routes.rib.route_count(), routes.rib.entry_count())
    }

    /// Lets routes expire, announces routes, forgets what is out of date, and removes faces that are gone from loaded
    /// prefixes, for ever. To be spawned on the control thread's `LocalSet`.
    pub async fn run(self: Rc<Self>) {
        loop {
            self.send_readvertise_commands();
            let due_ms = [
                self.readvertise.borrow().next_due_ms(),
                self.routes.borrow_mut().rib.next_expiry_ms(),
                self.datasets.borrow().next_expiry_ms(),
                self.streams.borrow().next_expiry_ms(),
                self.traces.borrow().next_expiry_ms(),
                self.captures.borrow().next_expiry_ms(),
            ];
            if self.remove_loaded_portion() | self.search_left_out_portion() {
                // Long work: everything else goes on between its portions.
                yield_now().await;
            } else if let Some(due_ms) = due_ms.into_iter().flatten().min() {
                let due = self.started + Duration::from_millis(due_ms);
                tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.due_earlier.notified() => {}
                }
            } else {
                self.due_earlier.notified().await;
            }
            let now_ms = self.now_ms();
            self.expire_routes(now_ms);
            self.datasets.borrow_mut().expire(now_ms);
            self.streams.borrow_mut().expire(now_ms);
            self.expire_trace(now_ms);
            self.expire_capture(now_ms);
        }
    }

    /// Must be called for every event of a face: publishes it, removes the routes and next hops of a face that is
    /// gone, and announces routes again to a destination whose link is back.
    pub fn face_event(&self, event: &FaceEvent) {
        match event {
            FaceEvent::Destroyed(face) => {
                self.forget_face(face.id());
                self.gone.borrow_mut().add(face);
            }
            FaceEvent::Up(face) => self.readvertise_on(face.id()),
            FaceEvent::Created(_) | FaceEvent::Down(_) | FaceEvent::Changed(_) => {}
        }
        self.publish_face_event(event);
    }
}
