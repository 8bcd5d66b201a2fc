//! The limits on what one packet may cost: the length of its name, the rate of long names, the time that an Interest
//! is pending.

mod long_names;

use namehop_packet::{DropReason, FaceId, Timestamp};
use namehop_wire::interest::DEFAULT_INTEREST_LIFETIME_MS;
use namehop_wire::{NameRef, long_name_bytes};

use crate::pcct::entry::LIFETIME_ABSENT;
pub(crate) use long_names::Allowance;
use long_names::LongNames;

/// The limits of one engine.
pub(crate) struct Limits {
    max_name_bytes: usize,
    long_names: LongNames,
    max_lifetime_ms: u64,
}

impl Limits {
    /// Creates the limits. `long_name_bytes_per_s` is the allowance for the bytes of long names.
    pub(super) fn new(max_name_bytes: usize, long_name_bytes_per_s: u64, max_lifetime_ms: u64) -> Self {
        Limits { max_name_bytes, long_names: LongNames::new(long_name_bytes_per_s), max_lifetime_ms }
    }

    /// Adds the growth of the allowance for long names since the last call.
    pub(crate) fn grow(&mut self, now: Timestamp) {
        self.long_names.grow(now);
    }

    /// Returns a copy of the allowance of all faces for long names, for looking ahead.
    #[inline(always)]
    pub(crate) fn allowance(&self) -> Allowance {
        self.long_names.total()
    }

    /// Refuses names longer than the maximum, before any other work on them.
    #[inline]
    pub(crate) fn check_length(&self, name: NameRef<'_>) -> Result<(), DropReason> {
        if name.value().len() <= self.max_name_bytes { Ok(()) } else { Err(DropReason::NameTooLong) }
    }

    /// Refuses an undecoded packet that [`admit_name`](Self::admit_name) would refuse for the length of its name.
    /// `allowance` is the rest of the allowance of all faces.
    #[inline]
    pub(crate) fn check_unread(&self, face: FaceId, packet: &[u8], allowance: &Allowance) -> Result<(), DropReason> {
        match long_name_bytes(packet) {
            Some(bytes) if bytes > self.max_name_bytes => Err(DropReason::NameTooLong),
            Some(bytes) if !self.long_names.may_take(face, bytes, allowance) => Err(DropReason::TooManyLongNames),
            _ => Ok(()),
        }
    }

    /// Refuses names longer than the maximum, and long ones beyond the rate limit. Must be called before the name is
    /// hashed.
    #[inline]
    pub(crate) fn admit_name(&mut self, face: FaceId, name: NameRef<'_>) -> Result<(), DropReason> {
        self.check_length(name)?;
        if self.long_names.take(face, name) { Ok(()) } else { Err(DropReason::TooManyLongNames) }
    }

    /// Predicts whether [`admit_name`](Self::admit_name) will admit a name if `allowance` is then left for all faces.
    /// Takes the cost of the name from `allowance`.
    #[inline(always)]
    pub(crate) fn foresee(&self, face: FaceId, name: NameRef<'_>, allowance: &mut Allowance) -> bool {
        self.check_length(name).is_ok() && self.long_names.foresee(face, name, allowance)
    }

    /// Returns how long an Interest with this lifetime, in the PIT's representation, is pending, in milliseconds.
    pub(crate) fn pending_ms(&self, kept_lifetime: u32) -> u64 {
        let requested =
            if kept_lifetime == LIFETIME_ABSENT { DEFAULT_INTEREST_LIFETIME_MS } else { u64::from(kept_lifetime) };
        requested.min(self.max_lifetime_ms)
    }
}
