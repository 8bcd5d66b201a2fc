//! Finds a face by the remote address of a datagram or Ethernet frame.
//!
//! A small open-addressing table: one multiply, usually one probe, no allocation per lookup. The hash is keyed, so
//! remote hosts cannot choose addresses that collide.
//!
//! Every datagram and frame from a shared socket or port is looked up here, and a general table is slower: `HashTable`
//! of crate hashbrown 0.17, with the same hash, takes 3.7 instead of 2.6 ns for one peer and 7.8 instead of 6.9 ns for
//! 12,000.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

/// Slots of an empty table; a power of two.
const INITIAL_SLOTS: usize = 16;

/// An address that identifies a peer.
pub trait PeerAddress: Copy + Eq {
    /// Returns a hash that hosts without the key cannot steer.
    fn hash(&self, key: (u64, u64)) -> u64;
}

/// A map from remote address to `V`.
#[derive(Debug)]
pub struct PeerTable<V, A = SocketAddr> {
    slots: Vec<Option<(A, V)>>,
    used: usize,
    key: (u64, u64),
}

impl<V, A: PeerAddress> Default for PeerTable<V, A> {
    fn default() -> Self {
        PeerTable::new()
    }
}

impl<V, A: PeerAddress> PeerTable<V, A> {
    /// Creates an empty table with a fresh key.
    pub fn new() -> Self {
        let random = RandomState::new();
        PeerTable { slots: empty(INITIAL_SLOTS), used: 0, key: (random.hash_one(0_u8), random.hash_one(1_u8) | 1) }
    }

    /// Returns the entry of `address`.
    pub fn get(&self, address: &A) -> Option<&V> {
        self.slots[self.find(address)].as_ref().map(|(_, value)| value)
    }

    /// Adds or replaces the entry of `address`.
    pub fn insert(&mut self, address: A, value: V) {
        // At most half full, so probe sequences stay short and always end at an empty slot.
        if (self.used + 1) * 2 > self.slots.len() {
            let larger = empty(self.slots.len() * 2);
            for (address, value) in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
                let slot = self.find(&address);
                self.slots[slot] = Some((address, value));
            }
        }
        let slot = self.find(&address);
        if self.slots[slot].replace((address, value)).is_none() {
            self.used += 1;
        }
    }

    /// Removes the entry of `address`.
    pub fn remove(&mut self, address: &A) -> Option<V> {
        let mut hole = self.find(address);
        let (_, value) = self.slots[hole].take()?;
        self.used -= 1;
        // Close the gap: an entry further on moves here unless its home lies after the hole.
        let mask = self.slots.len() - 1;
        let mut next = (hole + 1) & mask;
        while let Some((moved, _)) = &self.slots[next] {
            let home = self.home(moved);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.slots.swap(hole, next);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        Some(value)
    }

    /// Returns all entries.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.slots.iter().flatten().map(|(_, value)| value)
    }

    /// Returns the slot that holds `address`, or the empty one where it belongs.
    fn find(&self, address: &A) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.home(address);
        while let Some((held, _)) = &self.slots[slot] {
            if held == address {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn home(&self, address: &A) -> usize {
        let hash = address.hash(self.key);
        // The mask is a power of two less one, so truncation keeps every bit that counts.
        hash as usize & (self.slots.len() - 1)
    }
}

fn empty<V, A>(slots: usize) -> Vec<Option<(A, V)>> {
    std::iter::repeat_with(|| None).take(slots).collect()
}

/// Mixes two numbers into one, of which every bit depends on all bits of both.
#[inline]
pub fn mix(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

impl PeerAddress for SocketAddr {
    fn hash(&self, key: (u64, u64)) -> u64 {
        let port = u64::from(self.port());
        match self.ip() {
            IpAddr::V4(ip) => mix(((u64::from(ip.to_bits()) << 16) | port) ^ key.0, key.1),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                let high = mix((bits >> 64) as u64 ^ key.0, key.1);
                mix(high ^ bits as u64, key.1) ^ mix(port ^ key.1, key.0 | 1)
            }
        }
    }
}

/// A hardware address.
impl PeerAddress for [u8; 6] {
    fn hash(&self, key: (u64, u64)) -> u64 {
        let [a, b, c, d, e, f] = *self;
        mix(u64::from_be_bytes([0, 0, a, b, c, d, e, f]) ^ key.0, key.1)
    }
}

/// Returns a number that identifies a sender on a multi-access link. Never 0, which identifies the only peer of a
/// point-to-point link.
pub fn endpoint_number(address: &impl PeerAddress) -> u64 {
    address.hash((0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn it_agrees_with_a_hash_map_under_insertions_and_removals() {
        let mut table = PeerTable::new();
        let mut model = HashMap::new();
        let mut state = 1_u64;
        for step in 0..20_000_u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let port = 1 + (state >> 33) as u16 % 500;
            let address = if state >> 63 == 0 {
                SocketAddr::from((Ipv4Addr::LOCALHOST, port))
            } else {
                SocketAddr::from((Ipv6Addr::LOCALHOST, port))
            };
            if (state >> 60) & 1 == 0 {
                table.insert(address, step);
                model.insert(address, step);
            } else {
                assert_eq!(table.remove(&address), model.remove(&address));
            }
            assert_eq!(table.get(&address), model.get(&address));
            assert_eq!(table.used, model.len());
        }
        for (address, value) in &model {
            assert_eq!(table.get(address), Some(value));
        }
        assert_eq!(table.values().count(), model.len());
    }

    #[test]
    fn endpoint_numbers_differ_and_are_never_zero() {
        let first = endpoint_number(&SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        let second = endpoint_number(&SocketAddr::from((Ipv4Addr::LOCALHOST, 3)));
        assert_ne!(first, second);
        assert_ne!(first, 0);
    }
}
