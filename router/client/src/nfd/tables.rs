//! Messages about prefixes: FIB entries, RIB entries and strategy choices.

use namehop_wire::Name;
use namehop_wire::tlv::{Writer, types::nfd};

use super::codec::{CodecError, DatasetItem, Fields, put_name, put_optional, put_strategy};

/// A next hop in a [`FibEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopRecord {
    /// Id of the face.
    pub face_id: u64,
    /// Lower is better.
    pub cost: u64,
}

/// One prefix in `fib/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FibEntry {
    /// Prefix.
    pub name: Name,
    /// Next hops of its Interests.
    pub next_hops: Vec<NextHopRecord>,
}

impl DatasetItem for NextHopRecord {
    const TYPE: u32 = nfd::NEXT_HOP_RECORD;

    fn encode_value(&self, writer: &mut Writer) {
        writer.nni(nfd::FACE_ID, self.face_id).nni(nfd::COST, self.cost);
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(NextHopRecord {
            face_id: fields.required_number(nfd::FACE_ID, "FaceId")?,
            cost: fields.required_number(nfd::COST, "Cost")?,
        })
    }
}

impl DatasetItem for FibEntry {
    const TYPE: u32 = nfd::FIB_ENTRY;

    fn encode_value(&self, writer: &mut Writer) {
        put_name(writer, &self.name);
        for next_hop in &self.next_hops {
            super::encode_item(next_hop, writer);
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(FibEntry { name: fields.required_name()?, next_hops: super::decode_items(value)? })
    }
}

/// A route in a [`RibEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Id of the face.
    pub face_id: u64,
    /// Origin of the route, see [`origin`](super::numbers::origin).
    pub origin: u64,
    /// Lower is better.
    pub cost: u64,
    /// Bits of [`route_flags`](super::numbers::route_flags).
    pub flags: u64,
    /// Remaining lifetime in milliseconds; absent if the route does not expire.
    pub expiration_period_ms: Option<u64>,
}

/// One prefix in `rib/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RibEntry {
    /// Prefix.
    pub name: Name,
    /// Its routes.
    pub routes: Vec<Route>,
}

impl DatasetItem for Route {
    const TYPE: u32 = nfd::ROUTE;

    fn encode_value(&self, writer: &mut Writer) {
        writer
            .nni(nfd::FACE_ID, self.face_id)
            .nni(nfd::ORIGIN, self.origin)
            .nni(nfd::COST, self.cost)
            .nni(nfd::FLAGS, self.flags);
        put_optional(writer, nfd::EXPIRATION_PERIOD, self.expiration_period_ms);
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(Route {
            face_id: fields.required_number(nfd::FACE_ID, "FaceId")?,
            origin: fields.required_number(nfd::ORIGIN, "Origin")?,
            cost: fields.required_number(nfd::COST, "Cost")?,
            flags: fields.required_number(nfd::FLAGS, "Flags")?,
            expiration_period_ms: fields.number(nfd::EXPIRATION_PERIOD)?,
        })
    }
}

impl DatasetItem for RibEntry {
    const TYPE: u32 = nfd::RIB_ENTRY;

    fn encode_value(&self, writer: &mut Writer) {
        put_name(writer, &self.name);
        for route in &self.routes {
            super::encode_item(route, writer);
        }
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(RibEntry { name: fields.required_name()?, routes: super::decode_items(value)? })
    }
}

/// One prefix in `strategy-choice/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategyChoice {
    /// Prefix.
    pub name: Name,
    /// Full name of its strategy.
    pub strategy: Name,
}

impl DatasetItem for StrategyChoice {
    const TYPE: u32 = nfd::STRATEGY_CHOICE;

    fn encode_value(&self, writer: &mut Writer) {
        put_name(writer, &self.name);
        put_strategy(writer, &self.strategy);
    }

    fn decode_value(value: &[u8]) -> Result<Self, CodecError> {
        let fields = Fields::parse(value)?;
        Ok(StrategyChoice {
            name: fields.required_name()?,
            strategy: fields.strategy()?.ok_or(CodecError::Missing("Strategy"))?,
        })
    }
}
