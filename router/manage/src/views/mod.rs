//! What a router tells, as JSON: the same for whoever asks on the command line and over HTTP.
//!
//! Each view is made from a message of the NFD management protocol ([`nfd`](crate::nfd)) and is nothing but its fields in
//! words: units stand in the names of fields, numbers that stand for something are written as the word for it, and what the
//! forwarder does not tell is `null`. Names of fields are stable. The description of the HTTP API is made from these types, where
//! `required` says that a field is always there, be it `null`.

mod content_store;
mod content_store_disk;
mod dispatch;
mod face;
mod latency;
mod power;
mod prefix;
mod status;
mod strategy;
mod trace;

#[cfg(test)]
mod tests;

pub use content_store::{CsConfigView, CsErasureView, CsInfoView, CsPolicyView};
pub use content_store_disk::CsDiskView;
pub use dispatch::{DispatchEntryView, DispatchMoveView};
pub use face::{ChangedFaceView, FaceView};
pub use latency::{LatencyStepView, LatencyView, LatencyWayView};
pub use power::{PowerPartView, PowerView};
pub use prefix::{FibView, NextHopView, RouteView, StrategyChoiceView};
pub use status::{
    FaceDropView, OwnDatasets, ReadvertiseCommandsView, ReadvertiseErrorView, ReadvertiseView, StatusView, WorkerView,
};
pub use strategy::{ParameterView, StrategyView};
pub use trace::{TracedPacketView, TracedStepView};
