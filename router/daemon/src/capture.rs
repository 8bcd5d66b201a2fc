//! Capturing frames in all workers.

use std::sync::Arc;

use tokio::sync::Mutex;

use namehop_face::capture::{CaptureClock, CaptureRecorder, CaptureRequest};

use namehop_worker::WorkerHandles;

/// The control thread's side of frame captures.
pub struct Capture {
    workers: WorkerHandles,
    /// While frames are captured: spare recorders, one for each worker. Locked while recorders are swapped, so that
    /// workers never have recorders of two captures.
    #[expect(clippy::vec_box, reason = "workers exchange boxes, so that a command is small")]
    spare: Mutex<Vec<Box<CaptureRecorder>>>,
}

impl Capture {
    /// Creates the state without a capture.
    pub fn new(workers: WorkerHandles) -> Self {
        Capture { workers, spare: Mutex::default() }
    }

    /// Starts capturing the requested frames, or stops. Discards frames that were captured before.
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

    /// Calls `take` with the frames that each worker captured since the last call.
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
