//! The frames received in one poll iteration, prepared in advance.

use std::collections::VecDeque;

use namehop_packet::PacketBuffer;

use super::load::{HIGH_NONCE, Load};
use super::peers::{LINKS, port_address};
use super::stock::KINDS;
use crate::permutation::mix;
use crate::schedule::PacketKind;

/// Kinds of received packets; the stock has buffers for each.
pub(super) const INTERESTS: usize = 0;
const DATA: usize = 1;

/// Returns a Nonce of ordinary traffic, which is not 0.
fn nonce_from(draw: u64) -> u32 {
    draw as u32 & !HIGH_NONCE | 1
}

/// Frames received in one poll iteration, and the packets that the worker must send.
#[derive(Default)]
pub(super) struct Turn {
    /// Kind of the packets; `None` if mixed.
    pub(super) kind: Option<PacketKind>,
    /// Frames by the link that they arrive on.
    pub(super) frames: [Vec<PacketBuffer>; LINKS],
    /// Names and Nonces of Interests, by the link that they are forwarded on.
    pub(super) asked: [VecDeque<(u64, u32)>; LINKS],
    /// Number of Data to be sent, from the cache and from producers.
    pub(super) data_out: usize,
    pub(super) received: [usize; KINDS],
    /// Names of the received Data.
    pub(super) answered: Vec<u64>,
}

impl Load<'_> {
    /// Prepares a turn with these numbers of cache misses, cache hits and Data. They are in random order if `kind` is
    /// `None`.
    pub(super) fn prepare(&mut self, kind: Option<PacketKind>, [misses, hits, data]: [usize; 3]) -> Turn {
        let mut turn = Turn { kind, received: [misses + hits, data], ..Turn::default() };
        let mut left = [misses, hits, data];
        for total in (1..=misses + hits + data).rev() {
            let mut draw = if kind.is_some() { 0 } else { self.names.draw_below(total) };
            let which = left.iter().position(|&count| {
                let is_here = draw < count;
                draw = draw.saturating_sub(count);
                is_here
            });
            match which {
                Some(0) => self.prepare_interest(&mut turn),
                Some(1) => self.prepare_hit(&mut turn),
                _ => self.prepare_data(&mut turn),
            }
            left[which.unwrap_or(2)] -= 1;
        }
        if let Some(flood) = &mut self.flood {
            flood.join(&mut turn.frames[0], &self.stock.pool);
        }
        self.prepared_balance +=
            turn.asked.iter().map(VecDeque::len).sum::<usize>() as isize - turn.answered.len() as isize;
        turn
    }

    fn prepare_interest(&mut self, turn: &mut Turn) {
        let name = self.names.next();
        let nonce = nonce_from(mix(name));
        let link = self.fill_interest(name, nonce, turn);
        turn.asked[LINKS - 1 - link].push_back((name, nonce));
    }

    fn prepare_hit(&mut self, turn: &mut Turn) {
        let Some(name) = self.names.again() else { return };
        let nonce = nonce_from(self.names.draw());
        self.fill_interest(name, nonce, turn);
        turn.data_out += 1;
    }

    /// Adds an Interest. Returns the link that it arrives on.
    fn fill_interest(&mut self, name: u64, nonce: u32, turn: &mut Turn) -> usize {
        let peer = self.peers.downstream(self.workload.prefix_of(name), u64::from(nonce));
        let write = |out: &mut [u8]| {
            self.workload.write_name(name, out);
        };
        let addresses = (port_address(peer.link), peer.address());
        let frame = self.stock.take(INTERESTS);
        let frame = frame.and_then(|frame| self.interest.fill(addresses, write, name, Some(nonce), frame));
        turn.frames[peer.link].extend(frame);
        peer.link
    }

    fn prepare_data(&mut self, turn: &mut Turn) {
        let Some((name, token)) = self.names.answer() else { return };
        let peer = self.peers.upstream(self.workload.prefix_of(name));
        let write = |out: &mut [u8]| {
            self.workload.write_name(name, out);
        };
        let addresses = (port_address(peer.link), peer.address());
        let frame = self.stock.take(DATA);
        turn.frames[peer.link].extend(frame.and_then(|frame| self.data.fill(addresses, write, token, None, frame)));
        turn.answered.push(name);
        turn.data_out += 1;
    }
}
