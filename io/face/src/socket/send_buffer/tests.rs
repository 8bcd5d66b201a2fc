//! Tests of the budget shared by queues, and of buffers that write short, block, grow and shrink.

use proptest::prelude::*;

use super::*;

const MIB: usize = 1 << 20;

/// Lets all queues grow in turn, a KiB at a time, until none can grow further.
fn grow_all(accounts: &[Account]) {
    let mut grown = true;
    while grown {
        grown = false;
        for account in accounts {
            grown |= account.hold(account.held_bytes.get() + 1024);
        }
    }
}

#[test]
fn shares_shrink_with_their_number_and_stay_within_the_budget() {
    for number in [1, 2, 10, 300] {
        let budget = SendBudget::new(64 * MIB);
        let unsolicited: Vec<Account> = (0..number).map(|_| budget.account(true)).collect();
        grow_all(&unsolicited);
        let shares: Vec<usize> = unsolicited.iter().map(|account| account.held_bytes.get()).collect();
        let fair = 32 * MIB / (number + 1);
        assert!(shares.iter().all(|share| share.abs_diff(fair) <= 4096), "{number}: {:?}", &shares[..1]);
        assert!(shares.iter().sum::<usize>() <= 32 * MIB);
        let known: Vec<Account> = (0..number).map(|_| budget.account(false)).collect();
        grow_all(&known);
        let fair = (64 * MIB - shares.iter().sum::<usize>()) / (number + 1);
        assert!(known.iter().all(|account| account.held_bytes.get().abs_diff(fair) <= 4096));
        drop((unsolicited, known));
        assert_eq!((budget.all_bytes.get(), budget.unsolicited_bytes.get()), (0, 0));
    }
}

#[test]
fn greedy_configured_queues_leave_every_queue_room_for_a_packet() {
    let budget = SendBudget::new(MIB);
    let known: Vec<Account> = (0..1000).map(|_| budget.account(false)).collect();
    grow_all(&known);
    assert!(known.iter().all(|account| account.held_bytes.get() >= FLOOR_BYTES));
    let unsolicited = budget.account(true);
    assert!(unsolicited.is_scarce());
    assert!(!unsolicited.hold(FLOOR_BYTES + 1) && unsolicited.hold(FLOOR_BYTES));
    assert!(unsolicited.hold(100), "a smaller buffer must always be allowed");
    drop(known);
    assert!(!unsolicited.is_scarce() && unsolicited.hold(200 * 1024));
}

fn buffer(limit_bytes: usize) -> SendBuffer {
    SendBuffer::new(limit_bytes, SendBudget::new(1 << 30).account(false))
}

#[test]
fn short_writes_keep_order_and_the_limit_counts_waiting_bytes_only() {
    let mut buffer = buffer(10);
    assert!(buffer.push(b"abcdef"));
    assert!(!buffer.push(b"ghijk"));
    let mut out = Vec::new();
    let flushed = buffer.flush(|bytes| {
        out.extend_from_slice(&bytes[..4]);
        Ok(4)
    });
    assert_eq!(flushed.expect("flush"), Flush::Blocked);
    assert_eq!(buffer.len(), 2);
    assert!(buffer.push(b"ghijklmn"));
    let flushed = buffer.flush(|bytes| {
        out.extend_from_slice(bytes);
        Ok(bytes.len())
    });
    assert_eq!(flushed.expect("flush"), Flush::Empty);
    assert_eq!(out, b"abcdefghijklmn");
}

/// A bare Data of this length.
fn packet(length: usize) -> Vec<u8> {
    let mut packet = vec![0; length];
    packet[..2].copy_from_slice(&[6, length as u8 - 2]);
    packet
}

proptest! {
    /// However much the kernel takes at a time, exactly the packets that it has not taken completely are lost.
    #[test]
    fn packets_that_were_not_written_as_a_whole_are_counted(
        steps in prop::collection::vec((2..60_usize, 0..100_usize), 1..60),
    ) {
        let mut buffer = buffer(150);
        let (mut ends, mut queued, mut taken, mut out) = (Vec::new(), Vec::new(), 0, Vec::new());
        for (length, takes) in steps {
            if buffer.push(&packet(length)) {
                queued.extend(packet(length));
                ends.push(queued.len());
            }
            let mut left = takes;
            buffer
                .flush(|bytes| {
                    if left == 0 {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    let count = bytes.len().min(left);
                    out.extend_from_slice(&bytes[..count]);
                    (left, taken) = (left - count, taken + count);
                    Ok(count)
                })
                .expect("flush");
        }
        prop_assert_eq!(&out[..], &queued[..taken]);
        prop_assert_eq!(buffer.give_up(), ends.iter().filter(|&&end| end > taken).count());
        prop_assert_eq!((buffer.len(), buffer.give_up()), (0, 0));
    }
}

#[test]
fn a_blocked_kernel_is_not_an_error_and_a_broken_one_is() {
    let mut buffer = buffer(10);
    buffer.push(b"ab");
    assert_eq!(buffer.flush(|_| Err(io::ErrorKind::WouldBlock.into())).expect("flush"), Flush::Blocked);
    assert!(buffer.flush(|_| Err(io::ErrorKind::BrokenPipe.into())).is_err());
    assert_eq!(buffer.len(), 2);
}

#[test]
fn a_burst_gives_its_memory_back() {
    let mut buffer = buffer(1 << 20);
    assert!(buffer.push(&vec![0; 1 << 20]));
    buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
    assert!(buffer.bytes.capacity() <= KEPT_BYTES);
}

#[test]
fn many_buffers_take_no_more_storage_than_the_budget_and_keep_none_when_it_is_scarce() {
    const LIMIT_BYTES: usize = 32 << 20;
    let budget = SendBudget::new(LIMIT_BYTES);
    let mut buffers: Vec<SendBuffer> =
        (0..300).map(|number| SendBuffer::new(4 << 20, budget.account(number % 2 == 0))).collect();
    let packet = [0; 8000];
    for _ in 0..100 {
        for buffer in &mut buffers {
            buffer.push(&packet);
        }
    }
    let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
    assert!(storage > LIMIT_BYTES / 2 && storage <= LIMIT_BYTES + 300 * FLOOR_BYTES, "{storage} bytes are allocated");
    assert!(buffers.iter().all(|buffer| buffer.len() >= packet.len()), "every buffer must hold a packet");
    for buffer in &mut buffers {
        buffer.flush(|bytes| Ok(bytes.len())).expect("flush");
    }
    let storage: usize = buffers.iter().map(|buffer| buffer.bytes.capacity()).sum();
    assert!(storage <= LIMIT_BYTES / 2, "{storage} bytes stay allocated");
    // Growing and shrinking loses nothing of the budget.
    drop(buffers);
    assert!(SendBuffer::new(LIMIT_BYTES, budget.account(false)).push(&vec![0; LIMIT_BYTES / 2]));
}
