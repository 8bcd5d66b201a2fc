//! Limits the number of connections. If the limit is reached, a new connection replaces the one that has been idle for
//! longest, so that idle clients cannot exclude a controller. A request counts only once its message has arrived.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;

/// All connections that have a place.
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Vec<Arc<Place>>>,
}

/// The place of one connection.
pub(crate) struct Place {
    usage: Mutex<Usage>,
    leave: Notify,
}

struct Usage {
    /// Requests in progress, including controller streams.
    requests: usize,
    /// When the last request ended, or the connection began.
    since: Instant,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Places { most, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a new connection; `None` if all other connections have requests in progress.
    pub(crate) fn take(&self) -> Option<Arc<Place>> {
        let mut taken = self.taken();
        if taken.len() >= self.most {
            let idle = taken.iter().enumerate().filter_map(|(number, place)| Some((place.idle_since()?, number)));
            let (_, longest) = idle.min()?;
            taken.swap_remove(longest).leave.notify_one();
        }
        let place =
            Arc::new(Place { usage: Mutex::new(Usage { requests: 0, since: Instant::now() }), leave: Notify::new() });
        taken.push(Arc::clone(&place));
        Some(place)
    }

    /// Releases the place of a connection that has ended.
    pub(crate) fn give_back(&self, place: &Arc<Place>) {
        self.taken().retain(|other| !Arc::ptr_eq(other, place));
    }
}

impl Place {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_since(&self) -> Option<Instant> {
        let usage = self.usage();
        (usage.requests == 0).then_some(usage.since)
    }

    /// Completes when the place is given to another connection.
    pub(crate) async fn left(&self) {
        self.leave.notified().await;
    }

    /// Starts a request when its headers have arrived. The request ends when the result is dropped.
    pub(crate) fn request(self: &Arc<Self>) -> Arc<Busy> {
        Arc::new(Busy { place: Arc::clone(self), has_begun: AtomicBool::new(false) })
    }
}

/// A request in progress.
pub(crate) struct Busy {
    place: Arc<Place>,
    has_begun: AtomicBool,
}

impl Busy {
    /// Marks the request as begun: its message has arrived, or the stream's controller has taken part. From now on the
    /// connection keeps its place.
    pub(crate) fn begin(&self) {
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.place.usage().requests += 1;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if *self.has_begun.get_mut() {
            let mut usage = self.place.usage();
            usage.requests -= 1;
            usage.since = Instant::now();
        }
    }
}

/// A response body; the request ends with it.
pub(crate) struct Answer {
    pub(crate) body: Body,
    pub(crate) _busy: Arc<Busy>,
}

impl HttpBody for Answer {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_place_that_was_idle_for_longest_goes_to_a_new_connection() {
        let places = Places::new(3);
        let [first, second, third] = [(); 3].map(|()| places.take().expect("a slot is free"));
        let busy = first.request();
        busy.begin();
        let silent = second.request();
        let fourth = places.take().expect("the second connection has sent no request");
        second.left().await;
        drop(silent);
        let held = [&third, &fourth].map(|place| place.request());
        held.iter().for_each(|request| request.begin());
        assert!(places.take().is_none(), "all connections are busy");
        drop(busy);
        let fifth = places.take().expect("the first connection is idle");
        first.left().await;
        drop(held);
        places.give_back(&fifth);
        // A connection that has already lost its place releases none.
        places.give_back(&first);
        assert_eq!(places.taken().len(), 2);
    }
}
