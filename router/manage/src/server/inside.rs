//! Commands and queries of the HTTP API, which come from this process without packets.
//!
//! The verbs and datasets of the management protocol carry them out, so both ways share checks, answers and saved
//! state. [`Inside`] may be used on any thread. The control thread answers each query in its own task.

use std::collections::HashMap;
use std::rc::Rc;

use namehop_client::nfd::names::module;
use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse, FaceQueryFilter};
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
use crate::rib::Cursor;

/// Queries that can wait for the control thread. When the queue is full, the sender waits.
const QUESTIONS: usize = 64;

/// There is no answer because the router is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the router is shutting down")]
pub struct RouterEnds;

/// Position at which a walk over a table with possibly millions of entries continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableCursor {
    /// In the FIB. Prefixes that are present during the whole walk are shown at least once.
    Fib(FibCursor),
    /// In the RIB.
    Rib(Cursor),
}

impl TableCursor {
    /// Returns the position as a number, for clients of the API; `None` where the cursor has none.
    pub fn number(self) -> Option<u64> {
        match self {
            TableCursor::Fib(cursor) => cursor.number(),
            TableCursor::Rib(cursor) => cursor.number(),
        }
    }
}

/// A query and the channel for its answer. The receiver of the answer may be gone.
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
        from: TableCursor,
        portion: usize,
        reply: oneshot::Sender<(Vec<u8>, Option<TableCursor>)>,
    },
    RemoteUris {
        faces: Vec<u64>,
        reply: oneshot::Sender<HashMap<u64, String>>,
    },
}

/// Handle to the management server for other parts of this process.
#[derive(Debug, Clone)]
pub struct Inside {
    questions: mpsc::Sender<Question>,
}

impl Inside {
    async fn send<R>(&self, question: impl FnOnce(oneshot::Sender<R>) -> Question) -> Result<R, RouterEnds> {
        let (reply, answer) = oneshot::channel();
        self.questions.send(question(reply)).await.map_err(|_| RouterEnds)?;
        answer.await.map_err(|_| RouterEnds)
    }

    /// Carries out a command. The command completes even if the caller stops waiting. `file` holds
    /// ApplicationParameters: the file of the command, or its only input.
    ///
    /// # Errors
    /// When the router shuts down.
    pub async fn command(
        &self,
        module: &'static str,
        verb: &'static str,
        parameters: ControlParameters,
        file: Vec<u8>,
    ) -> Result<ControlResponse, RouterEnds> {
        let parameters = Box::new(parameters);
        self.send(|reply| Question::Command { module, verb, parameters, file, reply }).await
    }

    /// Returns the encoded content of a dataset that is built as a whole; empty for any other dataset.
    ///
    /// # Errors
    /// When the router shuts down.
    pub async fn dataset(&self, module: &'static str, verb: &'static str) -> Result<Vec<u8>, RouterEnds> {
        self.send(|reply| Question::Dataset { module, verb, filter: Box::default(), reply }).await
    }

    /// Returns the encoded status of the faces that match a filter, as in `faces/query`.
    ///
    /// # Errors
    /// When the router shuts down.
    pub async fn faces(&self, filter: FaceQueryFilter) -> Result<Vec<u8>, RouterEnds> {
        let filter = Box::new(filter);
        self.send(|reply| Question::Dataset { module: module::FACES, verb: "query", filter, reply }).await
    }

    /// Returns about `portion` more entries of a table, encoded as in its dataset, and the position to continue from;
    /// `None` at the end.
    ///
    /// # Errors
    /// When the router shuts down.
    pub async fn portion(
        &self,
        from: TableCursor,
        portion: usize,
    ) -> Result<(Vec<u8>, Option<TableCursor>), RouterEnds> {
        self.send(|reply| Question::Portion { from, portion, reply }).await
    }

    /// Returns the remote URI of each of these faces that exists, by face id.
    ///
    /// # Errors
    /// When the router shuts down.
    pub async fn remote_uris(&self, faces: Vec<u64>) -> Result<HashMap<u64, String>, RouterEnds> {
        self.send(|reply| Question::RemoteUris { faces, reply }).await
    }
}

impl<C: ControlPlane> Management<C> {
    /// Returns a handle for queries, and the future that answers them until the last handle is dropped. The caller
    /// spawns the future on the control thread's `LocalSet`.
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
                    TableCursor::Fib(from) => self.read_fib(from, portion, &mut content).map(TableCursor::Fib),
                    TableCursor::Rib(from) => self.read_rib(from, portion, &mut content).map(TableCursor::Rib),
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
            // In a packet, 0 means the incoming face.
            return bad_request("no face has the number 0".to_owned());
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
