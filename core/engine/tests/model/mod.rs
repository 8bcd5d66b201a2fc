//! A slow, simple model of the whole forwarder, written from the protocol's rules with vectors and linear searches.
//!
//! The property tests compare the engine with it: the engine must always send what the model sends. Time is in
//! milliseconds. A nonce is a number: nonces in packets have their own value; nonces that the forwarder adds start at
//! [`ADDED_NONCES`], because their values cannot be predicted.
//!
//! Where the protocol leaves a choice, the model follows the engine. Interests with different chosen forwarding hints
//! do not aggregate and do not share cached Data. The Content Store keeps the newest Data per name; with CanBePrefix it
//! considers only the newest Data under the prefix. Data carries the larger of its own CongestionMark and that of the
//! Interest it answers.

mod comparison;
pub mod engines;
mod hints;
pub mod packets;
mod pipelines;
pub mod runner;
pub mod scenario;
mod strategies;

use std::collections::BTreeMap;

use packets::{Data, Interest, Name, name};
use strategies::Arrived;
pub use strategies::Strategy;

pub type FaceNumber = u32;
pub type Nonce = u64;

/// The first nonce that the forwarder adds.
pub const ADDED_NONCES: Nonce = 1 << 32;
pub const DUPLICATE: u64 = 100;
pub const NO_ROUTE: u64 = 150;
/// IncomingFaceId of Data from the Content Store.
pub const CONTENT_STORE: FaceNumber = 254;
/// An Interest with less time left is not retried.
const LEAST_LIFETIME_MS: u64 = 10;
const DEFAULT_LIFETIME_MS: u64 = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    PointToPoint,
    MultiAccess,
    AdHoc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Face {
    pub local: bool,
    pub link: Link,
    pub is_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    pub face: FaceNumber,
    pub cost: u64,
}

/// Link headers of an incoming packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    pub token: Vec<u8>,
    pub mark: u64,
    pub next_hop: Option<FaceNumber>,
    pub no_cache: bool,
}

/// A packet that the forwarder sends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sent {
    Interest {
        face: FaceNumber,
        name: String,
        can_be_prefix: bool,
        must_be_fresh: bool,
        hop_limit: Option<u8>,
        hints: Vec<String>,
        mark: u64,
        nonce: Nonce,
    },
    Data {
        face: FaceNumber,
        digest: String,
        token: Vec<u8>,
        mark: u64,
        from: FaceNumber,
    },
    /// The HopLimit of the returned Interest has no meaning and is omitted.
    Nack {
        face: FaceNumber,
        name: String,
        can_be_prefix: bool,
        must_be_fresh: bool,
        token: Vec<u8>,
        reason: u64,
        mark: u64,
        nonce: Nonce,
    },
}

/// The policy for unsolicited Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsolicited {
    DropAll,
    AdmitLocal,
    AdmitNetwork,
    AdmitAll,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub dead_nonce_lifetime_ms: u64,
    /// 0: none is added.
    pub default_hop_limit: u8,
    pub producer_regions: Vec<Name>,
    pub unsolicited: Unsolicited,
    /// Whether Data from a non-local face may answer Interests that were not sent to that face.
    pub accept_unasked: bool,
}

/// A downstream.
#[derive(Debug, Clone)]
struct InRecord {
    face: FaceNumber,
    nonce: Nonce,
    expiry_ms: u64,
    token: Vec<u8>,
    mark: u64,
    /// HopLimit for the next hop.
    hop_limit: Option<u8>,
}

/// An upstream.
#[derive(Debug, Clone)]
struct OutRecord {
    face: FaceNumber,
    nonce: Nonce,
    sent_ms: u64,
    expiry_ms: u64,
    nacked: Option<u64>,
    suppression_ms: Option<u64>,
}

impl OutRecord {
    fn is_pending(&self, now_ms: u64) -> bool {
        self.nacked.is_none() && self.expiry_ms > now_ms
    }
}

#[derive(Debug, Clone)]
struct PitEntry {
    name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    hint: Name,
    /// The forwarding hint of its first Interest.
    hints: Vec<Name>,
    lifetime_ms: u64,
    in_records: Vec<InRecord>,
    out_records: Vec<OutRecord>,
    expiry_ms: u64,
    suppression_ms: Option<u64>,
    /// Satisfied by Data that answers from the cache for as long as the Dead Nonce List would keep the nonces.
    nonces_not_needed: bool,
}

impl PitEntry {
    fn has_sent(&self, face: FaceNumber, interest: &Interest, nonce: Nonce) -> bool {
        self.name == interest.name
            && self.can_be_prefix == interest.can_be_prefix
            && self.must_be_fresh == interest.must_be_fresh
            && self.out_records.iter().any(|record| record.face == face && record.nonce == nonce)
    }
}

impl PitEntry {
    /// Returns the Interest of an in-record as it would be forwarded.
    fn as_arrived(&self, record: &InRecord) -> Arrived {
        Arrived {
            face: record.face,
            nonce: record.nonce,
            hop_limit: record.hop_limit,
            hints: self.hints.clone(),
            mark: record.mark,
            lifetime_ms: self.lifetime_ms,
        }
    }
}

#[derive(Debug, Clone)]
struct Cached {
    data: Data,
    hint: Name,
    fresh_until_ms: u64,
}

/// The model of the forwarder.
pub struct Model {
    settings: Settings,
    now_ms: u64,
    faces: BTreeMap<FaceNumber, Face>,
    fib: BTreeMap<Name, Vec<NextHop>>,
    strategies: BTreeMap<Name, Strategy>,
    pit: Vec<PitEntry>,
    /// The newest is last.
    content: Vec<Cached>,
    admits: bool,
    serves: bool,
    dead_nonces: Vec<(Name, Nonce, u64)>,
    /// Nonces sent to faces that were removed later: they may be in the Dead Nonce List or not.
    uncertain_nonces: Vec<(Name, Nonce)>,
    added_nonces: u64,
    /// Number of PIT entries opened so far, and that number at the last one for each name and hint.
    opened: u64,
    ages: BTreeMap<(Name, Name), u64>,
    sent: Vec<Sent>,
}

impl Model {
    pub fn new(settings: Settings) -> Self {
        Model {
            settings,
            now_ms: 0,
            faces: BTreeMap::new(),
            fib: BTreeMap::new(),
            strategies: BTreeMap::from([(Vec::new(), Strategy::BestRoute)]),
            pit: Vec::new(),
            content: Vec::new(),
            admits: true,
            serves: true,
            dead_nonces: Vec::new(),
            uncertain_nonces: Vec::new(),
            added_nonces: 0,
            opened: 0,
            ages: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    pub fn set_face(&mut self, number: FaceNumber, face: Face) {
        self.faces.insert(number, face);
    }

    /// Changes the state of a face's link.
    pub fn set_up(&mut self, number: FaceNumber, is_up: bool) -> Vec<Sent> {
        if let Some(face) = self.faces.get_mut(&number) {
            face.is_up = is_up;
        }
        if !is_up {
            let now_ms = self.now_ms;
            let is_lost = |record: &&mut OutRecord| record.face == number && record.is_pending(now_ms);
            for entry in 0..self.pit.len() {
                let lost = self.pit[entry].out_records.iter_mut().find(is_lost);
                if let Some(record) = lost {
                    record.nacked = Some(NO_ROUTE);
                    self.retry_unless_pending(entry);
                }
            }
            self.end_due_entries();
        }
        std::mem::take(&mut self.sent)
    }

    /// Removes a face with its next hops and records. Interests that were sent to it are retried.
    pub fn remove_face(&mut self, number: FaceNumber) -> Vec<Sent> {
        self.faces.remove(&number);
        for nexthops in self.fib.values_mut() {
            nexthops.retain(|nexthop| nexthop.face != number);
        }
        for entry in &mut self.pit {
            if let Some(position) = entry.in_records.iter().position(|record| record.face == number) {
                entry.in_records.remove(position);
            }
            let gone = entry.out_records.iter().filter(|record| record.face == number);
            self.uncertain_nonces.extend(gone.map(|record| (entry.name.clone(), record.nonce)));
        }
        let now_ms = self.now_ms;
        for index in 0..self.pit.len() {
            let records = &mut self.pit[index].out_records;
            let is_lost = records.iter().any(|record| record.face == number && record.is_pending(now_ms));
            records.retain(|record| record.face != number);
            if is_lost {
                self.retry_unless_pending(index);
            }
        }
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    pub fn set_strategy(&mut self, prefix: Name, strategy: Strategy) {
        self.strategies.insert(prefix, strategy);
    }

    /// Sets the next hops of a prefix; an empty list removes it.
    pub fn set_nexthops(&mut self, prefix: Name, mut nexthops: Vec<NextHop>) {
        nexthops.sort_by_key(|nexthop| nexthop.cost);
        self.fib.insert(prefix, nexthops);
    }

    /// Adds a next hop to a prefix.
    pub fn add_nexthop(&mut self, prefix: Name, nexthop: NextHop) {
        let nexthops = [self.nexthops(&prefix), vec![nexthop]].concat();
        self.set_nexthops(prefix, nexthops);
    }

    /// Returns the prefix's own next hops.
    pub fn nexthops(&self, prefix: &Name) -> Vec<NextHop> {
        self.fib.get(prefix).cloned().unwrap_or_default()
    }

    /// Notifies the pending Interests under a prefix of a new next hop.
    pub fn new_nexthop(&mut self, prefix: &Name, nexthop: NextHop) -> Vec<Sent> {
        for entry in 0..self.pit.len() {
            if self.fib_prefix_of(entry).as_ref() == Some(prefix) {
                self.after_new_nexthop(entry, nexthop);
            }
        }
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    /// Lets time pass. Interests that outlive what was sent upstream for them are sent again.
    pub fn advance(&mut self, now_ms: u64) -> Vec<Sent> {
        let before_ms = std::mem::replace(&mut self.now_ms, now_ms);
        for entry in 0..self.pit.len() {
            let PitEntry { out_records, expiry_ms, .. } = &self.pit[entry];
            let has_ended = |record: &OutRecord| record.is_pending(before_ms) && !record.is_pending(now_ms);
            if out_records.iter().any(has_ended) && *expiry_ms >= now_ms + LEAST_LIFETIME_MS {
                self.retry_unless_pending(entry);
            }
        }
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    /// Returns whether this nonce may or may not be in the Dead Nonce List: a bounded list may keep it a little longer
    /// than required.
    pub fn is_uncertain(&self, name: &Name, nonce: Nonce) -> bool {
        let lifetime_ms = self.settings.dead_nonce_lifetime_ms;
        let fading = self.dead_nonces.iter().any(|(dead_name, dead_nonce, since_ms)| {
            let age_ms = self.now_ms - since_ms;
            dead_name == name && *dead_nonce == nonce && age_ms >= lifetime_ms && age_ms <= 2 * lifetime_ms
        });
        fading || self.uncertain_nonces.iter().any(|(known, uncertain)| known == name && *uncertain == nonce)
    }

    /// Returns whether this Data may be cached under more than one forwarding hint. `answered` is the Interest with the
    /// token that the Data carries.
    pub fn is_hint_open(&self, face: FaceNumber, data: &Data, answered: Option<&Interest>) -> bool {
        let mut hints: Vec<&Name> = self.caching_entries(face, data).iter().map(|entry| &entry.hint).collect();
        let by_token = |entry: &&PitEntry| answered.is_some_and(|interest| interest.name == entry.name);
        hints.extend(self.satisfied_by(face, data).filter(by_token).map(|entry| &entry.hint));
        hints.iter().any(|hint| *hint != hints[0])
    }

    /// Returns whether several PIT entries match this Nack, or whether the nonce to send next is undefined.
    pub fn is_nack_ambiguous(&self, face: FaceNumber, interest: &Interest, nonce: Nonce) -> bool {
        let mut entries = self.pit.iter().filter(|entry| entry.has_sent(face, interest, nonce));
        let is_open = |record: &InRecord| self.is_uncertain(&interest.name, record.nonce);
        entries.next().is_some_and(|entry| entry.in_records.iter().any(is_open)) || entries.next().is_some()
    }

    fn satisfied_by(&self, face: FaceNumber, data: &Data) -> impl Iterator<Item = &PitEntry> {
        self.pit.iter().filter(move |entry| self.is_satisfied_by(entry, face, data))
    }

    fn is_satisfied_by(&self, entry: &PitEntry, face: FaceNumber, data: &Data) -> bool {
        let accepts_all = self.settings.accept_unasked || self.face(face).is_some_and(|face| face.local);
        packets::matches(&entry.name, entry.can_be_prefix, data)
            && (accepts_all || entry.out_records.iter().any(|record| record.face == face))
    }

    /// Returns the entries that Data is cached for: the ones that sent an Interest to this face, or all if none did.
    fn caching_entries(&self, face: FaceNumber, data: &Data) -> Vec<&PitEntry> {
        let asked = |entry: &&PitEntry| entry.out_records.iter().any(|record| record.face == face);
        let entries: Vec<&PitEntry> = self.satisfied_by(face, data).filter(asked).collect();
        if entries.is_empty() { self.satisfied_by(face, data).collect() } else { entries }
    }

    /// Sets whether Data may enter the Content Store and whether Interests may be answered from it.
    pub fn set_content_flags(&mut self, admit: bool, serve: bool) {
        self.admits = admit;
        self.serves = serve;
    }

    /// Returns the numbers of PIT entries and of cached Data.
    pub fn sizes(&self) -> (usize, usize) {
        (self.pit.len(), self.content.len())
    }

    /// Returns a face by number.
    pub fn face(&self, number: FaceNumber) -> Option<Face> {
        self.faces.get(&number).copied()
    }

    /// Returns the next hops of an entry's Interest: by forwarding hint if it has one.
    fn nexthops_of(&self, entry: usize) -> Vec<NextHop> {
        self.nexthops_for(self.looked_up(entry))
    }

    fn looked_up(&self, entry: usize) -> &Name {
        let entry = &self.pit[entry];
        if entry.hint.is_empty() { &entry.name } else { &entry.hint }
    }

    fn nexthops_for(&self, name: &Name) -> Vec<NextHop> {
        let prefix = self.fib.keys().filter(|prefix| name.starts_with(prefix) && !self.fib[*prefix].is_empty());
        prefix.max_by_key(|prefix| prefix.len()).map_or(Vec::new(), |prefix| self.fib[prefix].clone())
    }

    fn fib_prefix_of(&self, entry: usize) -> Option<Name> {
        let name = self.looked_up(entry);
        let prefixes = self.fib.keys().filter(|prefix| name.starts_with(prefix) && !self.fib[*prefix].is_empty());
        prefixes.max_by_key(|prefix| prefix.len()).cloned()
    }

    fn strategy_of(&self, name: &Name) -> Strategy {
        let choices = self.strategies.iter().filter(|(prefix, _)| name.starts_with(prefix));
        choices.max_by_key(|(prefix, _)| prefix.len()).map_or(Strategy::BestRoute, |(_, strategy)| *strategy)
    }

    /// Returns whether scope and direction allow this downstream's Interest to be sent to that face.
    fn may_go(&self, name: &Name, downstream: FaceNumber, hop_limit: Option<u8>, upstream: FaceNumber) -> bool {
        let Some(to) = self.face(upstream) else { return false };
        let from_local = self.face(downstream).is_some_and(|face| face.local);
        (upstream != downstream || to.link == Link::AdHoc)
            && (to.local || !is_under(name, "/localhost"))
            && (to.local || from_local || !is_under(name, "/localhop"))
            && (to.local || hop_limit != Some(0))
    }

    fn is_dead(&self, name: &Name, nonce: Nonce) -> bool {
        let lifetime_ms = self.settings.dead_nonce_lifetime_ms;
        self.dead_nonces.iter().any(|(dead_name, dead_nonce, since_ms)| {
            dead_name == name && *dead_nonce == nonce && self.now_ms - since_ms < lifetime_ms
        })
    }

    fn end_due_entries(&mut self) {
        let now_ms = self.now_ms;
        let (ended, pending) = std::mem::take(&mut self.pit).into_iter().partition(|entry| entry.expiry_ms <= now_ms);
        self.pit = pending;
        let ended: Vec<PitEntry> = ended;
        for entry in ended.into_iter().filter(|entry| !entry.nonces_not_needed) {
            for record in entry.out_records {
                self.dead_nonces.push((entry.name.clone(), record.nonce, now_ms));
            }
        }
    }
}

fn is_under(name: &Name, prefix: &str) -> bool {
    name.starts_with(&self::name(prefix))
}
