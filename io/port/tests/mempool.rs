//! Buffers from mempools behave like those in ordinary memory, and return to the mempool that they came from.

use std::sync::OnceLock;

use namehop_packet::{BufferPool, testing};
use namehop_port::{Devices, Eal, use_mempools};

/// Enough for all tests of this file together.
const EAL_BYTES: usize = 96 << 20;

fn environment() -> &'static Eal {
    Eal::start(EAL_BYTES, Devices::None).unwrap_or_else(|error| panic!("{error}"))
}

fn mempools(small: usize, large: usize) -> BufferPool {
    let pool = BufferPool::new(small, large);
    use_mempools(&pool, environment()).expect("memory for mempools");
    pool
}

fn shared_mempools() -> BufferPool {
    static POOL: OnceLock<BufferPool> = OnceLock::new();
    POOL.get_or_init(|| mempools(1023, 255)).clone()
}

#[test]
fn buffers_follow_the_model() {
    testing::buffers_follow_the_model(&shared_mempools());
}

#[test]
fn limits_hold() {
    testing::limits_hold(&mempools(31, 15), 31, 15);
}

#[test]
fn a_fresh_buffer_is_empty() {
    testing::a_fresh_buffer_is_empty(&shared_mempools());
}

#[test]
fn every_thread_may_take_and_give() {
    testing::every_thread_may_take_and_give(&shared_mempools());
}

#[test]
fn buffers_come_back_to_ordinary_memory_after_the_pool_has_moved_on() {
    let pool = BufferPool::new(4, 4);
    let old = pool.copy_of(b"before").expect("a buffer in ordinary memory");
    use_mempools(&pool, environment()).expect("mempools");
    let new = pool.copy_of(b"after").expect("a buffer in a mempool");
    assert_eq!((old.bytes(), new.bytes(), pool.in_use()), (&b"before"[..], &b"after"[..], 2));
    drop(old);
    assert_eq!(pool.in_use(), 1);
    drop(pool);
    drop(new);
}
