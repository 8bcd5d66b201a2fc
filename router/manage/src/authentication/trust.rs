//! Trusted keys: from certificate files, and through certificate chains from anchors.
//!
//! Chains are verified once, when the files are read. The store keeps every certificate that an anchor leads to, with
//! its issuer. The validity periods of the chain are checked for every signature.
//!
//! A trusted key has a [`Namespace`]: names under its own identity, and names under the `prefixes` of its anchor. An
//! anchor may issue a certificate for any identity, because the operator chose the anchor. Any other key may issue only
//! for identities under its own: a certificate for another identity is not trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use namehop_wire::certificate::{Certificate, load_certificate};
use namehop_wire::security::{PublicKey, SecurityError, Verifier, verify_data};
use namehop_wire::{Data, KeyLocator, Name, NameRef, SignatureInfo, ValidityPeriod};
use thiserror::Error;

use super::policy::{Rejection, TrustConfig};

/// Why a file of trusted certificates cannot be used.
#[derive(Debug, Error)]
pub enum TrustError {
    /// A configured certificate file is unusable.
    #[error("cannot use the certificate {}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The error.
        source: SecurityError,
    },
    /// The certificate folder cannot be read.
    #[error("cannot read the certificate folder {}: {source}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Why a signature is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UntrustedError {
    /// The signature does not name its key.
    #[error("the signature has no key locator with a name")]
    NoKeyLocator,
    /// No chain of certificates leads from a trust anchor to the key.
    #[error("the key {0} is not trusted")]
    UnknownKey(Name),
    /// A certificate is not yet valid or has expired.
    #[error("the certificate {0} is not valid at this time")]
    NotValidNow(Name),
    /// The signature is not by this key.
    #[error("the signature by {0} is wrong")]
    BadSignature(Name),
}

/// The key of one certificate.
#[derive(Debug)]
pub struct TrustedKey {
    name: Name,
    validity: ValidityPeriod,
    key: PublicKey,
}

impl TrustedKey {
    /// Reads a certificate file.
    ///
    /// # Errors
    /// When it cannot be read or is not a certificate with a supported key.
    pub fn load(path: &Path) -> Result<Self, TrustError> {
        let failed = |source| TrustError::Certificate { path: path.to_owned(), source };
        let packet = load_certificate(path).map_err(failed)?;
        let certificate = Certificate::decode(&packet).map_err(failed)?;
        TrustedKey::new(&certificate).map_err(failed)
    }

    fn new(certificate: &Certificate<'_>) -> Result<Self, SecurityError> {
        Ok(TrustedKey {
            name: certificate.name().to_owned(),
            validity: certificate.validity_period(),
            key: certificate.public_key()?,
        })
    }

    /// Returns the name of the key, without issuer and version.
    pub fn key_name(&self) -> NameRef<'_> {
        self.name.as_ref().without_last(2)
    }

    /// Returns the identity of the key: the name before `/KEY`.
    fn identity(&self) -> NameRef<'_> {
        self.name.as_ref().without_last(4)
    }

    /// Returns true if the signature names this key or a certificate of it. A certificate of another issuer also
    /// counts, because the key is the same.
    pub fn is_located_by(&self, info: &SignatureInfo<'_>) -> bool {
        let Some(KeyLocator::Name(locator)) = info.key_locator else { return false };
        (locator.len() > self.identity().len() && locator.is_prefix_of(self.name.as_ref()))
            || self.key_name().is_prefix_of(locator)
    }

    fn check_validity(&self, now_ms: u64) -> Result<(), UntrustedError> {
        if self.validity.contains(now_ms / 1000) { Ok(()) } else { Err(UntrustedError::NotValidNow(self.name.clone())) }
    }

    /// Verifies a signature by this key, and checks that its certificate is valid at the moment.
    ///
    /// # Errors
    /// `NotValidNow`, `BadSignature`.
    pub fn verify(
        &self,
        info: &SignatureInfo<'_>,
        signed_portions: &[&[u8]],
        value: &[u8],
        now_ms: u64,
    ) -> Result<(), UntrustedError> {
        self.check_validity(now_ms)?;
        self.key
            .verify(info.signature_type, signed_portions, value)
            .map_err(|_| UntrustedError::BadSignature(self.key_name().to_owned()))
    }
}

/// The names for which a trusted key may have routes.
#[derive(Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Name of the key.
    key_name: Name,
    /// The identity of the key, and the `prefixes` of its anchor.
    prefixes: Vec<Name>,
}

impl Namespace {
    /// Checks that `name` is in the namespace. Names under `/localhost` and `/localhop` never are.
    ///
    /// # Errors
    /// The names that the key may have routes for.
    pub fn check(&self, name: NameRef<'_>) -> Result<(), Rejection> {
        if is_scoped(name) {
            return Err(Rejection(
                "names under /localhost and /localhop are valid on one host or link only".to_owned(),
            ));
        }
        if self.prefixes.iter().any(|prefix| prefix.is_prefix_of(name)) {
            return Ok(());
        }
        let allowed: Vec<String> = self.prefixes.iter().map(Name::to_string).collect();
        Err(Rejection(format!(
            "the key {} may register routes under {} only; to allow more, set `prefixes` of its anchor in the router's \
             configuration",
            self.key_name,
            allowed.join(", ")
        )))
    }
}

/// Returns true for `/localhost`, `/localhop` and names below them.
fn is_scoped(name: NameRef<'_>) -> bool {
    name.get(0).is_some_and(|first| first.is_generic() && [&b"localhost"[..], b"localhop"].contains(&first.value))
}

#[derive(Debug)]
struct ChainLink {
    key: TrustedKey,
    /// Index of the issuer's certificate; `None` for an anchor.
    issuer: Option<usize>,
    /// `prefixes` of the anchor at the end of the chain.
    anchor_prefixes: Arc<[Name]>,
    namespace: Arc<Namespace>,
}

impl ChainLink {
    fn new(key: TrustedKey, issuer: Option<usize>, anchor_prefixes: Arc<[Name]>) -> Self {
        let prefixes = std::iter::once(key.identity().to_owned()).chain(anchor_prefixes.iter().cloned()).collect();
        let namespace = Arc::new(Namespace { key_name: key.key_name().to_owned(), prefixes });
        ChainLink { key, issuer, anchor_prefixes, namespace }
    }

    fn may_issue(&self, certificate: &TrustedKey) -> bool {
        self.issuer.is_none() || self.key.identity().is_prefix_of(certificate.identity())
    }
}

/// All keys that trust anchors lead to.
#[derive(Debug, Default)]
pub struct TrustStore {
    links: Vec<ChainLink>,
}

impl TrustStore {
    /// Reads anchors and certificates, and verifies the chains between them. Files in the folder that are not
    /// certificates, or that no anchor leads to, are left out with a warning.
    ///
    /// # Errors
    /// When an anchor cannot be used or the folder cannot be read.
    pub fn load(config: &TrustConfig) -> Result<Self, TrustError> {
        let mut store = TrustStore::default();
        for anchor in &config.anchors {
            let key = TrustedKey::load(&anchor.certificate)?;
            store.links.push(ChainLink::new(key, None, anchor.prefixes.as_slice().into()));
        }
        if let Some(folder) = &config.certificates {
            let packets = read_folder(folder)?;
            store.add_certificates(packets);
        }
        Ok(store)
    }

    fn add_certificates(&mut self, mut packets: Vec<(PathBuf, Vec<u8>)>) {
        loop {
            let before = packets.len();
            packets.retain(|(_, packet)| !self.add_if_issued(packet));
            if packets.len() == before {
                break;
            }
        }
        for (path, _) in packets {
            tracing::warn!(
                path = %path.display(),
                "certificate is not trusted: its issuer is neither a trust anchor nor a trusted key of a parent \
                 identity"
            );
        }
    }

    fn add_if_issued(&mut self, packet: &[u8]) -> bool {
        let Ok(certificate) = Certificate::decode(packet) else { return false };
        let data: &Data<'_> = certificate.data();
        let Ok(key) = TrustedKey::new(&certificate) else { return false };
        let issuer = self.links.iter().position(|link| {
            link.key.is_located_by(&data.signature_info)
                && link.may_issue(&key)
                && verify_data(data, &link.key.key).is_ok()
        });
        let Some(issuer) = issuer else { return false };
        let anchor_prefixes = Arc::clone(&self.links[issuer].anchor_prefixes);
        self.links.push(ChainLink::new(key, Some(issuer), anchor_prefixes));
        true
    }

    /// Returns true if there are no anchors.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the trusted key that made this signature, and its namespace.
    ///
    /// # Errors
    /// Why the signature is not trusted.
    pub fn verify(
        &self,
        info: &SignatureInfo<'_>,
        signed_portions: &[&[u8]],
        value: &[u8],
        now_ms: u64,
    ) -> Result<(&TrustedKey, &Arc<Namespace>), UntrustedError> {
        let Some(KeyLocator::Name(locator)) = info.key_locator else { return Err(UntrustedError::NoKeyLocator) };
        let mut reason = UntrustedError::UnknownKey(locator.to_owned());
        for link in self.links.iter().filter(|link| link.key.is_located_by(info)) {
            let verified = link
                .key
                .verify(info, signed_portions, value, now_ms)
                .and_then(|()| self.check_chain(link.issuer, now_ms));
            match verified {
                Ok(()) => return Ok((&link.key, &link.namespace)),
                Err(error) => reason = error,
            }
        }
        Err(reason)
    }

    fn check_chain(&self, mut issuer: Option<usize>, now_ms: u64) -> Result<(), UntrustedError> {
        // An issuer always precedes the certificates that it issued, so the loop ends.
        while let Some(link) = issuer.and_then(|index| self.links.get(index)) {
            link.key.check_validity(now_ms)?;
            issuer = link.issuer;
        }
        Ok(())
    }
}

fn read_folder(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, TrustError> {
    let failed = |source| TrustError::Folder { path: folder.to_owned(), source };
    let mut packets = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !path.is_file() {
            continue;
        }
        match load_certificate(&path) {
            Ok(packet) => packets.push((path, packet)),
            Err(error) => tracing::warn!(path = %path.display(), %error, "file is not a certificate"),
        }
    }
    // Directory order is not fixed; sorting makes the chains reproducible.
    packets.sort();
    Ok(packets)
}
