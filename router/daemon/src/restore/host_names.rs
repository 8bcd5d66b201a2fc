//! Configured faces to a peer that is named by host name.
//!
//! The name is resolved at the start, and again every 30 s. When the address of the face is not among the resolved
//! ones, a face to a new address takes over the routes. The old face is destroyed. Such faces are persistent, not
//! permanent: the configuration keeps the name across restarts, so the state file must not keep an address.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::sleep;
use tracing::{info, warn};

use namehop_face::registry::{Face, FaceFlags, FacePersistency, FaceUpdate};
use namehop_face::{FaceUri, FaceUriError};
use namehop_manage::rib::Route;
use namehop_manage::server::{ControlPlane, Management};
use namehop_wire::Name;

use super::{RETRY_PAUSE, RETRY_PAUSE_MAX, add_route, attempt};
use crate::control::Control;

/// Pause between two resolutions of a name while the face exists.
const RESOLVE_PAUSE: Duration = Duration::from_secs(30);

/// A face to a peer with a host name.
pub(super) struct NamedFace {
    management: Rc<Management<Control>>,
    uri: FaceUri,
    update: FaceUpdate,
    routes: Vec<(Name, Route)>,
    /// The address of the peer, and the face.
    current: Option<(FaceUri, Arc<Face>)>,
    /// The last problem, so that it is logged once.
    problem: String,
}

impl NamedFace {
    /// Creates the state of a face to `uri` with these properties and routes.
    pub(super) fn new(
        management: &Rc<Management<Control>>,
        uri: FaceUri,
        update: FaceUpdate,
        routes: Vec<(Name, Route)>,
    ) -> NamedFace {
        let mut update = FaceUpdate { persistency: Some(FacePersistency::Persistent), ..update };
        // Like permanent UDP faces, send keep-alives unless the configuration says otherwise.
        if matches!(uri, FaceUri::Udp { .. }) && update.flags_mask & FaceFlags::KEEP_ALIVE.0 == 0 {
            update.flags = update.flags.union(FaceFlags::KEEP_ALIVE);
            update.flags_mask |= FaceFlags::KEEP_ALIVE.0;
        }
        NamedFace { management: Rc::clone(management), uri, update, routes, current: None, problem: String::new() }
    }

    /// Tries once to create the face, then follows its name in a task while the router runs.
    pub(super) async fn start(mut self) {
        self.follow_once().await;
        spawn_local(async move {
            let mut pause = RETRY_PAUSE;
            loop {
                sleep(if self.current.is_some() { RESOLVE_PAUSE } else { pause }).await;
                pause = (pause * 2).min(RETRY_PAUSE_MAX);
                self.follow_once().await;
            }
        });
    }

    /// Resolves the name, and creates another face if the current address is not among the result.
    async fn follow_once(&mut self) {
        let addresses = match resolve(self.uri.clone()).await {
            Ok(addresses) => addresses,
            Err(error) => return self.note_problem(error.to_string()),
        };
        if self.current.as_ref().is_some_and(|(current, _)| addresses.contains(current)) {
            return;
        }
        let mut problems = Vec::new();
        for address in addresses {
            match attempt(&self.management, &address, None, self.update).await {
                Ok(face) => return self.take_over(address, face).await,
                Err(error) => problems.push(format!("{address}: {error}")),
            }
        }
        self.note_problem(problems.join("; "));
    }

    /// Adds the routes to a new face, and destroys the previous face.
    async fn take_over(&mut self, address: FaceUri, face: Arc<Face>) {
        info!(uri = %self.uri, %address, face = %face.id(), "host name resolved; face created");
        self.problem.clear();
        for (prefix, route) in &self.routes {
            add_route(&self.management, &face, prefix, route);
        }
        if let Some((_, before)) = self.current.replace((address, face)) {
            self.management.control().destroy_face(before.id()).await;
        }
    }

    fn note_problem(&mut self, problem: String) {
        if problem != self.problem {
            warn!(uri = %self.uri, error = problem, "cannot create a face to this host yet; retrying");
            self.problem = problem;
        }
    }
}

/// Why the addresses of a peer are not known.
#[derive(Debug, thiserror::Error)]
enum ResolveError {
    /// The name has no address, or the resolver failed.
    #[error(transparent)]
    Name(#[from] FaceUriError),
    /// The resolver thread cannot be started.
    #[error("cannot start the resolver thread: {0}")]
    Thread(io::Error),
    /// The resolver thread ended without an answer.
    #[error("the resolver thread ended unexpectedly")]
    ThreadEnded,
}

/// Returns all addresses of a peer. The resolver blocks, so it has its own thread; the shutdown does not wait for it.
async fn resolve(uri: FaceUri) -> Result<Vec<FaceUri>, ResolveError> {
    let (reply, answer) = oneshot::channel();
    let resolving = thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        // Fails if the router has ended.
        let _ = reply.send(uri.canonize_all());
    });
    resolving.map_err(ResolveError::Thread)?;
    Ok(answer.await.map_err(|_| ResolveError::ThreadEnded)??)
}
