//! Publishes an object: answers Interests for its segments and for its metadata.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use namehop_client::endpoint::{Answer, Endpoint, Request};
use namehop_wire::builder::DataBuilder;
use namehop_wire::security::Signer;
use namehop_wire::{BuildError, ComponentRef, Interest, MAX_PACKET_SIZE, Name, NameRef};
use tracing::debug;

use super::discovery::ObjectMetadata;
use super::metadata_name;

/// Maximum number of signed segments kept per object, so that a repeated request is not signed again. With ECDSA,
/// signing again would make a different Data of the same name.
const REMEMBERED_SEGMENTS: usize = 4096;

/// Content of an object.
#[derive(Debug)]
pub enum Content {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file with this many bytes, read on request.
    File(File, u64),
}

impl Content {
    /// Opens a regular file.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, its size is unknown, or it is not a regular file.
    pub fn open(path: &std::path::Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self::File(file, metadata.len()))
    }

    /// Returns the size in bytes.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, size) => *size,
        }
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).ok().filter(|start| *start <= bytes.len());
                let rest = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
                Ok(rest[..length.min(rest.len())].to_vec())
            }
            Self::File(file, _) => {
                let mut piece = vec![0; length];
                file.read_exact_at(&mut piece, offset)?;
                Ok(piece)
            }
        }
    }
}

/// Options of a publication.
#[derive(Clone)]
pub struct PublishOptions {
    /// Bytes of content per segment.
    pub segment_bytes: usize,
    /// Freshness period of segments, in milliseconds.
    pub freshness_ms: u64,
    /// Freshness period of metadata, in milliseconds; short, so that consumers find a newer version soon.
    pub metadata_freshness_ms: u64,
    /// Version; `None` for the current time in microseconds.
    pub version: Option<u64>,
    /// Signs segments and metadata.
    pub signer: Arc<dyn Signer>,
}

/// Reason why an object cannot be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// A segment does not fit into a packet.
    #[error("with segments of {segment_bytes} bytes, packets exceed {MAX_PACKET_SIZE} bytes: use smaller segments")]
    TooLarge {
        /// Bytes of content per segment.
        segment_bytes: usize,
    },
    /// The segment size is 0.
    #[error("the segment size must be at least 1 byte")]
    NoSegmentSize,
    /// The key failed to sign.
    #[error("cannot sign: {0}")]
    Signing(String),
    /// The content cannot be read.
    #[error("cannot read the content: {0}")]
    Content(String),
}

/// Counters of the Interests for a published object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherCounters {
    /// Segments sent.
    pub segments: u64,
    /// Metadata sent.
    pub metadata: u64,
    /// Interests without an answer.
    pub unanswered: u64,
    /// Bytes of content sent.
    pub bytes: u64,
}

/// A published object: its content, signed segments and counters.
pub struct PublishedObject {
    name: Name,
    versioned: Name,
    content: Content,
    options: PublishOptions,
    last_segment: u64,
    /// The first segments by number, once signed. A thread holds the lock while it signs, so that each segment is
    /// signed once.
    signed: Vec<Mutex<Option<Vec<u8>>>>,
    segments: AtomicU64,
    metadata: AtomicU64,
    unanswered: AtomicU64,
    bytes: AtomicU64,
    last_request: Mutex<Instant>,
}

impl PublishedObject {
    /// Prepares an object without sending anything.
    ///
    /// # Errors
    /// See [`PublishError`]. The largest segments are built to detect them.
    pub fn new(name: &Name, content: Content, options: PublishOptions) -> Result<Self, PublishError> {
        if options.segment_bytes == 0 {
            return Err(PublishError::NoSegmentSize);
        }
        let version = options.version.unwrap_or_else(now_us);
        let segment_bytes = options.segment_bytes as u64;
        let last_segment = content.size_bytes().div_ceil(segment_bytes).saturating_sub(1);
        let remembered = (last_segment + 1).min(REMEMBERED_SEGMENTS as u64) as usize;
        let object = Self {
            name: name.clone(),
            versioned: name.clone().append_version(version),
            signed: std::iter::repeat_with(Mutex::default).take(remembered).collect(),
            content,
            options,
            last_segment,
            segments: AtomicU64::new(0),
            metadata: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            last_request: Mutex::new(Instant::now()),
        };
        // The last but one is full and the last has the longest number: no other segment is larger than both.
        object.segment(last_segment.saturating_sub(1))?;
        object.segment(last_segment)?;
        Ok(object)
    }

    /// Returns the name with its version.
    pub fn versioned_name(&self) -> &Name {
        &self.versioned
    }

    /// Returns the number of segments; an empty object has one.
    pub fn segment_count(&self) -> u64 {
        self.last_segment + 1
    }

    /// Returns the size of the content in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.content.size_bytes()
    }

    /// Returns the time since the last Interest, or since the start if there was none.
    pub fn idle_time(&self) -> Duration {
        self.last_request.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Returns the current counters.
    pub fn counters(&self) -> PublisherCounters {
        PublisherCounters {
            segments: self.segments.load(Ordering::Relaxed),
            metadata: self.metadata.load(Ordering::Relaxed),
            unanswered: self.unanswered.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Starts answering Interests on `endpoint`. The caller registers the prefix. A thread signs the kept segments in
    /// advance, so that the first fetch does not wait for signatures; the thread ends when the object is dropped.
    pub fn publish(self: &Arc<Self>, endpoint: &Endpoint) {
        let object = Arc::clone(self);
        endpoint.produce(&self.name, move |request| object.answer(request));
        let (object, segments) = (Arc::downgrade(self), self.signed.len() as u64);
        let sign_ahead = move || {
            for segment in 0..segments {
                let Some(object) = object.upgrade() else { return };
                if let Err(error) = object.segment(segment) {
                    // A later request signs again: it reports the error, or succeeds by then.
                    debug!(%error, segment, "cannot sign ahead");
                    return;
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("sign-ahead".to_owned()).spawn(sign_ahead) {
            debug!(%error, "segments are signed on request");
        }
    }

    fn answer(&self, request: &Request<'_>) -> Answer {
        *self.last_request.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        match self.packet_for(request.interest) {
            Ok(Some(packet)) => Answer::Data(packet),
            Ok(None) => {
                self.unanswered.fetch_add(1, Ordering::Relaxed);
                Answer::None
            }
            Err(error) => {
                debug!(%error, name = %request.interest.name, "cannot answer");
                self.unanswered.fetch_add(1, Ordering::Relaxed);
                Answer::None
            }
        }
    }

    fn packet_for(&self, interest: &Interest<'_>) -> Result<Option<Vec<u8>>, PublishError> {
        let name = interest.name;
        if name == metadata_name(&self.name).as_ref() {
            // The Data's name is longer, so it matches only with CanBePrefix.
            if !interest.can_be_prefix {
                return Ok(None);
            }
            self.metadata.fetch_add(1, Ordering::Relaxed);
            return self.metadata_packet().map(Some);
        }
        let segment = match self.requested_segment(name) {
            Some(segment) => segment,
            None if interest.can_be_prefix && name.is_prefix_of(self.versioned.as_ref()) => 0,
            None => return Ok(None),
        };
        if segment > self.last_segment {
            return Ok(None);
        }
        let packet = self.segment(segment)?;
        self.segments.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(self.piece_bytes(segment) as u64, Ordering::Relaxed);
        Ok(Some(packet))
    }

    fn requested_segment(&self, name: NameRef<'_>) -> Option<u64> {
        let ours = name.len() == self.versioned.len() + 1 && self.versioned.is_prefix_of(name);
        name.last().filter(|_| ours)?.as_segment()
    }

    fn piece_bytes(&self, segment: u64) -> usize {
        let offset = segment * self.options.segment_bytes as u64;
        (self.content.size_bytes() - offset).min(self.options.segment_bytes as u64) as usize
    }

    /// Returns the signed Data of `segment`, which must exist.
    fn segment(&self, segment: u64) -> Result<Vec<u8>, PublishError> {
        let Some(kept) = self.signed.get(usize::try_from(segment).unwrap_or(usize::MAX)) else {
            return self.sign_segment(segment);
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packet) = &*kept {
            return Ok(packet.clone());
        }
        let packet = self.sign_segment(segment)?;
        Ok(kept.insert(packet).clone())
    }

    fn sign_segment(&self, segment: u64) -> Result<Vec<u8>, PublishError> {
        let offset = segment * self.options.segment_bytes as u64;
        let piece = self
            .content
            .read(offset, self.piece_bytes(segment))
            .map_err(|error| PublishError::Content(error.to_string()))?;
        let last = Name::new().append_segment(self.last_segment);
        self.sign(
            DataBuilder::new(self.versioned.clone().append_segment(segment))
                .freshness_ms(self.options.freshness_ms)
                .final_block_id(last.last().unwrap_or(ComponentRef::generic(b"")))
                .content(piece),
        )
    }

    /// Builds a metadata Data. Its own version is the current time, so that caches keep different metadata apart.
    fn metadata_packet(&self) -> Result<Vec<u8>, PublishError> {
        let name = metadata_name(&self.name).append_version(now_us()).append_segment(0);
        let last = Name::new().append_segment(0);
        let metadata = ObjectMetadata {
            name: self.versioned.clone(),
            final_block: Some(Name::new().append_segment(self.last_segment)),
        };
        self.sign(
            DataBuilder::new(name)
                .freshness_ms(self.options.metadata_freshness_ms)
                .final_block_id(last.last().unwrap_or(ComponentRef::generic(b"")))
                .content(metadata.content()),
        )
    }

    fn sign(&self, builder: DataBuilder) -> Result<Vec<u8>, PublishError> {
        builder.sign(self.options.signer.as_ref()).map_err(|error| match error {
            BuildError::TooLong => PublishError::TooLarge { segment_bytes: self.options.segment_bytes },
            other => PublishError::Signing(other.to_string()),
        })
    }
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as u64)
}
