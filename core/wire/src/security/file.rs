//! Keys and certificates in files.
//!
//! A certificate file (`.ndncert`) holds the Data in base64. A key file holds PKCS#8 as PEM text
//! (`-----BEGIN PRIVATE KEY-----`), in bare base64, or in binary form.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::{Certificate, PrivateKey, SecurityError, base64};

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Reads a certificate file and returns the packet, which has the form of a certificate.
///
/// # Errors
/// `Io`, `BadText`, `Decode`, `NotCertificate`.
pub fn load_certificate(path: &Path) -> Result<Vec<u8>, SecurityError> {
    let packet = base64::decode(&fs::read_to_string(path)?)?;
    Certificate::decode(&packet)?;
    Ok(packet)
}

/// Writes a certificate file.
///
/// # Errors
/// `Io`.
pub fn save_certificate(path: &Path, packet: &[u8]) -> Result<(), SecurityError> {
    Ok(fs::write(path, base64::encode_lines(packet))?)
}

/// Reads a key file.
///
/// # Errors
/// `Io`, `BadText`, `BadKey`, `Unsupported`.
pub fn load_private_key(path: &Path) -> Result<PrivateKey, SecurityError> {
    let bytes = fs::read(path)?;
    // Binary keys begin with the tag of a sequence; their base64 begins with M, and PEM with readable text.
    if bytes.first() == Some(&0x30) {
        return PrivateKey::from_pkcs8(&bytes);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| SecurityError::BadText)?;
    PrivateKey::from_pkcs8(&decode_pem(text)?)
}

/// Writes a new key file that only its owner can read. An existing file is not overwritten.
///
/// # Errors
/// `Io`.
pub fn save_private_key(path: &Path, key: &PrivateKey) -> Result<(), SecurityError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    write!(file, "{PEM_BEGIN}\n{}{PEM_END}\n", base64::encode_lines(key.pkcs8()))?;
    Ok(file.sync_all()?)
}

pub(super) fn decode_pem(text: &str) -> Result<Vec<u8>, SecurityError> {
    let Some((_, body)) = text.split_once(PEM_BEGIN) else { return base64::decode(text) };
    let (body, _) = body.split_once(PEM_END).ok_or(SecurityError::BadText)?;
    base64::decode(body)
}
