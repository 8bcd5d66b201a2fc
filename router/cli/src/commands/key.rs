//! `namehop key`: keys and self-signed certificates for signing and verifying Data.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand, ValueEnum};
use namehop_wire::certificate::{
    Certificate, load_certificate, new_key_name, save_certificate, self_signed_certificate,
};
use namehop_wire::security::{KeySigner, KeyType, PrivateKey, save_private_key, unix_time_ms};
use namehop_wire::{Name, ValidityPeriod};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::{self, properties};
use crate::units::parse_duration;

/// Create and show keys and certificates
#[derive(Args, Debug)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand, Debug)]
enum KeyCommand {
    Generate(GenerateArgs),
    Show(ShowArgs),
}

/// Kind of key.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// ECDSA on P-256; every NDN program understands it
    Ecdsa,
    /// Ed25519
    Ed25519,
}

/// Create a private key and a self-signed certificate
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop key generate /example/alice --key alice.key --certificate alice.ndncert")]
struct GenerateArgs {
    /// Name of the key's owner
    identity: Name,
    /// File for the private key (PKCS#8, PEM); must not exist
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// File for the certificate (base64)
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// Kind of key
    #[arg(long = "type", value_enum, default_value = "ecdsa")]
    kind: Kind,
    /// Validity period of the certificate
    #[arg(long, value_name = "DURATION", default_value = "365d", value_parser = parse_duration)]
    valid_for: Duration,
}

/// Show a certificate
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  namehop key show alice.ndncert --json")]
struct ShowArgs {
    /// Certificate file
    certificate: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CertificateView {
    name: String,
    identity: String,
    signature_type: u64,
    not_before_unix_s: u64,
    not_after_unix_s: u64,
    valid_now: bool,
}

impl KeyArgs {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            KeyCommand::Generate(args) => args.run(),
            KeyCommand::Show(args) => args.run(),
        }
    }
}

fn at<'p, E: std::fmt::Display>(path: &'p Path) -> impl Fn(E) -> Failure + 'p {
    move |error| Failure::failed(error).context(path.display())
}

impl GenerateArgs {
    fn run(self) -> Result<(), Failure> {
        let kind = match self.kind {
            Kind::Ecdsa => KeyType::Ecdsa,
            Kind::Ed25519 => KeyType::Ed25519,
        };
        let key = PrivateKey::generate(kind).map_err(Failure::failed)?;
        let key_name = new_key_name(self.identity.as_ref()).map_err(Failure::failed)?;
        save_private_key(&self.key, &key).map_err(|error| {
            Failure::failed(format!("cannot create a new file for the private key: {error}"))
                .context(self.key.display())
        })?;
        self.certify(KeySigner::new(key, key_name)).inspect_err(|_| {
            // A private key without a certificate is useless and would block the next attempt.
            let _ = std::fs::remove_file(&self.key);
        })
    }

    fn certify(&self, signer: KeySigner) -> Result<(), Failure> {
        let now_s = now_s();
        let period =
            ValidityPeriod { not_before_s: now_s, not_after_s: now_s.saturating_add(self.valid_for.as_secs()) };
        let packet = self_signed_certificate(&signer, unix_time_ms(), period).map_err(Failure::failed)?;
        save_certificate(&self.certificate, &packet).map_err(at(&self.certificate))?;
        let certificate = Certificate::decode(&packet).map_err(Failure::failed)?;
        output::line(certificate.name().to_string())
    }
}

impl ShowArgs {
    fn run(self) -> Result<(), Failure> {
        let packet = load_certificate(&self.certificate).map_err(at(&self.certificate))?;
        let certificate = Certificate::decode(&packet).map_err(at(&self.certificate))?;
        let period = certificate.validity_period();
        let view = CertificateView {
            name: certificate.name().to_string(),
            identity: certificate.identity().to_string(),
            signature_type: certificate.data().signature_info.signature_type,
            not_before_unix_s: period.not_before_s,
            not_after_unix_s: period.not_after_s,
            valid_now: (period.not_before_s..=period.not_after_s).contains(&now_s()),
        };
        if self.json {
            return output::json(&view);
        }
        output::print(&properties(&[
            ("Name", view.name),
            ("Identity", view.identity),
            ("Signature type", view.signature_type.to_string()),
            ("Valid", period.to_string()),
            ("Valid now", if view.valid_now { "yes" } else { "no" }.to_owned()),
        ]))
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
