//! Builds the Data that answers a request.

use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use namehop_wire::builder::DataBuilder;
use namehop_wire::data::content_type;
use namehop_wire::tlv::Writer;
use namehop_wire::{BuildError, ComponentRef, MAX_PACKET_SIZE, Name};
use tracing::debug;

use super::directory::{Directory, Opened, Unreadable, since_epoch_ns};
use super::request::{FileRequest, LISTING, Wanted};
use super::{Fate, FileServerError, FileServerOptions};
use crate::segmented::ObjectMetadata;

/// TLV types in metadata (ndn6-file-server).
const SEGMENT_SIZE: u32 = 0xF500;
const SIZE: u32 = 0xF502;
const MODE: u32 = 0xF504;
const ATIME: u32 = 0xF506;
const BTIME: u32 = 0xF508;
const CTIME: u32 = 0xF50A;
const MTIME: u32 = 0xF50C;

/// Answers requests for one directory.
pub(super) struct Answerer {
    prefix: Name,
    directory: Directory,
    options: FileServerOptions,
}

/// Returns the number of the last segment of this many bytes; empty content has one segment.
fn last_segment(bytes: u64, segment_bytes: usize) -> u64 {
    bytes.div_ceil(segment_bytes as u64).saturating_sub(1)
}

impl Answerer {
    pub(super) fn new(prefix: Name, directory: Directory, options: FileServerOptions) -> Result<Self, FileServerError> {
        if options.segment_bytes == 0 {
            return Err(FileServerError::NoSegmentSize);
        }
        if options.segment_bytes > MAX_PACKET_SIZE {
            return Err(FileServerError::TooLarge(options.segment_bytes));
        }
        let answerer = Self { prefix, directory, options };
        // The shortest possible name with the longest numbers.
        let name = answerer.prefix.clone().append_generic("f").append_version(u64::MAX).append_segment(u64::MAX);
        match answerer.segment(name, u64::MAX, vec![0; answerer.options.segment_bytes]) {
            Ok(_) => Ok(answerer),
            Err(BuildError::TooLong) => Err(FileServerError::TooLarge(answerer.options.segment_bytes)),
            Err(error) => Err(FileServerError::Signing(error)),
        }
    }

    /// Answers a request. Returns its outcome and the Data to send, if any.
    pub(super) fn answer(&self, request: &FileRequest) -> (Fate, Option<Vec<u8>>) {
        let answered = match request.wanted {
            Wanted::Metadata { directory_only } => self.metadata(request, directory_only),
            Wanted::Segment { listing, version, segment } => self.content(request, listing, version, segment),
        };
        match answered {
            Ok((fate, packet)) => (fate, Some(packet)),
            Err(fate) => {
                debug!(name = %request.name, ?fate, "not answered");
                (fate, None)
            }
        }
    }

    fn metadata(&self, request: &FileRequest, directory_only: bool) -> Result<(Fate, Vec<u8>), Fate> {
        let opened = match self.directory.look_up(&request.path) {
            Ok(opened) if opened.is_directory() || !directory_only => opened,
            Ok(_) | Err(Unreadable::Missing) => {
                let nack = self.metadata_packet(request, |data| data.content_type(content_type::NACK))?;
                return Ok((Fate::Nack, nack));
            }
            Err(error) => return Err(error.into()),
        };
        let content = self.metadata_content(request, &opened);
        let segment = Name::new().append_segment(0);
        let packet = self.metadata_packet(request, |data| {
            data.content(content).final_block_id(segment.last().unwrap_or(ComponentRef::generic(b"")))
        })?;
        Ok((Fate::Metadata, packet))
    }

    /// Builds a metadata Data. Its own version is the current time, so that caches keep different metadata apart.
    fn metadata_packet(
        &self,
        request: &FileRequest,
        fill: impl FnOnce(DataBuilder) -> DataBuilder,
    ) -> Result<Vec<u8>, Fate> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let name = request.name.clone().append_version(now).append_segment(0);
        let data = DataBuilder::new(name).freshness_ms(self.options.metadata_freshness_ms);
        Ok(fill(data).sign(self.options.signer.as_ref())?)
    }

    fn metadata_content(&self, request: &FileRequest, opened: &Opened) -> Vec<u8> {
        let mut name = self.prefix.clone();
        for part in request.path.iter() {
            name.push(ComponentRef::generic(part.as_encoded_bytes()));
        }
        if opened.is_directory() {
            name.push(ComponentRef::keyword(LISTING));
        }
        let last = || Name::new().append_segment(last_segment(opened.size_bytes(), self.options.segment_bytes));
        let object = ObjectMetadata {
            name: name.append_version(opened.version()),
            final_block: (!opened.is_directory()).then(last),
        };
        let mut writer = Writer::new();
        writer.raw(&object.content());
        let metadata = &opened.metadata;
        if !opened.is_directory() {
            writer.nni(SEGMENT_SIZE, self.options.segment_bytes as u64).nni(SIZE, opened.size_bytes());
        }
        writer.nni(MODE, u64::from(metadata.mode()));
        writer.nni(ATIME, since_epoch_ns(metadata.atime(), metadata.atime_nsec()));
        // Not every file system records creation times.
        if let Some(born) = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok()) {
            writer.nni(BTIME, u64::try_from(born.as_nanos()).unwrap_or(u64::MAX));
        }
        writer.nni(CTIME, since_epoch_ns(metadata.ctime(), metadata.ctime_nsec()));
        writer.nni(MTIME, opened.version());
        writer.into_vec()
    }

    fn content(
        &self,
        request: &FileRequest,
        listing: bool,
        version: u64,
        segment: u64,
    ) -> Result<(Fate, Vec<u8>), Fate> {
        let opened = self.directory.recall(&request.path)?;
        if opened.is_directory() != listing {
            return Err(Fate::Missing);
        }
        if opened.version() != version {
            return Err(Fate::OtherVersion);
        }
        let names = if listing { Some(opened.listing()?) } else { None };
        let size = names.map_or(opened.size_bytes(), |names| names.len() as u64);
        let last = last_segment(size, self.options.segment_bytes);
        if segment > last {
            return Err(Fate::BehindEnd);
        }
        let offset = segment * self.options.segment_bytes as u64;
        let bytes = (size - offset).min(self.options.segment_bytes as u64) as usize;
        let piece = match names {
            Some(names) => names[offset as usize..][..bytes].to_vec(),
            None => opened.read(offset, bytes)?,
        };
        let fate = if listing { Fate::Listing { bytes } } else { Fate::Segment { bytes } };
        Ok((fate, self.segment(request.name.clone(), last, piece)?))
    }

    fn segment(&self, name: Name, last: u64, piece: Vec<u8>) -> Result<Vec<u8>, BuildError> {
        let last = Name::new().append_segment(last);
        DataBuilder::new(name)
            .freshness_ms(self.options.freshness_ms)
            .final_block_id(last.last().unwrap_or(ComponentRef::generic(b"")))
            .content(piece)
            .sign(self.options.signer.as_ref())
    }
}

impl From<Unreadable> for Fate {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Missing => Self::Missing,
            Unreadable::Changed => Self::OtherVersion,
            Unreadable::TooLarge => Self::TooLarge,
            Unreadable::Failed => Self::Failed,
        }
    }
}

impl From<BuildError> for Fate {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::TooLong => Self::TooLarge,
            _ => Self::Failed,
        }
    }
}
