//! Builders for packets: `interest("/A").prefix().nonce(2)`, `data("/A").freshness(1_000)`.

use namehop_packet::Stamp;
use namehop_wire::data::implicit_digest;
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::{Writer, types};
use namehop_wire::{ComponentRef, Name};

pub fn name(uri: &str) -> Name {
    uri.parse().unwrap_or_else(|error| panic!("{uri}: {error}"))
}

/// A packet with its link-layer headers, before it is in a buffer.
#[derive(Clone)]
pub struct Packet {
    pub bytes: Vec<u8>,
    pub token: Vec<u8>,
    pub nack: Option<NackReason>,
    pub mark: u64,
    pub next_hop: Option<u64>,
    pub no_cache: bool,
    pub non_discovery: bool,
    pub announcement: Option<Vec<u8>>,
    pub stamp: Stamp,
}

impl Packet {
    pub fn raw(bytes: Vec<u8>) -> Self {
        Packet {
            bytes,
            token: Vec::new(),
            nack: None,
            mark: 0,
            next_hop: None,
            no_cache: false,
            non_discovery: false,
            announcement: None,
            stamp: Stamp::NONE,
        }
    }

    /// Marks the packet for measurement of its time in the router.
    pub fn stamp(mut self, stamp: Stamp) -> Self {
        self.stamp = stamp;
        self
    }

    pub fn token(mut self, token: &[u8]) -> Self {
        self.token = token.to_vec();
        self
    }

    pub fn mark(mut self, mark: u64) -> Self {
        self.mark = mark;
        self
    }

    pub fn next_hop(mut self, face: u64) -> Self {
        self.next_hop = Some(face);
        self
    }

    pub fn no_cache(mut self) -> Self {
        self.no_cache = true;
        self
    }

    pub fn non_discovery(mut self) -> Self {
        self.non_discovery = true;
        self
    }

    pub fn announcement(mut self, announcement: &[u8]) -> Self {
        self.announcement = Some(announcement.to_vec());
        self
    }

    /// Turns an Interest into a Nack for it.
    pub fn nack(mut self, reason: NackReason) -> Self {
        self.nack = Some(reason);
        self
    }
}

/// A builder of an Interest, with Nonce 1 by default.
#[derive(Clone)]
pub struct InterestMaker {
    name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    hint: Vec<Name>,
    nonce: Option<u32>,
    lifetime_ms: Option<u64>,
    hop_limit: Option<u8>,
    parameters: Option<Vec<u8>>,
}

pub fn interest(uri: &str) -> InterestMaker {
    interest_named(name(uri))
}

pub fn interest_named(name: Name) -> InterestMaker {
    InterestMaker {
        name,
        can_be_prefix: false,
        must_be_fresh: false,
        hint: Vec::new(),
        nonce: Some(1),
        lifetime_ms: None,
        hop_limit: None,
        parameters: None,
    }
}

impl InterestMaker {
    pub fn prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }

    pub fn fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }

    pub fn hint(mut self, delegation: &str) -> Self {
        self.hint.push(name(delegation));
        self
    }

    pub fn nonce(mut self, nonce: u32) -> Self {
        self.nonce = Some(nonce);
        self
    }

    pub fn no_nonce(mut self) -> Self {
        self.nonce = None;
        self
    }

    pub fn lifetime(mut self, milliseconds: u64) -> Self {
        self.lifetime_ms = Some(milliseconds);
        self
    }

    pub fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = Some(hop_limit);
        self
    }

    /// Adds ApplicationParameters, and their digest to the name.
    pub fn parameters(mut self, parameters: &[u8]) -> Self {
        let mut element = Writer::default();
        element.element(types::APPLICATION_PARAMETERS, parameters);
        let digest = implicit_digest(element.as_slice());
        let typ = types::PARAMETERS_SHA256_DIGEST_COMPONENT;
        self.name = self.name.append(ComponentRef::new(typ, &digest).expect("32 bytes"));
        self.parameters = Some(parameters.to_vec());
        self
    }

    pub fn packet(&self) -> Packet {
        let mut writer = Writer::default();
        writer.nested(types::INTEREST, |inner| {
            inner.element(types::NAME, self.name.value());
            if self.can_be_prefix {
                inner.element(types::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                inner.element(types::MUST_BE_FRESH, &[]);
            }
            if !self.hint.is_empty() {
                inner.nested(types::FORWARDING_HINT, |list| {
                    for delegation in &self.hint {
                        list.element(types::NAME, delegation.value());
                    }
                });
            }
            if let Some(nonce) = self.nonce {
                inner.element(types::NONCE, &nonce.to_be_bytes());
            }
            if let Some(lifetime_ms) = self.lifetime_ms {
                inner.nni(types::INTEREST_LIFETIME, lifetime_ms);
            }
            if let Some(hop_limit) = self.hop_limit {
                inner.element(types::HOP_LIMIT, &[hop_limit]);
            }
            if let Some(parameters) = &self.parameters {
                inner.element(types::APPLICATION_PARAMETERS, parameters);
            }
        });
        Packet::raw(writer.into_vec())
    }
}

impl From<InterestMaker> for Packet {
    fn from(maker: InterestMaker) -> Packet {
        maker.packet()
    }
}

/// A builder of Data.
#[derive(Clone)]
pub struct DataMaker {
    name: Name,
    freshness_ms: Option<u64>,
    content: Vec<u8>,
}

pub fn data(uri: &str) -> DataMaker {
    data_named(name(uri))
}

pub fn data_named(name: Name) -> DataMaker {
    DataMaker { name, freshness_ms: None, content: Vec::new() }
}

impl DataMaker {
    pub fn freshness(mut self, milliseconds: u64) -> Self {
        self.freshness_ms = Some(milliseconds);
        self
    }

    pub fn content(mut self, content: &[u8]) -> Self {
        self.content = content.to_vec();
        self
    }

    /// Returns the name with the implicit digest.
    pub fn full_name(&self) -> Name {
        self.name.clone().append(ComponentRef::implicit_digest(&implicit_digest(&self.packet().bytes)))
    }

    pub fn packet(&self) -> Packet {
        let mut writer = Writer::default();
        writer.nested(types::DATA, |inner| {
            inner.element(types::NAME, self.name.value());
            if let Some(freshness_ms) = self.freshness_ms {
                inner.nested(types::META_INFO, |meta| {
                    meta.nni(types::FRESHNESS_PERIOD, freshness_ms);
                });
            }
            inner.element(types::CONTENT, &self.content);
            inner.nested(types::SIGNATURE_INFO, |info| {
                info.nni(types::SIGNATURE_TYPE, 0);
            });
            inner.element(types::SIGNATURE_VALUE, &[0; 32]);
        });
        Packet::raw(writer.into_vec())
    }
}

impl From<DataMaker> for Packet {
    fn from(maker: DataMaker) -> Packet {
        maker.packet()
    }
}
