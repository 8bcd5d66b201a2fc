//! Selection of the next hops and the strategy of an Interest.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_packet::{FaceId, PacketBuffer};
use namehop_wire::{InterestLayout, NameLayout, NameRef};

use crate::fib::{FibGuess, FibMatch, FibReader};
use crate::pcct::{Pcct, PitRef};
use crate::strategy::StrategyInstance;
use crate::trace::TraceStep;

/// The FIB reader of an engine.
pub type Fib = FibReader<StrategyInstance>;

/// Maximum number of delegations of a forwarding hint that are tried. Each costs a lookup, so the sender must not
/// choose their number.
const MAX_DELEGATIONS: usize = 8;

/// The next hops and the strategy for one Interest.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) strategy: &'a StrategyInstance,
    /// Lowest cost first.
    pub(crate) nexthops: &'a [FaceId],
    /// Hash of the FIB prefix, for measurements.
    pub(crate) prefix_hash: u64,
    /// Number of components of the prefix that the next hops come from.
    pub(crate) prefix_len: usize,
}

impl<'a> Route<'a> {
    /// Finds the strategy by the Interest name, and the next hops by the chosen delegation if there is one.
    // Inlined, so that the parts of matches and routes stay in registers.
    #[inline(always)]
    pub(crate) fn find(
        fib: &'a Fib,
        key: &HashKey,
        (name, name_hashes, guess): (NameRef<'_>, &PrefixHashes, FibGuess),
        delegation: Option<NameRef<'_>>,
        delegation_hashes: &mut PrefixHashes,
    ) -> Self {
        let by_name = fib.longest_prefix_match_near(guess, name_hashes, name);
        let by_delegation;
        let matched = match delegation {
            None => &by_name,
            Some(delegation) => {
                by_delegation = match_delegation(fib, key, delegation, delegation_hashes);
                by_delegation.as_ref().unwrap_or(&by_name)
            }
        };
        Route {
            strategy: by_name.strategy(),
            nexthops: matched.nexthops().faces(),
            prefix_hash: matched.prefix_hash(),
            prefix_len: matched.nexthop_prefix_len(),
        }
    }

    /// Returns the step for a packet trace. The next hops must belong to a prefix of `name`.
    pub(crate) fn trace_step(&self, name: NameRef<'_>) -> TraceStep {
        TraceStep::Route {
            prefix: name.prefix(self.prefix_len).to_owned(),
            nexthops: self.nexthops.to_vec(),
            strategy: self.strategy.name().clone(),
        }
    }

    /// Finds the route of a pending Interest. Overwrites both scratch hashes.
    pub(crate) fn of_pending(
        fib: &'a Fib,
        key: &HashKey,
        pcct: &Pcct,
        pit: PitRef,
        name_hashes: &mut PrefixHashes,
        delegation_hashes: &mut PrefixHashes,
    ) -> Self {
        // Names in the table were checked at insertion; the fallback, a root name, would only select the default route.
        let name = NameRef::from_value(pcct.names.name(pit.entry)).unwrap_or_default();
        let delegation = NameRef::from_value(pcct.names.delegation(pit.entry)).unwrap_or_default();
        let hashed = hash_prefixes(key, name.value(), name_hashes);
        debug_assert!(hashed.is_ok(), "names in the table must not be too deep");
        let delegation = (!delegation.is_empty()).then_some(delegation);
        Self::find(fib, key, (name, name_hashes, FibGuess::default()), delegation, delegation_hashes)
    }
}

/// Looks up a delegation in the FIB; `None` if it has too many components.
#[cold]
fn match_delegation<'a>(
    fib: &'a Fib,
    key: &HashKey,
    delegation: NameRef<'_>,
    scratch: &mut PrefixHashes,
) -> Option<FibMatch<'a, StrategyInstance>> {
    hash_prefixes(key, delegation.value(), scratch).ok()?;
    Some(fib.longest_prefix_match(scratch, delegation))
}

/// A delegation of a forwarding hint.
#[derive(Clone, Copy)]
pub(crate) struct Delegation {
    /// Its position in the packet.
    pub(crate) name: NameLayout,
    /// Low half of the hash of the name.
    pub(crate) hash: u32,
}

/// Chooses the delegation to forward by: the first with next hops, or else the first one, so that Interests with
/// different hints are never mixed. Returns `None` if the hint has no usable name.
#[cold]
pub(crate) fn choose_delegation(
    fib: &Fib,
    key: &HashKey,
    layout: &InterestLayout,
    packet: &PacketBuffer,
    scratch: &mut PrefixHashes,
) -> Option<Delegation> {
    let mut first = None;
    for name in layout.forwarding_hint(packet.bytes())?.iter().take(MAX_DELEGATIONS) {
        if name.is_empty() || hash_prefixes(key, name.value(), scratch).is_err() {
            continue;
        }
        let delegation = Delegation { name: NameLayout::of_part(name, packet.bytes()), hash: scratch.full() as u32 };
        if fib.longest_prefix_match(scratch, name).has_nexthops() {
            return Some(delegation);
        }
        first = first.or(Some(delegation));
    }
    first
}
