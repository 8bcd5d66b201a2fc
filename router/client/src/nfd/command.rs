//! Command Interests of the NFD management protocol: signed Interests of packet format v0.3 with the name
//! `<prefix>/<module>/<verb>/<ControlParameters>`.

use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::security::{SecurityError, Signer};
use namehop_wire::{BuildError, InterestBuilder, Name};
use ring::rand::{SecureRandom, SystemRandom};

/// How a command is sent.
#[derive(Debug, Clone, Copy)]
pub struct CommandOptions<'a> {
    /// SignatureTime in milliseconds since the Unix epoch; must be higher than in all earlier commands of this signer.
    pub time_ms: u64,
    /// InterestLifetime in milliseconds.
    pub lifetime_ms: u64,
    /// True if the answer must be fresh.
    pub must_be_fresh: bool,
    /// ApplicationParameters, such as a file.
    pub application_parameters: Option<&'a [u8]>,
}

/// Builds the command Interest with this name, which ends with its ControlParameters if the verb has any.
///
/// # Errors
/// If the packet would be too long, or signing fails.
pub fn build_command(name: Name, signer: &dyn Signer, options: &CommandOptions<'_>) -> Result<Vec<u8>, BuildError> {
    let mut nonce = [0; 4];
    SystemRandom::new().fill(&mut nonce).map_err(|_| SecurityError::Random)?;
    let signature = InterestSignatureOptions { time_ms: Some(options.time_ms), ..InterestSignatureOptions::now()? };
    let mut builder = InterestBuilder::new(name)
        .must_be_fresh(options.must_be_fresh)
        .nonce(u32::from_be_bytes(nonce))
        .lifetime_ms(options.lifetime_ms);
    if let Some(parameters) = options.application_parameters {
        builder = builder.application_parameters(parameters);
    }
    builder.sign(signer, &signature)
}
