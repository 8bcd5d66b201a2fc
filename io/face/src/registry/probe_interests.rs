//! The Interests that ask a peer which is not a Namehop whether it can be reached (`silence`).
//!
//! Such a peer ignores the question whether it knows PIT tokens. But NFD, and any forwarder with its best-route
//! strategy, answers an Interest without a route with a Nack, on a point-to-point link. The name
//! `/localhop/32=namehop-probe/ID` leads nowhere, and Interests under `/localhop` do not travel further than one hop.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use namehop_wire::tlv::{read_single_element, types};

/// TYPE, LENGTH and the first two components of the name; the third one holds eight bytes.
const NAME_START: [u8; 29] = *b"\x07\x23\x08\x08localhop\x20\x0dnamehop-probe\x08\x08";
/// Length of the name in bytes, with TYPE and LENGTH.
const NAME_LEN: usize = NAME_START.len() + 8;
/// Length of the Interest in bytes.
pub(crate) const INTEREST_LEN: usize = 2 + NAME_LEN + 6 + 4 + 3;
/// InterestLifetime. A forwarder that does not answer forgets the Interest after this time.
const LIFETIME_MS: u16 = 500;

/// The probe Interests of one face, shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct ProbeInterests {
    /// Last component of the name: random, so that a peer must have seen the Interest to answer it. 0 before
    /// the first Interest.
    id: AtomicU64,
    /// Number of Interests without an answer.
    unanswered: AtomicU32,
}

impl ProbeInterests {
    /// Returns the next Interest to send: with HopLimit 1, without CanBePrefix, and with a new Nonce.
    pub(crate) fn next(&self) -> [u8; INTEREST_LEN] {
        let random = RandomState::new();
        let fresh = random.hash_one(0).max(1);
        let id = match self.id.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => fresh,
            Err(id) => id,
        };
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let [a, b, c, d] = (random.hash_one(1) as u32).to_be_bytes();
        let [high, low] = LIFETIME_MS.to_be_bytes();
        let value = name(id)
            .into_iter()
            .chain([types::NONCE as u8, 4, a, b, c, d])
            .chain([types::INTEREST_LIFETIME as u8, 2, high, low])
            .chain([types::HOP_LIMIT as u8, 1, 1]);
        let mut interest = [0; INTEREST_LEN];
        interest[..2].copy_from_slice(&[types::INTEREST as u8, INTEREST_LEN as u8 - 2]);
        interest[2..].iter_mut().zip(value).for_each(|(room, byte)| *room = byte);
        interest
    }

    /// Returns whether a Nack of this Interest answers a probe Interest, which then counts as answered. HopLimit and
    /// other fields may have changed on the way.
    pub(crate) fn take_answer(&self, interest: &[u8]) -> bool {
        if self.unanswered.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let expected = name(self.id.load(Ordering::Relaxed));
        if !read_single_element(interest).is_ok_and(|element| element.value.starts_with(&expected)) {
            return false;
        }
        let one_less = |unanswered: u32| unanswered.checked_sub(1);
        self.unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }
}

fn name(id: u64) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    name[..NAME_START.len()].copy_from_slice(&NAME_START);
    name[NAME_START.len()..].copy_from_slice(&id.to_be_bytes());
    name
}

#[cfg(test)]
mod tests {
    use namehop_wire::Interest;

    use super::*;

    #[test]
    fn probe_interests_have_one_name_and_new_nonces() {
        let probes = ProbeInterests::default();
        let (first, second) = (probes.next(), probes.next());
        let [first, second] = [&first, &second].map(|interest| Interest::decode(interest).expect("an Interest"));
        let name = first.name.to_string();
        assert!(name.starts_with("/localhop/32=namehop-probe/"), "{name}");
        assert_eq!((first.name.len(), second.name.to_string()), (3, name));
        assert_ne!((first.nonce, ProbeInterests::default().next()), (second.nonce, probes.next()));
        assert!(first.nonce.is_some() && first.hop_limit == Some(1) && first.lifetime_ms == Some(500));
        assert!(!first.can_be_prefix && !first.must_be_fresh);
    }

    #[test]
    fn each_interest_is_answered_once_whatever_its_hop_limit() {
        let (probes, other) = (ProbeInterests::default(), ProbeInterests::default());
        let mut interest = other.next();
        assert!(!probes.take_answer(&interest), "no Interest was sent");
        let _ = (probes.next(), probes.next());
        assert!(!probes.take_answer(&interest), "the Interest of another face");
        interest = probes.next();
        interest[INTEREST_LEN - 1] = 0;
        assert_eq!([(); 4].map(|()| probes.take_answer(&interest)), [true, true, true, false]);
        assert!(!probes.take_answer(&interest[..20]) && !probes.take_answer(&[]));
    }
}
