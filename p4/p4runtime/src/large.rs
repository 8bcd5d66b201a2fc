//! Request bodies with a limit on large ones. A small body is read at once; a large one needs one of a few permits. So
//! clients that begin requests and do not finish them cannot delay small requests, and the memory for large requests is
//! bounded.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Size up to which a body needs no permit, in bytes.
const SMALL_BYTES: usize = 16 << 10;

/// The permit of a large request, held from its first byte beyond [`SMALL_BYTES`] until this is dropped.
#[derive(Default)]
pub(crate) struct Turn(Mutex<Option<OwnedSemaphorePermit>>);

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A request body that waits for a permit when it becomes large.
pub(crate) struct Measured {
    body: Incoming,
    /// Bytes that may still be read without a permit.
    left: usize,
    turns: Arc<Semaphore>,
    turn: Arc<Turn>,
    waiting: Option<Waiting>,
    has_turn: bool,
}

impl Measured {
    pub(crate) fn new(body: Incoming, turns: Arc<Semaphore>, turn: Arc<Turn>) -> Self {
        Measured { body, left: SMALL_BYTES, turns, turn, waiting: None, has_turn: false }
    }

    /// Waits for a permit if the next bytes need one.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 || self.has_turn {
            return Poll::Ready(());
        }
        let turns = &self.turns;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(Arc::clone(turns).acquire_owned()));
        // `None` only if the semaphore is closed, which never happens.
        let permit = ready!(waiting.as_mut().poll(context)).ok();
        *self.turn.0.lock().unwrap_or_else(PoisonError::into_inner) = permit;
        (self.waiting, self.has_turn) = (None, true);
        Poll::Ready(())
    }
}

impl Body for Measured {
    type Data = <Incoming as Body>::Data;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        ready!(self.poll_turn(context));
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(data)) = &frame
            && let Some(data) = data.data_ref()
        {
            self.left = self.left.saturating_sub(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
