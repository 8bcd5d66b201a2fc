//! The control socket: messages with at most one descriptor each. Nothing here waits.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    connect, listen, recvmsg, sendmsg, socket,
};

use super::message::{MESSAGE_BYTES, Message};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// One end of a control connection.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

/// What a channel had.
#[derive(Debug)]
pub(super) enum Received {
    /// A message and its descriptor.
    Message(Message, Option<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other end has gone, or sent what is no message.
    End(&'static str),
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?)
}

/// Makes a control socket.
pub(super) fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let listener = new_socket()?;
    bind(listener.as_raw_fd(), &UnixAddr::new(path)?)?;
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok(listener)
}

/// The next connection of a listener, if there is one.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<Channel>> {
    match accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
        // SAFETY: the descriptor was made for us just now.
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

    /// Sends a message; `false` when the other end has gone or does not read.
    pub(super) fn send(&self, message: &Message, descriptor: Option<BorrowedFd<'_>>) -> bool {
        let bytes = message.encode();
        let descriptors = descriptor.map(|descriptor| [descriptor.as_raw_fd()]);
        let control = descriptors.as_ref().map(|descriptors| [ControlMessage::ScmRights(descriptors)]);
        let control = control.as_ref().map_or(&[][..], |control| &control[..]);
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let sent = sendmsg::<UnixAddr>(self.0.as_raw_fd(), &[IoSlice::new(&bytes)], control, flags, None);
        sent == Ok(MESSAGE_BYTES)
    }

    /// Takes the next message.
    pub(super) fn receive(&self) -> Received {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut space = nix::cmsg_space!([i32; 1]);
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
        let received = match recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut pieces, Some(&mut space), flags) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Received::Nothing,
            Err(_) => return Received::End("the connection broke"),
        };
        let length = received.bytes;
        let mut descriptors = Vec::new();
        for control in received.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(found) = control {
                // SAFETY: these descriptors were made for us just now, and nobody else closes them.
                descriptors.extend(found.into_iter().map(|found| unsafe { OwnedFd::from_raw_fd(found) }));
            }
        }
        match length {
            0 => Received::End("the other end has gone"),
            MESSAGE_BYTES => match Message::decode(&bytes) {
                Some(message) => Received::Message(message, descriptors.into_iter().next()),
                None => Received::End("a message of an unknown kind"),
            },
            _ => Received::End("a message of the wrong length"),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
