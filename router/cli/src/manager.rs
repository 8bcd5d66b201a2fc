//! Commands and datasets of the NFD management protocol, with errors in the form that the command line shows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::controller::{ClientError, Controller};
use namehop_client::endpoint::Endpoint;
use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, FaceQueryFilter, FaceStatus};
use namehop_client::target::TransportUri;
use namehop_face::uri::FaceUri;
use namehop_manage::requests::explain_refused;
use namehop_manage::route_file::FaceSelector;
use namehop_wire::security::{DigestSigner, Signer};

use crate::connection::ConnectionArgs;
use crate::failure::{Failure, FailureKind};
use crate::printable::in_line;

/// Time limit for the forwarder's version. Routers answer within milliseconds.
const GENERAL_STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// Prefix of Namehop's version.
const NAMEHOP: &str = "Namehop/";
/// Slightly more than the freshness period of datasets, which is one second (NFD management protocol).
const DATASET_FRESHNESS: Duration = Duration::from_millis(1100);

/// Returns a hint for a command on something that does not exist.
fn hint(module: &str, code: u64) -> Option<&'static str> {
    match (module, code) {
        (module::FACES, status_code::NOT_FOUND) | (_, status_code::GONE) => Some("'namehop face list' lists the faces"),
        (module::STRATEGY_CHOICE, status_code::NOT_FOUND) => {
            Some("'namehop strategy set --help' lists the built-in strategies, and 'namehop strategy load' adds others")
        }
        _ => None,
    }
}

/// Returns the failure of a command that was not executed.
fn refused(module: &str, verb: &str, error: ClientError) -> Failure {
    let hint = match &error {
        ClientError::Refused(response) => hint(module, response.code),
        _ => None,
    };
    let failure = Failure::from(error).context(format!("{module}/{verb}"));
    match hint {
        Some(hint) => Failure::failed(format!("{failure}; {hint}")),
        None => failure,
    }
}

/// A management connection to a forwarder.
pub struct Manager {
    controller: Controller<Endpoint>,
}

impl Manager {
    /// Connects for reading datasets, or for commands to a forwarder that requires no keys.
    pub async fn connect(connection: &ConnectionArgs) -> Result<Self, Failure> {
        Self::connect_with_signer(connection, Arc::new(DigestSigner)).await
    }

    /// Connects for sending commands signed by `signer`.
    pub async fn connect_with_signer(connection: &ConnectionArgs, signer: Arc<dyn Signer>) -> Result<Self, Failure> {
        if let TransportUri::Udp { .. } = connection.first_candidate()? {
            return Err(Failure::usage(
                "a forwarder accepts commands from local applications only, and UDP faces are not local: use a unix:// \
                 or tcp:// transport",
            ));
        }
        let endpoint = connection.connect().await?;
        endpoint.sign_commands_with(Arc::clone(&signer));
        Ok(Self { controller: Controller::with_signer(endpoint, signer) })
    }

    /// Fails at once if the forwarder is not Namehop, which alone supports `what`. Without this check, the command
    /// would run into its time-out.
    pub async fn only_namehop(&self, what: &str) -> Result<(), Failure> {
        match tokio::time::timeout(GENERAL_STATUS_TIMEOUT, self.controller.status()).await {
            Ok(Ok(status)) if status.version.starts_with(NAMEHOP) => Ok(()),
            Ok(Ok(status)) => Err(Failure::failed(format!(
                "this forwarder is '{}' and does not support {what}, which needs Namehop; choose another forwarder \
                 with --transport",
                in_line(&status.version)
            ))),
            Ok(Err(error)) => Err(Failure::from(error).context("status/general")),
            Err(_) => Err(Failure::new(
                FailureKind::Nothing,
                format!(
                    "the forwarder did not report its version within {} s: {what} needs Namehop and a local transport",
                    GENERAL_STATUS_TIMEOUT.as_secs()
                ),
            )),
        }
    }

    /// Returns the underlying connection.
    pub fn endpoint(&self) -> &Endpoint {
        self.controller.express()
    }

    /// Returns the controller, for reading datasets.
    pub fn datasets(&self) -> &Controller<Endpoint> {
        &self.controller
    }

    /// Runs a command and returns the parameters in its answer.
    pub async fn command(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Failure> {
        let done = self.controller.command(module, verb, parameters).await;
        done.map_err(|error| refused(module, verb, error))
    }

    /// Runs a command with a file.
    pub async fn command_with_file(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
        file: &[u8],
    ) -> Result<ControlParameters, Failure> {
        let done = self.controller.command_with_file(module, verb, parameters, file).await;
        done.map_err(|error| refused(module, verb, error))
    }

    /// Returns all faces.
    pub async fn faces(&self) -> Result<Vec<FaceStatus>, Failure> {
        Ok(self.controller.faces().await?)
    }

    /// Creates a face, or finds the existing one. The second value is true if it was created. The URI is canonized
    /// first.
    pub async fn create_face(
        &self,
        uri: &FaceUri,
        options: ControlParameters,
    ) -> Result<(ControlParameters, bool), Failure> {
        let canonical = canonize(uri).await?;
        let parameters = ControlParameters { uri: Some(canonical.to_string()), ..options };
        match self.controller.command(module::FACES, "create", &parameters).await {
            Ok(face) => Ok((face, true)),
            Err(ClientError::Refused(response)) if response.code == status_code::CONFLICT => {
                match response.parameters() {
                    Ok(existing) if existing.face_id.is_some() => Ok((existing, false)),
                    _ => Err(Failure::from(ClientError::Refused(response)).context("faces/create")),
                }
            }
            Err(error) => Err(refused(module::FACES, "create", error)),
        }
    }

    /// Returns the remote addresses of all faces, by face id.
    pub async fn remote_uris(&self) -> Result<HashMap<u64, String>, Failure> {
        Ok(self.faces().await?.into_iter().map(|face| (face.face_id, face.uri)).collect())
    }

    /// Changes properties of a face and returns the resulting ones.
    pub async fn update_face(&self, parameters: &ControlParameters) -> Result<ControlParameters, Failure> {
        match self.controller.command(module::FACES, "update", parameters).await {
            Ok(done) => Ok(done),
            Err(ClientError::Refused(response)) if response.code == status_code::CONFLICT => {
                let refused = response.parameters().map(|refused| explain_refused(&refused)).unwrap_or_default();
                let refused: String = refused.iter().map(|reason| format!("\nrefused: {reason}")).collect();
                let failure = Failure::from(ClientError::Refused(response)).context("faces/update");
                Err(Failure::failed(format!("{failure}{refused}")))
            }
            Err(error) => Err(refused(module::FACES, "update", error)),
        }
    }

    /// Returns the face id for a number or address on the command line, without creating a face. A number is not
    /// checked for existence.
    pub async fn find_face(&self, which: &FaceSelector) -> Result<u64, Failure> {
        match which {
            FaceSelector::Id(id) => Ok(*id),
            FaceSelector::Uri(_) => Ok(self.existing_face(which).await?.face_id),
        }
    }

    /// Returns the existing face for a number or address on the command line.
    pub async fn existing_face(&self, which: &FaceSelector) -> Result<FaceStatus, Failure> {
        let (filter, which) = match which {
            FaceSelector::Id(id) => {
                (FaceQueryFilter { face_id: Some(*id), ..FaceQueryFilter::default() }, format!("face {id}"))
            }
            FaceSelector::Uri(uri) => {
                let uri = canonize(uri).await?.to_string();
                let text = format!("face to {uri}");
                (FaceQueryFilter { uri: Some(uri), ..FaceQueryFilter::default() }, text)
            }
        };
        let mut found = self.controller.query_faces(&filter).await?;
        if found.is_empty() {
            // The answer may be a cached one from before the face was created.
            tokio::time::sleep(DATASET_FRESHNESS).await;
            found = self.controller.query_faces(&filter).await?;
        }
        if found.len() > 1 {
            let numbers: Vec<u64> = found.iter().map(|face| face.face_id).collect();
            return Err(Failure::failed(format!("more than one {which}: {numbers:?}; give the face id")));
        }
        found.pop().ok_or_else(|| Failure::failed(format!("there is no {which}; 'namehop face list' lists the faces")))
    }

    /// Like [`Manager::find_face`], but creates a missing face. An Ethernet face must exist, because its address does
    /// not name the interface.
    pub async fn find_or_create_face(&self, which: &FaceSelector) -> Result<u64, Failure> {
        let uri = match which {
            FaceSelector::Id(_) | FaceSelector::Uri(FaceUri::Ethernet(_)) => return self.find_face(which).await,
            FaceSelector::Uri(uri) => uri,
        };
        let (face, _) = self.create_face(uri, ControlParameters::default()).await?;
        face.face_id.ok_or_else(|| Failure::failed("faces/create: the answer contains no face id"))
    }
}

/// Canonizes a URI, which may resolve host names, with a time limit.
async fn canonize(uri: &FaceUri) -> Result<FaceUri, Failure> {
    const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
    let (original, uri) = (uri, uri.clone());
    let resolving = tokio::task::spawn_blocking(move || uri.canonize());
    match tokio::time::timeout(RESOLVE_TIMEOUT, resolving).await {
        Ok(Ok(result)) => result.map_err(Failure::failed),
        Ok(Err(error)) => Err(Failure::failed(error)),
        Err(_) => Err(Failure::failed(format!(
            "the host name in {} was not resolved within {} s: give a numeric address, or check DNS",
            original,
            RESOLVE_TIMEOUT.as_secs()
        ))),
    }
}
