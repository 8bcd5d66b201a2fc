//! The state of a router as JSON: the same on the command line and over HTTP.
//!
//! Each view is made from a message of the NFD management protocol ([`nfd`](namehop_client::nfd)) and contains only
//! its fields. Units are part of the field names. Codes are written as words. Values that the forwarder does not report
//! are `null`. Field names are stable. The description of the HTTP API is generated from these types; `required` marks
//! a field that is always present, even if `null`.

mod content_store;
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

pub use content_store::{CsConfigView, CsErasureView, CsInfoView};
pub use dispatch::DispatchMoveView;
pub use face::{ChangedFaceView, FaceView};
pub use latency::{LatencyStepView, LatencyView, LatencyWayView};
pub use power::{PowerPartView, PowerView};
pub use prefix::{FibView, NextHopView, RouteView, StrategyChoiceView};
pub use status::{
    FaceDropView, OwnDatasets, ReadvertiseCommandsView, ReadvertiseErrorView, ReadvertiseView, StatusView, WorkerView,
};
pub use strategy::StrategyView;
pub(crate) use strategy::parameter_record;
pub use trace::TracedPacketView;
