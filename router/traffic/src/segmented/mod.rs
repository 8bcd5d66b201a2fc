//! Segmented, versioned objects: a publisher and a fetcher.
//!
//! An object `/N` of version `v` consists of Data `/N/54=v/50=0`, `/N/54=v/50=1`, … whose
//! FinalBlockId names the last one. The newest version is found through Realtime Data Retrieval
//! metadata: an Interest `/N/32=metadata` (CanBePrefix, MustBeFresh) brings a Data whose Content is
//! the name `/N/54=v`. These are the conventions of ndncatchunks/ndnputchunks, NDNts and
//! `ndnd cat`/`ndnd put`. Objects whose versions and segments are marked components of before 2022 are fetched as well.

use namehop_wire::Name;

mod adaptive;
mod congestion;
mod control;
mod counts;
mod discovery;
mod fetcher;
mod numbering;
mod output;
mod path;
mod publisher;
mod rtt;
#[cfg(test)]
mod simulation;
mod state;
#[cfg(test)]
mod tests;
mod verification;

pub use congestion::WindowKind;
pub use control::CongestionControl;
pub use counts::{EndError, FetchCounts};
pub use discovery::{Discovery, DiscoveryMethod, ObjectMetadata};
pub use fetcher::{FetchError, FetchOptions, FetchProgress, FetchReport, fetch};
pub use output::{Discard, FileOutput, InOrder, LayoutError, Output, OutputError};
pub use publisher::{Content, PublishError, PublishOptions, PublishedObject, PublisherCounters};
pub use rtt::{RtoBounds, RttEstimator};
pub use verification::{Verification, VerificationError};

/// Keyword component of metadata names.
const METADATA: &str = "metadata";

/// Name of the metadata of an object, without its own version.
fn metadata_name(object: &Name) -> Name {
    object.clone().append_keyword(METADATA)
}
