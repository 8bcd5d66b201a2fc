//! The records of the state journal, and the state that they fold into.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64ct::{Base64, Encoding};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use namehop_engine::engine::{CsChange, CsConfig};

/// One change. Names and URIs are in text form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// First line of the file.
    Header {
        /// Always `namehop-state`.
        format: String,
        /// Version of the records; readers reject a newer one.
        version: u32,
    },
    /// A face was created or updated.
    Face(FaceRecord),
    /// The face with this [`identity`] was destroyed, and its routes with it.
    FaceRemoved(String),
    /// The face with this [`identity`] is now not permanent; its routes stay.
    FaceForgotten(String),
    /// A route was added or changed.
    Route(RouteRecord),
    /// A route was removed.
    RouteRemoved(RouteKey),
    /// A strategy was chosen.
    Strategy(StrategyRecord),
    /// The choice for this prefix was unset.
    StrategyRemoved(String),
    /// A strategy was loaded.
    StrategyLoaded(LoadedStrategyRecord),
    /// The strategy of this name was unloaded.
    StrategyUnloaded(String),
    /// The Content Store was configured.
    ContentStore(ContentStoreRecord),
    /// Data under this prefix was erased; the second tier of the Content Store may not have recorded this yet.
    DiskErasure(String),
    /// The second tier of the Content Store has recorded all erasures.
    DiskErasuresWritten,
    /// The time of day was set by this many milliseconds, positive if forward. The expiry times in earlier lines move
    /// by the same amount.
    ClockSet(i64),
}

/// Returns the key of a face: its remote URI, followed by the local one if given.
pub fn identity<'a>(uri: &'a str, local_uri: Option<&str>) -> Cow<'a, str> {
    local_uri.map_or(Cow::Borrowed(uri), |local_uri| Cow::Owned(format!("{uri} {local_uri}")))
}

/// A face to create again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaceRecord {
    /// Remote URI.
    pub uri: String,
    /// Local URI, if several faces may have the same remote URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_uri: Option<String>,
    /// FacePersistency code of the management protocol.
    pub persistency: u64,
    /// Flags of the management protocol.
    pub flags: u64,
    /// MTU in bytes, if one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u64>,
    /// Base congestion marking interval, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_congestion_marking_interval_ns: Option<u64>,
    /// Default congestion threshold, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_congestion_threshold_bytes: Option<u64>,
}

/// The key of a static route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RouteKey {
    /// Name prefix.
    pub prefix: String,
    /// Remote URI of the face.
    pub face: String,
    /// Local URI of the face, if several faces may have the same remote URI: over Ethernet and on multicast groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
}

/// A route with origin static.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RouteLine", into = "RouteLine")]
pub struct RouteRecord {
    /// Prefix and face.
    pub key: RouteKey,
    /// All other fields.
    pub terms: RouteTerms,
}

/// The fields of a route besides its prefix and face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteTerms {
    /// Cost; lower is preferred.
    pub cost: u64,
    /// Route flags of the management protocol.
    pub flags: u64,
    /// Expiry time, in milliseconds since the Unix epoch.
    pub expires_unix_ms: Option<u64>,
    /// Lifetime from adding the route to its expiry, in milliseconds. Limits the remaining lifetime even if the time of
    /// day is wrong.
    pub lifetime_ms: Option<u64>,
}

impl RouteTerms {
    /// Returns the remaining lifetime at this time of day; `None` = for ever, 0 = expired.
    pub fn remaining_ms(&self, now_unix_ms: u64) -> Option<u64> {
        let remaining_ms = self.expires_unix_ms?.saturating_sub(now_unix_ms);
        Some(remaining_ms.min(self.lifetime_ms.unwrap_or(u64::MAX)))
    }
}

/// A [`RouteRecord`] as it is serialized. Most lines of a long journal are routes, and deserializing flattened structs
/// takes several times as long.
#[derive(Serialize, Deserialize)]
struct RouteLine {
    prefix: String,
    face: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    local: Option<String>,
    cost: u64,
    flags: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_unix_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime_ms: Option<u64>,
}

impl From<RouteLine> for RouteRecord {
    fn from(line: RouteLine) -> Self {
        let RouteLine { prefix, face, local, cost, flags, expires_unix_ms, lifetime_ms } = line;
        let terms = RouteTerms { cost, flags, expires_unix_ms, lifetime_ms };
        RouteRecord { key: RouteKey { prefix, face, local }, terms }
    }
}

impl From<RouteRecord> for RouteLine {
    fn from(route: RouteRecord) -> Self {
        let RouteRecord { key: RouteKey { prefix, face, local }, terms } = route;
        let RouteTerms { cost, flags, expires_unix_ms, lifetime_ms } = terms;
        RouteLine { prefix, face, local, cost, flags, expires_unix_ms, lifetime_ms }
    }
}

/// A strategy choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyRecord {
    /// Name prefix.
    pub prefix: String,
    /// Full name with version and parameters.
    pub strategy: String,
}

/// A loaded strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedStrategyRecord {
    /// Name component of the strategy.
    pub name: String,
    /// SHA-256 of the object file, in hexadecimal digits.
    sha256: String,
    /// The object file, in Base64.
    object: String,
}

impl LoadedStrategyRecord {
    /// Creates the record of an object file.
    pub fn new(name: &str, object: &[u8]) -> Self {
        LoadedStrategyRecord { name: name.to_owned(), sha256: sha256(object), object: Base64::encode_string(object) }
    }

    /// Returns the object file; `None` if the record is damaged.
    pub fn object(&self) -> Option<Vec<u8>> {
        Base64::decode_vec(&self.object).ok().filter(|object| sha256(object) == self.sha256)
    }
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Content Store settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentStoreRecord {
    /// Maximum number of Data packets.
    pub capacity_packets: u64,
    /// Whether Data is admitted.
    pub admit: bool,
    /// Whether Interests are answered from the store.
    pub serve: bool,
    /// Cache policy with its settings; `None` unless chosen by a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

impl ContentStoreRecord {
    /// Creates the record of these settings; with the policy only if a command chose it.
    pub fn new(config: CsConfig, is_policy_chosen: bool) -> Self {
        let CsConfig { capacity_packets, admit, serve, policy, .. } = config;
        let policy = is_policy_chosen.then(|| policy.to_string());
        ContentStoreRecord { capacity_packets: capacity_packets as u64, admit, serve, policy }
    }
}

impl From<ContentStoreRecord> for CsChange {
    fn from(record: ContentStoreRecord) -> Self {
        CsChange {
            capacity: Some(usize::try_from(record.capacity_packets).unwrap_or(usize::MAX)),
            admit: Some(record.admit),
            serve: Some(record.serve),
            // A policy that only a newer release knows is ignored.
            policy: record.policy.and_then(|policy| policy.parse().ok()),
        }
    }
}

/// All records folded: the latest record of each kind and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SavedState {
    /// Faces, by [`identity`].
    pub faces: BTreeMap<String, FaceRecord>,
    /// Routes, by prefix and face.
    pub routes: BTreeMap<RouteKey, RouteTerms>,
    /// Strategy choices, by prefix; `None` if the choice was unset (it may come from the configuration file).
    pub strategies: BTreeMap<String, Option<String>>,
    /// Loaded strategies, by name.
    pub loaded_strategies: BTreeMap<String, LoadedStrategyRecord>,
    /// Content Store settings, if a command changed them.
    pub content_store: Option<ContentStoreRecord>,
    /// Prefixes under which Data was erased, as far as the second tier of the Content Store may not have recorded this
    /// yet.
    pub disk_erasures: BTreeSet<String>,
}

impl SavedState {
    /// Returns a description such as "2 routes, 1 face"; `None` for an empty state.
    pub fn summary(&self) -> Option<String> {
        let counts = [
            (self.routes.len(), "route", "routes"),
            (self.faces.len(), "face", "faces"),
            (self.strategies.len(), "strategy choice", "strategy choices"),
            (self.loaded_strategies.len(), "loaded strategy", "loaded strategies"),
            (usize::from(self.content_store.is_some()), "Content Store change", ""),
        ];
        let parts: Vec<String> = counts
            .into_iter()
            .filter(|&(count, ..)| count != 0)
            .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Applies one change.
    pub fn fold(&mut self, record: Record) {
        match record {
            Record::Header { .. } => {}
            Record::Face(face) => {
                self.faces.insert(identity(&face.uri, face.local_uri.as_deref()).into_owned(), face);
            }
            Record::FaceRemoved(uri) => {
                self.faces.remove(&uri);
                self.routes.retain(|key, _| identity(&key.face, key.local.as_deref()) != uri);
            }
            Record::FaceForgotten(uri) => {
                self.faces.remove(&uri);
            }
            Record::Route(route) => {
                self.routes.insert(route.key, route.terms);
            }
            Record::RouteRemoved(key) => {
                self.routes.remove(&key);
            }
            Record::Strategy(choice) => {
                self.strategies.insert(choice.prefix, Some(choice.strategy));
            }
            Record::StrategyRemoved(prefix) => {
                self.strategies.insert(prefix, None);
            }
            Record::StrategyLoaded(loaded) => {
                self.loaded_strategies.insert(loaded.name.clone(), loaded);
            }
            Record::StrategyUnloaded(name) => {
                self.loaded_strategies.remove(&name);
            }
            Record::ContentStore(settings) => self.content_store = Some(settings),
            Record::DiskErasure(prefix) => {
                self.disk_erasures.insert(prefix);
            }
            Record::DiskErasuresWritten => self.disk_erasures.clear(),
            Record::ClockSet(by_ms) => {
                for expires in self.routes.values_mut().filter_map(|terms| terms.expires_unix_ms.as_mut()) {
                    *expires = expires.saturating_add_signed(by_ms);
                }
            }
        }
    }

    /// Returns the shortest list of records that folds into this state.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let faces = self.faces.values().cloned().map(Record::Face);
        let routes = self.routes.iter();
        let routes = routes.map(|(key, terms)| Record::Route(RouteRecord { key: key.clone(), terms: *terms }));
        let strategies = self.strategies.iter().map(|(prefix, strategy)| match strategy {
            Some(strategy) => Record::Strategy(StrategyRecord { prefix: prefix.clone(), strategy: strategy.clone() }),
            None => Record::StrategyRemoved(prefix.clone()),
        });
        let loaded = self.loaded_strategies.values().cloned().map(Record::StrategyLoaded);
        let erasures = self.disk_erasures.iter().cloned().map(Record::DiskErasure);
        let content_store = self.content_store.clone().map(Record::ContentStore);
        faces.chain(routes).chain(loaded).chain(strategies).chain(content_store).chain(erasures)
    }
}
