//! Pending Interests of a client, looked up by the name of an arriving Data or Nack.

use std::collections::HashMap;
use std::time::Instant;

use namehop_wire::lp::NackReason;
use namehop_wire::{Data, DecodeError, Interest, NameRef};
use tokio::sync::oneshot;

use super::Response;

/// How a pending Interest ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Data(Response),
    Nack(NackReason),
    Closed(String),
}

struct PendingInterest {
    id: u64,
    can_be_prefix: bool,
    nonce: Option<u32>,
    sent_at: Instant,
    reply: oneshot::Sender<Outcome>,
}

/// Identifies one pending Interest for removal.
#[derive(Clone, Debug)]
pub(super) struct PendingKey {
    name: Box<[u8]>,
    id: u64,
}

/// The pending Interests of one endpoint.
#[derive(Default)]
pub(super) struct PendingTable {
    /// Keyed by the VALUE of the Interest name.
    by_name: HashMap<Box<[u8]>, Vec<PendingInterest>>,
    next_id: u64,
    /// Number of entries with CanBePrefix. If it is 0, a Data needs only one lookup.
    prefixes: usize,
    /// Number of entries with an implicit digest. If it is 0, no digest is computed.
    digests: usize,
}

impl PendingTable {
    pub(super) fn insert(&mut self, interest: &Interest<'_>, reply: oneshot::Sender<Outcome>) -> PendingKey {
        let id = self.next_id;
        self.next_id += 1;
        let name: Box<[u8]> = interest.name.value().into();
        self.prefixes += usize::from(interest.can_be_prefix);
        self.digests += usize::from(has_digest(&interest.name));
        let entry = PendingInterest {
            id,
            can_be_prefix: interest.can_be_prefix,
            nonce: interest.nonce,
            sent_at: Instant::now(),
            reply,
        };
        self.by_name.entry(name.clone()).or_default().push(entry);
        PendingKey { name, id }
    }

    /// Removes an Interest; does nothing if it was answered.
    pub(super) fn remove(&mut self, key: &PendingKey) {
        self.take(&key.name, |entry| entry.id == key.id);
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.values().map(Vec::len).sum()
    }

    fn take(&mut self, name: &[u8], mut wanted: impl FnMut(&PendingInterest) -> bool) -> Vec<PendingInterest> {
        let Some(entries) = self.by_name.get_mut(name) else { return Vec::new() };
        let taken: Vec<PendingInterest> = entries.extract_if(.., |entry| wanted(entry)).collect();
        if entries.is_empty() {
            self.by_name.remove(name);
        }
        self.prefixes -= taken.iter().filter(|entry| entry.can_be_prefix).count();
        if self.digests > 0 && NameRef::from_value(name).is_ok_and(|name| has_digest(&name)) {
            self.digests -= taken.len();
        }
        taken
    }

    /// Answers every Interest that `packet`, a Data named `name`, satisfies; returns their number.
    ///
    /// # Errors
    /// Fails if the Data does not decode. It is decoded fully only if an Interest with an implicit digest is pending.
    pub(super) fn satisfy(
        &mut self,
        name: NameRef<'_>,
        packet: &[u8],
        congestion_mark: u64,
    ) -> Result<usize, DecodeError> {
        // Decode before removing entries: a Data that is malformed after its name satisfies no Interest.
        let full_name = if self.digests > 0 { Some(Data::decode(packet)?.full_name()) } else { None };
        let mut satisfied = self.take(name.value(), |_| true);
        if self.prefixes > 0 {
            for length in 0..name.len() {
                satisfied.extend(self.take(name.prefix(length).value(), |entry| entry.can_be_prefix));
            }
        }
        if let Some(full_name) = full_name {
            satisfied.extend(self.take(full_name.value(), |_| true));
        }
        let received_at = Instant::now();
        let count = satisfied.len();
        for entry in satisfied {
            let response = Response { packet: packet.to_vec(), congestion_mark, sent_at: entry.sent_at, received_at };
            // The waiting future may have been dropped.
            let _ = entry.reply.send(Outcome::Data(response));
        }
        Ok(count)
    }

    /// Ends the Interests that a Nack answers; returns their number. A Nack with the nonce of an earlier transmission
    /// is ignored.
    pub(super) fn reject(&mut self, interest: &Interest<'_>, reason: NackReason) -> usize {
        let rejected = self.take(interest.name.value(), |entry| {
            entry.can_be_prefix == interest.can_be_prefix && (entry.nonce.is_none() || entry.nonce == interest.nonce)
        });
        let count = rejected.len();
        for entry in rejected {
            let _ = entry.reply.send(Outcome::Nack(reason));
        }
        count
    }

    /// Ends all pending Interests because the connection closed.
    pub(super) fn close(&mut self, reason: &str) {
        for entry in self.by_name.drain().flat_map(|(_, entries)| entries) {
            let _ = entry.reply.send(Outcome::Closed(reason.to_owned()));
        }
        (self.prefixes, self.digests) = (0, 0);
    }
}

fn has_digest(name: &NameRef<'_>) -> bool {
    name.last().is_some_and(|component| component.is_implicit_digest())
}
