//! Places for connections. When all are taken, a new connection gets the place of the one that has been idle for longest, so that
//! clients that do nothing keep no controller out. A request that has not said yet what it wants is nothing.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;

/// All places.
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Vec<Arc<Place>>>,
}

/// The place of a connection.
pub(crate) struct Place {
    usage: Mutex<Usage>,
    leave: Notify,
}

struct Usage {
    /// Requests that are being answered, streams of controllers included.
    requests: usize,
    /// When the last one ended, or the connection began.
    since: Instant,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Places { most, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection; none when all others have requests that are being answered.
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

    /// The connection is over.
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

    /// Completes when another connection gets this place.
    pub(crate) async fn left(&self) {
        self.leave.notified().await;
    }

    /// The headers of a request have come. It is over when this is dropped.
    pub(crate) fn request(self: &Arc<Self>) -> Arc<Busy> {
        Arc::new(Busy { place: Arc::clone(self), has_begun: AtomicBool::new(false) })
    }
}

/// A request.
pub(crate) struct Busy {
    place: Arc<Place>,
    has_begun: AtomicBool,
}

impl Busy {
    /// Its message is there, or the controller of a stream takes part: from now on it keeps the place.
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

/// The body of an answer, with which the request ends.
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
        let [first, second, third] = [(); 3].map(|()| places.take().expect("there is room"));
        let busy = first.request();
        busy.begin();
        let silent = second.request();
        let fourth = places.take().expect("the second one has not said what it wants");
        second.left().await;
        drop(silent);
        let held = [&third, &fourth].map(|place| place.request());
        held.iter().for_each(|request| request.begin());
        assert!(places.take().is_none(), "all are busy");
        drop(busy);
        let fifth = places.take().expect("the first one is idle now");
        first.left().await;
        drop(held);
        places.give_back(&fifth);
        // One that has lost its place already gives back none.
        places.give_back(&first);
        assert_eq!(places.taken().len(), 2);
    }
}
