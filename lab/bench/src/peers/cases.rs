//! Cases of the comparison: sockets, load, and the state of cache and FIB.

use std::fmt;

use serde::Serialize;

/// Kind of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SocketKind {
    /// Unix stream sockets.
    Unix,
    /// TCP over the loopback interface.
    Tcp,
    /// UDP over the loopback interface.
    Udp,
}

/// State of the cache. Cases run in this order, so that an empty cache comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheCase {
    /// The cache is empty and admits nothing. Names never repeat.
    MissEmpty,
    /// The cache answers all Interests, and holds few other packets.
    HitFew,
    /// The cache is full, and all Data is offered to it. Names never repeat.
    MissFull,
    /// The cache is full, and half of its packets are requested over and over.
    HitFull,
}

impl fmt::Display for SocketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SocketKind::Unix => "unix",
            SocketKind::Tcp => "tcp",
            SocketKind::Udp => "udp",
        })
    }
}

impl fmt::Display for CacheCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CacheCase::MissEmpty => "miss-empty",
            CacheCase::HitFew => "hit-few",
            CacheCase::MissFull => "miss-full",
            CacheCase::HitFull => "hit-full",
        })
    }
}

/// Number of requested names if the cache holds few packets.
const FEW_NAMES: u64 = 1024;

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Sockets of consumer and producer.
    pub socket: SocketKind,
    /// Interests in flight.
    pub window: usize,
    /// Bytes of content per Data.
    pub payload_bytes: usize,
    /// State of the cache.
    pub cache: CacheCase,
    /// Routes besides the producer's.
    pub routes: u64,
}

impl Case {
    /// Number of different requested names; 0 if names never repeat.
    pub(super) fn names(&self, cache_packets: u64) -> u64 {
        let names = match self.cache {
            CacheCase::MissEmpty | CacheCase::MissFull => return 0,
            CacheCase::HitFew => FEW_NAMES.min(cache_packets / 2),
            CacheCase::HitFull => cache_packets / 2,
        };
        names.max(self.window as u64)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { socket, window, payload_bytes, cache, routes } = self;
        write!(f, "{socket}, {window} in flight, {payload_bytes} bytes, {cache}, {routes} routes")
    }
}

/// Values of the cases' parameters. The first value of each is the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    /// Kinds of sockets.
    pub sockets: Vec<SocketKind>,
    /// Interests in flight.
    pub windows: Vec<usize>,
    /// Bytes of content per Data.
    pub payloads: Vec<usize>,
    /// States of the cache.
    pub caches: Vec<CacheCase>,
    /// Routes besides the producer's.
    pub routes: Vec<u64>,
    /// If true, all values are combined. Otherwise a case differs from the default in one value.
    pub all_combinations: bool,
}

impl Axes {
    /// Returns all cases, each once, ordered by number of routes, because routes are only added.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let [sockets, windows, payloads, caches, routes] =
            [self.sockets.len(), self.windows.len(), self.payloads.len(), self.caches.len(), self.routes.len()];
        for at in 0..sockets * windows * payloads * caches * routes {
            let (socket, rest) = (at % sockets, at / sockets);
            let (window, rest) = (rest % windows, rest / windows);
            let (payload, rest) = (rest % payloads, rest / payloads);
            let (cache, route) = (rest % caches, rest / caches);
            let unusual = [socket, window, payload, cache, route].iter().filter(|&&index| index > 0).count();
            if !self.all_combinations && unusual > 1 {
                continue;
            }
            let case = Case {
                socket: self.sockets[socket],
                window: self.windows[window],
                payload_bytes: self.payloads[payload],
                cache: self.caches[cache],
                routes: self.routes[route],
            };
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases.sort_by_key(|case| (case.routes, case.cache));
        cases
    }
}
