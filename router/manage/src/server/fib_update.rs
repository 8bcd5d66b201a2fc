//! Applies changes of the RIB to the FIB, and reports them to readvertising.
//!
//! A FIB entry holds a limited number of next hops. If the routes of a name give more, the cheapest are used. Such
//! names are recorded, so that another next hop can replace one that is removed.

use std::collections::HashSet;

use namehop_engine::fib::{FibError, FibWriter, MAX_NEXTHOPS, NextHop};
use namehop_engine::strategy::StrategyInstance;
use namehop_packet::FaceId;
use namehop_wire::{Name, NameRef};

use super::ControlPlane;
use super::readvertise::Readvertise;
use crate::rib::{FibChanges, ReadvertisedCosts, Rib, RoutesView};

/// Names with more next hops than the FIB has room for.
#[derive(Debug, Default)]
pub(super) struct OverfullNames(HashSet<Name>);

/// Applies changes as they are reported.
pub(super) struct FibUpdate<'a, C> {
    control: &'a C,
    fib: &'a mut FibWriter<StrategyInstance>,
    overfull: &'a mut OverfullNames,
    readvertise: &'a mut Readvertise,
    now_ms: u64,
    /// Overfull names with next hops to be selected again.
    to_choose: Vec<Name>,
}

impl<'a, C: ControlPlane> FibUpdate<'a, C> {
    pub(super) fn new(
        control: &'a C,
        fib: &'a mut FibWriter<StrategyInstance>,
        overfull: &'a mut OverfullNames,
        readvertise: &'a mut Readvertise,
        now_ms: u64,
    ) -> Self {
        FibUpdate { control, fib, overfull, readvertise, now_ms, to_choose: Vec::new() }
    }

    /// Selects the next hops of overfull names; must be called after all changes.
    pub(super) fn finish(mut self, rib: &Rib) {
        let mut names = std::mem::take(&mut self.to_choose);
        names.sort_unstable();
        names.dedup();
        for name in names {
            let mut next_hops: Vec<NextHop> =
                rib.effective_nexthops(name.as_ref()).into_iter().map(|(face, cost)| NextHop { face, cost }).collect();
            if next_hops.len() <= MAX_NEXTHOPS {
                self.overfull.0.remove(name.value());
            }
            next_hops.truncate(MAX_NEXTHOPS);
            let before = self.fib.nexthops(name.as_ref()).to_vec();
            if let Err(error) = self.fib.set_nexthops(name.as_ref(), &next_hops) {
                tracing::warn!(%name, %error, "cannot insert next hops into the FIB");
                continue;
            }
            let is_new = |next_hop: &&NextHop| before.iter().all(|old| old.face != next_hop.face);
            for next_hop in next_hops.iter().filter(is_new) {
                self.control.next_hop_added(name.as_ref(), *next_hop);
            }
        }
    }

    fn is_overfull(&self, prefix: NameRef<'_>) -> bool {
        !self.overfull.0.is_empty() && self.overfull.0.contains(prefix.value())
    }
}

impl<C: ControlPlane> FibChanges for FibUpdate<'_, C> {
    fn set_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId, cost: u64, later: &[FaceId]) {
        self.readvertise.next_hops_changed(prefix);
        if self.is_overfull(prefix) {
            return self.to_choose.push(prefix.to_owned());
        }
        match self.fib.place_nexthop(prefix, NextHop { face, cost }, later) {
            Ok(true) => self.control.next_hop_added(prefix, NextHop { face, cost }),
            Ok(false) => {}
            Err(FibError::TooManyNextHops) => {
                tracing::warn!(%prefix, "more next hops than the {MAX_NEXTHOPS} of a FIB entry: using the cheapest");
                self.overfull.0.insert(prefix.to_owned());
                self.to_choose.push(prefix.to_owned());
            }
            Err(error) => tracing::warn!(%prefix, %face, %error, "cannot insert a next hop into the FIB"),
        }
    }

    fn remove_nexthop(&mut self, prefix: NameRef<'_>, face: FaceId) {
        self.readvertise.next_hops_changed(prefix);
        if self.is_overfull(prefix) {
            return self.to_choose.push(prefix.to_owned());
        }
        if let Err(error) = self.fib.remove_nexthop(prefix, face) {
            tracing::warn!(%prefix, %face, %error, "cannot remove a next hop from the FIB");
        }
    }
    fn readvertised_costs(&self, routes: RoutesView<'_>) -> ReadvertisedCosts {
        self.readvertise.costs(routes)
    }

    fn readvertised_costs_changed(&mut self, prefix: NameRef<'_>, before: ReadvertisedCosts, after: ReadvertisedCosts) {
        self.readvertise.costs_changed(prefix, before, after, self.now_ms);
    }
}
