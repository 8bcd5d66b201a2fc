//! Makes the forwarder route the measurement's Interests to the producer.
//!
//! On Unix and TCP, the producer's connection registers the prefix. On UDP, forwarders accept no commands by default. A
//! local control connection then creates a face to the producer's address and registers the prefix for it.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namehop_client::endpoint::{CommandError, RouteOptions, check_response, command};
use namehop_client::nfd::ControlParameters;
use namehop_client::nfd::names::module;
use namehop_client::target::TransportUri;
use namehop_wire::lp::{KnowsPitTokens, LpPacket};
use namehop_wire::security::{Signer, next_signature_time_ms, unix_time_ms};
use namehop_wire::{Data, Interest, Name};

use super::LoadError;
use super::link::{Link, PATIENCE};
use super::socket_link::SocketLink;

/// Time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(4);

/// A face created for the measurement, to be destroyed after it.
pub(super) struct CreatedFace {
    commander: CommandClient,
    link: SocketLink,
    face_id: u64,
}

/// Registers prefixes for a producer's link; on UDP by way of `control`. Returns the face created for that, if any.
pub(super) fn register(
    link: &mut SocketLink,
    prefixes: &[Name],
    control: Option<&TransportUri>,
    signer: &Arc<dyn Signer>,
) -> Result<Option<CreatedFace>, LoadError> {
    let mut commander = CommandClient { signer: Arc::clone(signer), last_time_ms: 0 };
    let (Some(address), Some(control)) = (link.udp_address(), control) else {
        report_token_support(link)?;
        for prefix in prefixes {
            commander.register_route(link, prefix, RouteOptions::default())?;
        }
        return Ok(None);
    };
    let mut control = SocketLink::open(control)?;
    let face_id = commander.create_face(&mut control, address).map_err(LoadError::CreateFace)?;
    let mut created = CreatedFace { commander, link: control, face_id };
    // Not before the face exists: the router would create an on-demand face.
    if let Err(error) = report_token_support(link) {
        created.destroy();
        return Err(error);
    }
    for prefix in prefixes {
        let options = RouteOptions { face_id: Some(face_id), ..RouteOptions::default() };
        if let Err(error) = created.commander.register_route(&mut created.link, prefix, options) {
            created.destroy();
            return Err(error);
        }
    }
    Ok(Some(created))
}

/// Tells the forwarder that this side returns PIT tokens, so that the forwarder looks up pending Interests by token.
fn report_token_support(link: &mut SocketLink) -> Result<(), LoadError> {
    let frame = KnowsPitTokens::Tells.frame();
    link.send(&frame, &[frame.len()]).map_err(LoadError::Io)
}

impl CreatedFace {
    /// Destroys the face and its routes, ignoring errors.
    pub(super) fn destroy(mut self) {
        let parameters = ControlParameters { face_id: Some(self.face_id), ..ControlParameters::default() };
        let _ = self.commander.exchange(&mut self.link, (module::FACES, "destroy"), &parameters);
    }
}

/// Returns the face URI of the producer. The forwarder gets the loopback address in place of the wildcard.
fn face_uri(address: SocketAddr) -> String {
    let port = address.port();
    match address {
        SocketAddr::V4(v4) => {
            let ip = if v4.ip().is_unspecified() { Ipv4Addr::LOCALHOST } else { *v4.ip() };
            format!("udp4://{ip}:{port}")
        }
        SocketAddr::V6(v6) => {
            let ip = if v6.ip().is_unspecified() { Ipv6Addr::LOCALHOST } else { *v6.ip() };
            format!("udp6://[{ip}]:{port}")
        }
    }
}

/// Sends signed commands, each with a newer time than the last.
struct CommandClient {
    signer: Arc<dyn Signer>,
    last_time_ms: u64,
}

impl CommandClient {
    fn register_route(&mut self, link: &mut SocketLink, prefix: &Name, options: RouteOptions) -> Result<(), LoadError> {
        let answer = self.exchange(link, (module::RIB, "register"), &options.parameters(prefix));
        answer.map(drop).map_err(|source| LoadError::Register { prefix: prefix.clone(), source })
    }

    fn create_face(&mut self, link: &mut SocketLink, remote: SocketAddr) -> Result<u64, CommandError> {
        let parameters = ControlParameters { uri: Some(face_uri(remote)), ..ControlParameters::default() };
        let created = self.exchange(link, (module::FACES, "create"), &parameters)?;
        created
            .face_id
            .ok_or_else(|| CommandError::Malformed("the answer to faces/create contains no face id".to_owned()))
    }

    /// Sends a command and waits for the Data of the same name; returns the parameters in the answer.
    fn exchange(
        &mut self,
        link: &mut SocketLink,
        verb: (&str, &str),
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, CommandError> {
        self.last_time_ms = next_signature_time_ms(self.last_time_ms, unix_time_ms());
        let interest = command(verb, link.is_local(), parameters, self.signer.as_ref(), self.last_time_ms)?;
        let broken = |error: std::io::Error| CommandError::Malformed(format!("connection failed: {error}"));
        let name = Interest::decode(&interest).map_err(|error| CommandError::Malformed(error.to_string()))?.name;
        link.send(&interest, &[interest.len()]).map_err(broken)?;
        let until = Instant::now() + COMMAND_TIMEOUT;
        let mut answer = None;
        while Instant::now() < until {
            let mut receive = |frame: &[u8]| {
                let Ok(packet) = LpPacket::decode(frame) else { return true };
                let Some(fragment) = packet.fragment else { return true };
                if packet.nack.is_some() {
                    answer =
                        Some(Err(CommandError::Malformed("the forwarder refused the command with a Nack".to_owned())));
                } else if Data::decode(fragment).is_ok_and(|data| data.name == name) {
                    answer = Some(check_response(fragment));
                }
                // A route works before the forwarder confirms it: Interests that arrive before the answer are kept for
                // the producer.
                packet.nack.is_some() || Interest::decode(fragment).is_err()
            };
            link.receive_some(PATIENCE, &mut receive).map_err(broken)?;
            if let Some(answer) = answer {
                return answer;
            }
        }
        Err(CommandError::Malformed("no answer to the command".to_owned()))
    }
}
