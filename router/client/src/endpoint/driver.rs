//! The two tasks of an endpoint: one reads frames from the connection, the other writes queued packets.

use std::io;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use namehop_wire::MAX_PACKET_SIZE;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tracing::debug;

use super::frames::{Batch, FrameReader};
use super::reassembly::Reassembler;
use super::shared::Shared;
use crate::transport::{Connection, StreamReader, StreamWriter};

/// Starts the reading and the writing task. The writing task ends when the queue is closed and empty.
pub(super) fn spawn(shared: &Arc<Shared>, connection: Connection) -> (AbortHandle, JoinHandle<()>) {
    let (for_reader, for_writer) = (Arc::clone(shared), Arc::clone(shared));
    let (reader, writer) = match connection {
        Connection::Stream(reader, writer) => (
            tokio::spawn(async move { finish(&for_reader, read_stream(&for_reader, reader).await) }),
            tokio::spawn(async move { finish(&for_writer, write_stream(&for_writer, writer).await) }),
        ),
        Connection::Datagram(socket) => {
            let socket = Arc::new(socket);
            let for_writing = Arc::clone(&socket);
            (
                tokio::spawn(async move { finish(&for_reader, read_datagrams(&for_reader, &socket).await) }),
                tokio::spawn(async move { finish(&for_writer, write_datagrams(&for_writer, &for_writing).await) }),
            )
        }
        Connection::WebSocket(socket) => {
            let (sink, stream) = (*socket).split();
            (
                tokio::spawn(async move { finish(&for_reader, read_messages(&for_reader, stream).await) }),
                tokio::spawn(async move { finish(&for_writer, write_messages(&for_writer, sink).await) }),
            )
        }
    };
    (reader.abort_handle(), writer)
}

fn finish(shared: &Shared, result: io::Result<()>) {
    match result {
        Ok(()) => shared.close("closed by the forwarder"),
        Err(error) => shared.close(&error.to_string()),
    }
}

async fn read_stream(shared: &Arc<Shared>, reader: StreamReader) -> io::Result<()> {
    let mut frames = FrameReader::new(reader);
    while frames.fill().await? {
        while let Some(frame) = frames.next_frame()? {
            shared.receive(frame, None);
            // One read can bring hundreds of Interests. Let the writer send the first answers while the rest are
            // handled.
            if shared.outgoing.has_much() {
                tokio::task::yield_now().await;
            }
        }
        shared.outgoing.wait_for_room().await;
    }
    Ok(())
}

async fn write_stream(shared: &Shared, mut writer: StreamWriter) -> io::Result<()> {
    let mut batch = Batch::default();
    while shared.outgoing.take(&mut batch).await {
        writer.write_all(&batch.bytes).await?;
        writer.flush().await?;
        batch.clear();
    }
    writer.shutdown().await
}

/// Returns true if an error concerns only one datagram. A refused port may be opened again, so the link stays up.
fn concerns_one_datagram(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
    )
}

async fn read_datagrams(shared: &Arc<Shared>, socket: &UdpSocket) -> io::Result<()> {
    // One byte more than the maximum, to detect datagrams that are too long.
    let mut buffer = vec![0; MAX_PACKET_SIZE + 1];
    let mut reassembler = Reassembler::default();
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => shared.receive(&buffer[..length], Some(&mut reassembler)),
            Err(error) if concerns_one_datagram(&error) => debug!(%error, "datagram link"),
            Err(error) => return Err(error),
        }
        shared.outgoing.wait_for_room().await;
    }
}

async fn write_datagrams(shared: &Shared, socket: &UdpSocket) -> io::Result<()> {
    let mut batch = Batch::default();
    while shared.outgoing.take(&mut batch).await {
        for packet in batch.packets() {
            match socket.send(packet).await {
                Ok(_) => {}
                Err(error) if concerns_one_datagram(&error) => debug!(%error, "datagram link"),
                Err(error) => return Err(error),
            }
        }
        batch.clear();
    }
    Ok(())
}

type WebSocketSink = futures_util::stream::SplitSink<WebSocketStream<TcpStream>, Message>;
type WebSocketSource = futures_util::stream::SplitStream<WebSocketStream<TcpStream>>;

async fn read_messages(shared: &Arc<Shared>, mut source: WebSocketSource) -> io::Result<()> {
    while let Some(message) = source.next().await {
        match message.map_err(io::Error::other)? {
            Message::Binary(frame) => shared.receive(&frame, None),
            Message::Close(_) => break,
            // The library answers pings; text messages are not NDN.
            _ => {}
        }
        shared.outgoing.wait_for_room().await;
    }
    Ok(())
}

async fn write_messages(shared: &Shared, mut sink: WebSocketSink) -> io::Result<()> {
    let mut batch = Batch::default();
    while shared.outgoing.take(&mut batch).await {
        for packet in batch.packets() {
            sink.feed(Message::Binary(packet.to_vec().into())).await.map_err(io::Error::other)?;
        }
        sink.flush().await.map_err(io::Error::other)?;
        batch.clear();
    }
    sink.close().await.map_err(io::Error::other)
}
