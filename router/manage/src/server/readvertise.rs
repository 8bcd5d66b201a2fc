//! Announces routes to a routing daemon and a gateway: reports changes of routes to [`crate::readvertise`] and sends
//! the resulting commands.
//!
//! The FIB determines the faces through which a destination is reached. It is looked up again when a prefix of the
//! destination's command names gains or loses a next hop.

use namehop_client::nfd::ReadvertiseStatus;
use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_packet::{FaceId, FaceScope};
use namehop_wire::NameRef;
use namehop_wire::lp::LpPacket;

use super::{ControlPlane, Management};
use crate::readvertise::{Destination, read_token};
use crate::rib::MAX_DESTINATIONS;
use crate::rib::{Cursor, ReadvertisedCosts, RoutesView};

/// Names visited between two pauses while all routes are searched.
const PORTION: usize = 4096;

/// The destinations and the pending work for them.
#[derive(Default)]
pub(super) struct Readvertise {
    destinations: Vec<Destination>,
    /// The FIB may lead to other faces than at the last lookup.
    is_fib_changed: bool,
    /// A deadline may be earlier than at the last report.
    is_due_changed: bool,
    /// Position of the search through all routes for prefixes that were left out; `None` = no search.
    search: Option<Cursor>,
}

impl Readvertise {
    /// Returns the cost that each destination gives a name with these routes.
    pub(super) fn costs(&self, routes: RoutesView<'_>) -> ReadvertisedCosts {
        let mut costs = ReadvertisedCosts::default();
        for (cost, destination) in costs.iter_mut().zip(&self.destinations) {
            *cost = destination.cost_of(routes);
        }
        costs
    }

    /// Applies a change of the costs that [`costs`](Self::costs) returns.
    pub(super) fn costs_changed(
        &mut self,
        prefix: NameRef<'_>,
        before: ReadvertisedCosts,
        after: ReadvertisedCosts,
        now_ms: u64,
    ) {
        for (destination, (before, after)) in self.destinations.iter_mut().zip(before.into_iter().zip(after)) {
            if before != after {
                destination.routes_changed(prefix, before, after, now_ms);
                self.is_due_changed = true;
            }
        }
    }

    /// Records that the next hops of a prefix have changed.
    pub(super) fn next_hops_changed(&mut self, prefix: NameRef<'_>) {
        self.is_fib_changed |=
            self.destinations.iter().any(|destination| prefix.is_prefix_of(destination.prefix().as_ref()));
    }

    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.destinations.iter().filter_map(Destination::next_due_ms).min()
    }

    /// Returns true if [`Management::run`] has new work. Reports a change of deadlines once.
    fn take_changes(&mut self) -> bool {
        std::mem::take(&mut self.is_due_changed) || self.is_fib_changed
    }
}

/// Returns the faces to which commands for a destination are sent.
fn faces_of<C: ControlPlane>(control: &C, fib: &FibWriter<StrategyInstance>, destination: &Destination) -> Vec<FaceId> {
    let prefix = destination.prefix();
    for length in (destination.min_fib_components()..=prefix.len()).rev() {
        let next_hops = fib.nexthops(prefix.prefix(length));
        if next_hops.is_empty() {
            continue;
        }
        let usable = |face: &FaceId| {
            let scope = control.faces().get(*face).map(|face| face.scope());
            // The router's own management server is no destination.
            *face != FaceId::INTERNAL && scope.is_some_and(|scope| scope == FaceScope::Local || !destination.is_local())
        };
        return next_hops.iter().map(|next_hop| next_hop.face).filter(usable).collect();
    }
    Vec::new()
}

impl<C: ControlPlane> Management<C> {
    /// Announces routes to these destinations. Must be called before there are routes.
    ///
    /// # Panics
    /// With more than [`MAX_DESTINATIONS`] destinations.
    pub fn readvertise_to(&self, destinations: Vec<Destination>) {
        assert!(destinations.len() <= MAX_DESTINATIONS, "at most one destination of each kind");
        *self.readvertise.borrow_mut() = Readvertise { destinations, is_fib_changed: true, ..Default::default() };
        self.due_earlier.notify_one();
    }

    /// Returns the status of each destination.
    pub fn readvertise_status(&self) -> Vec<ReadvertiseStatus> {
        let now_ms = self.now_ms();
        self.readvertise.borrow().destinations.iter().map(|destination| destination.status(now_ms)).collect()
    }

    /// Wakes [`run`](Self::run) if there is something to announce. Must be called after changes of routes and of the
    /// FIB.
    pub(super) fn notify_readvertise(&self) {
        if self.readvertise.borrow_mut().take_changes() {
            self.due_earlier.notify_one();
        }
    }

    /// Handles a change of a prefix's next hops that does not come from routes.
    pub(super) fn next_hops_changed(&self, prefix: NameRef<'_>) {
        self.readvertise.borrow_mut().next_hops_changed(prefix);
        self.notify_readvertise();
    }

    /// Handles a change of the next hops of any prefixes that does not come from routes.
    pub(super) fn fib_changed(&self) {
        let readvertise = &mut *self.readvertise.borrow_mut();
        if !readvertise.destinations.is_empty() {
            readvertise.is_fib_changed = true;
            self.due_earlier.notify_one();
        }
    }

    /// Tells the destinations that the link of a face is up again.
    pub(super) fn readvertise_on(&self, face: FaceId) {
        let now_ms = self.now_ms();
        for destination in &mut self.readvertise.borrow_mut().destinations {
            destination.face_up(face, now_ms);
        }
        self.due_earlier.notify_one();
    }

    /// Sends the commands that are due.
    pub(super) fn send_readvertise_commands(&self) {
        let now_ms = self.now_ms();
        let readvertise = &mut *self.readvertise.borrow_mut();
        if std::mem::take(&mut readvertise.is_fib_changed) {
            for destination in &mut readvertise.destinations {
                let faces = self.control.with_fib(|fib| faces_of(&self.control, fib, destination));
                destination.reached_through(faces, now_ms);
            }
        }
        for (number, destination) in readvertise.destinations.iter_mut().enumerate() {
            while let Some(frame) = destination.next_frame(number as u8, now_ms) {
                (self.output)(frame);
            }
            if destination.take_room_for_more() {
                readvertise.search = Some(Cursor::default());
            }
        }
        readvertise.is_due_changed = false;
    }

    /// Continues the search for prefixes that were left out; returns false if no search is running.
    pub(super) fn search_left_out_portion(&self) -> bool {
        let readvertise = &mut *self.readvertise.borrow_mut();
        let Some(from) = readvertise.search.take() else { return false };
        let (now_ms, destinations) = (self.now_ms(), &mut readvertise.destinations);
        readvertise.search = self.routes.borrow().rib.visit_routes(from, PORTION, |name, routes| {
            for destination in destinations.iter_mut() {
                destination.found(name, destination.cost_of(routes), now_ms);
            }
        });
        true
    }

    /// Processes a Data or Nack that was sent to the internal face: the answer to a command.
    pub(super) fn command_ended(&self, packet: &LpPacket<'_>, answer: &[u8]) {
        let Some((number, id)) = read_token(&packet.pit_token) else { return };
        let now_ms = self.now_ms();
        if let Some(destination) = self.readvertise.borrow_mut().destinations.get_mut(number) {
            match packet.nack {
                Some(_) => destination.nacked(id, now_ms),
                None => destination.answered(id, answer, now_ms),
            }
        }
        self.due_earlier.notify_one();
    }
}
