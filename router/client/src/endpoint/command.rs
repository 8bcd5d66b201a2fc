//! The two management commands of producers, `rib/register` and `rib/unregister` (NFD management protocol, RIB
//! management). They are signed with DigestSha256 unless the application sets a key.

use std::sync::Arc;

use namehop_wire::security::{DigestSigner, Signer};
use namehop_wire::{Data, Name};

use super::{Endpoint, ExpressError};
use crate::nfd::names::{self, module};
use crate::nfd::numbers::status_code;
use crate::nfd::{CodecError, CommandOptions, ControlParameters, ControlResponse, Element, build_command};

/// Lifetime of a command Interest in milliseconds. Forwarders answer commands at once or never.
const COMMAND_LIFETIME_MS: u64 = 4000;

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

/// A command on the RIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RibVerb {
    Register,
    Unregister,
}

impl RibVerb {
    fn name(self) -> &'static str {
        match self {
            RibVerb::Register => "register",
            RibVerb::Unregister => "unregister",
        }
    }
}

impl RouteOptions {
    /// Returns the parameters of the command that adds the route.
    pub fn parameters(&self, prefix: &Name) -> ControlParameters {
        ControlParameters {
            name: Some(prefix.clone()),
            face_id: self.face_id,
            origin: self.origin,
            cost: self.cost,
            flags: self.flags,
            expiration_period_ms: self.expiration_ms,
            ..ControlParameters::default()
        }
    }
}

/// Builds a signed command under `/localhost/nfd` if `is_local`, otherwise under `/localhop/nfd`.
///
/// # Errors
/// `Malformed` if the command cannot be built.
pub fn command(
    (module, verb): (&str, &str),
    is_local: bool,
    parameters: &ControlParameters,
    signer: &dyn Signer,
    time_ms: u64,
) -> Result<Vec<u8>, CommandError> {
    let name =
        names::of_commands(is_local).append_generic(module).append_generic(verb).append_generic(parameters.to_vec());
    let options = CommandOptions {
        time_ms,
        lifetime_ms: COMMAND_LIFETIME_MS,
        must_be_fresh: false,
        application_parameters: None,
    };
    build_command(name, signer, &options)
        .map_err(|error| CommandError::Malformed(format!("cannot build the command: {error}")))
}

/// Returns the parameters in the answer to a command.
///
/// # Errors
/// If the forwarder refused the command, or the answer is not a ControlResponse.
pub fn check_response(packet: &[u8]) -> Result<ControlParameters, CommandError> {
    let malformed = |error: CodecError| CommandError::Malformed(format!("malformed answer to the command: {error}"));
    let data = Data::decode(packet).map_err(|error| malformed(error.into()))?;
    let response = ControlResponse::decode(data.content).map_err(malformed)?;
    if response.code == status_code::OK {
        return response.parameters().map_err(malformed);
    }
    Err(CommandError::Refused { code: response.code, text: response.text })
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
        let mut parameters = options.parameters(prefix);
        match verb {
            RibVerb::Register => self.inner.shared.report_token_support(),
            RibVerb::Unregister => {
                (parameters.cost, parameters.flags, parameters.expiration_period_ms) = (None, None, None)
            }
        }
        let interest =
            command((module::RIB, verb.name()), self.is_local(), &parameters, signer.as_ref(), signature_time_ms)?;
        let response = self.express(interest).await?;
        check_response(&response.packet).map(drop)
    }
}
