//! No encapsulation: each frame of the link is an NDN packet, and the link leads to one peer.

use super::{Header, Peer, Received};

/// Says whose a received frame is: there is only one peer.
pub(super) fn read() -> Received {
    Received { peer: Peer::Bare, endpoint: 0, header: Header::Bare }
}
