//! The control socket: messages with at most one descriptor each. No function here blocks.
//!
//! Descriptors that a peer sends unasked must be closed, or they would fill the descriptor table of the router.
//! Messages are therefore received with `rustix`, which owns each received descriptor, even if the kernel reports that
//! there was no room for all of them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect, listen,
    sendmsg, socket,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::message::{MESSAGE_BYTES, Message};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// One end of a control connection.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

/// Result of receiving from a channel.
#[derive(Debug)]
pub(super) enum Received {
    /// A message and its descriptor.
    Message(Message, Option<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The peer has closed the connection, or sent something that is not a message.
    End(&'static str),
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Creates a control socket and listens on it.
pub(super) fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let listener = new_socket()?;
    bind(listener.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok(listener)
}

/// Accepts the next connection of a listener, if one is waiting.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<Channel>> {
    match accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
        // SAFETY: the descriptor was just created and has no other owner.
        Ok(descriptor) => Ok(Some(Channel(unsafe { OwnedFd::from_raw_fd(descriptor) }))),
        Err(Errno::EAGAIN | Errno::ECONNABORTED | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Channel {
    /// Connects to a control socket.
    pub(super) fn connect(path: &Path) -> io::Result<Channel> {
        let socket = new_socket()?;
        connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
        Ok(Channel(socket))
    }

    /// Sends a message. Returns `false` if the peer has closed the connection or does not read.
    pub(super) fn send(&self, message: &Message, descriptor: Option<BorrowedFd<'_>>) -> bool {
        let bytes = message.encode();
        let descriptors = descriptor.map(|descriptor| [descriptor.as_raw_fd()]);
        let control = descriptors.as_ref().map(|descriptors| [ControlMessage::ScmRights(descriptors)]);
        let control = control.as_ref().map_or(&[][..], |control| &control[..]);
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let sent = sendmsg::<UnixAddr>(self.0.as_raw_fd(), &[IoSlice::new(&bytes)], control, flags, None);
        sent == Ok(MESSAGE_BYTES)
    }

    /// Receives the next message.
    pub(super) fn receive(&self) -> Received {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(received) => received,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Received::Nothing,
            Err(_) => return Received::End("the connection failed"),
        };
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(found) = message {
                descriptors.extend(found);
            }
        }
        match received.bytes {
            0 => Received::End("the peer closed the connection"),
            MESSAGE_BYTES => match Message::decode(&bytes) {
                Some(message) => Received::Message(message, descriptors.into_iter().next()),
                None => Received::End("unknown message type"),
            },
            _ => Received::End("wrong message length"),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::sys::resource::{Resource, getrlimit};
    use nix::sys::socket::socketpair;

    use super::*;

    /// Number of descriptors of this process that refer to the memory file with this name.
    fn open_descriptors(name: &str) -> usize {
        let entries =
            fs::read_dir("/proc/self/fd").expect("the descriptors of this process").filter_map(|entry| entry.ok());
        let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.filter(|target| target.to_string_lossy().contains(name)).count()
    }

    #[test]
    fn descriptors_that_nobody_asked_for_are_closed() {
        let file = memfd_create(c"namehop-uninvited", MFdFlags::MFD_CLOEXEC).expect("memory");
        let (peer, ours) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).expect("pair");
        let channel = Channel(ours);
        let most = 253.min(getrlimit(Resource::RLIMIT_NOFILE).expect("a limit").0 as usize / 4);
        for count in [1, 2, 3, 20, most] {
            for bytes in [&Message::Ack.encode()[..], &[0xff; MESSAGE_BYTES], b"short"] {
                let descriptors = vec![file.as_raw_fd(); count];
                let control = [ControlMessage::ScmRights(&descriptors)];
                sendmsg::<UnixAddr>(peer.as_raw_fd(), &[IoSlice::new(bytes)], &control, MsgFlags::empty(), None)
                    .expect("sent");
                let received = channel.receive();
                assert_eq!(
                    matches!(received, Received::Message(Message::Ack, Some(_))),
                    bytes.len() == 128 && bytes[0] == 1
                );
                drop(received);
                assert_eq!(open_descriptors("namehop-uninvited"), 1, "{count} descriptors were sent");
            }
        }
    }
}
