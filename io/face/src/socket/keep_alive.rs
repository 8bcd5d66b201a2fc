//! Keep-alives of UDP faces: an IDLE packet of NDNLPv2 (an empty LpPacket) at regular intervals. NAT gateways and
//! firewalls forget a path without traffic, some after 30 s; then the peer's packets no longer arrive.

use std::rc::Rc;
use std::time::Duration;

use namehop_wire::tlv::types::LP_PACKET;
use tokio::time::sleep;

use super::shared::{Link, ServiceState, SocketFace};
use super::udp;
use crate::registry::FaceFlags;

/// The IDLE packet of NDNLPv2.
const IDLE: [u8; 2] = [LP_PACKET as u8, 0];

/// Sends keep-alives as long as the service runs.
pub(super) async fn run(shared: Rc<ServiceState>) {
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

/// Sends a link-layer frame to the peer of a UDP face. Does nothing if the face has no local address or its send queue
/// is full.
pub(super) fn send(shared: &Rc<ServiceState>, entry: &SocketFace, frame: &[u8]) {
    let Link::Datagram(link) = &entry.link else { return };
    if let Some(buffer) = shared.buffer_of(frame)
        && link.queue(buffer).is_ok()
    {
        udp::flush(shared, &link.channel());
    }
}
