//! The queue of commands from neighbours (`/localhop/nfd`) to the control thread.
//!
//! A command costs a signature verification, and any reachable host can send as many as the link carries. So the rate
//! of all neighbours' commands together is limited ([`COMMANDS_PER_S`]), and faces take turns: a face that sends too
//! many delays only its own commands. The queue is bounded; when it is full, the face with the most queued commands
//! loses its latest one.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use namehop_packet::FaceId;

/// Commands per second of all faces together. With elliptic-curve signatures they use a fifth of a CPU.
const COMMANDS_PER_S: u32 = 2000;
/// Largest burst: unused turns that are kept.
const MAX_SAVED_TOKENS: u32 = 64;
/// Most queued commands of one face.
const MAX_WAITING_OF_FACE: usize = 256;
/// Most queued commands of all faces together.
const MAX_WAITING: usize = 4096;

/// Queue of the commands of all neighbours.
pub struct NeighbourQueue<T> {
    waiting: HashMap<FaceId, VecDeque<T>>,
    /// Faces with queued commands, in the order of their turns.
    rotation: VecDeque<FaceId>,
    count: usize,
    tokens: u32,
    /// Time up to which turns have been added.
    counted_to: Instant,
}

impl<T> NeighbourQueue<T> {
    /// Creates an empty queue, with all turns available.
    pub fn new(now: Instant) -> Self {
        NeighbourQueue {
            waiting: HashMap::new(),
            rotation: VecDeque::new(),
            count: 0,
            tokens: MAX_SAVED_TOKENS,
            counted_to: now,
        }
    }

    /// Enqueues a command of a face. Returns the command that was dropped for lack of room, if any: this one, or the
    /// latest of the face with the most queued commands.
    pub fn push(&mut self, face: FaceId, command: T) -> Option<(FaceId, T)> {
        let mine = self.waiting.get(&face).map_or(0, VecDeque::len);
        if mine >= MAX_WAITING_OF_FACE {
            return Some((face, command));
        }
        let mut dropped = None;
        if self.count >= MAX_WAITING {
            let share = MAX_WAITING / self.waiting.len().max(1);
            if mine >= share {
                return Some((face, command));
            }
            let longest = self.waiting.iter_mut().max_by_key(|(_, commands)| commands.len());
            match longest.filter(|(_, commands)| mine + 1 < commands.len()) {
                Some((&other, commands)) => {
                    dropped = commands.pop_back().map(|command| (other, command));
                    self.count -= 1;
                }
                None => return Some((face, command)),
            }
        }
        let commands = self.waiting.entry(face).or_default();
        if commands.is_empty() {
            self.rotation.push_back(face);
        }
        commands.push_back(command);
        self.count += 1;
        dropped
    }

    /// Dequeues the next command; `None` if none is queued or no turn is available at `now`.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.refill_tokens(now);
        if self.tokens == 0 {
            return None;
        }
        let face = self.rotation.pop_front()?;
        let commands = self.waiting.get_mut(&face)?;
        let command = commands.pop_front();
        if commands.is_empty() {
            self.waiting.remove(&face);
        } else {
            self.rotation.push_back(face);
        }
        self.tokens -= 1;
        self.count -= 1;
        command
    }

    /// Returns when [`pop`](Self::pop) can return a command; `None` when the queue is empty.
    pub fn next_command_at(&mut self, now: Instant) -> Option<Instant> {
        self.refill_tokens(now);
        let pause = if self.tokens > 0 { Duration::ZERO } else { Duration::from_secs(1) / COMMANDS_PER_S };
        (self.count > 0).then(|| self.counted_to + pause)
    }

    fn refill_tokens(&mut self, now: Instant) {
        let pause = Duration::from_secs(1) / COMMANDS_PER_S;
        let new = now.saturating_duration_since(self.counted_to).as_nanos() / pause.as_nanos();
        if new >= u128::from(MAX_SAVED_TOKENS) {
            (self.tokens, self.counted_to) = (MAX_SAVED_TOKENS, now);
        } else {
            // `new` is less than the limit, so it fits.
            let new = new as u32;
            self.tokens = (self.tokens + new).min(MAX_SAVED_TOKENS);
            self.counted_to += pause * new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: FaceId = FaceId(300);
    const QUIET: FaceId = FaceId(301);

    fn drain(queue: &mut NeighbourQueue<u32>, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(now)).collect()
    }

    #[test]
    fn faces_alternate_and_keep_their_order() {
        let now = Instant::now();
        let mut queue = NeighbourQueue::new(now);
        for number in 0..4 {
            assert_eq!(queue.push(FLOOD, number), None);
        }
        assert_eq!(queue.push(QUIET, 10), None);
        assert_eq!(queue.push(QUIET, 11), None);
        assert_eq!(drain(&mut queue, now), [0, 10, 1, 11, 2, 3]);
        assert_eq!((queue.next_command_at(now), queue.waiting.len(), queue.count), (None, 0, 0));
    }

    #[test]
    fn saved_tokens_are_limited() {
        let start = Instant::now();
        let mut queue = NeighbourQueue::new(start);
        let mut handled = 0;
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            for _ in 0..100 {
                let _ = queue.push(FLOOD, 0);
            }
            handled += drain(&mut queue, now).len();
        }
        let expected = (MAX_SAVED_TOKENS + COMMANDS_PER_S) as usize;
        assert!((expected - 2..=expected).contains(&handled), "{handled}");
        let end = start + Duration::from_millis(999);
        let next = queue.next_command_at(end).expect("a command waits");
        assert!(next > end && next <= end + Duration::from_millis(1));
        assert!(queue.pop(end).is_none() && queue.pop(next).is_some());
    }

    #[test]
    fn a_flood_delays_only_its_own_face() {
        let now = Instant::now();
        let mut queue = NeighbourQueue::new(now);
        for number in 0..1000 {
            let refused = queue.push(FLOOD, number);
            assert_eq!(refused.is_some(), number >= MAX_WAITING_OF_FACE as u32);
        }
        let floods = (0..).map(|number| FaceId(1000 + number)).take(MAX_WAITING / MAX_WAITING_OF_FACE);
        for face in floods {
            for number in 0..1000 {
                let _ = queue.push(face, number);
            }
        }
        assert_eq!(queue.count, MAX_WAITING);
        let (other, _) = queue.push(QUIET, 7).expect("the full queue drops a command");
        assert_ne!(other, QUIET, "the dropped command is of the face with the most queued ones");
        assert_eq!(queue.count, MAX_WAITING);
        assert!(queue.waiting[&QUIET].contains(&7));
        assert!(drain(&mut queue, now).contains(&7), "every face is served in the first round");
        let waiting: usize = queue.waiting.values().map(VecDeque::len).sum();
        assert_eq!(waiting, queue.count);
    }
}
