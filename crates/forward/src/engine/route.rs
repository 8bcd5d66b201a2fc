//! Which next hops and which strategy an Interest gets.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::{ForwardingHint, NameRef};

use super::Fib;
use crate::face::FaceId;
use crate::pcct::{Pcct, PitRef};
use crate::strategy::StrategyInstance;

/// Delegations of a forwarding hint that are tried. Every one costs a lookup, so their number must not be the sender's
/// choice.
const MAX_DELEGATIONS: usize = 8;

/// Next hops and strategy for one Interest.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) strategy: &'a StrategyInstance,
    /// Lowest cost first.
    pub(crate) nexthops: &'a [FaceId],
    /// Hash of the FIB prefix, for measurements.
    pub(crate) prefix_hash: u64,
    /// Components of the prefix that the next hops are from.
    pub(crate) prefix_len: usize,
}

impl<'a> Route<'a> {
    /// The strategy is chosen by the Interest name, the next hops by the chosen delegation where there is one.
    pub(crate) fn find(
        fib: &'a Fib,
        key: &HashKey,
        name: NameRef<'_>,
        name_hashes: &PrefixHashes,
        hint: NameRef<'_>,
        hint_hashes: &mut PrefixHashes,
    ) -> Self {
        let by_name = fib.longest_prefix_match(name_hashes, name);
        let strategy = by_name.strategy();
        let matched = if hint.is_empty() || hash_prefixes(key, hint.value(), hint_hashes).is_err() {
            by_name
        } else {
            fib.longest_prefix_match(hint_hashes, hint)
        };
        Route {
            strategy,
            nexthops: matched.nexthops().faces(),
            prefix_hash: matched.prefix_hash(),
            prefix_len: matched.nexthop_prefix_len(),
        }
    }

    /// The route of a pending Interest. Overwrites both scratch hashes.
    pub(crate) fn of_pending(
        fib: &'a Fib,
        key: &HashKey,
        pcct: &Pcct,
        pit: PitRef,
        name_hashes: &mut PrefixHashes,
        hint_hashes: &mut PrefixHashes,
    ) -> Self {
        // Names in the table were checked on their way in; a root name would only mean the default route.
        let name = NameRef::from_value(pcct.name(pit.entry)).unwrap_or_default();
        let hint = NameRef::from_value(pcct.hint(pit.entry)).unwrap_or_default();
        let hashed = hash_prefixes(key, name.value(), name_hashes);
        debug_assert!(hashed.is_ok(), "a name in the table is too deep");
        Self::find(fib, key, name, name_hashes, hint, hint_hashes)
    }
}

/// Chooses the delegation to go by: the first with next hops, and without any the first one, so that Interests with
/// different hints are never mixed, with the low half of its hash. `None` when the hint names nothing usable.
pub(crate) fn choose_delegation<'h>(
    fib: &Fib,
    key: &HashKey,
    hint: ForwardingHint<'h>,
    scratch: &mut PrefixHashes,
) -> Option<(NameRef<'h>, u32)> {
    let mut first = None;
    for delegation in hint.iter().take(MAX_DELEGATIONS) {
        if delegation.is_empty() || hash_prefixes(key, delegation.value(), scratch).is_err() {
            continue;
        }
        if fib.longest_prefix_match(scratch, delegation).has_nexthops() {
            return Some((delegation, scratch.full() as u32));
        }
        first = first.or(Some((delegation, scratch.full() as u32)));
    }
    first
}
