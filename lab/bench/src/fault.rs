//! Faults of a measured forwarder. Their texts continue the name of the forwarder: "namehop has ended (exit status:
//! 1)".

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

use namehop_client::controller::ClientError;
use namehop_client::endpoint::CommandError;
use namehop_client::transport::ConnectError;
use namehop_traffic::loadgen::LoadError;
use namehop_wire::Name;
use namehop_wire::name::NameUriError;

/// What is wrong with a forwarder that a measurement uses.
#[derive(Debug, thiserror::Error)]
pub enum ForwarderFault {
    /// Its program cannot be run.
    #[error("cannot be started as '{program}': {source}")]
    Program {
        /// The program, as given.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// Its command leaves the path of the socket open.
    #[error(
        "does not know the path of its socket: its command, or a file given as {{copy:FILE}}, must contain {{socket}}"
    )]
    NoSocketInCommand,
    /// A file of its command cannot be copied.
    #[error("cannot copy the file {} of its command: {source}", .file.display())]
    Copy {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It ended before it opened its socket.
    #[error("did not start ({0})")]
    NotStarted(ExitStatus),
    /// It ended during the measurement.
    #[error("has ended ({0})")]
    Ended(ExitStatus),
    /// The system does not tell whether it is running.
    #[error("cannot be monitored: {0}")]
    NotMonitored(io::Error),
    /// Its socket accepts no connection.
    #[error("is not reachable: {0}")]
    NotReachable(ConnectError),
    /// An address of a running forwarder accepts no connection.
    #[error("is not reachable at {at}: {source}")]
    AddressNotReachable {
        /// URI of the address.
        at: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The peer of its socket has no process id here.
    #[error("has an unknown process id: give it, as in unix://{}?pid=1234", .0.display())]
    UnknownProcess(PathBuf),
    /// It does not listen where the measurement needs it.
    #[error(
        "has no {socket} listener at {address} ({source}): configure it to listen there ({{port}} in its command or \
         configuration), or omit this socket (--socket)"
    )]
    NoListener {
        /// Kind of the socket.
        socket: String,
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// It rejected a command.
    #[error("rejected {what}: {source}")]
    Rejected {
        /// What was rejected, with the command.
        what: String,
        /// Its answer.
        source: ClientError,
    },
    /// It did not answer a query.
    #[error("does not report {what}: {source}")]
    NotReported {
        /// What was queried.
        what: &'static str,
        /// The error.
        source: ClientError,
    },
    /// It has no worker.
    #[error("has no workers")]
    NoWorkers,
    /// It keeps Data in a cache with a capacity of one.
    #[error("keeps {0} Data in a cache with a capacity of one")]
    NotEmptied(u64),
    /// Its cache did not fill.
    #[error("did not fill its cache of {packets} Data within {seconds} s")]
    NotFilled {
        /// Capacity of the cache.
        packets: u64,
        /// Time limit.
        seconds: u64,
    },
    /// Its cache does not answer what it holds.
    #[error("answers only {percent:.1} % from its cache after {seconds} s")]
    NotWarm {
        /// Hits among the Interests, in percent.
        percent: f64,
        /// Time limit.
        seconds: u64,
    },
    /// It answered no Interest.
    #[error("answered none of {interests} Interests: {nacks} Nacks, {malformed} malformed frames")]
    NoAnswer {
        /// Sent Interests.
        interests: u64,
        /// Received Nacks.
        nacks: u64,
        /// Received frames that are malformed.
        malformed: u64,
    },
    /// It rejected the producer's prefix.
    #[error("rejected the prefix {prefix}: {source}")]
    Prefix {
        /// The prefix.
        prefix: Name,
        /// Its answer.
        source: CommandError,
    },
    /// It rejected the producer's face.
    #[error("did not create the producer's face: {0}")]
    ProducerFace(CommandError),
    /// The load could not run for another reason.
    #[error("{0}")]
    Load(Box<LoadError>),
    /// A strategy has an invalid name.
    #[error("has no strategy {name}: {source}")]
    NoStrategy {
        /// The name.
        name: String,
        /// The error.
        source: NameUriError,
    },
    /// The load did not reach a state in time.
    #[error("took too long: after {seconds} s {otherwise}")]
    TooSlow {
        /// Time limit.
        seconds: u64,
        /// What is missing.
        otherwise: String,
    },
    /// The user interrupted the measurement.
    #[error("was interrupted")]
    Interrupted,
}

impl From<LoadError> for ForwarderFault {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Connect { uri, source } => Self::AddressNotReachable { at: uri.to_string(), source },
            LoadError::Register { prefix, source } => Self::Prefix { prefix, source },
            LoadError::CreateFace(source) => Self::ProducerFace(source),
            error => Self::Load(Box::new(error)),
        }
    }
}
