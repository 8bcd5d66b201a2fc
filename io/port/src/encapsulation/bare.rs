//! No encapsulation: each frame of the link is an NDN packet, and the link leads to one peer.

use super::{Header, Peer, Received};

/// Classifies a received frame: the peer is the only one.
pub(super) fn read() -> Received {
    Received { peer: Peer::Bare, endpoint: 0, header: Header::Bare }
}
