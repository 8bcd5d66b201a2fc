//! Builds Interests for the management server from fuzz input, signed so that they pass authentication.

use std::sync::OnceLock;

use namehop_client::nfd::names::{self, module};
use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::security::{DigestSigner, KeySigner, PrivateKey, Signer, unix_time_ms};
use namehop_wire::tlv::{Writer, types};
use namehop_wire::{Interest, InterestBuilder, Name, NameRef, PrefixAnnouncement, SignatureInfo};

/// An Interest for the server.
pub struct Request {
    pub interest: Vec<u8>,
    /// Whether it is a signed command that the server supports.
    pub is_command: bool,
}

pub const COMMANDS: [(&str, &str); 14] = [
    (module::RIB, "register"),
    (module::RIB, "unregister"),
    (module::RIB, "announce"),
    (module::FACES, "create"),
    (module::FACES, "update"),
    (module::FACES, "destroy"),
    (module::FIB, "add-nexthop"),
    (module::FIB, "remove-nexthop"),
    (module::STRATEGY_CHOICE, "set"),
    (module::STRATEGY_CHOICE, "unset"),
    (module::CS, "config"),
    (module::CS, "erase"),
    (module::STRATEGY_CHOICE, "load"),
    (module::STRATEGY_CHOICE, "unload"),
];

const DATASETS: [(&str, &str); 13] = [
    (module::STATUS, "general"),
    (module::STATUS, "drops"),
    (module::FACES, "list"),
    (module::FACES, "channels"),
    (module::FACES, "query"),
    (module::FACES, "events"),
    (module::FIB, "list"),
    (module::RIB, "list"),
    (module::STRATEGY_CHOICE, "list"),
    (module::CS, "info"),
    (module::STATUS, "readvertise"),
    (module::STRATEGY_CHOICE, "loaded"),
    (module::FIB, "snapshot"),
];

/// Bit of an event: parameters get their enclosing element, and dataset names are requested with CanBePrefix.
const WRAPPED: u8 = 8;
/// Bit of an event: `/localhop` instead of `/localhost`.
const LOCALHOP: u8 = 16;
/// Bit of the byte that selects the command: sign with the trusted key.
const BY_KEY: u8 = 128;

/// Returns the Interest of an event; `None` if the input gives none. `number` must be different each time.
pub fn make(kind: u8, bytes: &[u8], number: u64) -> Option<Request> {
    if kind & 7 == 1 {
        Interest::decode(bytes).ok()?;
        return Some(Request { interest: bytes.to_vec(), is_command: false });
    }
    let (&choice, rest) = bytes.split_first()?;
    let prefix = if kind & LOCALHOP == 0 { names::localhost() } else { names::localhop() };
    if kind & 7 == 2 {
        let (module, verb) = DATASETS[usize::from(choice) % DATASETS.len()];
        let name = prefix.append_generic(module).append_generic(verb).append_name(NameRef::from_value(rest).ok()?);
        let interest = InterestBuilder::new(name).can_be_prefix(kind & WRAPPED != 0).nonce(1).build().ok()?;
        return Some(Request { interest, is_command: false });
    }
    let (module, verb) = COMMANDS[usize::from(choice & !BY_KEY) % COMMANDS.len()];
    let name = prefix.append_generic(module).append_generic(verb);
    let signer: &dyn Signer = if choice & BY_KEY == 0 { &DigestSigner } else { trusted_key() };
    let parameters = match kind & WRAPPED {
        0 => rest.to_vec(),
        _ => {
            let mut writer = Writer::new();
            writer.element(types::nfd::CONTROL_PARAMETERS, rest);
            writer.into_vec()
        }
    };
    let interest = match kind & 7 {
        3 => sign(InterestBuilder::new(name.append_generic(parameters)), signer, number)?,
        4 => v02(name.append_generic(parameters), signer, number)?,
        _ => {
            let name = names::localhost_verb(module::RIB, "announce");
            let announcement = if kind & WRAPPED == 0 { rest.to_vec() } else { announcement(rest, number)? };
            sign(InterestBuilder::new(name).application_parameters(announcement), signer, number)?
        }
    };
    // A builder may exceed the packet limits; such an Interest would never reach the server.
    Interest::decode(&interest).ok()?;
    Some(Request { interest, is_command: true })
}

/// Returns the key of the certificate in `trust-anchor.ndncert`.
pub fn trusted_key() -> &'static KeySigner {
    static KEY: OnceLock<KeySigner> = OnceLock::new();
    KEY.get_or_init(|| {
        // PKCS#8 header of an Ed25519 key (RFC 8410, section 7).
        let head = [0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        let key = PrivateKey::from_pkcs8(&[&head[..], &[7; 32]].concat()).expect("a key");
        KeySigner::new(key, "/fuzz/KEY/1".parse().expect("a name"))
    })
}

fn sign(builder: InterestBuilder, signer: &dyn Signer, number: u64) -> Option<Vec<u8>> {
    let options =
        InterestSignatureOptions { nonce: Some(number.to_be_bytes()), time_ms: Some(unix_time_ms()), sequence: None };
    builder.nonce(1).sign(signer, &options).ok()
}

/// Builds the older form of a command, with time, nonce and signature as name components.
fn v02(name: Name, signer: &dyn Signer, number: u64) -> Option<Vec<u8>> {
    let mut info = Writer::new();
    let signature_info = SignatureInfo {
        signature_type: signer.signature_type(),
        key_locator: signer.key_locator(),
        ..SignatureInfo::default()
    };
    signature_info.encode(types::SIGNATURE_INFO, &mut info);
    let name = name
        .append_generic(unix_time_ms().to_be_bytes())
        .append_generic(number.to_be_bytes())
        .append_generic(info.into_vec());
    let mut value = Writer::new();
    value.element(types::SIGNATURE_VALUE, &signer.sign(&[name.value()]).ok()?);
    InterestBuilder::new(name.append_generic(value.into_vec())).nonce(1).build().ok()
}

/// Returns an announcement of the name in `bytes`, signed by the trusted key.
fn announcement(bytes: &[u8], number: u64) -> Option<Vec<u8>> {
    let announcement = PrefixAnnouncement {
        prefix: NameRef::from_value(bytes).ok()?,
        version: number,
        expiration_ms: bytes.len() as u64 * 100,
        validity_period: None,
    };
    announcement.encode(trusted_key()).ok()
}
