//! A UDP socket that datagrams are received from: that of a channel, or one that only the datagrams of a single peer come to.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::socket::SockaddrStorage;
use socket2::Socket;
use tokio::task::{spawn_local, yield_now};

use super::datagram_io::{BATCH, DROP_LOOK, DatagramIo, Received, count_kernel_drops};
use super::shared::Shared;
use super::standing;
use super::udp::Channel;
use super::watch::{Read, Watched};
use crate::counters::LinkDrop;

/// Pause after the socket itself failed, so that a lasting failure does not spin.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);

/// A socket, with the queue in the kernel behind it.
pub(super) struct Inlet {
    pub(super) socket: Watched,
    io: RefCell<DatagramIo>,
    /// A task is about to have the kernel asked for dropped datagrams.
    looks_later: Cell<bool>,
}

impl Inlet {
    /// Begins to watch a bound socket. Needs a runtime.
    pub(super) fn new(socket: Socket) -> io::Result<Rc<Inlet>> {
        count_kernel_drops(&socket);
        Ok(Rc::new(Inlet {
            socket: Watched::new(socket.into())?,
            io: RefCell::new(DatagramIo::new()),
            looks_later: Cell::new(false),
        }))
    }

    /// Receives one batch; whether there is probably more.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        shared: &Shared,
        mut accept: impl FnMut(SocketAddr, &[u8]),
    ) -> Poll<io::Result<bool>> {
        let mut memory = shared.datagram_memory.borrow_mut();
        let received = self.socket.poll_read(cx, |_| {
            let mut io = self.io.borrow_mut();
            let Received { count, kernel_drops } = io.receive(&self.socket, &mut memory, &mut accept)?;
            if kernel_drops > 0 {
                shared.table.link_drops().add(LinkDrop::KernelQueueFull, kernel_drops.into());
            }
            // A short batch emptied the socket.
            Ok(Read { value: count == BATCH, is_drained: count < BATCH })
        });
        shared.to_worker.wake();
        received
    }

    /// Asks the kernel after a while how many datagrams it has dropped, unless that is planned already. An idle socket does not
    /// wake the thread.
    fn look_for_drops_later(self: &Rc<Self>) {
        if !self.looks_later.replace(true) {
            let inlet = Rc::clone(self);
            spawn_local(async move {
                tokio::time::sleep(DROP_LOOK).await;
                inlet.io.borrow_mut().count_drops_next();
                inlet.looks_later.set(false);
            });
        }
    }

    /// Sends the first of `datagrams`, see [`DatagramIo::send`].
    pub(super) fn send<'d>(
        &self,
        datagrams: impl Iterator<Item = (&'d SockaddrStorage, &'d [u8])>,
    ) -> io::Result<usize> {
        self.io.borrow_mut().send(&self.socket, datagrams)
    }
}

/// Receives from `inlet` for `channel` for as long as both live. Whom a datagram belongs to, its sender says, whichever socket
/// it came to.
pub(super) async fn receive(shared: Rc<Shared>, channel: Rc<Channel>, inlet: Rc<Inlet>) {
    loop {
        let accept = |from, datagram: &[u8]| channel.accept(&shared, from, datagram);
        let received = poll_fn(|cx| inlet.poll_receive(cx, &shared, accept)).await;
        inlet.look_for_drops_later();
        standing::look_later(&shared, &channel);
        match received {
            Ok(true) => yield_now().await,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(local = %channel.local, %error, "receiving failed");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}
