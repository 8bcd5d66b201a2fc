//! Long-lived requests: controller streams, and responses to reads.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::{ServerStreamingService, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use crate::arbitration::{Answer, Primaries, Role};
use crate::device::Device;
use crate::message::stream_error::Details;
use crate::message::stream_message_request::Update;
use crate::message::stream_message_response::Update as Event;
use crate::message::{
    PacketOut, PacketOutError, ReadRequest, ReadResponse, StreamError, StreamMessageRequest, StreamMessageResponse,
};
use crate::places::Busy;
use crate::service::{Caller, Service};

/// Maximum number of messages that wait for a controller.
const WAITING: usize = 256;
/// Maximum number of parts of an answer that wait for the client.
const PARTS: usize = 2;
/// How long a client may leave messages unread.
const PATIENCE: Duration = Duration::from_secs(30);
/// Polling interval for packets and digests of the program.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of messages to controllers before other tasks run.
const BURST: usize = 64;

type Boxed<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

/// Answers `StreamChannel`.
pub(crate) struct Channel<D>(pub(crate) Arc<Service<D>>, pub(crate) Arc<Busy>);

impl<D: Device> StreamingService<StreamMessageRequest> for Channel<D> {
    type Response = StreamMessageResponse;
    type ResponseStream = ReceiverStream<Answer>;
    type Future = Boxed<Self::ResponseStream>;

    fn call(&mut self, request: Request<Streaming<StreamMessageRequest>>) -> Self::Future {
        let (service, busy) = (Arc::clone(&self.0), Arc::clone(&self.1));
        Box::pin(async move {
            let (sender, receiver) = mpsc::channel(WAITING);
            let (presence, gone) = oneshot::channel();
            let client = service.arbiter.join(sender, presence)?;
            tokio::spawn(async move {
                let reason = tokio::select! {
                    reason = listen(&service, client, request.into_inner(), &busy) => reason.err(),
                    // The arbiter ended the stream.
                    _ = gone => None,
                };
                service.arbiter.leave(client, reason);
            });
            Ok(Response::new(ReceiverStream::new(receiver)))
        })
    }
}

/// Processes the messages of a controller until its stream ends.
async fn listen<D: Device>(
    service: &Service<D>,
    client: u64,
    mut requests: Streaming<StreamMessageRequest>,
    busy: &Busy,
) -> Result<(), Status> {
    let mut is_known = false;
    while let Some(request) = requests.message().await? {
        match request.update {
            Some(Update::Arbitration(update)) => {
                service.arbiter.arbitrate(client, &update)?;
                busy.begin();
                is_known = true;
            }
            _ if !is_known => return Err(Status::failed_precondition("a stream must begin with an arbitration")),
            Some(Update::Packet(packet)) => {
                let refused = if service.arbiter.has_primary_stream(client) {
                    service.device.send(&packet).err()
                } else {
                    Some(Status::permission_denied("only a primary controller may send packets"))
                };
                if let Some(status) = refused {
                    service.arbiter.send(client, Event::Error(packet_error(&status, packet)));
                }
            }
            // A digest is never sent again, so nothing depends on its acknowledgement.
            Some(Update::DigestAck(_)) => {}
            None => return Err(Status::unimplemented("the stream accepts only arbitrations, packets and digest_ack")),
        }
        // Let other tasks run, however many messages come.
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn packet_error(status: &Status, mut packet: PacketOut) -> StreamError {
    // The sender knows the payload.
    packet.payload.clear();
    StreamError {
        canonical_code: status.code() as i32,
        message: status.message().to_owned(),
        details: Some(Details::PacketOut(PacketOutError { packet_out: Some(packet) })),
    }
}

/// Sends packets, digests and idle notifications of the program to the primary controllers. Never returns.
pub(crate) async fn pump<D: Device>(service: Arc<Service<D>>) {
    let mut full_since: Option<(u64, Instant)> = None;
    loop {
        let mut sent = 0;
        while sent < BURST {
            match service.arbiter.ready() {
                Primaries::Ready => {}
                Primaries::Full(client) => {
                    match full_since {
                        Some((known, since)) if known == client => {
                            if since.elapsed() > PATIENCE {
                                service.arbiter.leave(client, None);
                            }
                        }
                        _ => full_since = Some((client, Instant::now())),
                    }
                    break;
                }
                Primaries::None => break,
            }
            full_since = None;
            let packet = service.device.receive().map(Event::Packet);
            let event = packet
                .or_else(|| service.device.digests().map(Event::Digest))
                .or_else(|| service.device.idle().map(Event::IdleTimeoutNotification));
            let Some(event) = event else { break };
            service.arbiter.send_to_primaries(&event);
            sent += 1;
        }
        if sent == BURST { tokio::task::yield_now().await } else { tokio::time::sleep(PAUSE).await }
    }
}

/// Answers `Read`.
pub(crate) struct Read<D> {
    pub(crate) service: Arc<Service<D>>,
    pub(crate) caller: Caller,
    pub(crate) busy: Arc<Busy>,
    /// Turns of reads; first come, first served.
    pub(crate) turns: Arc<Semaphore>,
}

impl<D: Device> ServerStreamingService<ReadRequest> for Read<D> {
    type Response = ReadResponse;
    type ResponseStream = ReceiverStream<Result<ReadResponse, Status>>;
    type Future = Boxed<Self::ResponseStream>;

    fn call(&mut self, request: Request<ReadRequest>) -> Self::Future {
        self.busy.begin();
        let (service, caller, turns) = (Arc::clone(&self.service), self.caller, Arc::clone(&self.turns));
        Box::pin(async move {
            let request = request.into_inner();
            service.check_device(request.device_id, caller)?;
            // Every role contains the whole program.
            service.arbiter.check_role(&Role { id: 0, name: request.role.clone() })?;
            let (sender, receiver) = mpsc::channel(PARTS);
            tokio::spawn(async move { answer(&service, &request, &turns, &sender).await });
            Ok(Response::new(ReceiverStream::new(receiver)))
        })
    }
}

/// Sends everything that was requested, as fast as the client reads it.
async fn answer<D: Device>(
    service: &Service<D>,
    request: &ReadRequest,
    turns: &Semaphore,
    sender: &mpsc::Sender<Result<ReadResponse, Status>>,
) {
    for entity in &request.entities {
        let mut parts = match service.device.read(entity) {
            Ok(parts) => parts,
            Err(status) => {
                // It does not matter if the client has disconnected.
                let _ = sender.send_timeout(Err(status), PATIENCE).await;
                return;
            }
        };
        loop {
            let turn = turns.acquire().await;
            let Some(part) = parts.next() else { break };
            drop(turn);
            let is_end = part.is_err();
            let part = part.map(|entities| ReadResponse { entities });
            if sender.send_timeout(part, PATIENCE).await.is_err() || is_end {
                return;
            }
        }
    }
}
