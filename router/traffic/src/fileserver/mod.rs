//! A file server: answers Interests for the files and directories below one directory, by the protocol of
//! ndn6-file-server, which NDN-DPDK's file server and NDNts' client also speak.
//!
//! Generic components after the prefix are the path. The components after the path select the answer (`request`):
//!
//! | name | answer |
//! |---|---|
//! | `/prefix/path/32=metadata` | the versioned name, and size, mode and times of the file (Realtime Data Retrieval) |
//! | `/prefix/path/32=ls/32=metadata` | the same, only for directories |
//! | `/prefix/path/54=version/50=segment` | a segment of the file |
//! | `/prefix/path/32=ls/54=version/50=segment` | a segment of the names in the directory |
//!
//! The version is the modification time in nanoseconds. An Interest for the metadata of a missing file is answered with
//! a Data of ContentType Nack. Interests for segments of missing files or of other versions are not answered: a Nack
//! Data under that name would stay in caches, and answer later Interests when the file is back.
//!
//! The reading task only parses names. Threads of the server open, read, sign and send (`answer`), using a table of
//! open files (`directory`).

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

use namehop_client::endpoint::{Answer, Endpoint, Request, Responder};
use namehop_wire::security::Signer;
use namehop_wire::{BuildError, Name};
use serde::Serialize;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use self::answer::Answerer;
use self::directory::Directory;
use self::request::{FileRequest, parse};

/// Maximum number of Interests queued for the threads. More are dropped; consumers retransmit them.
const QUEUE_LENGTH: usize = 1024;
/// How long [`FileServer::stop`] waits for Interests in progress: a disk may never answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Options of a file server.
#[derive(Clone)]
pub struct FileServerOptions {
    /// Bytes of content per segment.
    pub segment_bytes: usize,
    /// FreshnessPeriod of segments, in milliseconds.
    pub freshness_ms: u64,
    /// FreshnessPeriod of metadata and Nacks, in milliseconds; short, so that consumers find changes soon.
    pub metadata_freshness_ms: u64,
    /// Number of threads that read and sign.
    pub threads: usize,
    /// Signs every Data.
    pub signer: Arc<dyn Signer>,
}

/// Reason why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FileServerError {
    /// The directory cannot be opened.
    #[error("{0}")]
    Directory(#[from] io::Error),
    /// The kernel does not support confining lookups to the directory.
    #[error(
        "openat2, a system call of Linux 5.6 and later, is not available; the kernel or the container does not allow \
         it: {0}"
    )]
    NoConfinement(io::Error),
    /// Segments of this size do not fit into packets.
    #[error("segments of {0} bytes do not fit into packets with this prefix and this signature: use smaller segments")]
    TooLarge(usize),
    /// The segment size is 0.
    #[error("the segment size must be at least 1 byte")]
    NoSegmentSize,
    /// The key failed to sign.
    #[error("cannot sign: {0}")]
    Signing(BuildError),
}

/// Counters of a file server. Every Interest is counted in exactly one of these, except `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileServerCounters {
    /// Metadata sent.
    pub metadata: u64,
    /// Segments of files sent.
    pub segments: u64,
    /// Segments of listings sent.
    pub listings: u64,
    /// Data with ContentType Nack sent: metadata requests for missing files.
    pub nacks: u64,
    /// Not answered: the name does not follow the protocol.
    pub unrecognized: u64,
    /// Not answered: a segment of a missing file.
    pub missing: u64,
    /// Not answered: a segment of another version than the current one.
    pub other_version: u64,
    /// Not answered: a segment beyond the end.
    pub behind_end: u64,
    /// Not answered: the queue of the threads was full.
    pub overloaded: u64,
    /// Not answered: name, content and signature do not fit into a packet, or the directory has too many names.
    pub too_large: u64,
    /// Not answered: the system could not open or read the file, or the key failed to sign.
    pub failed: u64,
    /// Bytes of content sent in segments.
    pub bytes: u64,
}

/// Outcome of an Interest.
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

/// [`FileServerCounters`] shared between threads.
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

/// An Interest queued for a thread.
struct QueuedRequest {
    request: FileRequest,
    responder: Responder,
}

/// A served directory.
pub struct FileServer {
    prefix: Name,
    counting: Arc<Counting>,
    /// Sender of the threads' job queue.
    sender: SyncSender<QueuedRequest>,
    threads: Vec<JoinHandle<()>>,
}

impl FileServer {
    /// Opens `directory` and starts the threads. The caller [answers](Self::answer) for it under `prefix` until it
    /// [stops](Self::stop) the server.
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

    /// Answers Interests from a connection until it closes. The caller registers the prefix.
    pub fn answer(&self, endpoint: &Endpoint) {
        let (sender, counts, prefix_length) = (self.sender.clone(), self.counting.clone(), self.prefix.len());
        endpoint.produce(&self.prefix, move |request| enqueue(&sender, &counts, prefix_length, request));
    }

    /// Stops accepting Interests, answers the queued ones for at most one second, and returns the final counters.
    pub async fn stop(self, endpoint: &Endpoint) -> FileServerCounters {
        endpoint.withdraw(&self.prefix);
        let Self { counting, sender, threads, .. } = self;
        // The handler's sender is gone, so this is the last one and the queue closes.
        drop(sender);
        let ended = spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join));
        // Interests not answered by then are not counted.
        let _ = timeout(STOP_TIMEOUT, ended).await;
        counting.counters()
    }

    /// Returns the current counters.
    pub fn counters(&self) -> FileServerCounters {
        self.counting.counters()
    }
}

/// Parses the name and queues the Interest for a thread. Runs on the reading task.
fn enqueue(
    sender: &SyncSender<QueuedRequest>,
    counting: &Counting,
    prefix_length: usize,
    request: &Request<'_>,
) -> Answer {
    let Some(parsed) = parse(request.interest, prefix_length) else {
        counting.count(Fate::Unrecognized);
        return Answer::None;
    };
    let job = QueuedRequest { request: parsed, responder: request.responder() };
    if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sender.try_send(job) {
        counting.count(Fate::Overloaded);
    }
    Answer::None
}

/// Body of a thread. Ends when the server and the handlers of its connections are dropped.
fn work(answerer: &Answerer, counting: &Counting, receiver: &Mutex<Receiver<QueuedRequest>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(QueuedRequest { request, responder }) = job else { return };
        let (fate, packet) = answerer.answer(&request);
        counting.count(fate);
        if let Some(packet) = packet {
            responder.send_data(&packet);
        }
    }
}
