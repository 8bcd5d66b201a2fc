//! Certificates in files (`.ndncert`): the Data in base64.

use std::fs;
use std::path::Path;

use super::Certificate;
use crate::security::{SecurityError, base64};

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
