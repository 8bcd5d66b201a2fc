//! Keep-alive of UDP faces: an IDLE packet of NDNLPv2, an LpPacket with nothing in it, now and then. Gateways that translate addresses and
//! firewalls forget a path without traffic, some after 30 s; the peer could then send nothing more.

use std::rc::Rc;
use std::time::Duration;

use namehop_wire::tlv::types::LP_PACKET;
use tokio::time::sleep;

use super::shared::{Link, Shared, SocketFace};
use super::udp;
use crate::registry::FaceFlags;

/// NDNLPv2, IDLE packet.
const IDLE: [u8; 2] = [LP_PACKET as u8, 0];

/// Sends keep-alives for as long as the service lives.
pub(super) async fn run(shared: Rc<Shared>) {
    let interval = Duration::from_millis(shared.config.keep_alive_ms.max(1));
    loop {
        sleep(interval).await;
        for entry in shared.entries() {
            if entry.face.flags().contains(FaceFlags::KEEP_ALIVE) {
                send(&shared, &entry, &IDLE);
            }
        }
    }
}

/// Sends a frame of the link layer alone to the peer of a UDP face, unless it has no local address or much to send.
pub(super) fn send(shared: &Rc<Shared>, entry: &SocketFace, frame: &[u8]) {
    let Link::Datagram(link) = &entry.link else { return };
    if let Some(buffer) = shared.buffer_of(frame)
        && link.queue(buffer).is_ok()
    {
        udp::flush(shared, &link.channel());
    }
}
