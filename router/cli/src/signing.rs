//! Options that select the keys for signing Data and commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use namehop_wire::Name;
use namehop_wire::certificate::{Certificate, load_certificate};
use namehop_wire::security::{DigestSigner, HmacSigner, KeySigner, PrivateKey, Signer, load_private_key};

use crate::failure::Failure;

/// Environment variables with the default files of the key and the certificate that sign commands.
const KEY_VARIABLE: &str = "NAMEHOP_SIGNING_KEY";
const CERTIFICATE_VARIABLE: &str = "NAMEHOP_CERTIFICATE";

/// How commands to the forwarder are signed; by default with a plain SHA-256 digest.
#[derive(Args, Debug)]
pub struct CommandSigningArgs {
    /// Private key that signs commands, for a forwarder that accepts only certain keys
    ///
    /// A file from 'namehop key generate' (PKCS#8). If absent, the environment variable NAMEHOP_SIGNING_KEY names it.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Signing")]
    signing_key: Option<PathBuf>,
    /// Certificate of the signing key
    ///
    /// If absent, the environment variable NAMEHOP_CERTIFICATE names it.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Signing")]
    certificate: Option<PathBuf>,
}

impl CommandSigningArgs {
    /// Returns the signer selected by the options and the environment.
    pub fn signer(&self) -> Result<Arc<dyn Signer>, Failure> {
        let key = self.signing_key.clone().or_else(|| file_in_environment(KEY_VARIABLE));
        let certificate = self.certificate.clone().or_else(|| file_in_environment(CERTIFICATE_VARIABLE));
        Ok(signer_in_files(key.as_deref(), certificate.as_deref())?.unwrap_or_else(|| Arc::new(DigestSigner)))
    }
}

/// How Data and the registration of its prefix are signed; by default with a plain SHA-256 digest.
#[derive(Args, Debug)]
pub struct SigningArgs {
    /// Private key (PKCS#8: PEM, base64 or binary; ECDSA P-256, Ed25519 or RSA) that signs the Data
    ///
    /// It also signs the registration of the prefix, unless --command-key or NAMEHOP_SIGNING_KEY is given.
    #[arg(long, value_name = "FILE", requires = "locator", conflicts_with = "hmac_key", help_heading = "Signing")]
    signing_key: Option<PathBuf>,
    /// Certificate with the name for the key locator
    #[arg(long, value_name = "FILE", group = "locator", help_heading = "Signing")]
    certificate: Option<PathBuf>,
    /// Name for the key locator
    #[arg(long, value_name = "NAME", group = "locator", help_heading = "Signing")]
    key_name: Option<Name>,
    /// File with a shared secret for HMAC-SHA256
    #[arg(long, value_name = "FILE", requires = "key_name", help_heading = "Signing")]
    hmac_key: Option<PathBuf>,
    /// Private key that signs the registration of the prefix, for a forwarder that accepts only certain keys
    ///
    /// If absent, the environment variable NAMEHOP_SIGNING_KEY names it, then --signing-key.
    #[arg(long, value_name = "FILE", help_heading = "Signing")]
    command_key: Option<PathBuf>,
    /// Certificate of the key that signs the registration
    ///
    /// If absent, the environment variable NAMEHOP_CERTIFICATE names it.
    #[arg(long, value_name = "FILE", help_heading = "Signing")]
    command_certificate: Option<PathBuf>,
}

impl SigningArgs {
    /// Returns the signer of Data selected by the options.
    pub fn signer(&self) -> Result<Arc<dyn Signer>, Failure> {
        if let Some(path) = &self.hmac_key {
            let secret = std::fs::read(path).map_err(at(path))?;
            return Ok(Arc::new(HmacSigner::new(&secret, self.key_name.clone().unwrap_or_default())));
        }
        self.key_signer()
    }

    /// Returns the signer of commands selected by the options and the environment.
    pub fn command_signer(&self) -> Result<Arc<dyn Signer>, Failure> {
        let key = self.command_key.clone().or_else(|| file_in_environment(KEY_VARIABLE));
        let certificate = self.command_certificate.clone().or_else(|| file_in_environment(CERTIFICATE_VARIABLE));
        match signer_in_files(key.as_deref(), certificate.as_deref())? {
            Some(signer) => Ok(signer),
            // A forwarder cannot verify a shared secret, so it does not sign commands.
            None => self.key_signer(),
        }
    }

    fn key_signer(&self) -> Result<Arc<dyn Signer>, Failure> {
        let Some(path) = &self.signing_key else { return Ok(Arc::new(DigestSigner)) };
        let key = load_private_key(path).map_err(at(path))?;
        let locator = match &self.certificate {
            Some(certificate) => name_of_certificate(certificate, path, &key)?,
            None => self.key_name.clone().unwrap_or_default(),
        };
        Ok(Arc::new(KeySigner::new(key, locator)))
    }
}

fn at<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> Failure + '_ {
    move |error| Failure::failed(error).context(path.display())
}

/// Returns the file named by an environment variable; an empty variable counts as unset.
fn file_in_environment(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the signer with this key and certificate, or `None` if both are absent. Only one of them is an error.
fn signer_in_files(key: Option<&Path>, certificate: Option<&Path>) -> Result<Option<Arc<dyn Signer>>, Failure> {
    let (path, certificate) = match (key, certificate) {
        (None, None) => return Ok(None),
        (Some(key), Some(certificate)) => (key, certificate),
        (Some(alone), None) | (None, Some(alone)) => {
            let message = "signing commands needs both a private key and its certificate, and one of them is missing";
            return Err(Failure::usage(message).context(alone.display()));
        }
    };
    let key = load_private_key(path).map_err(at(path))?;
    let locator = name_of_certificate(certificate, path, &key)?;
    Ok(Some(Arc::new(KeySigner::new(key, locator))))
}

/// Returns the name in a certificate file. The certificate must be for this key, because signatures are otherwise not
/// verifiable.
fn name_of_certificate(path: &Path, key_path: &Path, key: &PrivateKey) -> Result<Name, Failure> {
    let packet = load_certificate(path).map_err(at(path))?;
    let certificate = Certificate::decode(&packet).map_err(at(path))?;
    let certified = certificate.public_key().map_err(at(path))?;
    if certified.to_der() != key.public_key().to_der() {
        let message = format!("this certificate does not belong to the key {}", key_path.display());
        return Err(Failure::failed(message).context(path.display()));
    }
    Ok(certificate.name().to_owned())
}
