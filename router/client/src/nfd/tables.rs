//! Messages about prefixes: FIB entries, RIB entries and strategy choices.

use namehop_wire::Name;
use namehop_wire::tlv::types::{self, nfd};

use super::record::records;

records! {
    /// A next hop in a [`FibEntry`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct NextHopRecord(nfd::NEXT_HOP_RECORD) {
        /// Id of the face.
        face_id: u64 = nfd::FACE_ID,
        /// Lower is better.
        cost: u64 = nfd::COST,
    }

    /// One prefix in `fib/list`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FibEntry(nfd::FIB_ENTRY) {
        /// Prefix.
        name: Name = types::NAME,
        /// Next hops of its Interests.
        next_hops: Vec<NextHopRecord> = nfd::NEXT_HOP_RECORD,
    }

    /// A route in a [`RibEntry`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Route(nfd::ROUTE) {
        /// Id of the face.
        face_id: u64 = nfd::FACE_ID,
        /// Origin of the route, see [`origin`](super::numbers::origin).
        origin: u64 = nfd::ORIGIN,
        /// Lower is better.
        cost: u64 = nfd::COST,
        /// Bits of [`route_flags`](super::numbers::route_flags).
        flags: u64 = nfd::FLAGS,
        /// Remaining lifetime in milliseconds; absent if the route does not expire.
        expiration_period_ms: Option<u64> = nfd::EXPIRATION_PERIOD,
    }

    /// One prefix in `rib/list`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RibEntry(nfd::RIB_ENTRY) {
        /// Prefix.
        name: Name = types::NAME,
        /// Its routes.
        routes: Vec<Route> = nfd::ROUTE,
    }

    /// One prefix in `strategy-choice/list`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StrategyChoice(nfd::STRATEGY_CHOICE) {
        /// Prefix.
        name: Name = types::NAME,
        /// Full name of its strategy.
        strategy: Name = nfd::STRATEGY,
    }
}
