//! The two management commands of producers, `rib/register` and `rib/unregister` (NFD management protocol, RIB
//! management). They are signed with DigestSha256 unless the application sets a key.

use std::sync::Arc;

use namehop_wire::builder::{InterestBuilder, InterestSignatureOptions};
use namehop_wire::security::{DigestSigner, Signer};
use namehop_wire::tlv::{Reader, Writer, decode_nni, types};
use namehop_wire::{Data, Name};

use super::{Endpoint, ExpressError};

/// Lifetime of a command Interest in milliseconds. Forwarders answer commands at once or never.
const COMMAND_LIFETIME_MS: u64 = 4000;
/// Status code of success.
const OK: u64 = 200;

/// Fields of a route other than its prefix; the forwarder chooses defaults for absent ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteOptions {
    /// Face of the next hop; `None` = the face that the command arrives on.
    pub face_id: Option<u64>,
    /// Origin of the route: 0 application, 65 client, 255 static.
    pub origin: Option<u64>,
    /// Cost, in arbitrary units.
    pub cost: Option<u64>,
    /// 1 = child-inherit, 2 = capture.
    pub flags: Option<u64>,
    /// Time until the route expires, in milliseconds.
    pub expiration_ms: Option<u64>,
}

/// Reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No answer arrived, or a Nack.
    #[error("the forwarder did not answer the command: {0}")]
    Express(#[from] ExpressError),
    /// The forwarder refused.
    #[error("the forwarder refused the command: {code} {text}")]
    Refused {
        /// Status code of the NFD management protocol.
        code: u64,
        /// Status text of the forwarder.
        text: String,
    },
    /// The answer is not a ControlResponse, or the command could not be built.
    #[error("{0}")]
    Malformed(String),
}

/// A RIB command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RibVerb {
    Register,
    Unregister,
}

impl RibVerb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            RibVerb::Register => "register",
            RibVerb::Unregister => "unregister",
        }
    }
}

/// Encodes the ControlParameters of a RIB command.
pub(crate) fn rib_parameters(verb: RibVerb, prefix: &Name, options: &RouteOptions) -> Writer {
    let mut parameters = Writer::new();
    parameters.nested(types::nfd::CONTROL_PARAMETERS, |writer| {
        writer.element(types::NAME, prefix.value());
        let mut field = |typ, value: Option<u64>| {
            if let Some(value) = value {
                writer.nni(typ, value);
            }
        };
        field(types::nfd::FACE_ID, options.face_id);
        field(types::nfd::ORIGIN, options.origin);
        if verb == RibVerb::Register {
            field(types::nfd::COST, options.cost);
            field(types::nfd::FLAGS, options.flags);
            field(types::nfd::EXPIRATION_PERIOD, options.expiration_ms);
        }
    });
    parameters
}

/// Builds a signed command Interest from encoded ControlParameters, under `/localhost` if `local`, otherwise under
/// `/localhop`.
pub(crate) fn command(
    (module, verb): (&str, &str),
    local: bool,
    parameters: &Writer,
    signer: &dyn Signer,
    signature_time_ms: u64,
) -> Result<Vec<u8>, CommandError> {
    let name = Name::new()
        .append_generic(if local { "localhost" } else { "localhop" })
        .append_generic("nfd")
        .append_generic(module)
        .append_generic(verb)
        .append_generic(parameters.as_slice());
    let protection =
        InterestSignatureOptions { nonce: Some(rand::random()), time_ms: Some(signature_time_ms), sequence: None };
    InterestBuilder::new(name)
        .nonce(rand::random())
        .lifetime_ms(COMMAND_LIFETIME_MS)
        .sign(signer, &protection)
        .map_err(|error| CommandError::Malformed(format!("cannot build the command: {error}")))
}

/// Decodes a ControlResponse and returns its encoded body (empty if there is none).
///
/// # Errors
/// Fails if the forwarder refused the command, or the answer is not a ControlResponse.
pub(crate) fn check_response(packet: &[u8]) -> Result<Vec<u8>, CommandError> {
    let malformed =
        |error: namehop_wire::DecodeError| CommandError::Malformed(format!("malformed answer to the command: {error}"));
    let data = Data::decode(packet).map_err(malformed)?;
    let response = Reader::new(data.content).read_typed(types::nfd::CONTROL_RESPONSE).map_err(malformed)?;
    let mut fields = Reader::new(response.value);
    let code =
        fields.read_typed(types::nfd::STATUS_CODE).and_then(|field| decode_nni(field.value)).map_err(malformed)?;
    let text = fields.read_typed(types::nfd::STATUS_TEXT).map_err(malformed)?;
    if code == OK {
        return Ok(fields.remaining().to_vec());
    }
    Err(CommandError::Refused { code, text: String::from_utf8_lossy(text.value).into_owned() })
}

impl Endpoint {
    /// Sets the signer of further commands of this endpoint and its clones, for forwarders that accept commands only
    /// from certain keys.
    pub fn sign_commands_with(&self, signer: Arc<dyn Signer>) {
        self.inner.shared.lock().command_signer = Some(signer);
    }

    /// Adds a route. If `options` names no face, its next hop is this connection.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn register_route(&self, prefix: &Name, options: &RouteOptions) -> Result<(), CommandError> {
        self.register_route_at(prefix, options, self.next_signature_time_ms()).await
    }

    /// Adds a route with the given SignatureTime, for sending many commands quickly: some forwarders accept several
    /// with the same time.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn register_route_at(
        &self,
        prefix: &Name,
        options: &RouteOptions,
        signature_time_ms: u64,
    ) -> Result<(), CommandError> {
        self.rib(RibVerb::Register, prefix, options, signature_time_ms).await
    }

    /// Removes the route that [`Endpoint::register_route`] added with the same face and origin.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub async fn unregister_route(&self, prefix: &Name, options: &RouteOptions) -> Result<(), CommandError> {
        self.rib(RibVerb::Unregister, prefix, options, self.next_signature_time_ms()).await
    }

    async fn rib(
        &self,
        verb: RibVerb,
        prefix: &Name,
        options: &RouteOptions,
        signature_time_ms: u64,
    ) -> Result<(), CommandError> {
        let signer = self.inner.shared.lock().command_signer.clone().unwrap_or_else(|| Arc::new(DigestSigner));
        let parameters = rib_parameters(verb, prefix, options);
        if verb == RibVerb::Register {
            self.inner.shared.report_token_support();
        }
        let interest = command(("rib", verb.name()), self.is_local(), &parameters, signer.as_ref(), signature_time_ms)?;
        let response = self.express(interest).await?;
        check_response(&response.packet).map(drop)
    }
}
