//! Bodies of requests: a small one is taken as it comes, and a large one when it has a turn. So clients that begin requests and do
//! not go on keep no small request waiting, and the memory for large ones is limited.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The largest body that needs no turn.
const SMALL_BYTES: usize = 16 << 10;

/// The turn of a large request, from its first bytes beyond [`SMALL_BYTES`] until this is dropped.
#[derive(Default)]
pub(crate) struct Turn(Mutex<Option<OwnedSemaphorePermit>>);

type Waiting = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// The body of a request that takes a turn when it is large.
pub(crate) struct Measured {
    body: Incoming,
    /// Bytes that may yet come without a turn.
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

    /// Waits for a turn if the next bytes need one.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 || self.has_turn {
            return Poll::Ready(());
        }
        let turns = &self.turns;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(Arc::clone(turns).acquire_owned()));
        // It fails when the semaphore is closed, which it never is.
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
