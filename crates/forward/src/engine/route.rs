//! Which next hops and which strategy an Interest gets.

use namehop_hash::{HashKey, PrefixHashes, hash_prefixes};
use namehop_wire::{ForwardingHint, NameRef};

use super::Fib;
use crate::fib::{FibGuess, FibMatch};
use crate::pcct::{Pcct, PitRef};
use crate::strategy::StrategyInstance;
use namehop_packet::FaceId;

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
    // Inlined, so that the parts of matches and routes stay in registers on their way.
    #[inline(always)]
    pub(crate) fn find(
        fib: &'a Fib,
        key: &HashKey,
        (name, name_hashes, guess): (NameRef<'_>, &PrefixHashes, FibGuess),
        hint: Option<NameRef<'_>>,
        hint_hashes: &mut PrefixHashes,
    ) -> Self {
        let by_name = fib.longest_prefix_match_near(guess, name_hashes, name);
        let by_hint;
        let matched = match hint {
            None => &by_name,
            Some(hint) => {
                by_hint = match_hint(fib, key, hint, hint_hashes);
                by_hint.as_ref().unwrap_or(&by_name)
            }
        };
        Route {
            strategy: by_name.strategy(),
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
        let hint = (!hint.is_empty()).then_some(hint);
        Self::find(fib, key, (name, name_hashes, FibGuess::default()), hint, hint_hashes)
    }
}

/// What the FIB says about a delegation; `None` when that has too many components.
#[cold]
fn match_hint<'a>(
    fib: &'a Fib,
    key: &HashKey,
    hint: NameRef<'_>,
    scratch: &mut PrefixHashes,
) -> Option<FibMatch<'a, StrategyInstance>> {
    hash_prefixes(key, hint.value(), scratch).ok()?;
    Some(fib.longest_prefix_match(scratch, hint))
}

/// A name from a forwarding hint.
#[derive(Clone, Copy)]
pub(crate) struct Delegation<'h> {
    pub(crate) name: NameRef<'h>,
    /// Low half of the hash of the name.
    pub(crate) hash: u32,
}

/// Chooses the delegation to go by: the first with next hops, and without any the first one, so that Interests with
/// different hints are never mixed. `None` when the hint names nothing usable.
#[cold]
pub(crate) fn choose_delegation<'h>(
    fib: &Fib,
    key: &HashKey,
    hint: ForwardingHint<'h>,
    scratch: &mut PrefixHashes,
) -> Option<Delegation<'h>> {
    let mut first = None;
    for name in hint.iter().take(MAX_DELEGATIONS) {
        if name.is_empty() || hash_prefixes(key, name.value(), scratch).is_err() {
            continue;
        }
        let delegation = Delegation { name, hash: scratch.full() as u32 };
        if fib.longest_prefix_match(scratch, name).has_nexthops() {
            return Some(delegation);
        }
        first = first.or(Some(delegation));
    }
    first
}
