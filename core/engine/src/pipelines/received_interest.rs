//! An Interest on its way through the pipelines, with its parsed properties.

use namehop_hash::PrefixHashes;
use namehop_packet::{FaceInfo, LinkFields, PacketBuffer};
use namehop_wire::{InterestLayout, NameRef};

use crate::fib::FibGuess;
use crate::pcct::PitRef;
use crate::pcct::entry::Selectors;
use crate::pcct::key::{Found, Key};
use crate::pcct::record::PendingHopLimit;
use crate::scope::NameScope;
use crate::state::route::Delegation;

/// The lookup result for an Interest in the PIT-CS composite table.
#[derive(Clone, Copy)]
pub(super) struct LookedUp {
    pub(super) found: Found,
    /// The PIT entry for its name, delegation and selectors.
    pub(super) pending: Option<PitRef>,
}

/// An Interest on its way through the pipelines.
pub(super) struct Received<'a> {
    pub(super) ingress: FaceInfo,
    pub(super) fields: &'a LinkFields,
    /// The packet to forward.
    pub(super) buffer: PacketBuffer,
    /// The packet as received, if the one to forward is a modified copy.
    pub(super) original: Option<PacketBuffer>,
    /// The layout of `buffer`.
    pub(super) layout: &'a InterestLayout,
    pub(super) hashes: &'a PrefixHashes,
    pub(super) fib_guess: FibGuess,
    pub(super) scope: NameScope,
    pub(super) nonce: u32,
    pub(super) hop_limit: PendingHopLimit,
    /// The delegation of its forwarding hint that was chosen.
    pub(super) delegation: Option<Delegation>,
}

impl Received<'_> {
    #[inline(always)]
    pub(super) fn name(&self) -> NameRef<'_> {
        self.layout.name.of_packet(self.buffer.bytes())
    }

    #[inline(always)]
    pub(super) fn delegation_name(&self) -> Option<NameRef<'_>> {
        self.delegation.map(|delegation| delegation.name.of_packet(self.buffer.bytes()))
    }

    #[inline(always)]
    pub(super) fn selectors(&self) -> Selectors {
        Selectors { can_be_prefix: self.layout.can_be_prefix, must_be_fresh: self.layout.must_be_fresh }
    }

    /// Returns its key in the PIT-CS composite table.
    #[inline(always)]
    pub(super) fn key(&self) -> Key<'_> {
        let delegation = self.delegation_name().map_or(&[][..], |name| name.value());
        let delegation_hash = self.delegation.map_or(0, |delegation| delegation.hash);
        Key::new(self.name().value(), self.hashes, delegation, delegation_hash)
    }

    /// Returns whether Nonce or HopLimit has to be added, or its forwarding hint may have to be removed.
    #[inline]
    pub(super) fn must_be_changed(&self) -> bool {
        self.layout.nonce().is_none()
            || matches!(self.hop_limit, PendingHopLimit::Added(_))
            || self.layout.has_forwarding_hint()
    }
}
