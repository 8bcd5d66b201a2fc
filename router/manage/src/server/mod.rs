//! The management server: answers the NFD management protocol on the router's internal face and owns the RIB.
//!
//! [`Management`] lives on the control thread (a tokio current-thread runtime with a `LocalSet`). It receives the
//! link-layer packets that the forwarding engine sends to the internal face, and passes its answers to a function.
//! [`Management::receive`] carries out commands that need no other thread (routes, next hops, strategies) before it
//! returns. Commands that wait for another thread run as local tasks, so a slow connection attempt delays no other
//! command.

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

pub use control_plane::{ControlPlane, DispatchError, NotSaved, PortForbidden, StateChange};
pub use inside::{Inside, RouterEnds, TableCursor};
pub use learned_routes::AnnouncementError;
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
    /// Wakes [`run`](Self::run): a deadline may be earlier than the one it sleeps until.
    due_earlier: Notify,
}

impl<C: ControlPlane> Management<C> {
    /// Creates a server without routes. `output` receives the frames for the internal face.
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

    /// Returns the router that this server manages.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Returns the milliseconds since the server was created: the clock of route expiry.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the summed counters of destroyed on-demand faces.
    pub fn gone_faces(&self) -> GoneFaces {
        self.gone.borrow().clone()
    }

    /// Returns the number of routes, and the number of names that have routes.
    pub fn rib_sizes(&self) -> (usize, usize) {
        let routes = self.routes.borrow();
        (routes.rib.route_count(), routes.rib.entry_count())
    }

    /// Runs the server's background work, without end: expires routes, datasets, traces and captures, sends readvertise
    /// commands, and removes destroyed faces from loaded prefixes. The caller spawns it on the control thread's
    /// `LocalSet`.
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
                // Long work runs in portions; other tasks run in between.
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

    /// Handles a face event; must be called for each. Publishes it, removes the routes and next hops of a destroyed
    /// face, and announces routes again to a destination whose link is up again.
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
