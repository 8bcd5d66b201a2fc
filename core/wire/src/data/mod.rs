//! Data packets (NDN packet specification, data.rst): a complete checked view, and the part a forwarder needs.

#[cfg(test)]
mod tests;

use ring::digest;

use crate::name::{ComponentRef, Name, NameRef};
use crate::signature::SignatureInfo;
use crate::tlv::{self, Element, OrderedReader, decode_nni, types};
use crate::{DecodeError, MAX_PACKET_SIZE};

/// ContentType numbers.
pub mod content_type {
    /// Payload: the default.
    pub const BLOB: u64 = 0;
    /// List of names under which the content can be found.
    pub const LINK: u64 = 1;
    /// Certificate.
    pub const KEY: u64 = 2;
    /// Negative response of an application.
    pub const NACK: u64 = 3;
    /// Manifest.
    pub const MANIFEST: u64 = 4;
    /// Prefix announcement.
    pub const PREFIX_ANNOUNCEMENT: u64 = 5;
    /// File-like ICN collection.
    pub const FLIC: u64 = 1024;
}

/// Position of each element in a Data.
#[inline]
const fn rank(typ: u32) -> u8 {
    match typ {
        types::NAME => 1,
        types::META_INFO => 2,
        types::CONTENT => 3,
        types::SIGNATURE_INFO => 4,
        types::SIGNATURE_VALUE => 5,
        _ => 0,
    }
}

/// Position of each element in a MetaInfo. Applications append their own elements to the known ones, with types in
/// 128..=252. These are ignored here, even if their type is critical.
const fn meta_info_rank(typ: u32) -> u8 {
    match typ {
        types::CONTENT_TYPE => 1,
        types::FRESHNESS_PERIOD => 2,
        types::FINAL_BLOCK_ID => 3,
        128..=252 => u8::MAX,
        _ => 0,
    }
}

/// The part of a Data before its Content: what a forwarder needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataHeader<'a> {
    /// Name.
    pub name: NameRef<'a>,
    /// ContentType, one of [`content_type`] or another number.
    pub content_type: u64,
    /// FreshnessPeriod in milliseconds.
    pub freshness_ms: Option<u64>,
    /// FinalBlockId: last component of the last segment's name.
    pub final_block_id: Option<ComponentRef<'a>>,
}

impl<'a> DataHeader<'a> {
    /// Decodes Name and MetaInfo of a Data that fills `packet`. The rest is not examined.
    ///
    /// # Errors
    /// When the outer element or one of these parts breaks a rule.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let value = outer_value(packet)?;
        let mut elements = OrderedReader::new(value, rank);
        let mut header = DataHeader::with_name(&mut elements)?;
        if let Some(element) = elements.next_element()?
            && element.typ == types::META_INFO
        {
            header.read_meta_info(element.value)?;
        }
        Ok(header)
    }

    fn with_name(elements: &mut OrderedReader<'a, impl Fn(u32) -> u8>) -> Result<Self, DecodeError> {
        match elements.next_element()? {
            // No element may precede the Name, not even one that could be ignored.
            Some(first) if first.typ == types::NAME && elements.position() == first.wire.len() => {
                Ok(DataHeader { name: NameRef::from_value(first.value)?, ..DataHeader::default() })
            }
            _ => Err(DecodeError::MissingName),
        }
    }

    fn read_meta_info(&mut self, value: &'a [u8]) -> Result<(), DecodeError> {
        let mut elements = OrderedReader::new(value, meta_info_rank);
        while let Some(element) = elements.next_element()? {
            match element.typ {
                types::CONTENT_TYPE => self.content_type = decode_nni(element.value)?,
                types::FRESHNESS_PERIOD => self.freshness_ms = Some(decode_nni(element.value)?),
                _ => self.final_block_id = Some(ComponentRef::decode(element.value)?),
            }
        }
        Ok(())
    }
}

/// A valid Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Name.
    pub name: NameRef<'a>,
    /// ContentType, one of [`content_type`] or another number.
    pub content_type: u64,
    /// FreshnessPeriod in milliseconds.
    pub freshness_ms: Option<u64>,
    /// FinalBlockId: last component of the last segment's name.
    pub final_block_id: Option<ComponentRef<'a>>,
    /// Content; empty when absent.
    pub content: &'a [u8],
    /// SignatureInfo.
    pub signature_info: SignatureInfo<'a>,
    /// SignatureValue.
    pub signature_value: &'a [u8],
    signed_portion: &'a [u8],
    wire: &'a [u8],
}

impl<'a> Data<'a> {
    /// Decodes a Data that fills `packet`. The signature is not verified.
    ///
    /// # Errors
    /// When the packet breaks a rule of data.rst or of TLV.
    pub fn decode(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let value = outer_value(packet)?;
        let mut elements = OrderedReader::new(value, rank);
        let mut header = DataHeader::with_name(&mut elements)?;
        let mut content: &[u8] = &[];
        let mut signature_info = None;
        let mut signature_value = None;
        let mut signed_portion: &[u8] = &[];
        while let Some(Element { typ, value: inner, .. }) = elements.next_element()? {
            match typ {
                types::META_INFO => header.read_meta_info(inner)?,
                types::CONTENT => content = inner,
                types::SIGNATURE_INFO => {
                    signature_info = Some(SignatureInfo::decode(inner)?);
                    signed_portion = &value[..elements.position()];
                }
                _ => signature_value = Some(inner),
            }
        }
        Ok(Data {
            name: header.name,
            content_type: header.content_type,
            freshness_ms: header.freshness_ms,
            final_block_id: header.final_block_id,
            content,
            signature_info: signature_info.ok_or(DecodeError::MissingElement)?,
            signature_value: signature_value.ok_or(DecodeError::MissingElement)?,
            signed_portion,
            wire: packet,
        })
    }

    /// The complete packet.
    #[inline]
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The signed bytes: from the Name to the end of SignatureInfo (signature.rst).
    #[inline]
    pub const fn signed_portion(&self) -> &'a [u8] {
        self.signed_portion
    }

    /// SHA-256 of the complete packet (name.rst "Implicit Digest Component").
    pub fn implicit_digest(&self) -> [u8; 32] {
        implicit_digest(self.wire)
    }

    /// The name with the implicit digest as its last component.
    pub fn full_name(&self) -> Name {
        self.name.to_owned().append(ComponentRef::implicit_digest(&self.implicit_digest()))
    }
}

/// SHA-256 of a complete Data packet (name.rst "Implicit Digest Component").
pub fn implicit_digest(packet: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, packet).as_ref());
    bytes
}

fn outer_value(packet: &[u8]) -> Result<&[u8], DecodeError> {
    if packet.len() > MAX_PACKET_SIZE {
        return Err(DecodeError::TooLong);
    }
    let outer = tlv::read_single_element(packet)?;
    if outer.typ == types::DATA { Ok(outer.value) } else { Err(DecodeError::UnexpectedType) }
}
