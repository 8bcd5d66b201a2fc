//! Makes the forwarder send the measurement's Interests to the producer.
//!
//! On Unix and TCP the producer's own connection registers the prefix. On UDP a forwarder takes no
//! commands by default, so a local control connection creates a face to the producer's address and
//! registers the prefix for it.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use namehop_wire::lp::LpPacket;
use namehop_wire::tlv::{Reader, Writer, decode_nni, types};
use namehop_wire::{Data, Interest};

use super::link::Link;
use super::{LoadConfig, LoadError};
use crate::endpoint::{RouteOptions, command};
use command::{CommandError, RibVerb};

/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(4);

/// A face that was created for the measurement and has to go after it.
pub(super) struct Route {
    face_id: u64,
}

/// A connection for commands.
pub(super) struct Control {
    link: Link,
}

/// Registers the prefix of the measurement for the producer's link, which is given back.
pub(super) fn register(mut link: Link, config: &LoadConfig) -> Result<(Link, Option<(Control, Route)>), LoadError> {
    let fail = |reason: String| LoadError::Register { prefix: config.prefix.clone(), reason };
    let Some(address) = link.udp_address() else {
        let mut control = Control { link };
        control.register_route(config, RouteOptions::default()).map_err(|error| fail(error.to_string()))?;
        link = control.link;
        return Ok((link, None));
    };
    let Some(uri) = &config.control else {
        return Err(fail("a producer on UDP needs a local control connection".to_owned()));
    };
    let mut control = Control { link: Link::open(uri)? };
    let face_id = control.create_face(address).map_err(|error| fail(error.to_string()))?;
    let route = Route { face_id };
    let options = RouteOptions { face_id: Some(face_id), ..RouteOptions::default() };
    control.register_route(config, options).map_err(|error| fail(error.to_string()))?;
    Ok((link, Some((control, route))))
}

/// Sent to the forwarder, the producer's wildcard address is the loopback one.
fn face_uri(address: SocketAddr) -> String {
    let port = address.port();
    match address {
        SocketAddr::V4(v4) => {
            let ip = if v4.ip().is_unspecified() { std::net::Ipv4Addr::LOCALHOST } else { *v4.ip() };
            format!("udp4://{ip}:{port}")
        }
        SocketAddr::V6(v6) => {
            let ip = if v6.ip().is_unspecified() { std::net::Ipv6Addr::LOCALHOST } else { *v6.ip() };
            format!("udp6://[{ip}]:{port}")
        }
    }
}

impl Control {
    fn register_route(&mut self, config: &LoadConfig, options: RouteOptions) -> Result<(), CommandError> {
        let interest = command::rib_command(true, RibVerb::Register, &config.prefix, &options, now_ms())?;
        self.exchange(&interest).and_then(|packet| command::check_response(&packet)).map(drop)
    }

    /// Creates a face, or finds the one that exists.
    fn create_face(&mut self, remote: SocketAddr) -> Result<u64, CommandError> {
        let mut parameters = Writer::new();
        parameters.nested(types::nfd::CONTROL_PARAMETERS, |writer| {
            writer.element(types::nfd::URI, face_uri(remote).as_bytes());
        });
        let interest = command::command("faces", "create", true, &parameters, now_ms())?;
        let body = command::check_response(&self.exchange(&interest)?)?;
        face_id(&body).ok_or_else(|| CommandError::Malformed("the answer to faces/create names no face".to_owned()))
    }

    /// Removes the face, and with it its routes. Errors do not matter any more.
    pub(super) fn withdraw(mut self, route: &Route) {
        let mut parameters = Writer::new();
        parameters.nested(types::nfd::CONTROL_PARAMETERS, |writer| {
            writer.nni(types::nfd::FACE_ID, route.face_id);
        });
        if let Ok(interest) = command::command("faces", "destroy", true, &parameters, now_ms()) {
            let _ = self.exchange(&interest);
        }
    }

    /// Sends a command and waits for the Data of the same name.
    fn exchange(&mut self, interest: &[u8]) -> Result<Vec<u8>, CommandError> {
        let broken = |error: std::io::Error| CommandError::Malformed(format!("connection broke: {error}"));
        let name = Interest::decode(interest).map_err(|error| CommandError::Malformed(error.to_string()))?.name;
        self.link.send(interest, &[interest.len()]).map_err(broken)?;
        let until = Instant::now() + COMMAND_TIMEOUT;
        let mut answer = None;
        while Instant::now() < until {
            let receive = |frame: &[u8]| {
                let Ok(packet) = LpPacket::decode(frame) else { return };
                let Some(fragment) = packet.fragment else { return };
                if packet.nack.is_some() {
                    answer =
                        Some(Err(CommandError::Malformed("the forwarder refused the command with a Nack".to_owned())));
                } else if Data::decode(fragment).is_ok_and(|data| data.name == name) {
                    answer = Some(Ok(fragment.to_vec()));
                }
            };
            self.link.receive(receive).map_err(broken)?;
            if let Some(answer) = answer {
                return answer;
            }
        }
        Err(CommandError::Malformed("no answer to the command".to_owned()))
    }
}

fn face_id(body: &[u8]) -> Option<u64> {
    let parameters = Reader::new(body).read_typed(types::nfd::CONTROL_PARAMETERS).ok()?;
    let mut fields = Reader::new(parameters.value);
    while !fields.is_empty() {
        let field = fields.read_element().ok()?;
        if field.typ == types::nfd::FACE_ID {
            return decode_nni(field.value).ok();
        }
    }
    None
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as u64)
}
