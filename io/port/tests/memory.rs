//! Frames over a link in memory.

use namehop_packet::{BufferPool, PacketBuffer};
use namehop_port::memory::MemoryPort;
use namehop_port::{Devices, Eal, mempool_bytes, use_mempools};

#[test]
fn a_link_in_memory_is_bounded_and_gives_back_what_it_holds() {
    let environment = Eal::start(mempool_bytes(4095, 511), Devices::None).unwrap_or_else(|error| panic!("{error}"));
    let pool = BufferPool::new(4095, 511);
    use_mempools(&pool, environment).expect("memory for mempools");
    let (mut left, mut right) = MemoryPort::pair(environment, 100).expect("rings");
    let mut frames: Vec<PacketBuffer> = (0..150_u8).map(|number| pool.copy_of(&[number]).expect("buffer")).collect();
    left.transmit(&mut frames);
    assert_eq!(frames.len(), 50, "frames that do not fit must stay");
    assert_eq!(frames[0].bytes(), [100], "frames must be taken in order");
    let mut received = Vec::new();
    right.receive(&mut received);
    assert_eq!(received.iter().map(|frame| frame.bytes()[0]).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    left.transmit(&mut frames);
    assert!(frames.is_empty());
    right.transmit(&mut received);
    assert!(received.is_empty());
    drop((left, right));
    assert_eq!(pool.in_use(), 0);
}
