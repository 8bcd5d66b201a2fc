//! The effect of each action of a scenario on the engine and on the model.

use namehop_engine::engine::CsChange;
use namehop_packet::{FaceId, LinkFields};
use namehop_wire::lp::{NackReason, PitToken};
use proptest::prelude::*;

use super::super::packets::{self, IMPLICIT_DIGEST, Interest, name};
use super::super::scenario::*;
use super::super::{Face, Headers, Nonce};
use super::{Received, Runner, face_info};

impl Runner {
    /// Applies the action; packets that the engine sends are compared now or at the end of the burst.
    pub fn act(&mut self, action: &Action) -> Result<(), TestCaseError> {
        match action {
            Action::Interest {
                face,
                name: chosen,
                can_be_prefix,
                must_be_fresh,
                nonce,
                lifetime,
                hop_limit,
                hints,
                token,
                mark,
                next_hop,
            } => {
                let interest = Interest {
                    name: choose_name(chosen),
                    can_be_prefix: *can_be_prefix,
                    must_be_fresh: *must_be_fresh,
                    hints: hints.iter().map(|&index| name(HINTS[index])).collect(),
                    lifetime_ms: LIFETIMES_MS[*lifetime],
                    hop_limit: *hop_limit,
                };
                let headers = Headers {
                    token: TOKENS[*token].to_vec(),
                    mark: *mark,
                    next_hop: next_hop.map(|index| self.number(index)),
                    no_cache: false,
                };
                let face = self.number(*face);
                self.receive_interest(Received { face, interest, nonce: nonce.map(u32::from), headers });
            }
            Action::ManyHints { face, first, count, nonce } => {
                for number in (*first..*first + *count).map(|number| number % MANY_HINTS) {
                    let interest = Interest {
                        name: name(NAME_WITH_MANY_HINTS),
                        can_be_prefix: false,
                        must_be_fresh: false,
                        hints: vec![name(&format!("/h/{number}"))],
                        lifetime_ms: None,
                        hop_limit: None,
                    };
                    let nonce = 1_000 + 16 * u32::from(*nonce) + number as u32;
                    let face = self.number(*face);
                    self.receive_interest(Received { face, interest, nonce: Some(nonce), headers: Headers::default() });
                }
            }
            Action::Again { which, face, nonce } => {
                let Some(mut earlier) = recent(&self.received, *which).cloned() else { return Ok(()) };
                if let Some(index) = face {
                    earlier.face = self.number(*index);
                }
                if let Some(nonce) = nonce {
                    earlier.nonce = Some(100 + u32::from(*nonce));
                }
                self.receive_interest(earlier);
            }
            Action::Data { face, name: chosen, freshness, content, mark, no_cache } => {
                let packet = packets::encode_data(&name(NAMES[*chosen]), FRESHNESS_MS[*freshness], &[*content]);
                let headers = Headers { mark: *mark, no_cache: *no_cache, ..Headers::default() };
                self.receive_data(self.number(*face), packet, &headers, None);
            }
            Action::Answer { which, longer, freshness, content, mark, no_cache, token } => {
                let Some(asked) = recent(&self.asked, *which).cloned() else { return Ok(()) };
                let mut data_name = asked.interest.name.clone();
                let mut choice = (FRESHNESS_MS[*freshness], *content);
                if let Some((IMPLICIT_DIGEST, digest)) = data_name.last().cloned() {
                    data_name.pop();
                    let original = FRESHNESS_MS.iter().flat_map(|&freshness| [(freshness, 0), (freshness, 1)]).find(
                        |&(freshness, content)| {
                            packets::encode_data(&data_name, freshness, &[content]).1.digest == digest
                        },
                    );
                    choice = original.unwrap_or(choice);
                } else if asked.interest.can_be_prefix
                    && let Some(last) = longer
                {
                    data_name.extend(name(if *last { "/b" } else { "/a" }));
                }
                let packet = packets::encode_data(&data_name, choice.0, &[choice.1]);
                let headers = Headers { mark: *mark, no_cache: *no_cache, ..Headers::default() };
                let answered = Some((asked.interest.clone(), choose_token(token, &asked.token)));
                self.receive_data(asked.face, packet, &headers, answered);
            }
            Action::Nack { which, reason, nonce_differs, mark, token } => {
                let Some(mut asked) = recent(&self.asked, *which).cloned() else { return Ok(()) };
                self.end_burst()?;
                asked.nonce = asked.nonce.wrapping_add(u32::from(*nonce_differs));
                let nonce = self.added.get(&asked.nonce).copied().unwrap_or(Nonce::from(asked.nonce));
                if self.model.is_nack_ambiguous(asked.face, &asked.interest, nonce) {
                    return Ok(());
                }
                let reason = REASONS[*reason];
                self.expected.extend(self.model.nack(asked.face, &asked.interest, nonce, reason, *mark));
                let fields = LinkFields {
                    nack: Some(NackReason(reason)),
                    congestion_mark: *mark,
                    pit_token: choose_token(token, &asked.token),
                    ..LinkFields::default()
                };
                let packet = packets::encode_interest(&asked.interest, Some(asked.nonce));
                self.push(asked.face, &packet, fields);
            }
            Action::Wait(index) => {
                self.end_burst()?;
                if self.now_ms + WAITS_MS[*index] <= TIME_LIMIT_MS {
                    self.now_ms += WAITS_MS[*index];
                    self.expected.extend(self.model.advance(self.now_ms));
                    self.advance()?;
                }
            }
            Action::Routes { prefix, nexthops } => {
                self.end_burst()?;
                self.set_routes(*prefix, nexthops);
            }
            Action::AddRoute { prefix, face } => {
                self.end_burst()?;
                if let Some(number) = self.faces[*face] {
                    self.add_route(*prefix, number)?;
                }
            }
            Action::RemoveFace(index) => {
                self.end_burst()?;
                if let Some(number) = self.faces[*index].take() {
                    self.removals += 1;
                    self.fib.remove_face(FaceId(number)).expect("memory");
                    self.engine.remove_face(FaceId(number));
                    self.expected.extend(self.model.remove_face(number));
                    self.advance()?;
                }
            }
            Action::RestoreFace(index) => {
                self.end_burst()?;
                if self.faces[*index].is_none() {
                    self.add_face(*index);
                }
            }
            Action::SetUp { face, is_up } => {
                self.end_burst()?;
                if let Some(number) = self.faces[*face] {
                    self.expected.extend(self.model.set_up(number, *is_up));
                    self.engine.set_face(face_info(number, Face { is_up: *is_up, ..FACES[*face].1 }));
                    self.advance()?;
                }
            }
            Action::ContentFlags { admit, serve } => {
                self.end_burst()?;
                let settings = CsChange { admit: Some(*admit), serve: Some(*serve), ..CsChange::default() };
                self.engine.cs_configure(settings);
                self.model.set_content_flags(*admit, *serve);
            }
            Action::EndOfBurst => self.end_burst()?,
        }
        Ok(())
    }
}

/// Returns one of the latest items, the latest first.
fn recent<T>(items: &[T], which: usize) -> Option<&T> {
    items.iter().rev().nth(which.min(items.len().saturating_sub(1)))
}

fn choose_token(choice: &TokenChoice, echoed: &PitToken) -> PitToken {
    match choice {
        TokenChoice::Echoed => *echoed,
        TokenChoice::None => PitToken::empty(),
        TokenChoice::Garbage => {
            PitToken::from_slice(b"\x00\x00\x00\x00\x02\xFF\xFF\xFF").unwrap_or_else(PitToken::empty)
        }
    }
}
