//! Capture of frames, by all workers together.

use std::sync::Arc;

use tokio::sync::Mutex;

use namehop_face::capture::{CaptureClock, CaptureRecorder, CaptureRequest};

use crate::worker::WorkerHandles;

/// The control thread's side of a capture.
pub struct Capture {
    workers: WorkerHandles,
    /// Recorders that no worker has, as many as there are workers, while frames are captured; none otherwise. Held while the workers
    /// are asked, so that they do not get recorders of two captures.
    #[expect(clippy::vec_box, reason = "workers get and give boxes, so that a command is small")]
    spare: Mutex<Vec<Box<CaptureRecorder>>>,
}

impl Capture {
    /// Nothing is captured yet.
    pub fn new(workers: WorkerHandles) -> Self {
        Capture { workers, spare: Mutex::default() }
    }

    /// Captures such frames from now on, or none; forgets what was captured before.
    pub async fn set(&self, request: Option<CaptureRequest>) {
        let mut spare = self.spare.lock().await;
        let recorders = |request: Arc<CaptureRequest>, clock| {
            (0..self.workers.count()).map(|_| CaptureRecorder::new(Arc::clone(&request), clock)).collect()
        };
        let clock = CaptureClock::new();
        let request = request.map(Arc::new);
        let next = request.clone().map_or_else(Vec::new, |request| recorders(request, clock));
        // A worker that has ended captures nothing.
        let _ = self.workers.swap_capture(next).await;
        *spare = request.map_or_else(Vec::new, |request| recorders(request, clock));
    }

    /// Gives `take` what each worker has captured since the last time.
    pub async fn collect(&self, mut take: impl FnMut(&CaptureRecorder)) {
        let mut spare = self.spare.lock().await;
        if spare.is_empty() {
            return;
        }
        let mut captured = self.workers.swap_capture(std::mem::take(&mut *spare)).await.unwrap_or_default();
        for recorder in &mut captured {
            take(recorder);
            recorder.clear();
        }
        *spare = captured;
    }
}
