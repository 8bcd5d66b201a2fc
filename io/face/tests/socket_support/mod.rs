//! A socket service on its own runtime with a simulated worker. All traffic stays on the loopback interface.
#![allow(dead_code, reason = "each test file uses only a part")]

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use namehop_face::registry::FaceUpdate;
use namehop_face::socket::{CreateError, FaceEvent, SocketCommand, SocketConfig, SocketService, UnixListenerConfig};
use namehop_face::{Face, FaceTable, FaceUri, Frame, FrameInlet, FrameRing, SocketInlets, Waker};
use namehop_packet::{BufferPool, FaceId};
use namehop_wire::tlv::Writer;
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, LocalSet, spawn_local};

pub type Ring = FrameRing;

/// Long enough for a loaded machine, short enough to notice a hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running service.
pub struct Harness {
    pub faces: Arc<FaceTable>,
    pub pool: BufferPool,
    pub to_worker: Arc<Ring>,
    pub from_worker: Arc<Ring>,
    pub uris: Vec<FaceUri>,
    pub events: mpsc::UnboundedReceiver<FaceEvent>,
    pub commands: mpsc::Sender<SocketCommand>,
    worker: Option<AbortHandle>,
}

/// Creates inlets that put streams and datagrams into one ring.
pub fn inlets(ring: &Arc<Ring>) -> SocketInlets {
    let inlet = FrameInlet::new(Arc::clone(ring));
    SocketInlets { streams: inlet.clone(), datagrams: inlet }
}

/// Runs `test` beside a service with rings of `ring_capacity` frames.
pub fn with_service<F: Future<Output = ()>>(
    config: SocketConfig,
    ring_capacity: usize,
    test: impl FnOnce(Harness) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let local = LocalSet::new();
    let pool = BufferPool::new(20_000, 2000);
    let to_worker = Arc::new(Ring::new(ring_capacity, Arc::new(Waker::new())));
    let from_worker = Arc::new(Ring::new(ring_capacity, Arc::new(Waker::new())));
    let faces = Arc::new(FaceTable::new());
    let (event_sender, events) = mpsc::unbounded_channel();
    let (commands, command_receiver) = mpsc::channel(16);
    let service = SocketService::new(
        config,
        pool.clone(),
        Arc::clone(&faces),
        inlets(&to_worker),
        Arc::clone(&from_worker),
        event_sender,
    )
    .expect("listeners");
    let uris = service.local_uris();
    let shutdown = commands.clone();
    let harness = Harness {
        faces: Arc::clone(&faces),
        pool: pool.clone(),
        to_worker: Arc::clone(&to_worker),
        from_worker: Arc::clone(&from_worker),
        uris,
        events,
        commands,
        worker: None,
    };
    runtime.block_on(local.run_until(async {
        let service = spawn_local(service.run(command_receiver));
        let (reply, opened) = oneshot::channel();
        shutdown.send(SocketCommand::Open { reply }).await.expect("service runs");
        opened.await.expect("an answer").expect("listeners");
        test(harness).await;
        shutdown.send(SocketCommand::Shutdown).await.expect("service runs");
        tokio::time::timeout(PATIENCE, service)
            .await
            .expect("the service ends in time")
            .expect("the service does not panic")
            .expect("the service reports no error");
    }));
    drop(local);
    assert!(faces.is_empty(), "shutdown must close every face");
    let mut left = Vec::new();
    to_worker.pop_burst(&mut left, usize::MAX);
    from_worker.pop_burst(&mut left, usize::MAX);
    drop(left);
    assert_eq!(pool.in_use(), 0, "all buffers must be returned");
}

impl Harness {
    /// Starts a worker that sends every frame back on its face.
    pub fn start_echo(&mut self) {
        let (input, output) = (Arc::clone(&self.to_worker), Arc::clone(&self.from_worker));
        let worker = spawn_local(async move {
            let mut burst = Vec::new();
            loop {
                input.waker().wait(|| !input.is_empty()).await;
                input.pop_burst(&mut burst, 64);
                for frame in burst.drain(..) {
                    drop(output.push(frame));
                }
                output.wake();
                tokio::task::yield_now().await;
            }
        });
        self.worker = Some(worker.abort_handle());
    }

    /// Sends a packet on a face, as the worker would; returns `false` if the ring is full.
    pub fn send(&self, face: FaceId, packet: &[u8]) -> bool {
        let buffer = self.pool.copy_of(packet).expect("buffer");
        let pushed = self.from_worker.push(Frame::new(face, 0, buffer)).is_ok();
        self.from_worker.wake();
        pushed
    }

    /// Waits for the next frame for the worker.
    pub async fn next_frame(&self) -> Frame {
        let waiting = self.to_worker.waker().wait(|| !self.to_worker.is_empty());
        tokio::time::timeout(PATIENCE, waiting).await.expect("a frame");
        let mut burst = Vec::new();
        self.to_worker.pop_burst(&mut burst, 1);
        burst.pop().expect("a frame")
    }

    pub async fn next_event(&mut self) -> FaceEvent {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event").expect("service runs")
    }

    /// Returns the face of the next event, which must be a creation.
    pub async fn created(&mut self) -> Arc<Face> {
        match self.next_event().await {
            FaceEvent::Created(face) => face,
            other => panic!("expected a created face, got {other:?}"),
        }
    }

    /// Waits until this face is destroyed; that must be the next event.
    pub async fn destroyed(&mut self, face: &Face) {
        match self.next_event().await {
            FaceEvent::Destroyed(destroyed) => assert_eq!(destroyed.id(), face.id()),
            other => panic!("expected a destroyed face, got {other:?}"),
        }
    }

    pub async fn create(&self, uri: &str, params: FaceUpdate) -> Result<Arc<Face>, CreateError> {
        self.start_create(uri, params).await.await.expect("an answer")
    }

    pub async fn start_create(
        &self,
        uri: &str,
        params: FaceUpdate,
    ) -> oneshot::Receiver<Result<Arc<Face>, CreateError>> {
        let (reply, answer) = oneshot::channel();
        let uri = uri.parse().expect("URI");
        self.commands
            .send(SocketCommand::CreateFace { uri, local_uri: None, params, reply })
            .await
            .expect("service runs");
        answer
    }

    pub async fn destroy(&self, id: FaceId) -> bool {
        let (reply, answer) = oneshot::channel();
        self.commands.send(SocketCommand::DestroyFace { id, reply }).await.expect("service runs");
        answer.await.expect("an answer")
    }

    /// Returns the address of the first listener with this scheme.
    pub fn address(&self, scheme: &str) -> SocketAddr {
        let uri = self.uris.iter().find(|uri| uri.scheme() == scheme).expect("listener");
        uri.socket_address().expect("address")
    }
}

/// Waits until `condition` holds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns a well-formed element of TYPE `typ` with `length` bytes of VALUE.
pub fn packet(typ: u8, length: usize) -> Vec<u8> {
    let value: Vec<u8> = (0..length).map(|i| i as u8).collect();
    let mut packet = Writer::new();
    packet.element(typ.into(), &value);
    packet.into_vec()
}

/// Reads exactly `expected` from a stream.
pub async fn expect_bytes(stream: &mut (impl AsyncReadExt + Unpin), expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut got))
        .await
        .expect("the bytes arrive in time")
        .expect("bytes");
    assert_eq!(got, expected);
}

/// Expects that the peer closes a stream without sending anything.
pub async fn expect_closed(stream: &mut (impl AsyncReadExt + Unpin)) {
    let mut got = [0; 16];
    let result = tokio::time::timeout(PATIENCE, stream.read(&mut got)).await.expect("the stream ends in time");
    assert!(matches!(result, Ok(0) | Err(_)), "expected the end of the stream, got {result:?}");
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Returns a configuration with one Unix listener in a fresh directory, which must outlive the service.
pub fn unix_config() -> (SocketConfig, PathBuf, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("namehop.sock");
    let mut config = SocketConfig::without_listeners();
    config.unix = vec![UnixListenerConfig { path: path.clone(), mode: 0o666 }];
    (config, path, directory)
}
