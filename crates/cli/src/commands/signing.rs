//! Options of producing commands that say how Data is signed.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use namehop_wire::Name;
use namehop_wire::security::{
    Certificate, DigestSigner, HmacSigner, KeySigner, Signer, load_certificate, load_private_key,
};

use crate::failure::Failure;

/// How Data is signed; a plain SHA-256 digest when nothing is given.
#[derive(Args, Debug)]
pub struct SigningArgs {
    /// Private key (PKCS#8: PEM, base64 or binary; ECDSA P-256, Ed25519 or RSA) that signs the Data
    #[arg(long, value_name = "FILE", requires = "locator", conflicts_with = "hmac_key")]
    signing_key: Option<PathBuf>,
    /// Certificate whose name goes into the key locator
    #[arg(long, value_name = "FILE", group = "locator")]
    certificate: Option<PathBuf>,
    /// Name that goes into the key locator
    #[arg(long, value_name = "NAME", group = "locator")]
    key_name: Option<Name>,
    /// File with a shared secret for HMAC-SHA256
    #[arg(long, value_name = "FILE", requires = "key_name")]
    hmac_key: Option<PathBuf>,
}

impl SigningArgs {
    /// The signer that the options describe.
    pub fn signer(&self) -> Result<Arc<dyn Signer>, Failure> {
        if let Some(path) = &self.hmac_key {
            let secret = std::fs::read(path).map_err(|error| Failure::failed(error).context(path.display()))?;
            return Ok(Arc::new(HmacSigner::new(&secret, self.key_name.clone().unwrap_or_default())));
        }
        let Some(path) = &self.signing_key else { return Ok(Arc::new(DigestSigner)) };
        let key = load_private_key(path).map_err(|error| Failure::failed(error).context(path.display()))?;
        Ok(Arc::new(KeySigner::new(key, self.locator()?)))
    }

    fn locator(&self) -> Result<Name, Failure> {
        let Some(path) = &self.certificate else { return Ok(self.key_name.clone().unwrap_or_default()) };
        let fail = |error| Failure::failed(error).context(path.display());
        let packet = load_certificate(path).map_err(fail)?;
        Ok(Certificate::decode(&packet).map_err(fail)?.name().to_owned())
    }
}
