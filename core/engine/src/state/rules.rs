//! The operator's rules about single packets: what is added to and removed from Interests, and which Data is accepted
//! from whom.

use namehop_packet::{FaceInfo, FaceScope};
use namehop_wire::{InterestLayout, Name, NameRef};

use super::config::UnsolicitedPolicy;
use crate::pcct::record::PendingHopLimit;

/// The rules of one engine.
pub(crate) struct Rules {
    producer_regions: Vec<Name>,
    /// HopLimit that is added to Interests without one; 0 adds none.
    default_hop_limit: u8,
    unsolicited: UnsolicitedPolicy,
    accept_unasked_data: bool,
}

impl Rules {
    /// Creates the rules; [`EngineConfig`](super::config::EngineConfig) describes the arguments.
    pub(super) fn new(
        producer_regions: Vec<Name>,
        default_hop_limit: u8,
        unsolicited: UnsolicitedPolicy,
        accept_unasked_data: bool,
    ) -> Self {
        Rules { producer_regions, default_hop_limit, unsolicited, accept_unasked_data }
    }

    /// Returns whether a forwarding hint that names `delegation` has reached the region of this router.
    pub(crate) fn is_producer_region(&self, delegation: NameRef<'_>) -> bool {
        self.producer_regions.iter().any(|region| delegation.is_prefix_of(region.as_ref()))
    }

    /// Returns the HopLimit of an arriving Interest. The default may be added to an Interest without one.
    #[inline]
    pub(crate) fn hop_limit_of(&self, layout: &InterestLayout) -> PendingHopLimit {
        match (layout.hop_limit(), self.default_hop_limit) {
            (Some(received), _) => PendingHopLimit::Received(received),
            (None, 0) => PendingHopLimit::Absent,
            (None, added) => PendingHopLimit::Added(added),
        }
    }

    /// Returns whether Data from this face satisfies only Interests that were sent to the face. Otherwise any peer that
    /// guesses a name could answer it. A PIT token proves nothing, because it can be guessed.
    #[inline]
    pub(crate) fn requires_out_record(&self, ingress: &FaceInfo) -> bool {
        ingress.scope == FaceScope::NonLocal && !self.accept_unasked_data
    }

    /// Returns whether unsolicited Data from this face is cached.
    pub(crate) fn admits_unsolicited(&self, ingress: &FaceInfo) -> bool {
        match self.unsolicited {
            UnsolicitedPolicy::DropAll => false,
            UnsolicitedPolicy::AdmitLocal => ingress.scope == FaceScope::Local,
            UnsolicitedPolicy::AdmitNetwork => ingress.scope == FaceScope::NonLocal,
            UnsolicitedPolicy::AdmitAll => true,
        }
    }
}
