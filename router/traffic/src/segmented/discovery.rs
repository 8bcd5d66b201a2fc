//! Finds the versioned name of an object.

use std::str::FromStr;

use namehop_client::endpoint::{Endpoint, ExpressError, Response};
use namehop_wire::builder::InterestBuilder;
use namehop_wire::data::content_type;
use namehop_wire::lp::NackReason;
use namehop_wire::tlv::{Reader, Writer, types};
use namehop_wire::{Data, Name, NameRef};

use super::fetcher::{FetchError, FetchOptions};
use super::metadata_name;
use super::numbering::{Numbering, is_version};

/// Time-out of one discovery Interest in milliseconds. The round-trip time to the producer is unknown, and a retry is
/// cheap.
const DISCOVERY_LIFETIME_MS: u64 = 1000;

/// How to find the version of a name that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// By metadata; if it is not answered or unusable, by prefix.
    #[default]
    Auto,
    /// By metadata only.
    Metadata,
    /// By an Interest with CanBePrefix and MustBeFresh for the object itself.
    Prefix,
    /// No discovery: the name is used as given.
    None,
}

impl FromStr for Discovery {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "metadata" => Ok(Self::Metadata),
            "prefix" => Ok(Self::Prefix),
            "none" => Ok(Self::None),
            _ => Err(format!("unknown version discovery '{text}' (auto, metadata, prefix, none)")),
        }
    }
}

/// How the version was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveryMethod {
    /// No discovery: the given name was complete.
    Given,
    /// From metadata.
    Metadata,
    /// From a Data under the prefix.
    Prefix,
}

impl DiscoveryMethod {
    /// Returns the name used in output for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Metadata => "metadata",
            Self::Prefix => "prefix",
        }
    }
}

/// Result of discovery.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) method: DiscoveryMethod,
    pub(super) object: FoundObject,
}

#[derive(Debug)]
pub(super) enum FoundObject {
    /// Segments under this versioned name, numbered in this form. `first` is segment 0 if it arrived already;
    /// `expected_last` is the number of the last segment according to the metadata.
    Segments { name: Name, numbering: Numbering, first: Option<Response>, expected_last: Option<u64> },
    /// The object is this single Data, which is not a segment.
    Single(Response),
}

pub(super) async fn discover(
    endpoint: &Endpoint,
    name: &Name,
    options: &FetchOptions,
) -> Result<Discovered, FetchError> {
    let last = name.last();
    if last.and_then(Numbering::of).is_some() {
        let response = express(endpoint, name, false, options).await?;
        return Ok(Discovered { method: DiscoveryMethod::Given, object: FoundObject::Single(response) });
    }
    if options.discovery == Discovery::None || last.is_some_and(is_version) {
        let numbering = Numbering::of_object(name.as_ref());
        let object = FoundObject::Segments { name: name.clone(), numbering, first: None, expected_last: None };
        return Ok(Discovered { method: DiscoveryMethod::Given, object });
    }
    match options.discovery {
        Discovery::Prefix => by_prefix(endpoint, name, options).await,
        Discovery::Metadata => by_metadata(endpoint, name, options).await,
        _ => match by_metadata(endpoint, name, options).await {
            // A route to the object would also have carried the metadata Interest.
            Err(error @ FetchError::Discovery(ExpressError::Nack(NackReason::NO_ROUTE))) => Err(error),
            Err(
                FetchError::Discovery(ExpressError::Timeout { .. } | ExpressError::Nack(_))
                | FetchError::BadMetadata(_),
            ) => by_prefix(endpoint, name, options).await,
            other => other,
        },
    }
}

/// Sends a discovery Interest, and retries it after time-outs.
async fn express(
    endpoint: &Endpoint,
    name: &Name,
    by_prefix: bool,
    options: &FetchOptions,
) -> Result<Response, FetchError> {
    let mut tries = 0;
    loop {
        let interest = InterestBuilder::new(name)
            .can_be_prefix(by_prefix)
            .must_be_fresh(by_prefix)
            .lifetime_ms(DISCOVERY_LIFETIME_MS.min(options.lifetime_ms));
        match endpoint.request(interest).await {
            Ok(response) => return Ok(response),
            Err(ExpressError::Timeout { .. }) if tries < options.discovery_retries => tries += 1,
            Err(error) => return Err(FetchError::Discovery(error)),
        }
    }
}

async fn by_metadata(endpoint: &Endpoint, name: &Name, options: &FetchOptions) -> Result<Discovered, FetchError> {
    let response = express(endpoint, &metadata_name(name), true, options).await?;
    let data = response.data().map_err(|error| FetchError::BadMetadata(error.to_string()))?;
    Ok(Discovered { method: DiscoveryMethod::Metadata, object: object_of_metadata(&data, name, options)? })
}

/// Returns the object that the metadata of `name` points to.
fn object_of_metadata(data: &Data<'_>, name: &Name, options: &FetchOptions) -> Result<FoundObject, FetchError> {
    let bad = |text: &str| FetchError::BadMetadata(text.to_owned());
    options.verification.check(data).map_err(|error| FetchError::Verification { name: data.name.to_owned(), error })?;
    if data.content_type == content_type::NACK {
        return Err(FetchError::ProducerNack(name.clone()));
    }
    let metadata = ObjectMetadata::read(data).ok_or_else(|| bad("it contains no name"))?;
    if !name.is_prefix_of(metadata.name.as_ref()) {
        return Err(bad("it names another object"));
    }
    let numbering = Numbering::of_object(metadata.name.as_ref());
    let expected_last = metadata.final_block.as_ref().and_then(|end| numbering.segment(end.last()?));
    Ok(FoundObject::Segments { name: metadata.name, numbering, first: None, expected_last })
}

/// Metadata of an object (Realtime Data Retrieval): the elements in the Content that this crate uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// The versioned name of the object: the first Name.
    pub name: Name,
    /// The component of the last segment, as a Name of one component: the FinalBlockId that ndn6-file-server and this
    /// crate's publisher put behind the Name.
    pub final_block: Option<Name>,
}

impl ObjectMetadata {
    /// Reads the Content of `data`. Other elements are skipped. `None` if there is no Name.
    pub fn read(data: &Data<'_>) -> Option<Self> {
        let mut reader = Reader::new(data.content);
        let name = loop {
            let element = reader.read_element().ok()?;
            if element.typ == types::NAME {
                break NameRef::from_value(element.value).ok()?.to_owned();
            }
        };
        let mut final_block = None;
        while let Ok(element) = reader.read_element() {
            if element.typ == types::FINAL_BLOCK_ID {
                let component = NameRef::from_value(element.value).ok().filter(|name| name.len() == 1);
                final_block = component.map(|name| name.to_owned());
                break;
            }
        }
        Some(Self { name, final_block })
    }

    /// The Content of a metadata Data.
    pub fn content(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.raw(&self.name.to_element());
        if let Some(end) = &self.final_block {
            writer.element(types::FINAL_BLOCK_ID, end.value());
        }
        writer.into_vec()
    }
}

async fn by_prefix(endpoint: &Endpoint, name: &Name, options: &FetchOptions) -> Result<Discovered, FetchError> {
    let response = express(endpoint, name, true, options).await?;
    let data = response.data().map_err(|error| FetchError::BadData { name: name.clone(), error })?;
    if metadata_name(name).is_prefix_of(data.name) {
        // The object's metadata matches its prefix too, and a cache may answer with it first.
        return Ok(Discovered { method: DiscoveryMethod::Prefix, object: object_of_metadata(&data, name, options)? });
    }
    let found = data.name;
    let object = match found.last().and_then(Numbering::of) {
        Some((numbering, segment)) => {
            let name = found.without_last(1).to_owned();
            let first = (segment == 0).then_some(response);
            FoundObject::Segments { name, numbering, first, expected_last: None }
        }
        None if is_whole(&data, name) => FoundObject::Single(response),
        None => return Err(FetchError::PartOf(found.to_owned())),
    };
    Ok(Discovered { method: DiscoveryMethod::Prefix, object })
}

/// Returns true if a Data that is not a segment is a whole object, not a part of an object with another naming scheme.
/// Its FinalBlockId names itself, or it has none and its name is the requested one or ends with a version.
fn is_whole(data: &Data<'_>, requested: &Name) -> bool {
    let last = data.name.last();
    match data.final_block_id {
        Some(end) => last == Some(end),
        None => data.name == requested.as_ref() || last.is_some_and(is_version),
    }
}
