//! A destination of readvertising: the routes announced to it, its availability, and its commands and answers as
//! packets.

use std::time::Duration;

use namehop_client::nfd::names::{self, module};
use namehop_client::nfd::{ControlResponse, ReadvertiseError, ReadvertiseStatus};
use namehop_packet::FaceId;
use namehop_wire::lp::{self, LpHeader, PitToken};
use namehop_wire::security::{DigestSigner, Signer, next_signature_time_ms, unix_time_ms};
use namehop_wire::{Data, Name, NameRef};

use super::announcer::{Announcer, AnnouncerLimits, Outcome, PrefixCounts, RibCommand};
use super::command::{self, RegistrationFields};
use super::signing::SigningIdentity;
use crate::rib::RoutesView;

/// InterestLifetime of a command, in milliseconds.
const COMMAND_LIFETIME_MS: u64 = 4_000;
/// Maximum number of prefixes announced to a routing daemon.
const MAX_PREFIXES: usize = 65_536;
/// Maximum number of unanswered commands to a routing daemon. Their order does not matter, because it ignores signature
/// times.
const DAEMON_WINDOW: usize = 16;
/// Refresh interval of announcements to a routing daemon (as in NFD).
const DAEMON_REFRESH: Duration = Duration::from_secs(3_600);
/// Lifetime of a registration at a gateway, in refresh intervals, in case this router ends without unregistering.
const GATEWAY_LIFETIME_REFRESHES: u64 = 12;
/// Minimum time between two warnings about refusals, in milliseconds.
const WARNING_PAUSE_MS: u64 = 60_000;

/// Settings for announcing routes to a routing daemon on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonSettings {
    /// Origins of the announced routes.
    pub origins: Vec<u64>,
}

/// Settings for announcing routes to a gateway.
#[derive(Debug)]
pub struct GatewaySettings {
    /// Key that signs the commands; its identity is the announced prefix.
    pub signing: SigningIdentity,
    /// Origins of the announced routes.
    pub origins: Vec<u64>,
    /// Cost of the route at the gateway.
    pub cost: u64,
    /// Time between two registrations of the same prefix.
    pub refresh: Duration,
}

/// How the announced prefixes follow from the routes.
#[derive(Debug)]
enum Policy {
    /// Each prefix, with the lowest cost of its routes.
    Each,
    /// One prefix for all names under it, with a fixed cost.
    Aggregate {
        identity: Name,
        cost: u64,
        /// Number of prefixes under it that have routes.
        covered: usize,
    },
}

/// A routing daemon or a gateway.
pub struct Destination {
    name: &'static str,
    /// Name prefix of its commands, before the verb.
    prefix: Name,
    /// The destination runs on this host and has registered its prefix.
    is_local: bool,
    origins: Vec<u64>,
    policy: Policy,
    fields: RegistrationFields,
    signer: Box<dyn Signer>,
    last_signature_time_ms: u64,
    announcer: Announcer,
    /// Faces through which it was reached at the last lookup.
    faces: Vec<FaceId>,
    quiet_until_ms: u64,
    /// Reason of the last refusal.
    last_refusal: String,
}

impl Destination {
    /// Creates the destination for a routing daemon on this host.
    pub fn daemon(settings: DaemonSettings) -> Self {
        let limits = AnnouncerLimits {
            max_prefixes: MAX_PREFIXES,
            window: DAEMON_WINDOW,
            refresh_ms: DAEMON_REFRESH.as_millis() as u64,
            timeout_ms: COMMAND_LIFETIME_MS,
        };
        Destination {
            name: "daemon",
            prefix: Name::new().append_generic("localhost").append_generic("nlsr").append_generic(module::RIB),
            is_local: true,
            origins: settings.origins,
            policy: Policy::Each,
            fields: RegistrationFields::default(),
            signer: Box::new(DigestSigner),
            last_signature_time_ms: 0,
            announcer: Announcer::new(limits),
            faces: Vec::new(),
            quiet_until_ms: 0,
            last_refusal: String::new(),
        }
    }

    /// Creates the destination for a gateway.
    pub fn gateway(settings: GatewaySettings) -> Self {
        let refresh_ms = u64::try_from(settings.refresh.as_millis()).unwrap_or(u64::MAX / 100);
        let limits = AnnouncerLimits {
            max_prefixes: 1,
            // Forwarders refuse a command with an earlier signature time than the last one, and networks reorder
            // packets.
            window: 1,
            refresh_ms,
            timeout_ms: COMMAND_LIFETIME_MS,
        };
        let SigningIdentity { identity, signer } = settings.signing;
        Destination {
            name: "gateway",
            prefix: names::localhop().append_generic(module::RIB),
            is_local: false,
            origins: settings.origins,
            policy: Policy::Aggregate { identity, cost: settings.cost, covered: 0 },
            fields: RegistrationFields {
                has_origin: true,
                expiration_ms: Some(refresh_ms.saturating_mul(GATEWAY_LIFETIME_REFRESHES)),
            },
            signer: Box::new(signer),
            last_signature_time_ms: 0,
            announcer: Announcer::new(limits),
            faces: Vec::new(),
            quiet_until_ms: 0,
            last_refusal: String::new(),
        }
    }

    /// Returns the name prefix of its commands, before the verb.
    pub fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Returns the minimum length of a FIB prefix that leads to the destination, in components. A daemon registers
    /// `/localhost/nlsr`; a gateway may be reached by the default route.
    pub fn min_fib_components(&self) -> usize {
        if self.is_local { self.prefix.len() - 1 } else { 0 }
    }

    /// Returns true if the destination is on this host.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns its status.
    pub fn status(&self, now_ms: u64) -> ReadvertiseStatus {
        let PrefixCounts { announced, waiting, refused, withdrawing } = self.announcer.prefix_counts();
        let last_error = self.announcer.last_failure().map(|failure| ReadvertiseError {
            prefix: failure.prefix.clone(),
            reason: match failure.outcome {
                Outcome::Accepted | Outcome::Refused => self.last_refusal.clone(),
                Outcome::Nacked => "the command was answered with a Nack".to_owned(),
                Outcome::TimedOut => "the command was not answered".to_owned(),
            },
            age_ms: now_ms.saturating_sub(failure.at_ms),
        });
        ReadvertiseStatus {
            destination: self.name.to_owned(),
            command_prefix: self.prefix.clone(),
            face_ids: self.faces.iter().map(|face| u64::from(face.0)).collect(),
            announced_prefixes: announced,
            waiting_prefixes: waiting,
            refused_prefixes: refused,
            withdrawing_prefixes: withdrawing,
            counters: self.announcer.counters(),
            last_error,
        }
    }

    /// Returns the lowest cost of the routes that are announced to it; `None` if there are none.
    pub fn cost_of(&self, routes: RoutesView<'_>) -> Option<u64> {
        routes.lowest_cost(&self.origins)
    }

    /// Handles a change of the [`cost_of`](Self::cost_of) a name.
    pub fn routes_changed(&mut self, prefix: NameRef<'_>, before: Option<u64>, after: Option<u64>, now_ms: u64) {
        if is_scoped(prefix) {
            return;
        }
        match &mut self.policy {
            Policy::Each => self.announcer.want(prefix, after, now_ms),
            Policy::Aggregate { identity, cost, covered } => {
                if !identity.is_prefix_of(prefix) {
                    return;
                }
                match (before, after) {
                    (None, Some(_)) => *covered += 1,
                    (Some(_), None) => *covered = covered.saturating_sub(1),
                    _ => return,
                }
                self.announcer.want(identity.as_ref(), (*covered > 0).then_some(*cost), now_ms);
            }
        }
    }

    /// Returns true, once, when there is room for prefixes that were left out. The caller then calls
    /// [`found`](Self::found) for every name that has routes.
    pub fn take_room_for_more(&mut self) -> bool {
        self.announcer.take_room_for_more()
    }

    /// Announces a name that the search through all routes has visited. `cost` is its [`cost_of`](Self::cost_of).
    pub fn found(&mut self, prefix: NameRef<'_>, cost: Option<u64>, now_ms: u64) {
        if matches!(self.policy, Policy::Each) && !is_scoped(prefix) {
            self.announcer.want(prefix, cost, now_ms);
        }
    }

    /// Sets the faces to which the FIB sends commands. A new face means that the destination was restarted or replaced,
    /// so everything is announced again.
    pub fn reached_through(&mut self, faces: Vec<FaceId>, now_ms: u64) {
        let is_new = faces.iter().any(|face| !self.faces.contains(face));
        self.faces = faces;
        if is_new {
            self.begin(now_ms);
        } else if self.faces.is_empty() && self.announcer.is_available() {
            self.announcer.destination_ended();
            tracing::info!(destination = self.name, "stopped announcing routes: the destination has no face");
        }
    }

    /// Handles a link that is up again: the peer may have been restarted, so everything is announced again.
    pub fn face_up(&mut self, face: FaceId, now_ms: u64) {
        if self.faces.contains(&face) {
            self.begin(now_ms);
        }
    }

    fn begin(&mut self, now_ms: u64) {
        self.announcer.destination_began(now_ms);
        let prefixes = self.announcer.prefix_count();
        tracing::info!(destination = self.name, prefixes, "announcing routes");
    }

    /// Returns the earliest time at which [`next_frame`](Self::next_frame) may have a command.
    pub fn next_due_ms(&self) -> Option<u64> {
        self.announcer.next_due_ms()
    }

    /// Returns the next command that is due, as a link-layer packet for the forwarding engine. Its PIT token holds
    /// `number` and the id of the command: see [`read_token`].
    pub fn next_frame(&mut self, number: u8, now_ms: u64) -> Option<Vec<u8>> {
        loop {
            let RibCommand { id, prefix, action } = self.announcer.next_command(now_ms)?;
            self.last_signature_time_ms = next_signature_time_ms(self.last_signature_time_ms, unix_time_ms());
            tracing::debug!(destination = self.name, %prefix, ?action, "command sent");
            let built = command::build(
                &self.prefix,
                prefix,
                action,
                self.fields,
                self.signer.as_ref(),
                self.last_signature_time_ms,
                COMMAND_LIFETIME_MS,
            );
            match (built, token(number, id)) {
                (Ok(interest), Some(pit_token)) => {
                    return Some(lp::encode_packet(&LpHeader { pit_token, ..LpHeader::default() }, Some(&interest)));
                }
                (Err(error), _) => {
                    tracing::warn!(destination = self.name, %error, "cannot encode a command");
                    self.last_refusal = format!("cannot encode the command: {error}");
                    self.announcer.ended(id, Outcome::Refused, now_ms);
                }
                (Ok(_), None) => {
                    self.last_refusal = "cannot encode the command".to_owned();
                    self.announcer.ended(id, Outcome::Refused, now_ms);
                }
            }
        }
    }

    /// Processes the Data that answers a command.
    pub fn answered(&mut self, id: u64, packet: &[u8], now_ms: u64) {
        let response = Data::decode(packet)
            .map_err(|error| error.to_string())
            .and_then(|data| ControlResponse::decode(data.content).map_err(|error| error.to_string()));
        // NLSR answers 204 if nothing had to be changed.
        let refusal = match response {
            Ok(response) if (200..300).contains(&response.code) => None,
            Ok(response) => Some(format!("{} {}", response.code, response.text)),
            Err(error) => Some(format!("not a response to a command: {error}")),
        };
        let outcome = if refusal.is_none() { Outcome::Accepted } else { Outcome::Refused };
        let Some(prefix) = self.announcer.ended(id, outcome, now_ms) else { return };
        let Some(refusal) = refusal else {
            tracing::debug!(destination = self.name, %prefix, "command accepted");
            return;
        };
        if now_ms >= self.quiet_until_ms {
            self.quiet_until_ms = now_ms + WARNING_PAUSE_MS;
            tracing::warn!(destination = self.name, %prefix, ?refusal, "the destination refused a route");
        } else {
            tracing::debug!(destination = self.name, %prefix, ?refusal, "command refused");
        }
        self.last_refusal = refusal;
    }

    /// Processes the Nack of a command.
    pub fn nacked(&mut self, id: u64, now_ms: u64) {
        if let Some(prefix) = self.announcer.ended(id, Outcome::Nacked, now_ms) {
            tracing::debug!(destination = self.name, %prefix, "command answered with a Nack");
        }
    }
}

/// Returns true for names that are valid on one host or one link only.
fn is_scoped(prefix: NameRef<'_>) -> bool {
    let first = prefix.get(0);
    first.is_some_and(|component| component.is_generic() && [&b"localhost"[..], b"localhop"].contains(&component.value))
}

/// Returns the PIT token of a command: destination number and command id.
fn token(number: u8, id: u64) -> Option<PitToken> {
    let mut bytes = [0; 9];
    bytes[0] = number;
    bytes[1..].copy_from_slice(&id.to_be_bytes());
    PitToken::from_slice(&bytes)
}

/// Returns the destination number and the command id in a PIT token.
pub fn read_token(token: &PitToken) -> Option<(usize, u64)> {
    let (&number, id) = token.as_slice().split_first()?;
    Some((number.into(), u64::from_be_bytes(id.try_into().ok()?)))
}
