//! Failures of commands: a message for people and an exit code for programs.

use std::fmt;
use std::process::ExitCode;

use namehop_client::controller::ClientError;
use namehop_client::endpoint::{CommandError, ExpressError};
use namehop_client::nfd::numbers::status_code;
use namehop_client::transport::ConnectError;
use namehop_traffic::loadgen::LoadError;
use namehop_traffic::segmented::FetchError;

use crate::printable;

/// Explanation of the exit codes in `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0  success
  1  the command failed
  2  wrong usage
  3  no forwarder is reachable
  4  time-out: nothing was received";

/// Hint for a command that the forwarder does not allow.
pub const FORBIDDEN_HINT: &str = "sign the command with the --signing-key and --certificate of a key that may do this; \
     see \"Signing commands\" in docs/operation.md";

/// Kind of a failure; its value is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The command failed.
    Failed = 1,
    /// The arguments are invalid.
    Usage = 2,
    /// No forwarder is reachable.
    NoForwarder = 3,
    /// Nothing was received.
    Nothing = 4,
}

/// Reason why a command failed.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    /// Empty if everything was already printed.
    message: String,
}

impl Failure {
    /// Creates a failure of this kind.
    pub fn new(kind: FailureKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// Creates a failure of a command.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// Creates a failure for invalid arguments.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Creates a failure without a message, for a reason that the output shows.
    pub fn silent(kind: FailureKind) -> Self {
        Self { kind, message: String::new() }
    }

    /// Creates a failure with a message from another program, which is escaped for the terminal.
    pub fn reported(kind: FailureKind, error: impl fmt::Display) -> Self {
        Self::new(kind, printable::in_line(&error.to_string()))
    }

    fn forbidden(error: impl fmt::Display) -> Self {
        let error = error.to_string();
        Self::failed(format!("{}\n{FORBIDDEN_HINT}", printable::in_line(&error)))
    }

    /// Prepends what was attempted to the message.
    pub fn context(mut self, attempted: impl fmt::Display) -> Self {
        self.message = format!("{attempted}: {}", self.message);
        self
    }

    /// Prints the message and returns the exit code.
    pub fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("namehop: {}", printable::lines(&self.message));
        }
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn kind_of_express(error: &ExpressError) -> FailureKind {
    match error {
        ExpressError::Timeout { .. } => FailureKind::Nothing,
        ExpressError::Closed(_) => FailureKind::NoForwarder,
        _ => FailureKind::Failed,
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let kind = match error {
            ConnectError::Configuration(_) => FailureKind::Usage,
            ConnectError::NoForwarder(_) => FailureKind::NoForwarder,
        };
        Self::new(kind, error)
    }
}

impl From<ExpressError> for Failure {
    fn from(error: ExpressError) -> Self {
        Self::reported(kind_of_express(&error), error)
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let kind = match &error {
            CommandError::Express(error) => kind_of_express(error),
            CommandError::Refused { code: status_code::FORBIDDEN, .. } => return Self::forbidden(error),
            _ => FailureKind::Failed,
        };
        Self::reported(kind, error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let kind = match &error {
            ClientError::Timeout { .. } => FailureKind::Nothing,
            ClientError::Closed(_) => FailureKind::NoForwarder,
            ClientError::Refused(response) if response.code == status_code::FORBIDDEN => return Self::forbidden(error),
            _ => FailureKind::Failed,
        };
        Self::reported(kind, error)
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        let kind = match &error {
            FetchError::Discovery(ExpressError::Closed(_)) => FailureKind::NoForwarder,
            error if error.is_timeout() => FailureKind::Nothing,
            _ => FailureKind::Failed,
        };
        Self::reported(kind, error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let kind = match &error {
            LoadError::Connect { .. } => FailureKind::NoForwarder,
            LoadError::Configuration(_) => FailureKind::Usage,
            LoadError::Register { source: CommandError::Refused { code: status_code::FORBIDDEN, .. }, .. } => {
                return Self::forbidden(error);
            }
            _ => FailureKind::Failed,
        };
        Self::reported(kind, error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}
