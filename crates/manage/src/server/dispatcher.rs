//! From a link-layer packet to the command or dataset it asks for.
//!
//! What is not a well-formed request of the protocol gets no answer: unknown names, unsigned commands, commands whose
//! signature cannot be decoded.

use std::rc::Rc;

use namehop_packet::{FaceId, FaceScope};
use namehop_wire::lp::{LpPacket, PitToken};
use namehop_wire::security::unix_time_ms;
use namehop_wire::tlv::types;
use namehop_wire::{Interest, NameRef};

use super::reply::ReplyTo;
use super::verbs::{Verb, bad_request};
use super::{ControlPlane, Management};
use crate::authentication::{Authority, SignedCommand, Zone};
use crate::nfd::names::module;
use crate::nfd::numbers::status_code;
use crate::nfd::{ControlParameters, ControlResponse};

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
    /// Face it came in on.
    pub(super) face: FaceId,
}

impl Request<'_> {
    /// For an answer that caches may keep.
    pub(super) fn reply_to(&self) -> ReplyTo {
        ReplyTo { name: self.interest.name.to_owned(), token: self.token, no_cache: false }
    }
}

/// Who sent a command that is accepted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commander {
    /// Face it came in on.
    pub(super) face: FaceId,
    /// Why it is accepted.
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
    /// Takes a frame that the forwarding engine sent to the internal face: an Interest with IncomingFaceId, or what a
    /// command of this router's own came to.
    pub fn receive(self: &Rc<Self>, frame: &[u8]) {
        let Ok(packet) = LpPacket::decode(frame) else { return };
        // The answer to a command of this router's own.
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
            // Forwarding keeps /localhost on local faces; this is the second lock on the same door.
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
        if let Some(verb) = Verb::find(module.value, verb.value) {
            let module = String::from_utf8_lossy(module.value);
            self.command(&request, zone, &module, verb);
        } else if (module.value, verb.value) == (module::FACES.as_bytes(), b"events".as_slice()) {
            self.serve_face_event(&request);
        } else {
            self.serve_dataset(&request, module.value, verb.value);
        }
    }

    fn command(self: &Rc<Self>, request: &Request<'_>, zone: Zone, module: &str, verb: Verb) {
        let Some(command) = SignedCommand::read(&request.interest, VERB_END) else { return };
        let to = ReplyTo { no_cache: zone == Zone::Localhost, ..request.reply_to() };
        let authorized = self.authenticator.borrow_mut().authorize(zone, module, &command.signature, unix_time_ms());
        let commander = match authorized {
            Ok(authority) => Commander { face: request.face, authority },
            Err(rejection) => {
                return self.respond(&to, &ControlResponse::new(status_code::FORBIDDEN, rejection.to_string()));
            }
        };
        if verb == Verb::AnnouncePrefix {
            let response = match command.parameters {
                None => self.announce(command.application_parameters, request.face),
                Some(_) => bad_request("this command takes a prefix announcement, no ControlParameters".to_owned()),
            };
            return self.respond(&to, &response);
        }
        let parameters = match ControlParameters::decode(command.parameters.unwrap_or_default()) {
            Ok(parameters) => parameters,
            Err(error) => return self.respond(&to, &bad_request(format!("malformed ControlParameters: {error}"))),
        };
        if let Err(response) = verb.check(&parameters) {
            return self.respond(&to, &response);
        }
        self.carry_out(verb, parameters, commander, to);
    }

    fn carry_out(self: &Rc<Self>, verb: Verb, parameters: ControlParameters, commander: Commander, to: ReplyTo) {
        let this = Rc::clone(self);
        let face = commander.face;
        match verb {
            Verb::RegisterRoute => self.respond(&to, &self.register(parameters, commander)),
            Verb::UnregisterRoute => self.respond(&to, &self.unregister(parameters, commander)),
            Verb::AddNextHop => self.respond(&to, &self.add_next_hop(parameters, face)),
            Verb::RemoveNextHop => self.respond(&to, &self.remove_next_hop(parameters, face)),
            Verb::SetStrategy | Verb::UnsetStrategy => {
                let response = match verb {
                    Verb::SetStrategy => self.set_strategy(parameters),
                    _ => self.unset_strategy(parameters),
                };
                tokio::task::spawn_local(async move {
                    this.settle_strategies().await;
                    this.respond(&to, &response);
                });
            }
            Verb::CreateFace => {
                let authority = commander.authority;
                tokio::task::spawn_local(
                    async move { this.respond(&to, &this.create_face(parameters, authority).await) },
                );
            }
            Verb::UpdateFace => {
                tokio::task::spawn_local(async move { this.respond(&to, &this.update_face(parameters, face).await) });
            }
            Verb::DestroyFace => {
                tokio::task::spawn_local(async move { this.respond(&to, &this.destroy_face(parameters).await) });
            }
            Verb::ConfigureCs => {
                tokio::task::spawn_local(async move { this.respond(&to, &this.configure_cs(parameters).await) });
            }
            Verb::EraseCs => {
                tokio::task::spawn_local(async move { this.respond(&to, &this.erase_cs(parameters).await) });
            }
            // Answered by `command`: it has no ControlParameters.
            Verb::AnnouncePrefix => {}
        }
    }
}

/// The face that a FaceId field means: absent or 0 is the face that the command came in on.
pub(super) fn face_or_incoming(face_id: Option<u64>, incoming: FaceId) -> Option<FaceId> {
    match face_id {
        None | Some(0) => Some(incoming),
        Some(id) => u32::try_from(id).ok().map(FaceId),
    }
}
