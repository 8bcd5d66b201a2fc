//! Decodes the signature of a command Interest, in both formats in use.
//!
//! * v0.3: ApplicationParameters, InterestSignatureInfo and InterestSignatureValue, with the parameters digest as last
//!   name component (NDN packet specification, signed-interest.rst).
//! * v0.2: five name components after the verb: ControlParameters, timestamp, nonce, SignatureInfo, SignatureValue. The
//!   signature covers the name without its last component.

use namehop_wire::tlv::{read_single_element, types};
use namehop_wire::{Interest, SignatureInfo};

/// Signature of a command, with the signed bytes.
#[derive(Debug, Clone, Copy)]
pub struct CommandSignature<'a> {
    /// Type, key locator, time, nonce and sequence number, from either format.
    pub info: SignatureInfo<'a>,
    /// The signature.
    pub value: &'a [u8],
    /// The signed bytes, in order.
    pub signed_portions: [&'a [u8]; 3],
}

/// A complete command Interest. If its name contains a parameters digest, the digest is correct.
#[derive(Debug, Clone, Copy)]
pub struct SignedCommand<'a> {
    /// TLV-VALUE of the component after the verb; `None` for commands with their parameters elsewhere (`rib/announce`).
    pub parameters: Option<&'a [u8]>,
    /// ApplicationParameters; empty in the v0.2 form.
    pub application_parameters: &'a [u8],
    /// Its signature, not verified.
    pub signature: CommandSignature<'a>,
}

impl<'a> SignedCommand<'a> {
    /// Decodes the components after the first `verb_end`. `None` if the Interest is not a signed command or its
    /// signature cannot be decoded: such Interests get no answer.
    pub fn read(interest: &Interest<'a>, verb_end: usize) -> Option<Self> {
        match interest.application_parameters {
            Some(_) => Self::read_v03(interest, verb_end),
            None => Self::read_v02(interest, verb_end),
        }
    }

    fn read_v03(interest: &Interest<'a>, verb_end: usize) -> Option<Self> {
        let info = interest.signature_info?;
        let value = interest.signature_value?;
        let mut rest = interest.name.suffix(verb_end).components();
        let mut next = rest.next()?;
        let parameters = if next.is_generic() {
            let parameters = next.value;
            next = rest.next()?;
            Some(parameters)
        } else {
            None
        };
        if !next.is_parameters_digest() || rest.next().is_some() || !interest.check_parameters_digest() {
            return None;
        }
        Some(SignedCommand {
            parameters,
            application_parameters: interest.application_parameters?,
            signature: CommandSignature { info, value, signed_portions: interest.signed_portions()? },
        })
    }

    fn read_v02(interest: &Interest<'a>, verb_end: usize) -> Option<Self> {
        let name = interest.name;
        if name.len() != verb_end + 5 {
            return None;
        }
        let mut rest = name.suffix(verb_end).components();
        let (parameters, timestamp, nonce, info, value) =
            (rest.next()?, rest.next()?, rest.next()?, rest.next()?, rest.next()?);
        if ![parameters, timestamp, nonce, info, value].iter().all(|component| component.is_generic()) {
            return None;
        }
        let info = read_single_element(info.value).ok().filter(|element| element.typ == types::SIGNATURE_INFO)?;
        let value = read_single_element(value.value).ok().filter(|element| element.typ == types::SIGNATURE_VALUE)?;
        if nonce.value.is_empty() {
            return None;
        }
        let info = SignatureInfo {
            time_ms: Some(timestamp.as_number()?),
            nonce: Some(nonce.value),
            sequence: None,
            ..SignatureInfo::decode(info.value).ok()?
        };
        Some(SignedCommand {
            parameters: Some(parameters.value),
            application_parameters: &[],
            signature: CommandSignature {
                info,
                value: value.value,
                signed_portions: [name.without_last(1).value(), &[], &[]],
            },
        })
    }
}
