//! Progress of a connection: tells if its request is complete, and if its client is stalled.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Progress of a connection.
#[derive(Debug, Default)]
pub(in super::super) struct Progress(Mutex<ProgressState>);

#[derive(Debug, Default)]
struct ProgressState {
    is_whole: bool,
    /// Time since which the router has waited for the client to read.
    waiting_since: Option<Instant>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if the whole request has arrived.
    pub(super) fn is_whole(&self) -> bool {
        self.lock().is_whole
    }

    /// Returns how long the router has waited for the client to read; `None` if it is not waiting.
    pub(super) fn stalled_for(&self) -> Option<Duration> {
        self.lock().waiting_since.map(|since| since.elapsed())
    }

    pub(super) fn set_whole(&self) {
        self.lock().is_whole = true;
    }

    fn note_write<T>(&self, poll: &Poll<T>) {
        let mut state = self.lock();
        match poll {
            Poll::Pending => drop(state.waiting_since.get_or_insert_with(Instant::now)),
            Poll::Ready(_) => state.waiting_since = None,
        }
    }
}

/// A request body that records when it is complete.
pub(super) struct WatchedBody {
    body: Incoming,
    progress: Arc<Progress>,
}

impl WatchedBody {
    pub(super) fn new(body: Incoming, progress: Arc<Progress>) -> Self {
        if body.is_end_stream() {
            progress.set_whole();
        }
        WatchedBody { body, progress }
    }
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.progress.set_whole();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    /// Dropping the body counts as completing the request, because the answer does not need the rest.
    fn drop(&mut self) {
        self.progress.set_whole();
    }
}

/// A connection that records if its client reads.
pub(super) struct WatchedStream<S> {
    stream: S,
    progress: Arc<Progress>,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>) -> Self {
        WatchedStream { stream, progress }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.progress.note_write(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.progress.note_write(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
