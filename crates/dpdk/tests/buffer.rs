//! Mbufs behave as heap buffers do, whether they are plain or from a mempool; they return to where they came from.

use namehop_dpdk::mbuf::SUMMARY_BYTES;
use namehop_dpdk::{Eal, MbufPool};
use namehop_forward::buffer::{BufferPool, HEADROOM_BYTES, HeapPool, PacketBuffer};
use proptest::prelude::*;

/// Enough for every test of this file together.
const EAL_BYTES: usize = 96 << 20;

fn environment() -> &'static Eal {
    Eal::start(EAL_BYTES).expect("DPDK starts")
}

fn mempools(small: usize, large: usize) -> MbufPool {
    let pool = MbufPool::new(small, large);
    pool.use_mempools(environment()).expect("memory for mempools");
    pool
}

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

/// Makes the call; whether it succeeded.
fn make<B: PacketBuffer>(buffer: &mut B, call: &Call) -> bool {
    let place = match call {
        Call::TrimFront(count) => {
            return {
                buffer.trim_front(*count);
                true
            };
        }
        Call::Truncate(length) => {
            return {
                buffer.truncate(*length);
                true
            };
        }
        Call::Fill(value) => {
            return {
                buffer.bytes_mut().fill(*value);
                true
            };
        }
        Call::Prepend(bytes) => (buffer.prepend(bytes.len()), bytes),
        Call::Append(bytes) => (buffer.append(bytes.len()), bytes),
    };
    match place {
        (Some(place), bytes) => {
            place.copy_from_slice(bytes);
            true
        }
        (None, _) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_kind_of_buffer_gives_the_same(
        first in prop::collection::vec(any::<u8>(), 0..600),
        calls in prop::collection::vec(call(), 0..40),
    ) {
        let mut heap = HeapPool::new(1, 1).copy_of(&first).expect("heap");
        let mut plain = MbufPool::new(1, 1).copy_of(&first).expect("plain");
        let pool = shared_mempools();
        let mut mbuf = pool.copy_of(&first).expect("mempool");
        // Where the packet ends, counted from the start of the headroom.
        let mut end = HEADROOM_BYTES + first.len();
        for call in &calls {
            // A small mbuf has a little more room at its end than a small heap buffer: leave that room alone.
            if let Call::Append(bytes) = call
                && end + bytes.len() > HEADROOM_BYTES + 1900
            {
                continue;
            }
            let before = heap.bytes().len();
            let expected = make(&mut heap, call);
            prop_assert_eq!(make(&mut plain, call), expected);
            prop_assert_eq!(make(&mut mbuf, call), expected);
            prop_assert_eq!(plain.bytes(), heap.bytes());
            prop_assert_eq!(mbuf.bytes(), heap.bytes());
            match call {
                Call::Append(bytes) => end += bytes.len(),
                Call::Truncate(_) => end -= before - heap.bytes().len(),
                Call::TrimFront(_) | Call::Prepend(_) | Call::Fill(_) => {}
            }
        }
    }
}

fn shared_mempools() -> MbufPool {
    static POOL: std::sync::OnceLock<MbufPool> = std::sync::OnceLock::new();
    POOL.get_or_init(|| mempools(1023, 255)).clone()
}

fn limits_hold(pool: &MbufPool, small: usize, large: usize) {
    assert_eq!(pool.in_use(), 0);
    let mut held: Vec<_> = (0..small + large).map(|_| pool.allocate(100).expect("a large one stands in")).collect();
    assert!(pool.allocate(100).is_none());
    assert!(pool.allocate(5000).is_none());
    assert_eq!(pool.in_use(), small + large);
    held.clear();
    assert_eq!(pool.in_use(), 0);
    let whole = vec![7; 9216];
    assert_eq!(pool.copy_of(&whole).expect("the largest").bytes(), whole);
    assert!(pool.allocate(9217).is_none());
    let clone = pool.clone();
    let one = clone.allocate(1).expect("from the clone");
    assert_eq!(pool.in_use(), 1, "a clone is the same pool");
    drop(one);
}

#[test]
fn limits_hold_for_plain_mbufs() {
    limits_hold(&MbufPool::new(3, 2), 3, 2);
}

#[test]
fn limits_hold_for_mempools() {
    limits_hold(&mempools(31, 15), 31, 15);
}

#[test]
fn a_fresh_buffer_is_empty_with_all_its_headroom() {
    for pool in [MbufPool::new(1, 1), shared_mempools()] {
        let mut buffer = pool.copy_of(&[1; 50]).expect("buffer");
        buffer.trim_front(20);
        buffer.set_summary(5_u64);
        drop(buffer);
        let mut buffer = pool.allocate(0).expect("buffer");
        assert!(buffer.bytes().is_empty());
        assert_eq!(buffer.summary::<u64>(), None, "the summary is that of the packet before");
        assert!(buffer.prepend(HEADROOM_BYTES).is_some());
        assert!(buffer.prepend(1).is_none());
    }
}

#[test]
fn plain_mbufs_come_back_after_the_pool_has_moved_on() {
    let pool = MbufPool::new(4, 4);
    let old = pool.copy_of(b"before").expect("plain");
    pool.use_mempools(environment()).expect("mempools");
    let new = pool.copy_of(b"after").expect("mempool");
    assert_eq!((old.bytes(), new.bytes(), pool.in_use()), (&b"before"[..], &b"after"[..], 2));
    drop(old);
    assert_eq!(pool.in_use(), 1);
    drop(pool);
    drop(new);
}

#[test]
fn every_thread_may_take_and_give() {
    for pool in [MbufPool::new(512, 16), shared_mempools()] {
        let (sender, receiver) = std::sync::mpsc::sync_channel(64);
        let producers: Vec<_> = (0..3_u8)
            .map(|number| {
                let (pool, sender) = (pool.clone(), sender.clone());
                std::thread::spawn(move || {
                    for round in 0..20_000_u32 {
                        let mut packet = round.to_be_bytes().to_vec();
                        packet.push(number);
                        // Another test may hold many at this moment.
                        while pool.copy_of(&packet).map(|buffer| sender.send(buffer)).is_none() {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        let mut next = [0_u32; 3];
        for buffer in receiver {
            let (round, number) = buffer.bytes().split_at(4);
            let number = usize::from(number[0]);
            assert_eq!(round, next[number].to_be_bytes());
            next[number] += 1;
        }
        assert_eq!(next, [20_000; 3]);
        for producer in producers {
            producer.join().expect("producer");
        }
    }
}

#[test]
fn a_summary_travels_with_the_packet() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Hashes([u64; 30]);
    assert_eq!(size_of::<Hashes>(), SUMMARY_BYTES);
    for pool in [MbufPool::new(1, 1), shared_mempools()] {
        let mut buffer = pool.copy_of(b"packet").expect("buffer");
        assert_eq!(buffer.summary::<Hashes>(), None);
        buffer.set_summary(Hashes([0xABCD_EF01_2345_6789; 30]));
        assert_eq!(buffer.summary::<u64>(), None, "another type");
        let buffer = std::thread::spawn(move || buffer).join().expect("moved");
        assert_eq!(buffer.summary::<Hashes>(), Some(&Hashes([0xABCD_EF01_2345_6789; 30])));
        assert_eq!(buffer.bytes(), b"packet");
    }
}
