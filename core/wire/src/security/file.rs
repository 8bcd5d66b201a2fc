//! Private keys in files: PKCS#8 as PEM text (`-----BEGIN PRIVATE KEY-----`), in bare base64, or in binary form.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::{PrivateKey, SecurityError, base64};

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

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
