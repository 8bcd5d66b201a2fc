//! Maps link-layer packets to commands and datasets.
//!
//! Malformed requests get no answer: unknown names, unsigned commands, and commands with a signature that cannot be
//! decoded.

use std::rc::Rc;

use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse};
use namehop_packet::{FaceId, FaceScope};
use namehop_wire::lp::{LpPacket, PitToken};
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::types;
use namehop_wire::{Interest, NameRef};

use super::reply::ReplyTo;
use super::verbs::{Action, Begun, Verb, bad_request};
use super::{ControlPlane, Management};
use crate::authentication::{Authority, SignedCommand, Zone};

/// Components up to the verb: `/localhost/nfd/<module>/<verb>`.
pub(super) const VERB_END: usize = 4;

/// First byte of a Data.
const DATA_TYPE: u8 = types::DATA as u8;

/// VALUE of `/localhost/nfd`.
const LOCALHOST_NFD: &[u8] = b"\x08\x09localhost\x08\x03nfd";
/// VALUE of `/localhop/nfd`.
const LOCALHOP_NFD: &[u8] = b"\x08\x08localhop\x08\x03nfd";

/// An Interest to the management server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) interest: Interest<'a>,
    pub(super) token: PitToken,
    /// The incoming face.
    pub(super) face: FaceId,
}

impl Request<'_> {
    pub(super) fn reply_to(&self) -> ReplyTo {
        ReplyTo { name: self.interest.name.to_owned(), token: self.token }
    }
}

/// The sender of an accepted command.
#[derive(Debug, Clone)]
pub(super) struct Requester {
    /// The incoming face.
    pub(super) face: FaceId,
    /// Why the command is accepted.
    pub(super) authority: Authority,
}

fn zone_of(name: NameRef<'_>) -> Option<Zone> {
    if name.value().starts_with(LOCALHOST_NFD) {
        Some(Zone::Localhost)
    } else if name.value().starts_with(LOCALHOP_NFD) {
        Some(Zone::Localhop)
    } else {
        None
    }
}

impl<C: ControlPlane> Management<C> {
    /// Processes a frame that the forwarding engine sent to the internal face: an Interest with IncomingFaceId, or the
    /// Data or Nack that answers one of the router's own commands.
    pub fn receive(self: &Rc<Self>, frame: &[u8]) {
        let Ok(packet) = LpPacket::decode(frame) else { return };
        // The answer to one of the router's own commands.
        if let Some(fragment) = packet.fragment
            && (packet.nack.is_some() || fragment.first() == Some(&DATA_TYPE))
        {
            return self.command_ended(&packet, fragment);
        }
        let (Some(fragment), Some(face), None) = (packet.fragment, packet.incoming_face_id, packet.nack) else {
            return;
        };
        let (Ok(interest), Ok(face)) = (Interest::decode(fragment), u32::try_from(face)) else { return };
        let request = Request { interest, token: packet.pit_token, face: FaceId(face) };
        let Some(zone) = zone_of(interest.name) else { return };
        let mut components = interest.name.components().skip(2);
        let (Some(module), Some(verb)) = (components.next(), components.next()) else { return };
        if !module.is_generic() || !verb.is_generic() {
            return;
        }
        match zone {
            // The forwarding engine accepts /localhost on local faces only. This check does not rely on it.
            Zone::Localhost => match self.control.faces().get(request.face) {
                Some(face) if face.scope() == FaceScope::Local => {}
                _ => return,
            },
            Zone::Localhop => {
                let is_rib = module.value == module::RIB.as_bytes();
                if !is_rib || !self.authenticator.borrow().is_localhop_enabled() {
                    return;
                }
            }
        }
        if let Some(verb) = Self::find_verb(module.value, verb.value) {
            let module = String::from_utf8_lossy(module.value);
            self.command(&request, zone, &module, verb);
        } else if (module.value, verb.value) == (module::FACES.as_bytes(), b"events".as_slice()) {
            self.serve_face_event(&request);
        } else {
            self.serve_dataset(&request, module.value, verb.value);
        }
    }

    fn command(self: &Rc<Self>, request: &Request<'_>, zone: Zone, module: &str, verb: &Verb<C>) {
        let Some(command) = SignedCommand::read(&request.interest, VERB_END) else { return };
        let to = request.reply_to();
        let authorized = self.authenticator.borrow_mut().authorize(zone, module, &command.signature, unix_time_ms());
        let requester = match authorized {
            Ok(authority) => Requester { face: request.face, authority },
            Err(rejection) => {
                return self.respond(&to, &ControlResponse::new(status_code::FORBIDDEN, rejection.to_string()));
            }
        };
        let parameters = match (&verb.action, command.parameters) {
            (Action::WithApplicationParameters(_), None) => Ok(ControlParameters::default()),
            (Action::WithApplicationParameters(_), Some(_)) => {
                Err(bad_request("this command takes ApplicationParameters, not ControlParameters".to_owned()))
            }
            (_, wire) => verb.decode(wire.unwrap_or_default()),
        };
        let begun = match parameters {
            Ok(parameters) => self.begin(verb, parameters, command.application_parameters, requester),
            Err(response) => Begun::Done(response),
        };
        match begun {
            Begun::Done(response) => self.respond(&to, &response),
            Begun::Running(response) => {
                let this = Rc::clone(self);
                tokio::task::spawn_local(async move { this.respond(&to, &response.await) });
            }
        }
    }
}

/// Resolves a FaceId field: absent or 0 means the incoming face.
pub(super) fn face_or_incoming(face_id: Option<u64>, incoming: FaceId) -> Option<FaceId> {
    match face_id {
        None | Some(0) => Some(incoming),
        Some(id) => u32::try_from(id).ok().map(FaceId),
    }
}
