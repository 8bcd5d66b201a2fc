//! The network interfaces of this host, and notifications of their changes (rtnetlink(7)).

use std::future::{pending, poll_fn};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket};

use tokio::time::sleep;

use super::watch::{Read, Watched};

/// Multicast groups of rtnetlink: links, IPv4 addresses, IPv6 addresses (`RTMGRP_*` in linux/rtnetlink.h).
const NEWS: u32 = 0x1 | 0x10 | 0x100;
/// Size of the message buffer. Messages are only a trigger, so the part that does not fit is not needed.
const MESSAGE_BYTES: usize = 8192;

/// Interfaces and addresses change several at a time; this long after the first change all of them are visible.
pub(super) const SETTLING: Duration = Duration::from_millis(200);
/// Interval between retries.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// Distinguishes two interfaces that had the same name at different times.
    pub(super) index: u32,
    pub(super) flags: InterfaceFlags,
    /// Its first IPv4 address.
    pub(super) v4: Option<Ipv4Addr>,
    pub(super) has_v6: bool,
}

/// Lists all interfaces.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    for one in nix::ifaddrs::getifaddrs()? {
        let known = found.iter().position(|interface| interface.name == one.interface_name);
        let position = known.unwrap_or_else(|| {
            // An interface that has just disappeared gets index 0, which is not a valid index.
            let index = if_nametoindex(one.interface_name.as_str()).unwrap_or(0);
            let (name, flags) = (one.interface_name.clone(), one.flags);
            found.push(Interface { name, index, flags, v4: None, has_v6: false });
            found.len() - 1
        });
        let (Some(interface), Some(address)) = (found.get_mut(position), one.address) else { continue };
        if let Some(v4) = address.as_sockaddr_in() {
            interface.v4.get_or_insert(v4.ip());
        }
        interface.has_v6 |= address.as_sockaddr_in6().is_some();
    }
    Ok(found)
}

/// Notifies that interfaces or their addresses may have changed.
#[derive(Debug)]
pub(super) struct Changes {
    events: Watched,
}

impl Changes {
    /// Subscribes. If the kernel refuses, logs that `follower` follows no changes, and never returns.
    pub(super) async fn subscribe(follower: &str) -> Changes {
        match Changes::open() {
            Ok(changes) => changes,
            Err(error) => {
                tracing::warn!(%error, "{follower} will not follow changes of network interfaces");
                pending().await
            }
        }
    }

    fn open() -> io::Result<Changes> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let events = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        bind(events.as_raw_fd(), &NetlinkAddr::new(0, NEWS))?;
        Ok(Changes { events: Watched::new(events)? })
    }

    /// Waits for the next changes; several at once count as one. If the notifications cannot be read, waits [`RETRY`]
    /// and returns, because there may have been changes.
    pub(super) async fn next(&self) {
        if let Err(error) = self.read().await {
            tracing::debug!(%error, "cannot read notifications of network interfaces");
            sleep(RETRY).await;
        }
    }

    async fn read(&self) -> io::Result<()> {
        poll_fn(|cx| {
            self.events.poll_read(cx, |descriptor| {
                let mut message = [0; MESSAGE_BYTES];
                let mut changed = false;
                loop {
                    match recv(descriptor, &mut message, MsgFlags::MSG_DONTWAIT) {
                        // Lost messages mean changes too.
                        Ok(_) | Err(Errno::ENOBUFS) => changed = true,
                        Err(Errno::EAGAIN) if changed => return Ok(Read { value: (), is_drained: true }),
                        Err(error) => return Err(error.into()),
                    }
                }
            })
        })
        .await
    }
}
