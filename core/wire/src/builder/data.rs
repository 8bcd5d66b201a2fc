//! Building Data packets.

use super::{BuildError, check_length};
use crate::data::content_type;
use crate::name::{ComponentRef, Name};
use crate::security::Signer;
use crate::signature::{SignatureInfo, ValidityPeriod};
use crate::tlv::{Writer, types};

/// Builds a Data packet.
#[derive(Debug, Clone, Default)]
pub struct DataBuilder {
    name: Name,
    content_type: u64,
    freshness_ms: Option<u64>,
    /// The FinalBlockId's component as a complete element.
    final_block_id: Option<Vec<u8>>,
    content: Option<Vec<u8>>,
    validity_period: Option<ValidityPeriod>,
}

impl DataBuilder {
    /// Makes a builder of a Data with this name and nothing else.
    pub fn new(name: impl Into<Name>) -> Self {
        DataBuilder { name: name.into(), ..DataBuilder::default() }
    }

    /// Sets ContentType.
    #[must_use]
    pub fn content_type(mut self, content_type: u64) -> Self {
        self.content_type = content_type;
        self
    }

    /// Sets FreshnessPeriod, in milliseconds.
    #[must_use]
    pub fn freshness_ms(mut self, freshness_ms: u64) -> Self {
        self.freshness_ms = Some(freshness_ms);
        self
    }

    /// Sets FinalBlockId.
    #[must_use]
    pub fn final_block_id(mut self, component: ComponentRef<'_>) -> Self {
        let mut writer = Writer::with_capacity(component.wire_len());
        writer.element(component.typ, component.value);
        self.final_block_id = Some(writer.into_vec());
        self
    }

    /// Sets Content.
    #[must_use]
    pub fn content(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.content = Some(content.into());
        self
    }

    /// Sets the ValidityPeriod of the signature, which is meant for certificates.
    #[must_use]
    pub fn validity_period(mut self, validity_period: ValidityPeriod) -> Self {
        self.validity_period = Some(validity_period);
        self
    }

    /// Builds and signs the packet.
    ///
    /// # Errors
    /// `Sign`; `TooLong`.
    pub fn sign(&self, signer: &dyn Signer) -> Result<Vec<u8>, BuildError> {
        let mut signed =
            Writer::with_capacity(self.name.value().len() + self.content.as_ref().map_or(0, Vec::len) + 256);
        signed.element(types::NAME, self.name.value());
        self.encode_meta_info(&mut signed);
        if let Some(content) = &self.content {
            signed.element(types::CONTENT, content);
        }
        let info = SignatureInfo {
            signature_type: signer.signature_type(),
            key_locator: signer.key_locator(),
            validity_period: self.validity_period,
            ..SignatureInfo::default()
        };
        info.encode(types::SIGNATURE_INFO, &mut signed);
        let signature = signer.sign(&[signed.as_slice()])?;
        let mut packet = Writer::with_capacity(signed.len() + signature.len() + 16);
        packet.nested(types::DATA, |writer| {
            writer.raw(signed.as_slice()).element(types::SIGNATURE_VALUE, &signature);
        });
        check_length(packet.into_vec())
    }

    fn encode_meta_info(&self, writer: &mut Writer) {
        let mut meta_info = Writer::new();
        if self.content_type != content_type::BLOB {
            meta_info.nni(types::CONTENT_TYPE, self.content_type);
        }
        if let Some(freshness_ms) = self.freshness_ms {
            meta_info.nni(types::FRESHNESS_PERIOD, freshness_ms);
        }
        if let Some(component) = &self.final_block_id {
            meta_info.element(types::FINAL_BLOCK_ID, component);
        }
        if !meta_info.is_empty() {
            writer.element(types::META_INFO, meta_info.as_slice());
        }
    }
}
