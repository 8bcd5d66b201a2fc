//! Reasons why bytes are not a valid packet. Each reason has a fixed name, which is also the name of its drop
//! counter.

/// Reason why an input does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeError {
    /// The input ends inside an element.
    #[error("the input ends inside an element")]
    Truncated,
    /// More bytes follow after the only element that is allowed.
    #[error("bytes follow the end of the element")]
    TrailingBytes,
    /// A TYPE or LENGTH is not in its shortest form.
    #[error("a variable-size number is not in its shortest form")]
    NonMinimalNumber,
    /// A TYPE is 0 or above 2^32-1.
    #[error("an element type is zero or too large")]
    BadType,
    /// The packet is larger than [`MAX_PACKET_SIZE`](crate::MAX_PACKET_SIZE).
    #[error("the packet is larger than 8800 bytes")]
    TooLong,
    /// A NonNegativeInteger is not 1, 2, 4 or 8 bytes long.
    #[error("a non-negative integer is not 1, 2, 4 or 8 bytes long")]
    BadNumberLength,
    /// An element with a prescribed length has another one.
    #[error("an element does not have its prescribed length")]
    BadLength,
    /// The outermost element is not of the expected type.
    #[error("the outermost element is not of the expected type")]
    UnexpectedType,
    /// A critical element is unknown, out of order, or repeated.
    #[error("a critical element is unknown, out of order or repeated")]
    CriticalElement,
    /// The packet does not start with a Name.
    #[error("the packet does not start with a name")]
    MissingName,
    /// A required element other than the Name is missing.
    #[error("a required element is missing")]
    MissingElement,
    /// The Interest has an empty name.
    #[error("the name of the Interest is empty")]
    EmptyName,
    /// A name component has a TYPE outside 1..=65535, or a digest component is not 32 bytes long.
    #[error("a name component has a bad type or length")]
    BadComponent,
    /// The number of parameters digest components does not fit the presence of ApplicationParameters.
    #[error(
        "an Interest must have exactly one parameters digest component if it has application parameters, \
        otherwise none"
    )]
    ParametersDigest,
    /// An LpPacket has a header field that is unknown and may not be ignored.
    #[error("a link-layer header is unknown and must not be ignored")]
    UnknownLinkHeader,
    /// The header fields of an LpPacket are out of order or one is repeated.
    #[error("link-layer headers are out of order or repeated")]
    LinkHeaderOrder,
    /// A value is outside the set that its element allows.
    #[error("a value is not allowed")]
    BadValue,
    /// The memory given for the result is too small.
    #[error("the buffer for the result is too small")]
    OutputTooSmall,
}

impl DecodeError {
    /// All reasons, in the order of [`index`](Self::index).
    pub const ALL: [DecodeError; 18] = [
        DecodeError::Truncated,
        DecodeError::TrailingBytes,
        DecodeError::NonMinimalNumber,
        DecodeError::BadType,
        DecodeError::TooLong,
        DecodeError::BadNumberLength,
        DecodeError::BadLength,
        DecodeError::UnexpectedType,
        DecodeError::CriticalElement,
        DecodeError::MissingName,
        DecodeError::MissingElement,
        DecodeError::EmptyName,
        DecodeError::BadComponent,
        DecodeError::ParametersDigest,
        DecodeError::UnknownLinkHeader,
        DecodeError::LinkHeaderOrder,
        DecodeError::BadValue,
        DecodeError::OutputTooSmall,
    ];

    /// Returns the position in [`ALL`](Self::ALL), for arrays of counters.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the fixed name of the reason in counters: lower case, words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            DecodeError::Truncated => "truncated",
            DecodeError::TrailingBytes => "trailing-bytes",
            DecodeError::NonMinimalNumber => "non-minimal-number",
            DecodeError::BadType => "bad-type",
            DecodeError::TooLong => "too-long",
            DecodeError::BadNumberLength => "bad-number-length",
            DecodeError::BadLength => "bad-length",
            DecodeError::UnexpectedType => "unexpected-type",
            DecodeError::CriticalElement => "critical-element",
            DecodeError::MissingName => "missing-name",
            DecodeError::MissingElement => "missing-element",
            DecodeError::EmptyName => "empty-name",
            DecodeError::BadComponent => "bad-component",
            DecodeError::ParametersDigest => "parameters-digest",
            DecodeError::UnknownLinkHeader => "unknown-link-header",
            DecodeError::LinkHeaderOrder => "link-header-order",
            DecodeError::BadValue => "bad-value",
            DecodeError::OutputTooSmall => "output-too-small",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_reason_has_its_own_name_and_index() {
        let names: HashSet<_> = DecodeError::ALL.iter().map(|e| e.name()).collect();
        assert_eq!(names.len(), DecodeError::ALL.len());
        for (position, error) in DecodeError::ALL.iter().enumerate() {
            assert_eq!(error.index(), position);
        }
    }
}
