//! Why a control command has failed.

use std::io;
use std::path::PathBuf;

use namehop_p4runtime::{Status, WriteError};
use thiserror::Error;

/// Why a control command has failed.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    /// No program listens at the control socket, or this user may not open it.
    #[error("cannot reach the control socket {0}: {1}; is 'namehop p4 run --control' running?")]
    Unreachable(PathBuf, io::Error),
    /// The program refuses a request, or has ended.
    #[error("{}", .0.message())]
    Request(#[from] Status),
    /// The program refuses a change.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A name or a value on the command line does not fit the program.
    #[error("{0}")]
    Text(String),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, io::Error),
    /// A file cannot be written.
    #[error("cannot write {0}: {1}")]
    Unwritable(PathBuf, io::Error),
    /// The standard output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// Lines of a file cannot be loaded.
    #[error("nothing was loaded: {0}")]
    NotLoaded(String),
    /// A line cannot be loaded, and entries before it cannot be deleted.
    #[error("{0}; and {1}")]
    HalfLoaded(String, Box<ControlError>),
}

/// The result of a part of a control command.
pub(crate) type Outcome<T> = Result<T, ControlError>;

/// The parsers of texts return what is wrong as text.
impl From<String> for ControlError {
    fn from(reason: String) -> ControlError {
        ControlError::Text(reason)
    }
}

impl From<ControlError> for io::Error {
    fn from(error: ControlError) -> io::Error {
        io::Error::other(error)
    }
}
