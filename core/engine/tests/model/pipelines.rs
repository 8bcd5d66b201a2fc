//! The model's pipelines: the processing of each kind of packet, rule by rule.

use super::packets::{Data, Interest, Name, hexadecimal, matches, uri};
use super::strategies::Arrived;
use super::{
    ADDED_NONCES, CONTENT_STORE, Cached, DEFAULT_LIFETIME_MS, DUPLICATE, Face, FaceNumber, Headers, InRecord, Link,
    Model, Nonce, OutRecord, PitEntry, Sent, Unsolicited, is_under,
};

impl Model {
    /// Handles an arriving Interest.
    pub fn interest(
        &mut self,
        face: FaceNumber,
        interest: &Interest,
        nonce: Option<Nonce>,
        headers: &Headers,
    ) -> Vec<Sent> {
        self.incoming_interest(face, interest, nonce, headers);
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    fn incoming_interest(&mut self, face: FaceNumber, interest: &Interest, nonce: Option<Nonce>, headers: &Headers) {
        let Some(ingress) = self.face(face) else { return };
        if interest.hop_limit == Some(0) {
            return;
        }
        let mut hop_limit = interest.hop_limit.map(|hop_limit| hop_limit - 1);
        if is_under(&interest.name, "/localhost") && !ingress.local {
            return;
        }
        let nonce = nonce.unwrap_or_else(|| {
            self.added_nonces += 1;
            ADDED_NONCES + self.added_nonces
        });
        if self.is_dead(&interest.name, nonce) {
            self.answer_loop(face, ingress, interest, nonce, headers);
            return;
        }
        let regions = &self.settings.producer_regions;
        let in_region = interest.hints.iter().any(|hint| regions.iter().any(|region| region.starts_with(hint)));
        let hints = if in_region { Vec::new() } else { interest.hints.clone() };
        let routable = hints.iter().find(|hint| !self.nexthops_for(hint).is_empty());
        let hint = routable.or(hints.first()).cloned().unwrap_or_default();
        let found = self.pit.iter().position(|entry| {
            entry.name == interest.name
                && entry.can_be_prefix == interest.can_be_prefix
                && entry.must_be_fresh == interest.must_be_fresh
                && entry.hint == hint
        });
        if let Some(entry) = found.map(|index| &self.pit[index]) {
            let own = entry.in_records.iter().any(|record| record.face == face && record.nonce == nonce);
            let known = entry.in_records.iter().any(|record| record.nonce == nonce)
                || entry.out_records.iter().any(|record| record.nonce == nonce);
            if known && !(own && ingress.link == Link::PointToPoint) {
                self.answer_loop(face, ingress, interest, nonce, headers);
                return;
            }
        }
        if self.serves
            && found.is_none_or(|index| self.pit[index].in_records.is_empty())
            && let Some(cached) = self.cached_for(interest, &hint)
        {
            let (digest, mark) = (hexadecimal(&cached.data.digest), headers.mark);
            let answers_long = cached.fresh_until_ms >= self.now_ms + self.settings.dead_nonce_lifetime_ms;
            self.sent.push(Sent::Data { face, digest, token: headers.token.clone(), mark, from: CONTENT_STORE });
            if let Some(index) = found {
                self.pit[index].expiry_ms = self.now_ms;
                self.pit[index].nonces_not_needed = !interest.must_be_fresh || answers_long;
            }
            return;
        }
        if self.settings.default_hop_limit > 0 && hop_limit.is_none() {
            hop_limit = Some(self.settings.default_hop_limit);
        }
        let lifetime_ms = interest.lifetime_ms.unwrap_or(DEFAULT_LIFETIME_MS);
        if found.is_none() {
            self.make_room_for_entry(&interest.name, &hint, face);
        }
        let index = found.unwrap_or_else(|| {
            self.pit.push(PitEntry {
                name: interest.name.clone(),
                can_be_prefix: interest.can_be_prefix,
                must_be_fresh: interest.must_be_fresh,
                hint,
                hints: hints.clone(),
                lifetime_ms,
                in_records: Vec::new(),
                out_records: Vec::new(),
                expiry_ms: 0,
                suppression_ms: None,
                nonces_not_needed: false,
            });
            self.pit.len() - 1
        });
        let entry = &mut self.pit[index];
        entry.lifetime_ms = lifetime_ms;
        let record = InRecord {
            face,
            nonce,
            expiry_ms: self.now_ms + lifetime_ms,
            token: headers.token.clone(),
            mark: headers.mark,
            hop_limit,
        };
        match entry.in_records.iter_mut().find(|old| old.face == face) {
            Some(old) => *old = record,
            None => entry.in_records.push(record),
        }
        entry.expiry_ms = entry.in_records.iter().map(|record| record.expiry_ms).max().unwrap_or(0);
        let arrived = Arrived { face, nonce, hop_limit, hints, mark: headers.mark, lifetime_ms };
        match headers.next_hop {
            Some(next_hop) if self.face(next_hop).is_some_and(|face| !face.is_up) => self.no_route(index, face),
            Some(next_hop) => self.send_interest(index, next_hop, &arrived),
            None => self.after_receive_interest(index, arrived),
        }
    }

    fn answer_loop(&mut self, face: FaceNumber, ingress: Face, interest: &Interest, nonce: Nonce, headers: &Headers) {
        if ingress.link == Link::PointToPoint {
            self.sent.push(Sent::Nack {
                face,
                name: uri(&interest.name),
                can_be_prefix: interest.can_be_prefix,
                must_be_fresh: interest.must_be_fresh,
                token: headers.token.clone(),
                reason: DUPLICATE,
                mark: headers.mark,
                nonce,
            });
        }
    }

    fn cached_for(&self, interest: &Interest, hint: &Name) -> Option<&Cached> {
        let may_answer = |cached: &&Cached| !interest.must_be_fresh || cached.fresh_until_ms > self.now_ms;
        let under_hint = || self.content.iter().rev().filter(|cached| cached.hint == *hint);
        let exact = under_hint().find(|cached| matches(&interest.name, false, &cached.data)).filter(may_answer);
        let is_below = |cached: &&Cached| cached.data.name.len() > interest.name.len();
        let newest_below = || {
            let mut below = under_hint().filter(is_below);
            below.find(|cached| matches(&interest.name, true, &cached.data)).filter(may_answer)
        };
        exact.or_else(|| interest.can_be_prefix.then(newest_below).flatten())
    }

    /// Handles arriving Data.
    pub fn data(&mut self, face: FaceNumber, data: &Data, headers: &Headers) -> Vec<Sent> {
        self.incoming_data(face, data, headers);
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    fn incoming_data(&mut self, face: FaceNumber, data: &Data, headers: &Headers) {
        let Some(ingress) = self.face(face) else { return };
        if is_under(&data.name, "/localhost") && !ingress.local {
            return;
        }
        let now_ms = self.now_ms;
        let satisfied: Vec<usize> =
            (0..self.pit.len()).filter(|&index| self.is_satisfied_by(&self.pit[index], face, data)).collect();
        let admitted = match self.settings.unsolicited {
            _ if !satisfied.is_empty() => true,
            Unsolicited::DropAll => false,
            Unsolicited::AdmitLocal => ingress.local,
            Unsolicited::AdmitNetwork => !ingress.local,
            Unsolicited::AdmitAll => true,
        };
        if admitted && self.admits && !headers.no_cache {
            let hint = self.caching_entries(face, data).first().map_or(Vec::new(), |entry| entry.hint.clone());
            let fresh_until_ms = now_ms + data.freshness_ms.unwrap_or(0);
            if self.make_room_for_cached(&data.name, &hint) {
                self.content.retain(|cached| cached.data.name != data.name || cached.hint != hint);
                self.content.push(Cached { data: data.clone(), hint, fresh_until_ms });
            }
        }
        let mut downstreams: Vec<(FaceNumber, Vec<u8>, u64)> = Vec::new();
        for index in satisfied {
            let entry = &mut self.pit[index];
            let answers_long = data.freshness_ms.unwrap_or(0) >= self.settings.dead_nonce_lifetime_ms;
            entry.nonces_not_needed = !entry.must_be_fresh || answers_long;
            entry.expiry_ms = now_ms;
            for record in entry.in_records.drain(..).filter(|record| record.expiry_ms > now_ms) {
                let back = record.face == face && ingress.link != Link::AdHoc;
                let forbidden = is_under(&data.name, "/localhost")
                    && !self.faces.get(&record.face).is_some_and(|downstream| downstream.local);
                if back || forbidden {
                    continue;
                }
                let mark = record.mark.max(headers.mark);
                match downstreams.iter_mut().find(|(face, token, _)| *face == record.face && *token == record.token) {
                    Some((_, _, known)) => *known = mark.max(*known),
                    None => downstreams.push((record.face, record.token, mark)),
                }
            }
        }
        let all = downstreams.clone();
        for (downstream, token, mark) in downstreams {
            // A peer that sent tokens with some of its Interests accepts an answer to one of these.
            if token.is_empty() && all.iter().any(|(face, other, _)| *face == downstream && !other.is_empty()) {
                continue;
            }
            self.sent.push(Sent::Data { face: downstream, digest: hexadecimal(&data.digest), token, mark, from: face });
        }
    }

    /// Handles an arriving Nack for an Interest that was sent with this nonce.
    pub fn nack(&mut self, face: FaceNumber, interest: &Interest, nonce: Nonce, reason: u64, mark: u64) -> Vec<Sent> {
        self.incoming_nack(face, interest, nonce, reason, mark);
        self.end_due_entries();
        std::mem::take(&mut self.sent)
    }

    fn incoming_nack(&mut self, face: FaceNumber, interest: &Interest, nonce: Nonce, reason: u64, mark: u64) {
        if self.face(face).is_none_or(|face| face.link != Link::PointToPoint) {
            return;
        }
        let now_ms = self.now_ms;
        for index in 0..self.pit.len() {
            if !self.pit[index].has_sent(face, interest, nonce) {
                continue;
            }
            if reason == DUPLICATE && self.send_other_nonce(index, face, nonce) {
                return;
            }
            let entry = &mut self.pit[index];
            let asked = entry.out_records.iter_mut().find(|record| record.face == face && record.nonce == nonce);
            let Some(record) = asked else { continue };
            record.nacked = Some(reason);
            if entry.out_records.iter().all(|record| record.nacked.is_some()) {
                entry.expiry_ms = now_ms;
            }
            self.after_receive_nack(index, mark);
            return;
        }
    }

    /// Sends the nonce of another downstream to an upstream that refused a nonce as a duplicate.
    fn send_other_nonce(&mut self, entry: usize, upstream: FaceNumber, refused: Nonce) -> bool {
        if self.face(upstream).is_none_or(|face| !face.is_up) {
            return false;
        }
        let name = self.pit[entry].name.clone();
        let may_be_sent = |record: &&InRecord| {
            record.expiry_ms > self.now_ms
                && record.nonce != refused
                && !self.is_dead(&name, record.nonce)
                && self.may_go(&name, record.face, record.hop_limit, upstream)
        };
        let Some(record) = self.pit[entry].in_records.iter().find(may_be_sent) else { return false };
        let arrived = self.pit[entry].as_arrived(record);
        self.send_interest(entry, upstream, &arrived);
        self.dead_nonces.push((name, refused, self.now_ms));
        true
    }

    pub(super) fn send_interest(&mut self, entry: usize, face: FaceNumber, arrived: &Arrived) {
        let Some(to) = self.face(face) else { return };
        if arrived.hop_limit == Some(0) && !to.local {
            return;
        }
        let entry = &mut self.pit[entry];
        let expiry_ms = self.now_ms + arrived.lifetime_ms;
        match entry.out_records.iter_mut().find(|record| record.face == face) {
            Some(record) => {
                record.nonce = arrived.nonce;
                record.sent_ms = self.now_ms;
                record.expiry_ms = expiry_ms;
                record.nacked = None;
            }
            None => entry.out_records.push(OutRecord {
                face,
                nonce: arrived.nonce,
                sent_ms: self.now_ms,
                expiry_ms,
                nacked: None,
                suppression_ms: None,
            }),
        }
        self.sent.push(Sent::Interest {
            face,
            name: uri(&entry.name),
            can_be_prefix: entry.can_be_prefix,
            must_be_fresh: entry.must_be_fresh,
            hop_limit: arrived.hop_limit,
            hints: arrived.hints.iter().map(uri).collect(),
            mark: arrived.mark,
            nonce: arrived.nonce,
        });
    }

    pub(super) fn send_nack(&mut self, entry: usize, downstream: FaceNumber, reason: u64, nack_mark: u64) {
        if self.face(downstream).is_none_or(|face| face.link != Link::PointToPoint) {
            return;
        }
        let entry = &mut self.pit[entry];
        let Some(position) = entry.in_records.iter().position(|record| record.face == downstream) else { return };
        let record = entry.in_records.remove(position);
        self.sent.push(Sent::Nack {
            face: downstream,
            name: uri(&entry.name),
            can_be_prefix: entry.can_be_prefix,
            must_be_fresh: entry.must_be_fresh,
            token: record.token,
            reason,
            mark: record.mark.max(nack_mark),
            nonce: record.nonce,
        });
    }
}
