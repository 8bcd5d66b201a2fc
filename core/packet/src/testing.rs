//! The contract of every pool, in ordinary memory or with a mempool, for the tests of this crate and of crates with
//! mempools.
//!
//! All functions panic when the contract is broken.

use std::sync::mpsc::sync_channel;
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::buffer::PacketBuffer;
use crate::pool::BufferPool;
use crate::size::{HEADROOM_BYTES, LARGE_BYTES, SMALL_BYTES};

/// One call on a buffer.
#[derive(Debug, Clone)]
enum Call {
    TrimFront(usize),
    Truncate(usize),
    Prepend(Vec<u8>),
    Append(Vec<u8>),
    Fill(u8),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        (0_usize..300).prop_map(Call::TrimFront),
        (0_usize..2000).prop_map(Call::Truncate),
        prop::collection::vec(any::<u8>(), 0..160).prop_map(Call::Prepend),
        prop::collection::vec(any::<u8>(), 0..400).prop_map(Call::Append),
        any::<u8>().prop_map(Call::Fill),
    ]
}

/// Makes the call; returns whether it succeeded.
fn make(buffer: &mut PacketBuffer, call: &Call) -> bool {
    let (room, bytes) = match call {
        Call::TrimFront(count) => {
            buffer.trim_front(*count);
            return true;
        }
        Call::Truncate(length) => {
            buffer.truncate(*length);
            return true;
        }
        Call::Fill(value) => {
            buffer.bytes_mut().fill(*value);
            return true;
        }
        Call::Prepend(bytes) => (buffer.prepend(bytes.len()), bytes),
        Call::Append(bytes) => (buffer.append(bytes.len()), bytes),
    };
    room.map(|room| room.copy_from_slice(bytes)).is_some()
}

/// A packet and the bytes free in front of it.
struct Model {
    headroom: usize,
    packet: Vec<u8>,
}

impl Model {
    fn make(&mut self, call: &Call) -> bool {
        match call {
            Call::TrimFront(count) => {
                let count = *count.min(&self.packet.len());
                self.packet.drain(..count);
                self.headroom += count;
            }
            Call::Truncate(length) => self.packet.truncate(*length),
            Call::Fill(value) => self.packet.fill(*value),
            Call::Prepend(bytes) if bytes.len() > self.headroom => return false,
            Call::Prepend(bytes) => {
                self.packet.splice(..0, bytes.iter().copied());
                self.headroom -= bytes.len();
            }
            Call::Append(bytes) if self.headroom + self.packet.len() + bytes.len() > HEADROOM_BYTES + SMALL_BYTES => {
                return false;
            }
            Call::Append(bytes) => self.packet.extend_from_slice(bytes),
        }
        true
    }
}

/// A buffer behaves as a packet with room on either side, for any sequence of calls.
pub fn buffers_follow_the_model(pool: &BufferPool) {
    let config = ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() };
    let input = (prop::collection::vec(any::<u8>(), 0..600), prop::collection::vec(call(), 0..40));
    let result = TestRunner::new(config).run(&input, |(first, calls)| {
        let mut model = Model { headroom: HEADROOM_BYTES, packet: first.clone() };
        let mut buffer = pool.copy_of(&first).expect("buffer");
        for call in &calls {
            prop_assert_eq!(make(&mut buffer, call), model.make(call));
            prop_assert_eq!(buffer.bytes(), &model.packet);
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.err().map_or_else(String::new, |error| error.to_string()));
}

/// An unused pool with `small` and `large` buffers allocates no more than these, and takes all of them back.
pub fn limits_hold(pool: &BufferPool, small: usize, large: usize) {
    assert_eq!(pool.limits(), (small, large));
    assert_eq!(pool.in_use(), 0);
    let mut held: Vec<_> =
        (0..small + large).map(|_| pool.allocate(100).expect("a large buffer replaces a small one")).collect();
    assert!(pool.allocate(100).is_none());
    assert!(pool.allocate(SMALL_BYTES + 1).is_none());
    assert_eq!(pool.in_use(), small + large);
    held.clear();
    assert_eq!(pool.in_use(), 0);
    let whole = vec![7; LARGE_BYTES];
    assert_eq!(pool.copy_of(&whole).expect("a buffer of the largest size").bytes(), whole);
    assert!(pool.allocate(LARGE_BYTES + 1).is_none());
    let clone = pool.clone();
    let one = clone.allocate(1).expect("a buffer from the clone");
    assert_eq!(pool.in_use(), 1, "a clone must share the pool");
    drop(one);
}

/// A reused buffer is as empty as a new one.
pub fn a_fresh_buffer_is_empty(pool: &BufferPool) {
    let mut buffer = pool.copy_of(&[1; 50]).expect("buffer");
    buffer.trim_front(20);
    drop(buffer);
    let mut buffer = pool.allocate(0).expect("buffer");
    assert!(buffer.bytes().is_empty());
    assert!(buffer.prepend(HEADROOM_BYTES).is_some());
    assert!(buffer.prepend(1).is_none());
}

/// Buffers move between threads with their contents. Needs more than 64 buffers.
pub fn every_thread_may_take_and_give(pool: &BufferPool) {
    let (sender, receiver) = sync_channel(64);
    thread::scope(|scope| {
        for number in 0..3_u8 {
            let (pool, sender) = (pool.clone(), sender.clone());
            scope.spawn(move || {
                for round in 0..20_000_u32 {
                    let mut packet = round.to_be_bytes().to_vec();
                    packet.push(number);
                    // Another test may hold many buffers at this moment.
                    while pool.copy_of(&packet).map(|buffer| sender.send(buffer)).is_none() {
                        thread::yield_now();
                    }
                }
            });
        }
        drop(sender);
        let mut next = [0_u32; 3];
        for buffer in receiver {
            let (round, number) = buffer.bytes().split_at(4);
            let number = usize::from(number[0]);
            assert_eq!(round, next[number].to_be_bytes());
            next[number] += 1;
        }
        assert_eq!(next, [20_000; 3]);
    });
}
