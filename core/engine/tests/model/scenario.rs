//! Random scenarios for the property tests: routes, strategies, and a sequence of actions.

use proptest::prelude::*;

use super::packets::{self, IMPLICIT_DIGEST, Name, name};
use super::{Face, FaceNumber, Link, Unsolicited};

/// The faces. The last does not exist at first.
pub const FACES: [(FaceNumber, Face); 7] = [
    (256, Face { local: false, link: Link::PointToPoint, is_up: true }),
    (257, Face { local: false, link: Link::PointToPoint, is_up: true }),
    (258, Face { local: false, link: Link::MultiAccess, is_up: true }),
    (259, Face { local: false, link: Link::AdHoc, is_up: true }),
    (260, Face { local: true, link: Link::PointToPoint, is_up: true }),
    (261, Face { local: true, link: Link::PointToPoint, is_up: true }),
    (262, Face { local: false, link: Link::PointToPoint, is_up: true }),
];
pub const FACES_AT_START: usize = 6;

pub const NAMES: [&str; 14] = [
    "/a",
    "/a/a",
    "/a/b",
    "/a/b/a",
    "/a/b/b",
    "/b",
    "/b/a",
    "/m",
    "/m/a",
    "/m/a/b",
    "/localhost/a",
    "/localhost/m",
    "/localhop/a",
    "/localhop/m/a",
];
pub const PREFIXES: [&str; 9] = ["/", "/a", "/a/b", "/m", "/m/a", "/localhost", "/localhop", "/h", "/g"];
pub const HINTS: [&str; 4] = ["/h", "/h/x", "/g", "/region/r"];
/// A name that is never requested by prefix, with more hints than are kept for one name.
pub const NAME_WITH_MANY_HINTS: &str = "/v";
pub const MANY_HINTS: usize = 12;
pub const REGION: &str = "/region/r/1";
pub const LIFETIMES_MS: [Option<u64>; 6] = [None, Some(24), Some(101), Some(500), Some(1_004), Some(9_005)];
pub const FRESHNESS_MS: [Option<u64>; 4] = [None, Some(500), Some(4_000), Some(60_000)];
pub const WAITS_MS: [u64; 9] = [7, 14, 21, 42, 105, 259, 1_001, 4_004, 12_005];
/// Longer than the sequence lasts: prefix lookups of cached Data stay enabled for all lengths for a minute.
pub const TIME_LIMIT_MS: u64 = 55_000;
pub const TOKENS: [&[u8]; 4] = [b"", b"\x01", b"12345678", b"a token of thirty-two bytes here"];
pub const REASONS: [u64; 4] = [0, 50, 100, 150];
pub const DEAD_NONCE_LIFETIME_MS: u64 = 6_000;

#[derive(Debug, Clone)]
pub enum NameChoice {
    Plain(usize),
    /// The full name of the Data with this name, freshness and content.
    Full(usize, usize, u8),
}

#[derive(Debug, Clone)]
pub enum TokenChoice {
    Echoed,
    None,
    Garbage,
}

#[derive(Debug, Clone)]
pub enum Action {
    Interest {
        face: usize,
        name: NameChoice,
        can_be_prefix: bool,
        must_be_fresh: bool,
        nonce: Option<u8>,
        lifetime: usize,
        hop_limit: Option<u8>,
        hints: Vec<usize>,
        token: usize,
        mark: u64,
        next_hop: Option<usize>,
    },
    /// Interests for one name, each with its own forwarding hint.
    ManyHints {
        face: usize,
        first: usize,
        count: usize,
        nonce: u8,
    },
    /// An earlier Interest again, from the same or another face, with the same or another nonce.
    Again {
        which: usize,
        face: Option<usize>,
        nonce: Option<u8>,
    },
    /// Data that may be unsolicited.
    Data {
        face: usize,
        name: usize,
        freshness: usize,
        content: u8,
        mark: u64,
        no_cache: bool,
    },
    /// Data that answers an Interest the forwarder has sent.
    Answer {
        which: usize,
        longer: Option<bool>,
        freshness: usize,
        content: u8,
        mark: u64,
        no_cache: bool,
        token: TokenChoice,
    },
    /// A Nack for an Interest that the forwarder has sent.
    Nack {
        which: usize,
        reason: usize,
        nonce_differs: bool,
        mark: u64,
        token: TokenChoice,
    },
    Wait(usize),
    Routes {
        prefix: usize,
        nexthops: Vec<usize>,
    },
    /// A next hop of higher cost than the others.
    AddRoute {
        prefix: usize,
        face: usize,
    },
    RemoveFace(usize),
    RestoreFace(usize),
    SetUp {
        face: usize,
        is_up: bool,
    },
    ContentFlags {
        admit: bool,
        serve: bool,
    },
    /// The engine handles the packets since the last `EndOfBurst` as one burst.
    EndOfBurst,
}

fn any_name() -> impl Strategy<Value = NameChoice> {
    prop_oneof![
        9 => (0..NAMES.len()).prop_map(NameChoice::Plain),
        1 => (0..4_usize, 0..FRESHNESS_MS.len(), 0..2_u8)
            .prop_map(|(name, freshness, content)| NameChoice::Full(name, freshness, content)),
    ]
}

fn any_token() -> impl Strategy<Value = TokenChoice> {
    prop_oneof![3 => Just(TokenChoice::Echoed), 2 => Just(TokenChoice::None), 1 => Just(TokenChoice::Garbage)]
}

fn any_mark() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => Just(1), 1 => Just(2)]
}

fn any_interest() -> impl Strategy<Value = Action> {
    (
        (0..FACES.len(), any_name(), any::<bool>(), prop::bool::weighted(0.3)),
        (prop::option::weighted(0.85, 0..5_u8), 0..LIFETIMES_MS.len()),
        prop::option::weighted(0.3, 0..4_u8),
        prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(0..HINTS.len(), 1..3)],
        (0..TOKENS.len(), any_mark(), prop::option::weighted(0.05, 0..FACES.len())),
    )
        .prop_map(
            |(
                (face, name, can_be_prefix, must_be_fresh),
                (nonce, lifetime),
                hop_limit,
                hints,
                (token, mark, next_hop),
            )| Action::Interest {
                face,
                name,
                can_be_prefix,
                must_be_fresh,
                nonce,
                lifetime,
                hop_limit,
                hints,
                token,
                mark,
                next_hop,
            },
        )
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        30 => any_interest(),
        15 => (0..6_usize, prop::option::of(0..FACES.len()), prop::option::weighted(0.7, 0..5_u8))
            .prop_map(|(which, face, nonce)| Action::Again { which, face, nonce }),
        3 => (0..FACES.len(), 0..MANY_HINTS, 1..MANY_HINTS, 0..8_u8)
            .prop_map(|(face, first, count, nonce)| Action::ManyHints { face, first, count, nonce }),
        6 => (0..FACES.len(), 0..NAMES.len(), 0..FRESHNESS_MS.len(), 0..2_u8, any_mark(), prop::bool::weighted(0.1))
            .prop_map(|(face, name, freshness, content, mark, no_cache)| {
                Action::Data { face, name, freshness, content, mark, no_cache }
            }),
        20 => (0..6_usize, prop::option::weighted(0.3, any::<bool>()), 0..FRESHNESS_MS.len(), 0..2_u8, any_mark(),
               prop::bool::weighted(0.1), any_token())
            .prop_map(|(which, longer, freshness, content, mark, no_cache, token)| {
                Action::Answer { which, longer, freshness, content, mark, no_cache, token }
            }),
        12 => (0..6_usize, 0..REASONS.len(), prop::bool::weighted(0.1), any_mark(), any_token())
            .prop_map(|(which, reason, nonce_differs, mark, token)| {
                Action::Nack { which, reason, nonce_differs, mark, token }
            }),
        20 => (0..WAITS_MS.len()).prop_map(Action::Wait),
        2 => (0..PREFIXES.len(), prop::collection::vec(0..FACES.len(), 0..4))
            .prop_map(|(prefix, nexthops)| Action::Routes { prefix, nexthops }),
        2 => (0..PREFIXES.len(), 0..FACES.len()).prop_map(|(prefix, face)| Action::AddRoute { prefix, face }),
        1 => (0..FACES.len()).prop_map(Action::RemoveFace),
        1 => (0..FACES.len()).prop_map(Action::RestoreFace),
        4 => (0..FACES.len(), any::<bool>()).prop_map(|(face, is_up)| Action::SetUp { face, is_up }),
        1 => (prop::bool::weighted(0.8), prop::bool::weighted(0.8))
            .prop_map(|(admit, serve)| Action::ContentFlags { admit, serve }),
        10 => Just(Action::EndOfBurst),
    ]
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub routes: Vec<Vec<usize>>,
    pub multicast: Vec<bool>,
    pub unsolicited: Unsolicited,
    pub accept_unasked: bool,
    pub default_hop_limit: u8,
    pub actions: Vec<Action>,
}

pub fn any_scenario() -> impl Strategy<Value = Scenario> {
    (
        prop::collection::vec(prop::collection::vec(0..FACES_AT_START, 0..4), PREFIXES.len()),
        prop::collection::vec(prop::bool::weighted(0.4), PREFIXES.len()),
        prop_oneof![
            Just(Unsolicited::DropAll),
            Just(Unsolicited::AdmitLocal),
            Just(Unsolicited::AdmitNetwork),
            Just(Unsolicited::AdmitAll)
        ],
        prop::bool::weighted(0.3),
        prop_oneof![3 => Just(0_u8), 1 => Just(2_u8)],
        prop::collection::vec(any_action(), 1..80),
    )
        .prop_map(|(routes, multicast, unsolicited, accept_unasked, default_hop_limit, actions)| Scenario {
            routes,
            multicast,
            unsolicited,
            accept_unasked,
            default_hop_limit,
            actions,
        })
}

/// Returns the chosen name.
pub fn choose_name(choice: &NameChoice) -> Name {
    match *choice {
        NameChoice::Plain(index) => name(NAMES[index]),
        NameChoice::Full(index, freshness, content) => {
            let mut full_name = name(NAMES[index]);
            let (_, data) = packets::encode_data(&full_name, FRESHNESS_MS[freshness], &[content]);
            full_name.push((IMPLICIT_DIGEST, data.digest));
            full_name
        }
    }
}
