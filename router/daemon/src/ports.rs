//! Ports: links that workers poll themselves, through DPDK.
//!
//! Opening and closing links is slow and may fail late, so a separate thread does it ([`thread`]). The thread and DPDK
//! start with the first face that needs a port: a router with sockets only has neither.

mod kernel_share;
mod made;
mod managed;
mod silence;
mod steering;
mod thread;
mod trouble;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use namehop_config::Config;
use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceTable, FaceUpdate};
use namehop_face::socket::{CreateError, FaceEvent};
use namehop_packet::{BufferPool, FaceId};
use namehop_port::DpdkError;
use namehop_port::drivers::OpenError;
use namehop_port::faces::PortControls;

use crate::memory_budget::Bounds;
use namehop_worker::WorkerHandles;
use thread::{PortCommand, Ports};

/// Returns why a face cannot be created on a port that cannot be opened. A missing interface is `Unreachable`, because
/// it may appear later.
fn create_error(error: OpenError) -> CreateError {
    match error {
        OpenError::NoInterface(_) => CreateError::Unreachable(error.to_string()),
        _ => CreateError::NotAcceptable(error.to_string()),
    }
}

fn refused(error: &DpdkError) -> CreateError {
    CreateError::NotAcceptable(error.to_string())
}

/// The parts of the router that ports use.
pub struct PortContext {
    /// All faces.
    pub faces: Arc<FaceTable>,
    /// Where created, changed and closed faces are announced.
    pub events: UnboundedSender<FaceEvent>,
    /// Packet buffers.
    pub pool: BufferPool,
    /// Control of the workers' ports.
    pub control: PortControls,
    /// The workers.
    pub workers: WorkerHandles,
}

enum State {
    /// No port was needed yet.
    Waiting(Box<Ports>),
    Running(Sender<PortCommand>, JoinHandle<()>),
    Ended,
}

/// The control thread's handle to the ports.
pub struct PortService {
    state: RefCell<State>,
}

impl PortService {
    /// Creates the service without opening ports.
    pub fn new(context: PortContext, config: &Config, bounds: &Bounds) -> Self {
        PortService { state: RefCell::new(State::Waiting(Box::new(Ports::new(context, config, bounds)))) }
    }

    /// Creates a face, and opens its port if it is not open.
    ///
    /// # Errors
    /// The reason why the face cannot be created.
    pub async fn create_face(
        &self,
        uri: FaceUri,
        local_uri: Option<FaceUri>,
        update: FaceUpdate,
    ) -> Result<Arc<Face>, CreateError> {
        self.ask(|reply| PortCommand::CreateFace { uri, local_uri, update, reply }).await.unwrap_or_else(Err)
    }

    /// Closes a face, and also its port if the port has no other use. Returns whether the face was on a port.
    pub async fn destroy_face(&self, id: FaceId) -> bool {
        if matches!(*self.state.borrow(), State::Waiting(_)) {
            return false;
        }
        self.ask(|reply| PortCommand::DestroyFace { id, reply }).await.unwrap_or(false)
    }

    /// Opens the configured ports and creates their multicast faces. Failures are logged.
    pub async fn open_configured(&self) {
        let wants = match &*self.state.borrow() {
            State::Waiting(ports) => ports.has_configured(),
            State::Running(..) | State::Ended => true,
        };
        if wants {
            let _ = self.ask(PortCommand::OpenConfigured).await;
        }
    }

    /// Closes all faces and ports and ends the thread.
    pub async fn shut_down(&self) {
        if matches!(*self.state.borrow(), State::Waiting(_)) {
            return;
        }
        let _ = self.ask(PortCommand::Shutdown).await;
        if let State::Running(_, thread) = self.state.replace(State::Ended)
            && thread.join().is_err()
        {
            tracing::error!("the ports thread ended unexpectedly");
        }
    }

    /// Sends a command to the thread and waits for the reply. Starts the thread for the first command.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> PortCommand) -> Result<T, CreateError> {
        let stopping = || CreateError::Unreachable("the router is shutting down".to_owned());
        let (reply, answer) = oneshot::channel();
        self.sender()?.send(command(reply)).map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())
    }

    fn sender(&self) -> Result<Sender<PortCommand>, CreateError> {
        let mut state = self.state.borrow_mut();
        if let State::Running(sender, _) = &*state {
            return Ok(sender.clone());
        }
        let State::Waiting(ports) = std::mem::replace(&mut *state, State::Ended) else {
            return Err(CreateError::Unreachable("the router is shutting down".to_owned()));
        };
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("ports".to_owned()).spawn(move || ports.run(&receiver));
        let thread =
            thread.map_err(|error| CreateError::Unreachable(format!("cannot start the ports thread: {error}")))?;
        *state = State::Running(sender.clone(), thread);
        Ok(sender)
    }
}
