//! Announcing routes to a routing daemon and a gateway: reports changes of routes to [`crate::readvertise`], and sends the
//! commands that follow.
//!
//! The FIB says through which faces a destination is reached. It is looked up again when a prefix of the destination's commands
//! gets or loses a next hop.

use namehop_engine::fib::FibWriter;
use namehop_engine::strategy::StrategyInstance;
use namehop_packet::{FaceId, FaceScope};
use namehop_wire::NameRef;
use namehop_wire::lp::LpPacket;

use super::{ControlPlane, Management};
use crate::nfd::ReadvertiseStatus;
use crate::readvertise::{Destination, MAX_DESTINATIONS, read_token};
use crate::rib::{Cursor, ReadvertisedCosts, RoutesView};

/// Names that are looked at between two pauses when all routes are gone through.
const PORTION: usize = 4096;

/// The destinations, and what has to be done for them.
#[derive(Default)]
pub(super) struct Readvertise {
    destinations: Vec<Destination>,
    /// The FIB may lead to other faces than before.
    is_fib_changed: bool,
    /// Something may be due earlier than before.
    is_due_changed: bool,
    /// How far all routes are gone through for prefixes that were left out.
    search: Option<Cursor>,
}

impl Readvertise {
    /// Costs of a name with these routes.
    pub(super) fn costs(&self, routes: RoutesView<'_>) -> ReadvertisedCosts {
        let mut costs = ReadvertisedCosts::default();
        for (cost, destination) in costs.iter_mut().zip(&self.destinations) {
            *cost = destination.cost_of(routes);
        }
        costs
    }

    /// Takes a change of what [`costs`](Self::costs) says.
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

    /// The next hops of a prefix have changed.
    pub(super) fn next_hops_changed(&mut self, prefix: NameRef<'_>) {
        self.is_fib_changed |=
            self.destinations.iter().any(|destination| prefix.is_prefix_of(destination.prefix().as_ref()));
    }

    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.destinations.iter().filter_map(Destination::next_due_ms).min()
    }

    /// Whether [`Management::run`] has something new to do. Reports a change of due times once.
    fn take_changes(&mut self) -> bool {
        std::mem::take(&mut self.is_due_changed) || self.is_fib_changed
    }
}

/// Faces to which commands of a destination go.
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
    /// Announces routes from now on. Must be called before there are any.
    ///
    /// # Panics
    /// With more than [`MAX_DESTINATIONS`] destinations.
    pub fn readvertise_to(&self, destinations: Vec<Destination>) {
        assert!(destinations.len() <= MAX_DESTINATIONS, "more destinations than there are kinds");
        *self.readvertise.borrow_mut() = Readvertise { destinations, is_fib_changed: true, ..Default::default() };
        self.due_earlier.notify_one();
    }

    /// What each destination is doing.
    pub fn readvertise_status(&self) -> Vec<ReadvertiseStatus> {
        let now_ms = self.now_ms();
        self.readvertise.borrow().destinations.iter().map(|destination| destination.status(now_ms)).collect()
    }

    /// Must be called after changes of routes and of the FIB: wakes [`run`](Self::run) when it has to announce something.
    pub(super) fn notify_readvertise(&self) {
        if self.readvertise.borrow_mut().take_changes() {
            self.due_earlier.notify_one();
        }
    }

    /// Next hops of a prefix were changed otherwise than by routes.
    pub(super) fn next_hops_changed(&self, prefix: NameRef<'_>) {
        self.readvertise.borrow_mut().next_hops_changed(prefix);
        self.notify_readvertise();
    }

    /// Next hops of any prefixes were changed otherwise than by routes.
    pub(super) fn fib_changed(&self) {
        let readvertise = &mut *self.readvertise.borrow_mut();
        if !readvertise.destinations.is_empty() {
            readvertise.is_fib_changed = true;
            self.due_earlier.notify_one();
        }
    }

    /// The link of a face works again.
    pub(super) fn readvertise_on(&self, face: FaceId) {
        let now_ms = self.now_ms();
        for destination in &mut self.readvertise.borrow_mut().destinations {
            destination.face_up(face, now_ms);
        }
        self.due_earlier.notify_one();
    }

    /// Sends what is due.
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

    /// Continues the search for prefixes that were left out; `false` when there is nothing to search for.
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

    /// Takes a Data or Nack that came to the internal face.
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
