//! Loads the file of FIB entries that the configuration names, while the router is running already.
//!
//! A thread of its own reads the file; the control thread makes the faces and adds the prefixes, a block at a time, and does
//! everything else in between. Faces whose peers do not answer yet are tried again; when one is there, the file is read
//! once more, which changes nothing but what was left out.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{error, info, warn};

use namehop_face::FaceUri;
use namehop_face::registry::{FacePersistency, FaceUpdate};
use namehop_face::socket::CreateError;
use namehop_manage::fib_file::{FaceWord, FibFile, FileError, Part};
use namehop_manage::server::{ControlPlane, Management};
use namehop_packet::FaceId;

use crate::config::UriText;
use crate::control::Control;
use crate::restore::{RETRY_PAUSE, RETRY_PAUSE_MAX};
use crate::supervise::fault_point;

/// Parts that the reading thread may be ahead.
const PARTS_AHEAD: usize = 16;
/// How often progress is logged.
const PROGRESS: Duration = Duration::from_secs(5);
/// Faults of one kind that are logged; more are counted.
const MAX_LOGGED_FAULTS: u64 = 10;
/// Bytes of the shortest record of a snapshot, a name without components and one next hop, and of the shortest line, `/ 1`.
const MIN_RECORD_BYTES: u64 = 4;

/// What the reading thread sends.
enum Message {
    /// About how many prefixes the file holds.
    Expected(u64),
    Part(Part),
}

/// One reading of the file.
struct Loading<'a> {
    management: &'a Rc<Management<Control>>,
    file: &'a Path,
    /// Is it the first reading? Only that one logs faults.
    is_first: bool,
    /// Faces by position of their word.
    faces: Vec<Option<FaceId>>,
    /// Peers that did not answer.
    unreachable: Vec<FaceUri>,
    prefixes: u64,
    left_out: u64,
    faults: u64,
    refused: u64,
}

/// Loads the file, and again when faces come that were missing. Ends when nothing is missing.
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

/// Returns the peers that did not answer.
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
            error!(file = %shown, %error, prefixes, "only a part of the FIB entries is loaded; correct the file and restart");
        }
    }
    unreachable
}

impl Loading<'_> {
    async fn run(&mut self) -> Result<(), FileError> {
        let (sender, mut messages) = mpsc::channel(PARTS_AHEAD);
        let path = self.file.to_owned();
        let reading = thread::Builder::new().name("FIB file".to_owned()).spawn(move || read(&path, &sender))?;
        let mut told = Instant::now();
        while let Some(message) = messages.recv().await {
            match message {
                Message::Expected(prefixes) => {
                    let prefixes = usize::try_from(prefixes).unwrap_or(usize::MAX);
                    self.management.reserve_prefixes(prefixes).map_err(io::Error::other)?;
                }
                Message::Part(Part::Faces(words)) => {
                    for word in &words {
                        let face = self.find_face(word).await;
                        self.faces.push(face);
                    }
                }
                Message::Part(Part::Prefixes(block)) => {
                    let added = self.management.add_prefixes(&block, &self.faces)?;
                    self.prefixes += added.prefixes;
                    self.left_out += added.left_out;
                    for refused in added.refused {
                        self.refused += 1;
                        if self.refused <= MAX_LOGGED_FAULTS && self.is_first {
                            warn!(file = %self.file.display(), prefix = %refused.prefix, error = %refused.error, "not loaded");
                        }
                    }
                    // Commands and packets to this thread go between two blocks.
                    tokio::task::yield_now().await;
                }
                Message::Part(Part::Faults(faults)) => {
                    for fault in faults {
                        self.line_fault(Some(fault.line), &fault.message);
                    }
                }
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                info!(file = %self.file.display(), prefixes = self.prefixes, "loading FIB entries");
            }
        }
        reading.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended unexpectedly").into()))
    }

    /// Logs what is wrong with a line.
    fn line_fault(&mut self, line: Option<u64>, message: &str) {
        self.faults += 1;
        if self.faults <= MAX_LOGGED_FAULTS && self.is_first {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            warn!("{}{line}: {message}", self.file.display());
        }
    }

    /// The face that a word means; one that is not there is made.
    async fn find_face(&mut self, word: &FaceWord) -> Option<FaceId> {
        let found = self.face_of(&word.word).await;
        found.map_err(|message| self.line_fault(word.line, &message)).ok().flatten()
    }

    /// `None` when the peer does not answer yet.
    async fn face_of(&mut self, word: &str) -> Result<Option<FaceId>, String> {
        let control = self.management.control();
        if let Ok(number) = word.parse() {
            let face = control.faces().get(FaceId(number));
            return face.map(|face| Some(face.id())).ok_or_else(|| {
                format!("there is no face {number}; write the URI of a peer, from which the face can be made")
            });
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
                (None, _) => Err(format!("there is no multicast face {word}; see [faces.multicast]")),
                _ => Err(format!("there are several multicast faces {word}; write the number of one")),
            };
        }
        let uri = remote.parse::<UriText>()?.0;
        match make_face(self.management, &uri).await {
            Ok(face) => Ok(Some(face)),
            Err(error @ CreateError::Unreachable(_)) => {
                if self.is_first {
                    warn!(%uri, %error, "no face could be made for FIB entries yet; trying again");
                }
                self.unreachable.push(uri);
                Ok(None)
            }
            Err(error) => Err(format!("no face to {uri}: {error}")),
        }
    }
}

/// Makes a permanent face, or finds the one that is there.
async fn make_face(management: &Rc<Management<Control>>, uri: &FaceUri) -> Result<FaceId, CreateError> {
    let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
    match management.control().create_face(uri.clone(), None, permanent).await {
        Ok(face) | Err(CreateError::Exists(face)) => Ok(face.id()),
        Err(error) => Err(error),
    }
}

/// Reads the file, on a thread of its own, until the receiver is gone.
fn read(path: &Path, sender: &mpsc::Sender<Message>) -> Result<(), FileError> {
    fault_point("FIB file thread");
    let mut file = FibFile::open(path)?;
    if let Some(expected) = file.expected_prefixes() {
        // Whoever writes a header with too large a number gets no more memory than the file could fill.
        let possible = std::fs::metadata(path)?.len() / MIN_RECORD_BYTES;
        if sender.blocking_send(Message::Expected(expected.min(possible))).is_err() {
            return Ok(());
        }
    }
    while let Some(part) = file.next_part()? {
        if sender.blocking_send(Message::Part(part)).is_err() {
            break;
        }
    }
    Ok(())
}
