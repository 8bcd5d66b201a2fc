//! Sends bursts of frames, one system call each, without blocking.
//!
//! The kernel may have no room: the socket's memory limit is reached (EAGAIN), or the queue of the interface is full
//! (ENOBUFS). Both are temporary. The frames then stay with the caller, and a later attempt follows after a pause.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;
use std::time::Duration;

use namehop_packet::PacketBuffer;

use super::socket::Socket;
use crate::BURST;
use crate::backoff::Backoff;

/// Prepared messages of one piece each, and the back-off state.
pub(super) struct Sender {
    messages: Box<[libc::mmsghdr]>,
    pieces: Box<[libc::iovec]>,
    backoff: Backoff,
}

// SAFETY: the messages point to the pieces, which move together with them; the pieces point to frames only during a
// call.
unsafe impl Send for Sender {}

impl Sender {
    pub(super) fn new() -> Sender {
        let pieces = vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BURST].into_boxed_slice();
        // SAFETY: all fields may be zero: no address, no control data, no flags.
        let empty: libc::mmsghdr = unsafe { mem::zeroed() };
        Sender { messages: vec![empty; BURST].into_boxed_slice(), pieces, backoff: Backoff::default() }
    }

    /// Time until the next attempt.
    pub(super) fn retry_pause(&self) -> Duration {
        self.backoff.remaining()
    }

    /// Sends frames from the front of `frames` and removes them. Returns how many were dropped because the kernel
    /// rejected them permanently.
    pub(super) fn send(&mut self, socket: &Socket, frames: &mut Vec<PacketBuffer>) -> usize {
        if self.backoff.is_pausing() {
            return 0;
        }
        let (mut done, mut lost) = (0, 0);
        while done < frames.len() {
            match self.send_burst(socket, &mut frames[done..]) {
                Ok(sent) => {
                    done += sent;
                    self.backoff.reset();
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => {
                        self.backoff.fail();
                        break;
                    }
                    // The interface is down or gone: every other frame would fail too.
                    Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                        lost += frames.len() - done;
                        done = frames.len();
                    }
                    // Only this frame fails, for example because it is longer than the interface's MTU.
                    _ => {
                        lost += 1;
                        done += 1;
                    }
                },
            }
        }
        frames.drain(..done);
        lost
    }

    /// Sends up to [`BURST`] frames; returns how many the kernel accepted, at least one.
    fn send_burst(&mut self, socket: &Socket, frames: &mut [PacketBuffer]) -> io::Result<usize> {
        let count = frames.len().min(BURST);
        for ((message, piece), frame) in self.messages.iter_mut().zip(&mut self.pieces).zip(&mut *frames) {
            let bytes = frame.bytes_mut();
            *piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
        }
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: `count` messages are prepared, each with one piece, which is a frame that the kernel copies.
        let sent = unsafe { libc::sendmmsg(descriptor, self.messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
