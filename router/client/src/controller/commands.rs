//! Sends commands.

use namehop_wire::{Data, Name};

use super::{ClientError, Controller, Express};
use crate::nfd::names::{self, module};
use crate::nfd::numbers::status_code;
use crate::nfd::{
    CaptureStream, CapturedFrame, CommandOptions, ControlParameters, ControlResponse, Element, TracedPacket,
    build_command, decode_items,
};

/// InterestLifetime of a command, in milliseconds. A forwarder may take a few seconds to connect to the peer of a new
/// face.
const COMMAND_LIFETIME_MS: u64 = 10_000;

impl<E: Express> Controller<E> {
    fn prefix(&self) -> Name {
        names::of_commands(self.express.is_local())
    }

    fn build(&self, name: Name, application_parameters: Option<&[u8]>) -> Result<Vec<u8>, ClientError> {
        let options = CommandOptions {
            time_ms: self.express.next_signature_time_ms(),
            lifetime_ms: COMMAND_LIFETIME_MS,
            must_be_fresh: false,
            application_parameters,
        };
        Ok(build_command(name, self.signer.as_ref(), &options)?)
    }

    async fn send(&self, interest: Vec<u8>) -> Result<ControlResponse, ClientError> {
        let packet = self.express.express(interest).await?;
        Ok(ControlResponse::decode(Data::decode(&packet)?.content)?)
    }

    /// Sends a command and returns the resulting parameters.
    ///
    /// # Errors
    /// `Refused` with the response if its status code is not 200, or another [`ClientError`].
    pub async fn command(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, ClientError> {
        let name = self.prefix().append_generic(module).append_generic(verb).append_generic(parameters.to_vec());
        accepted(self.send(self.build(name, None)?).await?)
    }

    /// Reads packets of the running trace, as many as fit into one response (`trace/take`).
    ///
    /// # Errors
    /// `Refused` with 404 if no trace is running, or another [`ClientError`].
    pub async fn take_traced(&self) -> Result<Vec<TracedPacket>, ClientError> {
        let name = self.prefix().append_generic(module::TRACE).append_generic("take");
        let name = name.append_generic(ControlParameters::default().to_vec());
        let response = self.send(self.build(name, None)?).await?;
        if response.code != status_code::OK {
            return Err(ClientError::Refused(response));
        }
        Ok(decode_items(&response.body)?)
    }

    /// Reads the next piece of the running capture (`capture/take`). Returns the frames that it completes, and true if
    /// the piece has any bytes.
    ///
    /// # Errors
    /// `Refused` with 404 if no capture is running, or another [`ClientError`].
    pub async fn take_captured(&self, stream: &mut CaptureStream) -> Result<(Vec<CapturedFrame>, bool), ClientError> {
        let parameters = ControlParameters { count: Some(stream.position()), ..ControlParameters::default() };
        let name = self.prefix().append_generic(module::CAPTURE).append_generic("take");
        let response = self.send(self.build(name.append_generic(parameters.to_vec()), None)?).await?;
        if response.code != status_code::OK {
            return Err(ClientError::Refused(response));
        }
        Ok(stream.add(&response.body)?)
    }

    /// Sends a command with a file, which must fit into one packet together with the command.
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub async fn command_with_file(
        &self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
        file: &[u8],
    ) -> Result<ControlParameters, ClientError> {
        let name = self.prefix().append_generic(module).append_generic(verb).append_generic(parameters.to_vec());
        accepted(self.send(self.build(name, Some(file))?).await?)
    }

    /// Announces a prefix with a PrefixAnnouncement Data (`rib/announce`).
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub async fn announce(&self, announcement: &[u8]) -> Result<ControlParameters, ClientError> {
        let name = self.prefix().append_generic(module::RIB).append_generic("announce");
        accepted(self.send(self.build(name, Some(announcement))?).await?)
    }
}

fn accepted(response: ControlResponse) -> Result<ControlParameters, ClientError> {
    if response.code == status_code::OK { Ok(response.parameters()?) } else { Err(ClientError::Refused(response)) }
}
