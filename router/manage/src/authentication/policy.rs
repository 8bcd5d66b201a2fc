//! Decides whether a command may be carried out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use namehop_wire::security::unix_time_ms;
use namehop_wire::signature::signature_type;
use namehop_wire::{Data, Name, NameRef};
use thiserror::Error;

use super::command::CommandSignature;
use super::replay::{Moment, ReplayGuard, TimeRecord};
use super::trust::{Namespace, TrustError, TrustStore, TrustedKey, UntrustedError};
use crate::rib::RouteLimits;

/// The signers that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signer {
    /// Every local application.
    Any,
    /// The holder of the key of the certificate in this file.
    Certificate(PathBuf),
}

/// Allows signers to command modules under `/localhost/nfd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The signers that may command the modules.
    pub signer: Signer,
    /// Modules, as in [`module`](namehop_client::nfd::names::module).
    pub modules: Vec<String>,
}

/// A certificate that is trusted without an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Path of its file.
    pub certificate: PathBuf,
    /// Names for which it, and every key that it leads to, may have routes, in addition to names under their own
    /// identities.
    pub prefixes: Vec<Name>,
}

impl From<PathBuf> for Anchor {
    /// Creates an anchor that gives its keys only routes under their own identities.
    fn from(certificate: PathBuf) -> Self {
        Anchor { certificate, prefixes: Vec::new() }
    }
}

/// Trust anchors and certificates below them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustConfig {
    /// Certificates that are trusted without an issuer.
    pub anchors: Vec<Anchor>,
    /// Folder of certificates that are trusted if a chain links them to an anchor.
    pub certificates: Option<PathBuf>,
}

/// The complete configuration of authorization.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecurityConfig {
    /// Rules for `/localhost/nfd`. Empty: every local application may command everything.
    pub rules: Vec<Rule>,
    /// Trust for `/localhop/nfd/rib`, which does not exist without anchors.
    pub localhop: TrustConfig,
    /// Trust for prefix announcements, which are refused without anchors.
    pub prefix_announcements: TrustConfig,
    /// Limits on routes from `/localhop` commands and prefix announcements.
    pub remote_routes: RouteLimits,
}

/// The prefix of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// `/localhost/nfd`, from a local face.
    Localhost,
    /// `/localhop/nfd`.
    Localhop,
}

/// The ground on which a command is accepted, which determines its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// It comes from a local application, and no rule requires more.
    Application,
    /// It is signed with the key of a certificate that a rule names.
    ListedKey,
    /// It came over HTTP with the token of the API, so it has the rights of the router's own user.
    Token,
    /// It came under `/localhop/nfd`, signed with a key that a trust anchor leads to. The key may have routes for these
    /// names.
    Neighbour(Arc<Namespace>),
}

/// Why a command or announcement is refused (status code 403).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Rejection(pub String);

impl From<UntrustedError> for Rejection {
    fn from(error: UntrustedError) -> Self {
        Rejection(error.to_string())
    }
}

#[derive(Debug)]
enum LoadedSigner {
    Any,
    Key(Box<TrustedKey>),
}

#[derive(Debug)]
struct LoadedRule {
    signer: LoadedSigner,
    modules: Vec<String>,
}

/// Authorizes commands and prefix announcements.
#[derive(Debug)]
pub struct Authenticator {
    rules: Vec<LoadedRule>,
    localhop: TrustStore,
    prefix_announcements: TrustStore,
    remote_routes: RouteLimits,
    replay: ReplayGuard,
    /// Origin of the monotonic clock.
    started: Instant,
}

impl Authenticator {
    /// Reads the certificates that the configuration names. From now on, commands signed before the present are
    /// refused.
    ///
    /// # Errors
    /// Names the file that cannot be read or is not a certificate.
    pub fn new(config: &SecurityConfig) -> Result<Self, TrustError> {
        Authenticator::started_at(config, unix_time_ms())
    }

    pub(super) fn started_at(config: &SecurityConfig, now_ms: u64) -> Result<Self, TrustError> {
        let load = |rule: &Rule| {
            let signer = match &rule.signer {
                Signer::Any => LoadedSigner::Any,
                Signer::Certificate(path) => LoadedSigner::Key(Box::new(TrustedKey::load(path)?)),
            };
            Ok(LoadedRule { signer, modules: rule.modules.clone() })
        };
        Ok(Authenticator {
            rules: config.rules.iter().map(load).collect::<Result<_, TrustError>>()?,
            localhop: TrustStore::load(&config.localhop)?,
            prefix_announcements: TrustStore::load(&config.prefix_announcements)?,
            remote_routes: config.remote_routes,
            replay: ReplayGuard::new(Moment { unix_ms: now_ms, monotonic_ms: 0 }, None),
            started: Instant::now(),
        })
    }

    /// Returns true if commands have to be signed with certain keys, so that their signature times are checked.
    pub fn checks_times(&self) -> bool {
        self.is_localhop_enabled() || self.rules.iter().any(|rule| matches!(rule.signer, LoadedSigner::Key(_)))
    }

    /// Refuses commands that an earlier process accepted, and records the times of accepted commands. Must be called
    /// before the first command.
    pub fn remember_times(&mut self, record: TimeRecord) {
        self.replay = ReplayGuard::new(self.moment(unix_time_ms()), Some(record));
    }

    fn moment(&self, unix_ms: u64) -> Moment {
        let monotonic_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Moment { unix_ms, monotonic_ms }
    }

    /// Returns true if `/localhop/nfd/rib` exists.
    pub fn is_localhop_enabled(&self) -> bool {
        !self.localhop.is_empty()
    }

    /// Returns the limits on routes that other hosts register.
    pub fn remote_route_limits(&self) -> RouteLimits {
        self.remote_routes
    }

    /// Authorizes a command to `module`, and remembers it against replay. `now_ms` is in milliseconds since the Unix
    /// epoch.
    ///
    /// # Errors
    /// Why the command is refused.
    pub fn authorize(
        &mut self,
        zone: Zone,
        module: &str,
        signature: &CommandSignature<'_>,
        now_ms: u64,
    ) -> Result<Authority, Rejection> {
        let now = self.moment(now_ms);
        match zone {
            Zone::Localhop => {
                let (key, namespace) =
                    self.localhop.verify(&signature.info, &signature.signed_portions, signature.value, now_ms)?;
                accept_once(&mut self.replay, key.key_name(), signature, now)?;
                Ok(Authority::Neighbour(Arc::clone(namespace)))
            }
            Zone::Localhost if self.rules.is_empty() => accept_any(signature).map(|()| Authority::Application),
            Zone::Localhost => self.authorize_by_rules(module, signature, now),
        }
    }

    fn authorize_by_rules(
        &mut self,
        module: &str,
        signature: &CommandSignature<'_>,
        now: Moment,
    ) -> Result<Authority, Rejection> {
        let (mut is_open_to_all, mut reason) = (false, None);
        let for_module = self.rules.iter().filter(|rule| rule.modules.iter().any(|listed| listed == module));
        for rule in for_module {
            match &rule.signer {
                LoadedSigner::Any => is_open_to_all = true,
                LoadedSigner::Key(key) if key.is_located_by(&signature.info) => {
                    let verified =
                        key.verify(&signature.info, &signature.signed_portions, signature.value, now.unix_ms);
                    let accepted = verified
                        .map_err(Rejection::from)
                        .and_then(|()| accept_once(&mut self.replay, key.key_name(), signature, now));
                    match accepted {
                        Ok(()) => return Ok(Authority::ListedKey),
                        Err(rejection) => reason = Some(rejection),
                    }
                }
                LoadedSigner::Key(_) => {}
            }
        }
        if is_open_to_all {
            return accept_any(signature).map(|()| Authority::Application);
        }
        Err(reason
            .unwrap_or_else(|| Rejection(format!("the signer of this command is not authorized for module {module}"))))
    }

    /// Checks that the key that signed this prefix announcement is trusted to announce `prefix`. Checks nothing else.
    ///
    /// # Errors
    /// Why the key is not trusted.
    pub fn verify_announcement(
        &self,
        announcement: &Data<'_>,
        prefix: NameRef<'_>,
        now_ms: u64,
    ) -> Result<(), Rejection> {
        if self.prefix_announcements.is_empty() {
            return Err(Rejection("no trust anchors for prefix announcements are configured".to_owned()));
        }
        let (_, namespace) = self.prefix_announcements.verify(
            &announcement.signature_info,
            &[announcement.signed_portion()],
            announcement.signature_value,
            now_ms,
        )?;
        namespace.check(prefix)
    }
}

fn accept_once(
    replay: &mut ReplayGuard,
    key: NameRef<'_>,
    signature: &CommandSignature<'_>,
    now: Moment,
) -> Result<(), Rejection> {
    replay.accept(key, signature, now).map_err(|error| Rejection(error.to_string()))
}

/// Accepts a command with any signature; a digest must be correct, so that damaged commands are refused.
fn accept_any(signature: &CommandSignature<'_>) -> Result<(), Rejection> {
    if signature.info.signature_type != signature_type::DIGEST_SHA256 {
        return Ok(());
    }
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    for portion in signature.signed_portions {
        digest.update(portion);
    }
    if digest.finish().as_ref() == signature.value {
        Ok(())
    } else {
        Err(Rejection("the digest of the command is wrong".to_owned()))
    }
}
