//! Ports on network interfaces of the kernel, over AF_XDP sockets (networking/af_xdp in the kernel's documentation), with DPDK's driver.
//!
//! The kernel's driver of the interface hands over what arrives before the kernel itself looks at it: all frames of the first queue,
//! whatever they are.

use std::fs;

use namehop_packet::BufferPool;
use tracing::warn;

use crate::eal::Eal;
use crate::error::DpdkError;
use crate::nic::{NicPort, NicQueue, Source};

/// Opens a port on an interface, for packets of up to `mtu_bytes` behind the Ethernet header.
///
/// # Errors
/// When there is no such interface, no permission (capabilities CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF), or the kernel or its driver cannot do it.
pub fn open(
    environment: &Eal,
    interface: &str,
    mtu_bytes: usize,
    pool: &BufferPool,
) -> Result<(NicPort, NicQueue), DpdkError> {
    let queues = receive_queues(interface);
    if queues > 1 {
        warn!(
            interface,
            queues, "frames of the first receive queue alone come to the port: `ethtool -L {interface} combined 1`"
        );
    }
    let source = Source {
        bus: "vdev",
        name: format!("net_af_xdp_{interface}"),
        arguments: format!("iface={interface},start_queue=0,queue_count=1"),
        mtu_bytes,
    };
    NicPort::open(environment, &source, pool, " (the log at level debug has more)")
}

/// Receive queues of an interface, as far as the system says.
fn receive_queues(interface: &str) -> usize {
    let queues = fs::read_dir(format!("/sys/class/net/{interface}/queues"));
    queues.map_or(0, |queues| {
        queues.flatten().filter(|queue| queue.file_name().as_encoded_bytes().starts_with(b"rx-")).count()
    })
}
