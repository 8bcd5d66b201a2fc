//! Follows the face event stream.

use namehop_wire::{Data, InterestBuilder};

use super::{ClientError, Controller, Express};
use crate::nfd::{Element, FaceEventNotification, names};

/// InterestLifetime while waiting for an event, in milliseconds.
const WAIT_LIFETIME_MS: u64 = 60_000;
/// Number of timeouts for the next number after which the newest event is requested instead, because the forwarder may
/// have been restarted.
const WAITS_BEFORE_RESTART: u32 = 2;

/// Position in the stream.
#[derive(Debug, Clone, Copy)]
struct Position {
    next: u64,
    waits: u32,
}

/// Receives the events of faces as they happen.
pub struct FaceEvents<'a, E> {
    controller: &'a Controller<E>,
    position: Option<Position>,
    last: Option<(u64, Vec<u8>)>,
}

impl<E: Express> Controller<E> {
    /// Follows the events of faces, starting with the next one (or one of the last second).
    pub fn face_events(&self) -> FaceEvents<'_, E> {
        FaceEvents { controller: self, position: None, last: None }
    }
}

impl<E: Express> FaceEvents<'_, E> {
    /// Waits for the next event without a time limit.
    ///
    /// # Errors
    /// When the connection fails or the forwarder sends anything but events.
    pub async fn next(&mut self) -> Result<FaceEventNotification, ClientError> {
        loop {
            let stream = names::face_events();
            let builder = match self.position {
                Some(position) => InterestBuilder::new(stream.append_sequence(position.next)),
                None => InterestBuilder::new(stream).can_be_prefix(true).must_be_fresh(true),
            };
            let interest = builder.lifetime_ms(WAIT_LIFETIME_MS).build()?;
            let packet = match self.controller.express.express(interest).await {
                Ok(packet) => packet,
                Err(ClientError::Timeout { .. }) => {
                    self.position = self.position.and_then(|position| {
                        let waits = position.waits + 1;
                        (waits < WAITS_BEFORE_RESTART).then_some(Position { waits, ..position })
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            let data = Data::decode(&packet)?;
            let sequence = data.name.last().and_then(|component| component.as_sequence());
            let sequence = sequence.ok_or_else(|| ClientError::UnexpectedName(data.name.to_string()))?;
            self.position = Some(Position { next: sequence.saturating_add(1), waits: 0 });
            // The newest event may be the one returned last.
            let seen = (sequence, data.content.to_vec());
            if self.last.as_ref() == Some(&seen) {
                continue;
            }
            let event = FaceEventNotification::decode(data.content)?;
            self.last = Some(seen);
            return Ok(event);
        }
    }
}
