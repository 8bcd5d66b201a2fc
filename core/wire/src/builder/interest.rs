//! Building Interest packets, signed and unsigned (NDN packet specification, interest.rst and signed-interest.rst).

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use super::{BuildError, check_length};
use crate::name::{ComponentRef, Name};
use crate::security::{SecurityError, Signer, unix_time_ms};
use crate::signature::SignatureInfo;
use crate::tlv::{Writer, types};

/// Elements that protect a signed Interest from replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterestSignatureOptions {
    /// SignatureNonce.
    pub nonce: Option<[u8; 8]>,
    /// SignatureTime: milliseconds since the Unix epoch.
    pub time_ms: Option<u64>,
    /// SignatureSeqNum.
    pub sequence: Option<u64>,
}

impl InterestSignatureOptions {
    /// Makes options with a random nonce and the current time.
    ///
    /// # Errors
    /// `Random` when the operating system has no random numbers.
    pub fn now() -> Result<Self, SecurityError> {
        let mut nonce = [0; 8];
        SystemRandom::new().fill(&mut nonce).map_err(|_| SecurityError::Random)?;
        Ok(InterestSignatureOptions { nonce: Some(nonce), time_ms: Some(unix_time_ms()), sequence: None })
    }
}

/// Builds an Interest packet.
#[derive(Debug, Clone, Default)]
pub struct InterestBuilder {
    name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<Name>,
    nonce: Option<u32>,
    lifetime_ms: Option<u64>,
    hop_limit: Option<u8>,
    application_parameters: Option<Vec<u8>>,
}

impl InterestBuilder {
    /// Makes a builder of an Interest with this name and nothing else.
    pub fn new(name: impl Into<Name>) -> Self {
        InterestBuilder { name: name.into(), ..InterestBuilder::default() }
    }

    /// Sets CanBePrefix.
    #[must_use]
    pub fn can_be_prefix(mut self, can_be_prefix: bool) -> Self {
        self.can_be_prefix = can_be_prefix;
        self
    }

    /// Sets MustBeFresh.
    #[must_use]
    pub fn must_be_fresh(mut self, must_be_fresh: bool) -> Self {
        self.must_be_fresh = must_be_fresh;
        self
    }

    /// Adds a name to the ForwardingHint.
    #[must_use]
    pub fn forwarding_hint(mut self, name: impl Into<Name>) -> Self {
        self.forwarding_hint.push(name.into());
        self
    }

    /// Sets the Nonce.
    #[must_use]
    pub fn nonce(mut self, nonce: u32) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Sets InterestLifetime, in milliseconds.
    #[must_use]
    pub fn lifetime_ms(mut self, lifetime_ms: u64) -> Self {
        self.lifetime_ms = Some(lifetime_ms);
        self
    }

    /// Sets HopLimit.
    #[must_use]
    pub fn hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = Some(hop_limit);
        self
    }

    /// Sets ApplicationParameters. Their digest becomes part of the name: it replaces the parameters digest component
    /// if the name has one, or is appended.
    #[must_use]
    pub fn application_parameters(mut self, parameters: impl Into<Vec<u8>>) -> Self {
        self.application_parameters = Some(parameters.into());
        self
    }

    /// Builds the packet without a signature.
    ///
    /// # Errors
    /// `EmptyName`, `ParametersDigest`, `TooLong`.
    pub fn build(&self) -> Result<Vec<u8>, BuildError> {
        let mut parameters = Writer::new();
        if let Some(value) = &self.application_parameters {
            parameters.element(types::APPLICATION_PARAMETERS, value);
        }
        self.assemble(parameters.as_slice())
    }

    /// Builds and signs the packet. ApplicationParameters that are not set are added as an empty element.
    ///
    /// # Errors
    /// `ParametersDigest`, `Sign`, `TooLong`.
    pub fn sign(&self, signer: &dyn Signer, options: &InterestSignatureOptions) -> Result<Vec<u8>, BuildError> {
        let mut parameters = Writer::new();
        parameters.element(types::APPLICATION_PARAMETERS, self.application_parameters.as_deref().unwrap_or_default());
        let info = SignatureInfo {
            signature_type: signer.signature_type(),
            key_locator: signer.key_locator(),
            nonce: options.nonce.as_ref().map(<[u8; 8]>::as_slice),
            time_ms: options.time_ms,
            sequence: options.sequence,
            validity_period: None,
        };
        info.encode(types::INTEREST_SIGNATURE_INFO, &mut parameters);
        let (before, behind) = self.split_name()?;
        let signature = signer.sign(&[before.value(), behind.value(), parameters.as_slice()])?;
        parameters.element(types::INTEREST_SIGNATURE_VALUE, &signature);
        self.assemble(parameters.as_slice())
    }

    /// Returns the name before and after the parameters digest component.
    fn split_name(&self) -> Result<(Name, Name), BuildError> {
        let name = self.name.as_ref();
        let mut positions = (0..).zip(name.components()).filter(|(_, component)| component.is_parameters_digest());
        let position = positions.next();
        if positions.next().is_some() {
            return Err(BuildError::ParametersDigest);
        }
        Ok(match position {
            Some((index, _)) => (name.prefix(index).to_owned(), name.suffix(index + 1).to_owned()),
            None => (self.name.clone(), Name::new()),
        })
    }

    /// Assembles the packet. `parameters` holds everything from ApplicationParameters on; empty when there are none.
    fn assemble(&self, parameters: &[u8]) -> Result<Vec<u8>, BuildError> {
        let name = if parameters.is_empty() {
            if self.name.components().any(|component| component.is_parameters_digest()) {
                return Err(BuildError::ParametersDigest);
            }
            self.name.clone()
        } else {
            let (before, behind) = self.split_name()?;
            let mut digest = [0; 32];
            digest.copy_from_slice(digest::digest(&digest::SHA256, parameters).as_ref());
            before.append(ComponentRef::parameters_digest(&digest)).append_name(behind.as_ref())
        };
        if name.is_empty() {
            return Err(BuildError::EmptyName);
        }
        let mut packet = Writer::with_capacity(name.value().len() + parameters.len() + 64);
        packet.nested(types::INTEREST, |writer| {
            writer.element(types::NAME, name.value());
            self.encode_selectors(writer);
            writer.raw(parameters);
        });
        check_length(packet.into_vec())
    }

    fn encode_selectors(&self, writer: &mut Writer) {
        if self.can_be_prefix {
            writer.element(types::CAN_BE_PREFIX, &[]);
        }
        if self.must_be_fresh {
            writer.element(types::MUST_BE_FRESH, &[]);
        }
        if !self.forwarding_hint.is_empty() {
            writer.nested(types::FORWARDING_HINT, |writer| {
                for name in &self.forwarding_hint {
                    writer.element(types::NAME, name.value());
                }
            });
        }
        if let Some(nonce) = self.nonce {
            writer.element(types::NONCE, &nonce.to_be_bytes());
        }
        if let Some(lifetime_ms) = self.lifetime_ms {
            writer.nni(types::INTEREST_LIFETIME, lifetime_ms);
        }
        if let Some(hop_limit) = self.hop_limit {
            writer.element(types::HOP_LIMIT, &[hop_limit]);
        }
    }
}
