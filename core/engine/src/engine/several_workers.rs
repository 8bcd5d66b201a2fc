//! Multi-worker operation: name dispatch and misdirected packets. See [`dispatch`](crate::dispatch).

use std::sync::Arc;

use namehop_hash::hash_prefixes;
use namehop_packet::Incoming;

use super::Engine;
use crate::dispatch::NameDispatch;
use crate::parse::{Parsed, ParsedKind};

impl Engine {
    /// Makes this engine one of several that divide the names. Must be called before the first packet.
    pub fn share_dispatch(&mut self, dispatch: Arc<NameDispatch>) {
        self.state.pcct.pit.share_dispatch(Arc::clone(&dispatch));
        self.state.other_workers.share_dispatch(dispatch);
    }

    /// Returns whether a pending Interest may be satisfied by this Data.
    pub(crate) fn awaits(&mut self, packet: &Incoming) -> bool {
        let mut parsed = Parsed::default();
        parsed.parse(packet, || true);
        if parsed.kind != ParsedKind::Data {
            return false;
        }
        let name = parsed.name(packet);
        if hash_prefixes(&self.state.key, name.value(), &mut self.hashes).is_err() {
            return false;
        }
        let mut matches = std::mem::take(&mut self.state.scratch.matches);
        matches.clear();
        self.state.pcct.pit.find_satisfied(
            &self.state.pcct.names,
            name.value(),
            Some(&self.hashes),
            None,
            &mut matches,
        );
        let awaits = !matches.is_empty() || self.state.pcct.pit.requests_digest(&self.hashes);
        self.state.scratch.matches = matches;
        awaits
    }

    /// Returns Data and Nacks with a PIT token of this engine that matches no PIT entry, and a name that belongs to
    /// another engine. Their token is removed. Must be called after [`process`](Self::process).
    pub fn take_misdirected(&mut self) -> impl Iterator<Item = Incoming> + '_ {
        self.state.other_workers.take_misdirected()
    }
}
