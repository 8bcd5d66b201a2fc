//! A UDP socket with its receive queue: the socket of a channel, or one connected to a single peer.

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

use super::datagram_io::{BATCH, DatagramIo, kernel_drops};
use super::datagram_path::{Path, Source};
use super::shared::ServiceState;
use super::udp::Channel;
use super::watch::{Read, Watched};
use super::{reachability, standing};
use crate::counters::LinkDrop;

/// Pause after a failure of the socket itself, so that a permanent failure does not cause a busy loop.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);
/// Delay between a received datagram and the next read of the kernel's drop counter.
const DROP_LOOK: Duration = Duration::from_secs(1);

/// A UDP socket and its headers for batch calls.
pub(super) struct Inlet {
    pub(super) socket: Watched,
    io: RefCell<DatagramIo>,
    /// Whether the kernel reports the destination address of each datagram.
    pub(super) reports_destinations: bool,
    /// A task to read the kernel's drop counter is scheduled.
    looks_later: Cell<bool>,
    /// The last value of the kernel's drop counter.
    kernel_drops: Cell<u32>,
}

impl Inlet {
    /// Registers a socket that is bound to `local` with the runtime.
    pub(super) fn new(socket: Socket, local: SocketAddr) -> io::Result<Rc<Inlet>> {
        reachability::subscribe(&socket);
        let io = DatagramIo::new(&socket, local);
        Ok(Rc::new(Inlet {
            socket: Watched::new(socket.into())?,
            reports_destinations: io.reports_destinations(),
            io: RefCell::new(io),
            looks_later: Cell::new(false),
            kernel_drops: Cell::new(0),
        }))
    }

    /// Receives one batch; returns whether more datagrams probably wait.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        shared: &ServiceState,
        mut accept: impl FnMut(Path, &[u8]),
    ) -> Poll<io::Result<bool>> {
        let mut memory = shared.datagram_memory.borrow_mut();
        let received = self.socket.poll_read(cx, |_| {
            let count = self.io.borrow_mut().receive(&self.socket, &mut memory, &mut accept)?;
            // A short batch emptied the socket.
            Ok(Read { value: count == BATCH, is_drained: count < BATCH })
        });
        shared.to_workers.datagrams.wake();
        received
    }

    /// Schedules a read of the kernel's drop counter, unless one is scheduled. Only traffic schedules it, so an idle
    /// socket does not wake the thread.
    fn look_for_drops_later(self: &Rc<Self>, shared: &Rc<ServiceState>) {
        if !self.looks_later.replace(true) {
            let (inlet, shared) = (Rc::clone(self), Rc::clone(shared));
            spawn_local(async move {
                tokio::time::sleep(DROP_LOOK).await;
                inlet.looks_later.set(false);
                let total = kernel_drops(&inlet.socket);
                let dropped = total.wrapping_sub(inlet.kernel_drops.replace(total));
                if dropped > 0 {
                    shared.table.link_drops().add(LinkDrop::KernelQueueFull, dropped.into());
                }
            });
        }
    }

    /// Sends the first of `datagrams`; see [`DatagramIo::send`].
    pub(super) fn send<'d>(
        &self,
        source: Option<&Source>,
        datagrams: impl Iterator<Item = (&'d SockaddrStorage, &'d [u8])>,
    ) -> io::Result<usize> {
        self.io.borrow_mut().send(&self.socket, source, datagrams)
    }
}

/// Receives from `inlet` for `channel` as long as both exist, and handles ICMP errors about datagrams that were sent. A
/// datagram is assigned to a face by its path, whichever socket received it.
pub(super) async fn receive(shared: Rc<ServiceState>, channel: Rc<Channel>, inlet: Rc<Inlet>) {
    tokio::select! {
        biased;
        () = receive_datagrams(&shared, &channel, &inlet) => {}
        () = reachability::follow(&shared, &channel, &inlet) => {}
    }
}

async fn receive_datagrams(shared: &Rc<ServiceState>, channel: &Rc<Channel>, inlet: &Rc<Inlet>) {
    loop {
        let accept = |path, datagram: &[u8]| channel.accept(shared, path, datagram);
        let received = poll_fn(|cx| inlet.poll_receive(cx, shared, accept)).await;
        inlet.look_for_drops_later(shared);
        standing::look_later(shared, channel);
        match received {
            Ok(true) => yield_now().await,
            Ok(false) => {}
            // An error reported by the network concerns a datagram that was sent earlier.
            Err(_) if reachability::take_errors(shared, channel, inlet) => {}
            Err(error) if reachability::is_unreachable_by(&error) => {}
            Err(error) => {
                tracing::debug!(local = %channel.local, %error, "cannot receive datagrams");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}
