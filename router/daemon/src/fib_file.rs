//! Loads the configured file of FIB entries while the router is running.
//!
//! A separate thread reads the file. The control thread creates the faces and adds the prefixes block by block, and
//! serves commands in between. Creating faces is retried while peers do not answer. When such a face exists, the file
//! is read again, which adds the entries left out before.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{error, info, warn};

use namehop_config::UriText;
use namehop_face::FaceUri;
use namehop_face::registry::{FacePersistency, FaceUpdate};
use namehop_face::socket::CreateError;
use namehop_manage::fib_file::{FaceWord, FibFile, FibFilePart, FileError};
use namehop_manage::server::{ControlPlane, Management};
use namehop_packet::FaceId;

use crate::control::Control;
use crate::restore::{RETRY_PAUSE, RETRY_PAUSE_MAX};
use namehop_worker::fault_point;

/// Most parts that the reading thread is ahead.
const PARTS_AHEAD: usize = 16;
/// Interval of progress messages in the log.
const PROGRESS: Duration = Duration::from_secs(5);
/// Most faults of each kind that are logged; more are only counted.
const MAX_LOGGED_FAULTS: u64 = 10;
/// Bytes of the shortest record of a snapshot (a name without components and one next hop), and of the shortest line
/// (`/ 1`).
const MIN_RECORD_BYTES: u64 = 4;

/// A message of the reading thread.
enum ReaderMessage {
    /// Approximate number of prefixes in the file.
    Expected(u64),
    Part(FibFilePart),
}

/// Why a word of the file does not name a face.
#[derive(Debug, thiserror::Error)]
enum FaceWordError {
    /// The number is not that of a face.
    #[error("there is no face {0}; write the URI of a peer instead, for which the router creates a face")]
    NoFace(u32),
    /// No multicast face has this URI.
    #[error("there is no multicast face {0}; see [faces.multicast]")]
    NoMulticastFace(String),
    /// Several multicast faces have this URI.
    #[error("there are several multicast faces {0}; write a face number instead")]
    SeveralMulticastFaces(String),
    /// The word is not the URI of a peer; the text says what it should be.
    #[error("{0}")]
    NotAPeer(String),
    /// The face cannot be created.
    #[error("cannot create a face to {uri}: {error}")]
    NotCreated {
        /// URI of the peer.
        uri: FaceUri,
        /// The error.
        error: CreateError,
    },
}

/// One pass over the file.
struct Loading<'a> {
    management: &'a Rc<Management<Control>>,
    file: &'a Path,
    /// Whether this is the first pass; only this one logs faults.
    is_first: bool,
    /// Face ids, by position of their word in the file.
    faces: Vec<Option<FaceId>>,
    /// Peers that do not answer yet.
    unreachable: Vec<FaceUri>,
    prefixes: u64,
    left_out: u64,
    faults: u64,
    refused: u64,
}

/// Loads the file, and reads it again when missing faces have been created. Ends when no face is missing.
pub async fn load(management: Rc<Management<Control>>, file: PathBuf) {
    fault_point("FIB loader");
    let mut unreachable = load_once(&management, &file, true).await;
    let mut pause = RETRY_PAUSE;
    while !unreachable.is_empty() {
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE_MAX);
        let mut is_there = false;
        for uri in &unreachable {
            is_there |= !matches!(make_face(&management, uri).await, Err(CreateError::Unreachable(_)));
        }
        if is_there {
            unreachable = load_once(&management, &file, false).await;
        }
    }
}

/// Reads the file once. Returns the peers that do not answer yet.
async fn load_once(management: &Rc<Management<Control>>, file: &Path, is_first: bool) -> Vec<FaceUri> {
    let started = Instant::now();
    let mut loading = Loading {
        management,
        file,
        is_first,
        faces: Vec::new(),
        unreachable: Vec::new(),
        prefixes: 0,
        left_out: 0,
        faults: 0,
        refused: 0,
    };
    let shown = file.display();
    if is_first {
        info!(file = %shown, "loading FIB entries");
    }
    let result = loading.run().await;
    let Loading { prefixes, left_out, faults, refused, unreachable, .. } = loading;
    let seconds = started.elapsed().as_secs_f64();
    match result {
        Ok(()) => info!(file = %shown, prefixes, left_out, faults, refused, seconds, "FIB entries loaded"),
        Err(error) => {
            error!(
                file = %shown,
                %error,
                prefixes,
                "only part of the FIB entries was loaded; correct the file and restart"
            );
        }
    }
    unreachable
}

impl Loading<'_> {
    async fn run(&mut self) -> Result<(), FileError> {
        let (sender, mut messages) = mpsc::channel(PARTS_AHEAD);
        let path = self.file.to_owned();
        let reading = thread::Builder::new().name("FIB file".to_owned()).spawn(move || read(&path, &sender))?;
        let mut reported_at = Instant::now();
        while let Some(message) = messages.recv().await {
            match message {
                ReaderMessage::Expected(prefixes) => {
                    let prefixes = usize::try_from(prefixes).unwrap_or(usize::MAX);
                    self.management.reserve_prefixes(prefixes).map_err(io::Error::other)?;
                }
                ReaderMessage::Part(FibFilePart::Faces(words)) => {
                    for word in &words {
                        let face = self.find_face(word).await;
                        self.faces.push(face);
                    }
                }
                ReaderMessage::Part(FibFilePart::Prefixes(block)) => {
                    let added = self.management.add_prefixes(&block, &self.faces)?;
                    self.prefixes += added.prefixes;
                    self.left_out += added.left_out;
                    for refused in added.refused {
                        self.refused += 1;
                        if self.refused <= MAX_LOGGED_FAULTS && self.is_first {
                            let (prefix, error) = (&refused.prefix, &refused.error);
                            warn!(file = %self.file.display(), %prefix, %error, "FIB entry not loaded");
                        }
                    }
                    // Commands and packets for this thread are handled between two blocks.
                    tokio::task::yield_now().await;
                }
                ReaderMessage::Part(FibFilePart::Faults(faults)) => {
                    for fault in faults {
                        self.line_fault(Some(fault.line), &fault.message);
                    }
                }
            }
            if reported_at.elapsed() >= PROGRESS {
                reported_at = Instant::now();
                info!(file = %self.file.display(), prefixes = self.prefixes, "loading FIB entries");
            }
        }
        reading
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that reads the file ended unexpectedly").into()))
    }

    /// Counts a fault, and logs it up to a limit.
    fn line_fault(&mut self, line: Option<u64>, message: &str) {
        self.faults += 1;
        if self.faults <= MAX_LOGGED_FAULTS && self.is_first {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            warn!("{}{line}: {message}", self.file.display());
        }
    }

    /// Returns the face that a word names; creates a missing face. Faults are counted.
    async fn find_face(&mut self, word: &FaceWord) -> Option<FaceId> {
        let found = self.face_of(&word.word).await;
        found.map_err(|error| self.line_fault(word.line, &error.to_string())).ok().flatten()
    }

    /// Returns the face that a word names, `None` if its peer does not answer yet.
    async fn face_of(&mut self, word: &str) -> Result<Option<FaceId>, FaceWordError> {
        let control = self.management.control();
        if let Ok(number) = word.parse() {
            let face = control.faces().get(FaceId(number));
            return face.map(|face| Some(face.id())).ok_or(FaceWordError::NoFace(number));
        }
        let (remote, local) = word.split_once(' ').unzip();
        let remote = remote.unwrap_or(word);
        if let Ok(uri) = remote.parse::<FaceUri>()
            && uri.is_multicast()
        {
            let faces = control.faces().find_by_remote(&uri);
            let mut fitting =
                faces.iter().filter(|face| local.is_none_or(|local| face.local_uri().to_string() == local));
            return match (fitting.next(), fitting.next()) {
                (Some(face), None) => Ok(Some(face.id())),
                (None, _) => Err(FaceWordError::NoMulticastFace(word.to_owned())),
                _ => Err(FaceWordError::SeveralMulticastFaces(word.to_owned())),
            };
        }
        let uri = remote.parse::<UriText>().map_err(FaceWordError::NotAPeer)?.0;
        match make_face(self.management, &uri).await {
            Ok(face) => Ok(Some(face)),
            Err(error @ CreateError::Unreachable(_)) => {
                if self.is_first {
                    warn!(%uri, %error, "cannot create a face for FIB entries; retrying");
                }
                self.unreachable.push(uri);
                Ok(None)
            }
            Err(error) => Err(FaceWordError::NotCreated { uri, error }),
        }
    }
}

/// Creates a permanent face, or returns the existing one.
async fn make_face(management: &Rc<Management<Control>>, uri: &FaceUri) -> Result<FaceId, CreateError> {
    let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
    match management.control().create_face(uri.clone(), None, permanent).await {
        Ok(face) | Err(CreateError::Exists(face)) => Ok(face.id()),
        Err(error) => Err(error),
    }
}

/// Reads the file and sends its parts, until the receiver is gone. Runs on a separate thread.
fn read(path: &Path, sender: &mpsc::Sender<ReaderMessage>) -> Result<(), FileError> {
    fault_point("FIB file thread");
    let mut file = FibFile::open(path)?;
    if let Some(expected) = file.expected_prefixes() {
        // A false number in the header must not reserve more memory than the file could fill.
        let possible = std::fs::metadata(path)?.len() / MIN_RECORD_BYTES;
        if sender.blocking_send(ReaderMessage::Expected(expected.min(possible))).is_err() {
            return Ok(());
        }
    }
    while let Some(part) = file.next_part()? {
        if sender.blocking_send(ReaderMessage::Part(part)).is_err() {
            break;
        }
    }
    Ok(())
}
