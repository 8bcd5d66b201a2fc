//! A file server: answers Interests for the files and directories below one directory, by the protocol of ndn6-file-server, which
//! NDN-DPDK's file server and NDNts' client speak as well.
//!
//! Generic components behind the prefix are the path. What follows says what is wanted of it (`request`):
//!
//! | name | answer |
//! |---|---|
//! | `/prefix/path/32=metadata` | the versioned name, and size, mode and times of the file (Realtime Data Retrieval) |
//! | `/prefix/path/32=ls/32=metadata` | the same, of a directory alone |
//! | `/prefix/path/54=version/50=segment` | a segment of the file |
//! | `/prefix/path/32=ls/54=version/50=segment` | a segment of the names in the directory |
//!
//! The version is the time of the last change in nanoseconds. Whoever asks for metadata of what is not there gets a Data with
//! ContentType Nack. Segments that are not there, or not of that version any more, stay without an answer: a Nack of that name
//! would stay in caches, and be given to those who ask again when the file is back.
//!
//! The reading task only takes names apart; threads of the server open, read, sign and send (`answer`), through a table of files
//! that are open (`directory`).

mod answer;
mod directory;
mod request;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use namehop_wire::security::Signer;
use namehop_wire::{BuildError, Name};
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::answer::Answerer;
use self::directory::Directory;
use self::request::{FileRequest, parse};
use crate::endpoint::{Answer, Endpoint, Request, Responder};

/// Interests that may wait for a thread. Above that they are dropped: consumers ask again.
const QUEUE_LENGTH: usize = 1024;
/// How long the end waits for Interests that threads still work on: a disk may never answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How to serve.
#[derive(Clone)]
pub struct FileServerOptions {
    /// Bytes of content per segment.
    pub segment_bytes: usize,
    /// FreshnessPeriod of segments, in milliseconds.
    pub freshness_ms: u64,
    /// FreshnessPeriod of metadata and of Nacks, in milliseconds; short, so that a change is found soon.
    pub metadata_freshness_ms: u64,
    /// Threads that read and sign.
    pub threads: usize,
    /// Signs every Data.
    pub signer: Arc<dyn Signer>,
}

/// Why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FileServerError {
    /// It cannot be opened.
    #[error("{0}")]
    Directory(#[from] io::Error),
    /// The kernel cannot be told to stay inside the directory.
    #[error(
        "this needs openat2, a system call of Linux 5.6 and later, which the system or a container does not allow: {0}"
    )]
    NoConfinement(io::Error),
    /// Segments would not fit into packets.
    #[error(
        "segments of {0} bytes do not fit into packets with this prefix and this signature: choose smaller segments"
    )]
    TooLarge(usize),
    /// Segments of no bytes.
    #[error("the segment size must be at least 1 byte")]
    NoSegmentSize,
    /// The key does not sign.
    #[error("cannot sign: {0}")]
    Signing(BuildError),
}

/// What was asked for and answered. Every Interest is in exactly one of these, apart from `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileServerCounters {
    /// Metadata sent.
    pub metadata: u64,
    /// Segments of files sent.
    pub segments: u64,
    /// Segments of listings sent.
    pub listings: u64,
    /// Data with ContentType Nack sent: metadata of what is not there.
    pub nacks: u64,
    /// Not answered: the name is none that the protocol knows.
    pub unrecognized: u64,
    /// Not answered: a segment of something that is not there.
    pub missing: u64,
    /// Not answered: a segment of another version than there is now.
    pub other_version: u64,
    /// Not answered: a segment behind the end.
    pub behind_end: u64,
    /// Not answered: all threads were busy, and the queue was full.
    pub overloaded: u64,
    /// Not answered: name, content and signature do not fit into a packet, or the directory has too many names.
    pub too_large: u64,
    /// Not answered: the system could not open or read it, or the key did not sign.
    pub failed: u64,
    /// Bytes of content sent, in segments.
    pub bytes: u64,
}

/// What has become of an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Metadata,
    Segment { bytes: usize },
    Listing { bytes: usize },
    Nack,
    Unrecognized,
    Missing,
    OtherVersion,
    BehindEnd,
    Overloaded,
    TooLarge,
    Failed,
}

/// [`FileServerCounters`] as they grow.
#[derive(Default)]
struct Counting(Mutex<FileServerCounters>);

impl Counting {
    fn count(&self, fate: Fate) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Fate::Segment { bytes } | Fate::Listing { bytes } = fate {
            counters.bytes += bytes as u64;
        }
        let counter = match fate {
            Fate::Metadata => &mut counters.metadata,
            Fate::Segment { .. } => &mut counters.segments,
            Fate::Listing { .. } => &mut counters.listings,
            Fate::Nack => &mut counters.nacks,
            Fate::Unrecognized => &mut counters.unrecognized,
            Fate::Missing => &mut counters.missing,
            Fate::OtherVersion => &mut counters.other_version,
            Fate::BehindEnd => &mut counters.behind_end,
            Fate::Overloaded => &mut counters.overloaded,
            Fate::TooLarge => &mut counters.too_large,
            Fate::Failed => &mut counters.failed,
        };
        *counter += 1;
    }

    fn counters(&self) -> FileServerCounters {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An Interest that waits for a thread.
struct Job {
    request: FileRequest,
    responder: Responder,
}

/// A directory that is served.
pub struct FileServer {
    prefix: Name,
    counting: Arc<Counting>,
    /// The queue of the threads.
    sender: SyncSender<Job>,
    threads: Vec<JoinHandle<()>>,
}

impl FileServer {
    /// Opens `directory`, to [answer](Self::answer) for it under `prefix` until it is [stopped](Self::stop).
    ///
    /// # Errors
    /// See [`FileServerError`].
    pub fn start(prefix: &Name, directory: &Path, options: FileServerOptions) -> Result<Self, FileServerError> {
        let count = options.threads.max(1);
        let directory = Directory::open(directory)?;
        let answerer = Arc::new(Answerer::new(prefix.clone(), directory, options)?);
        let counting = Arc::new(Counting::default());
        let (sender, receiver) = sync_channel(QUEUE_LENGTH);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::new();
        for number in 0..count {
            let (answerer, counting, receiver) = (answerer.clone(), counting.clone(), receiver.clone());
            let thread = thread::Builder::new()
                .name(format!("files {number}"))
                .spawn(move || work(&answerer, &counting, &receiver))?;
            threads.push(thread);
        }
        Ok(Self { prefix: prefix.clone(), counting, sender, threads })
    }

    /// Answers Interests that come over a connection, as long as it lasts. Registering the prefix is left to the caller.
    pub fn answer(&self, endpoint: &Endpoint) {
        let (sender, counts, prefix_length) = (self.sender.clone(), self.counting.clone(), self.prefix.len());
        endpoint.produce(&self.prefix, move |request| enqueue(&sender, &counts, prefix_length, request));
    }

    /// Takes no more Interests, answers those that wait, and gives what was asked for in all.
    pub async fn stop(self, endpoint: &Endpoint) -> FileServerCounters {
        endpoint.withdraw(&self.prefix);
        let Self { counting, sender, threads, .. } = self;
        // With the handler, the last sender of the queue.
        drop(sender);
        let ended = spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join));
        // What is not over by then is not counted.
        let _ = timeout(STOP_TIMEOUT, ended).await;
        counting.counters()
    }

    /// What was asked for so far.
    pub fn counters(&self) -> FileServerCounters {
        self.counting.counters()
    }
}

/// Runs on the reading task: takes the name apart and hands the Interest to a thread.
fn enqueue(sender: &SyncSender<Job>, counting: &Counting, prefix_length: usize, request: &Request<'_>) -> Answer {
    let Some(parsed) = parse(request.interest, prefix_length) else {
        counting.count(Fate::Unrecognized);
        return Answer::None;
    };
    let job = Job { request: parsed, responder: request.responder() };
    if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sender.try_send(job) {
        counting.count(Fate::Overloaded);
    }
    Answer::None
}

/// One of the threads. Ends when the server and the handlers of its connections are gone.
fn work(answerer: &Answerer, counting: &Counting, receiver: &Mutex<Receiver<Job>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { request, responder }) = job else { return };
        let (fate, packet) = answerer.answer(&request);
        counting.count(fate);
        if let Some(packet) = packet {
            responder.send_data(&packet);
        }
    }
}
