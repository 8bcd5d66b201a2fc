//! Replaces `ports` in a router that was built without DPDK: no port can be opened.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedSender;

use namehop_face::FaceUri;
use namehop_face::port::PortControls;
use namehop_face::registry::{Face, FaceTable, FaceUpdate};
use namehop_face::socket::{CreateError, FaceEvent};
use namehop_packet::{BufferPool, FaceId};

use crate::config::{Config, StaticPort};
use crate::memory_budget::Bounds;
use crate::worker::WorkerHandles;

/// The parts of the router that ports would use.
#[expect(dead_code, reason = "unused without ports")]
pub struct PortContext {
    pub faces: Arc<FaceTable>,
    pub events: UnboundedSender<FaceEvent>,
    pub pool: BufferPool,
    pub control: PortControls,
    pub workers: WorkerHandles,
}

/// Rejects every request.
pub struct PortService {
    configured: Vec<StaticPort>,
}

impl PortService {
    /// Creates the service; it only remembers the configured ports.
    pub fn new(_: PortContext, config: &Config, _: &Bounds) -> Self {
        PortService { configured: config.port.clone() }
    }

    /// Rejects every face, because this build has no ports.
    ///
    /// # Errors
    /// Always.
    pub async fn create_face(&self, uri: FaceUri, _: Option<FaceUri>, _: FaceUpdate) -> Result<Arc<Face>, CreateError> {
        let scheme = uri.scheme();
        Err(CreateError::NotAcceptable(format!("this router was built without DPDK, which {scheme} faces need")))
    }

    /// Returns false: there are no faces on ports.
    pub async fn destroy_face(&self, _: FaceId) -> bool {
        false
    }

    /// Logs that the configured ports are not opened.
    pub async fn open_configured(&self) {
        for port in &self.configured {
            tracing::warn!(port = %port.uri.0, "port not opened: this router was built without DPDK");
        }
    }

    /// Does nothing.
    pub async fn shut_down(&self) {}
}
