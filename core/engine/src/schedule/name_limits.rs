//! The limits on names before packets are handled: what the pipelines will refuse is neither decoded nor hashed.

use namehop_packet::{FaceId, Incoming};
use namehop_wire::NameRef;

use crate::engine::Engine;
use crate::state::limits::{Allowance, Limits};

/// The limits on the length of names, as they stand at the start of a step. Predicts what the pipelines will refuse.
pub struct NameLimits<'e> {
    limits: &'e Limits,
    /// The rest of the allowance of all faces.
    allowance: Allowance,
}

impl Engine {
    /// Returns the current limits on names.
    #[inline(always)]
    pub fn name_limits(&self) -> NameLimits<'_> {
        NameLimits { limits: &self.state.limits, allowance: self.state.limits.allowance() }
    }
}

impl NameLimits<'_> {
    /// Returns whether an undecoded Interest may be decoded.
    #[inline(always)]
    pub(super) fn may_decode(&self, interest: &Incoming) -> bool {
        self.limits.check_unread(interest.face, interest.buffer.bytes(), &self.allowance).is_ok()
    }

    /// Returns whether a name that arrived on `face` may be hashed, and takes its cost from the predicted allowance.
    #[inline(always)]
    pub(super) fn take(&mut self, face: FaceId, name: NameRef<'_>) -> bool {
        self.limits.foresee(face, name, &mut self.allowance)
    }
}
