//! Commands and questions that come from this process and in no packet: those of the HTTP API.
//!
//! The verbs and datasets of the management protocol carry them out, so that both ways have the same checks, answers and saved state.
//! [`Inside`] may be used on every thread; what it asks is done on the control thread, in a task for each question.

use std::collections::HashMap;
use std::rc::Rc;

use namehop_engine::fib::FibCursor;
use namehop_packet::FaceId;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use super::dispatcher::Requester;
use super::status::Content;
use super::verbs::{Begun, bad_request};
use super::{ControlPlane, Management};
use crate::authentication::Authority;
use crate::nfd::names::module;
use crate::nfd::numbers::status_code;
use crate::nfd::{ControlParameters, ControlResponse, FaceQueryFilter};
use crate::rib::Cursor;

/// Questions that may wait for the control thread; who has more waits.
const QUESTIONS: usize = 64;

/// There is no answer, because the router is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the router is shutting down")]
pub struct RouterEnds;

/// Where a walk over a table that may have millions of entries goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceInTable {
    /// In the FIB. Prefixes that it has during the whole walk are shown at least once.
    Fib(FibCursor),
    /// In the RIB.
    Rib(Cursor),
}

impl PlaceInTable {
    /// The place as a number, to be given to somebody outside.
    pub fn number(self) -> Option<u64> {
        match self {
            PlaceInTable::Fib(cursor) => cursor.number(),
            PlaceInTable::Rib(cursor) => cursor.number(),
        }
    }
}

/// One question, and where its answer goes. Whoever asked may have gone.
enum Question {
    Command {
        module: &'static str,
        verb: &'static str,
        parameters: Box<ControlParameters>,
        file: Vec<u8>,
        reply: oneshot::Sender<ControlResponse>,
    },
    Dataset {
        module: &'static str,
        verb: &'static str,
        filter: Box<FaceQueryFilter>,
        reply: oneshot::Sender<Vec<u8>>,
    },
    Portion {
        from: PlaceInTable,
        portion: usize,
        reply: oneshot::Sender<(Vec<u8>, Option<PlaceInTable>)>,
    },
    RemoteUris {
        faces: Vec<u64>,
        reply: oneshot::Sender<HashMap<u64, String>>,
    },
}

/// The management server, for other parts of this process.
#[derive(Debug, Clone)]
pub struct Inside {
    questions: mpsc::Sender<Question>,
}

impl Inside {
    async fn ask<R>(&self, question: impl FnOnce(oneshot::Sender<R>) -> Question) -> Result<R, RouterEnds> {
        let (reply, answer) = oneshot::channel();
        self.questions.send(question(reply)).await.map_err(|_| RouterEnds)?;
        answer.await.map_err(|_| RouterEnds)
    }

    /// Carries a command out, to the end even if nobody waits for that. `file` is what the command brings beside its parameters.
    ///
    /// # Errors
    /// The router ends.
    pub async fn command(
        &self,
        module: &'static str,
        verb: &'static str,
        parameters: ControlParameters,
        file: Vec<u8>,
    ) -> Result<ControlResponse, RouterEnds> {
        let parameters = Box::new(parameters);
        self.ask(|reply| Question::Command { module, verb, parameters, file, reply }).await
    }

    /// The content of a dataset that is made as a whole; nothing of others.
    ///
    /// # Errors
    /// The router ends.
    pub async fn dataset(&self, module: &'static str, verb: &'static str) -> Result<Vec<u8>, RouterEnds> {
        self.ask(|reply| Question::Dataset { module, verb, filter: Box::default(), reply }).await
    }

    /// The faces that match a filter, as in `faces/query`.
    ///
    /// # Errors
    /// The router ends.
    pub async fn faces(&self, filter: FaceQueryFilter) -> Result<Vec<u8>, RouterEnds> {
        let filter = Box::new(filter);
        self.ask(|reply| Question::Dataset { module: module::FACES, verb: "query", filter, reply }).await
    }

    /// About `portion` more entries of a table, as in its dataset, and where to go on.
    ///
    /// # Errors
    /// The router ends.
    pub async fn portion(
        &self,
        from: PlaceInTable,
        portion: usize,
    ) -> Result<(Vec<u8>, Option<PlaceInTable>), RouterEnds> {
        self.ask(|reply| Question::Portion { from, portion, reply }).await
    }

    /// The addresses of these faces' peers, of those that exist.
    ///
    /// # Errors
    /// The router ends.
    pub async fn remote_uris(&self, faces: Vec<u64>) -> Result<HashMap<u64, String>, RouterEnds> {
        self.ask(|reply| Question::RemoteUris { faces, reply }).await
    }
}

impl<C: ControlPlane> Management<C> {
    /// A way to ask this server, and what answers for as long as there is somebody who can ask: to be spawned on the control
    /// thread's `LocalSet`.
    pub fn inside(self: &Rc<Self>) -> (Inside, impl Future<Output = ()> + 'static + use<C>) {
        let (questions, mut inbox) = mpsc::channel(QUESTIONS);
        let this = Rc::clone(self);
        let answering = async move {
            while let Some(question) = inbox.recv().await {
                spawn_local(Rc::clone(&this).answer(question));
            }
        };
        (Inside { questions }, answering)
    }

    async fn answer(self: Rc<Self>, question: Question) {
        match question {
            Question::Command { module, verb, parameters, file, reply } => {
                let response = self.command_from_inside(module, verb, *parameters, &file).await;
                tracing::debug!(module, verb, code = response.code, text = response.text, "command over HTTP answered");
                let _ = reply.send(response);
            }
            Question::Dataset { module, verb, filter, reply } => {
                let content =
                    match Self::find_dataset(module.as_bytes(), verb.as_bytes()).map(|dataset| &dataset.content) {
                        Some(Content::Whole(make)) => make(self).await,
                        Some(Content::Filtered(make)) => make(self, *filter).await,
                        Some(Content::Streamed(_)) | None => Vec::new(),
                    };
                let _ = reply.send(content);
            }
            Question::Portion { from, portion, reply } => {
                let mut content = Vec::new();
                let next = match from {
                    PlaceInTable::Fib(from) => self.read_fib(from, portion, &mut content).map(PlaceInTable::Fib),
                    PlaceInTable::Rib(from) => self.read_rib(from, portion, &mut content).map(PlaceInTable::Rib),
                };
                let _ = reply.send((content, next));
            }
            Question::RemoteUris { faces, reply } => {
                let uri_of = |id: u64| {
                    let face = self.control.faces().get(FaceId(u32::try_from(id).ok()?))?;
                    Some((id, face.remote_uri().to_string()))
                };
                let _ = reply.send(faces.into_iter().filter_map(uri_of).collect());
            }
        }
    }

    async fn command_from_inside(
        self: &Rc<Self>,
        module: &str,
        verb: &str,
        parameters: ControlParameters,
        file: &[u8],
    ) -> ControlResponse {
        let Some(verb) = Self::find_verb(module.as_bytes(), verb.as_bytes()) else {
            return ControlResponse::new(status_code::NOT_FOUND, "there is no such command");
        };
        if parameters.face_id == Some(0) {
            // In a packet it would mean the face that the packet came in on.
            return bad_request("0 is the number of no face".to_owned());
        }
        if let Err(response) = verb.check(&parameters) {
            return response;
        }
        let requester = Requester { face: FaceId::default(), authority: Authority::Token };
        match self.begin(verb, parameters, file, requester) {
            Begun::Done(response) => response,
            Begun::Running(response) => response.await,
        }
    }
}
