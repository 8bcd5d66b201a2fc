//! KnowsPitTokens: a header field specific to Namehop, by which two peers find out whether the other supports PIT
//! tokens.
//!
//! A peer that does not know the field ignores it, because NDNLPv2 allows to ignore its TYPE; and it ignores an
//! LpPacket without Fragment anyway. So the field can be sent to any peer, unlike a PIT token.

use crate::tlv::types;

/// VALUE of a field that requests an answer. Any other VALUE requests none.
const ASKS: u8 = 1;
const TELLS: u8 = 0;

/// The request in a KnowsPitTokens field. In any case the field states that its sender supports PIT tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnowsPitTokens {
    /// No request.
    Tells,
    /// The peer shall answer with [`KnowsPitTokens::Tells`] if it supports PIT tokens, too.
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
