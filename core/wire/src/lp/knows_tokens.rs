//! KnowsPitTokens: a header field of this program's own, by which two peers find out whether each of them knows PIT tokens.
//!
//! A peer that does not know the field ignores it, because its TYPE is one that NDNLPv2 allows to ignore; and it ignores an
//! LpPacket without Fragment anyway. So the field can be sent to a peer of any age, which a PIT token cannot.

use crate::tlv::types;

/// VALUE of a field that asks for an answer. Any other VALUE asks for none.
const ASKS: u8 = 1;
const TELLS: u8 = 0;

/// What a KnowsPitTokens field says besides that its sender knows PIT tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowsPitTokens {
    /// Nothing.
    Tells,
    /// The peer is to answer with [`KnowsPitTokens::Tells`] if it knows them too.
    Asks,
}

impl KnowsPitTokens {
    /// Length of [`KnowsPitTokens::frame`] in bytes.
    pub const FRAME_LEN: usize = 7;

    /// The LpPacket with this field and no Fragment.
    pub const fn frame(self) -> [u8; Self::FRAME_LEN] {
        const { assert!(types::LP_PACKET <= 252) };
        let [high, low] = (types::LP_KNOWS_PIT_TOKENS as u16).to_be_bytes();
        let value = match self {
            KnowsPitTokens::Tells => TELLS,
            KnowsPitTokens::Asks => ASKS,
        };
        [types::LP_PACKET as u8, Self::FRAME_LEN as u8 - 2, 253, high, low, 1, value]
    }

    pub(super) const fn from_value(value: &[u8]) -> Self {
        match value {
            [ASKS] => KnowsPitTokens::Asks,
            _ => KnowsPitTokens::Tells,
        }
    }
}
