//! Segmented, versioned objects: a publisher and a fetcher.
//!
//! An object `/N` of version `v` consists of Data `/N/54=v/50=0`, `/N/54=v/50=1`, … with a FinalBlockId that names the
//! last one. The newest version is found through Realtime Data Retrieval metadata: an Interest `/N/32=metadata`
//! (CanBePrefix, MustBeFresh) retrieves a Data with the name `/N/54=v` as its Content. These are the conventions of
//! ndncatchunks/ndnputchunks, NDNts and `ndnd cat`/`ndnd put`. The fetcher also reads objects with marker-based version
//! and segment components (naming conventions of 2014).

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

/// Keyword component in the names of metadata.
const METADATA: &str = "metadata";

/// Returns the metadata name of an object, without the metadata's own version.
fn metadata_name(object: &Name) -> Name {
    object.clone().append_keyword(METADATA)
}
