//! Tests receive queue rules on a port of DPDK's TAP driver, which passes the rules to the kernel (`tc flower`). Used
//! by the tests in `tests/nic`; their virtual machine has a kernel that supports such rules.
//!
//! Prints one line per step: the step, and the number of frames that each queue received after the kernel sent some to
//! the port.

use std::error::Error;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use namehop_packet::{BufferPool, PortQueue};
use namehop_port::drivers::packet_socket::{MAX_FRAME_BYTES, PacketPort, PacketQueue};
use namehop_port::nic::{NicPort, NicQueue, Source};
use namehop_port::steering::{Flow, Origin};
use namehop_port::{Devices, Eal, mempool_bytes, use_mempools};

const QUEUES: usize = 4;
const FRAMES: usize = 20;
const PATIENCE: Duration = Duration::from_secs(5);
const INTERFACE: &str = "steered0";

fn ethernet(last: u8, vlan: Option<u16>, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let tag = vlan.map_or(Vec::new(), |vlan| [&[0x81, 0x00], &vlan.to_be_bytes()[..]].concat());
    let mut frame = [&[2, 0, 0, 0, 0, 0xFF, 2, 0, 0, 0, 0, last][..], &tag, &ethertype.to_be_bytes(), payload].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A UDP packet from 192.0.2.2 to 192.0.2.1.
fn udp(source_port: u16, destination_port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0xB6, 0xC9, 192, 0, 2, 2, 192, 0, 2, 1];
    packet.extend([source_port.to_be_bytes(), destination_port.to_be_bytes()].concat());
    packet.extend([0, 12, 0, 0, b'd', b'a', b't', b'a']);
    ethernet(9, None, 0x0800, &packet)
}

/// Has the kernel send [`FRAMES`] copies of a frame to the port, and prints how many of them each queue received.
fn report(step: &str, kernel: &mut PacketQueue, queues: &mut [NicQueue], pool: &BufferPool, frame: &[u8]) {
    let mut sent: Vec<_> = (0..FRAMES).filter_map(|_| pool.copy_of(frame)).collect();
    kernel.transmit(&mut sent);
    let (mut counts, mut received, end) = ([0; QUEUES], Vec::new(), Instant::now() + PATIENCE);
    while counts.iter().sum::<usize>() < FRAMES && Instant::now() < end {
        for (queue, count) in queues.iter_mut().zip(&mut counts) {
            queue.receive(&mut received);
            // Count only copies of the frame: the kernel sends frames of its own on each interface.
            *count += received.drain(..).filter(|received| received.bytes().starts_with(&frame[..12])).count();
        }
    }
    println!("{step}: {counts:?}");
}

fn main() -> Result<(), Box<dyn Error>> {
    let environment = Eal::start(mempool_bytes(4095, 63), Devices::None)?;
    let pool = BufferPool::new(4095, 63);
    use_mempools(&pool, environment)?;
    let source = Source {
        bus: "vdev",
        name: "net_tap0".to_owned(),
        arguments: format!("iface={INTERFACE}"),
        mtu_bytes: 1500,
        queues: QUEUES,
    };
    let (mut port, mut queues) = NicPort::open(environment, &source, &pool, "")?;
    println!("queues: {}", queues.len());
    let (_socket, mut sockets) = PacketPort::open(INTERFACE, MAX_FRAME_BYTES, 1, &pool)?;
    let kernel = &mut sockets[0];
    let of_ethernet = |last: u8, vlan| Flow { vlan, origin: Origin::Ethernet([2, 0, 0, 0, 0, last]) };
    let mut places = Vec::new();
    for last in 1..=5 {
        match port.steer(of_ethernet(last, None)) {
            Ok(queue) => places.push(queue),
            Err(error) => println!("refused: {error}"),
        }
    }
    println!("places: {places:?}");
    for last in 1..=4 {
        report(&format!("ethernet {last}"), kernel, &mut queues, &pool, &ethernet(last, None, 0x8624, &[5; 50]));
    }
    println!("steered: {:?}", queues.iter().map(PortQueue::steered_flows).collect::<Vec<_>>());
    match port.steer(of_ethernet(6, Some(7))) {
        Ok(_) => report("vlan", kernel, &mut queues, &pool, &ethernet(6, Some(7), 0x8624, &[5; 50])),
        Err(error) => println!("vlan refused: {error}"),
    }
    let [source, destination] = [[192, 0, 2, 2], [192, 0, 2, 1]].map(IpAddr::from);
    let origin = Origin::Udp { source, destination, source_port: Some(7000), destination_port: 6363 };
    println!("spread by the driver: {:?}", port.steer(Flow { vlan: None, origin }).ok());
    report("udp", kernel, &mut queues, &pool, &udp(7000, 6363));
    // Pretend that the driver cannot spread UDP packets, so that steering rules are used.
    port.spreads = false;
    for source_port in [7001, 7002, 7003] {
        let origin = Origin::Udp { source, destination, source_port: Some(source_port), destination_port: 6363 };
        let step = format!("udp {source_port} to {:?}", port.steer(Flow { vlan: None, origin }));
        report(&step, kernel, &mut queues, &pool, &udp(source_port, 6363));
    }
    port.release(&of_ethernet(2, None))?;
    report("released", kernel, &mut queues, &pool, &ethernet(2, None, 0x8624, &[5; 50]));
    println!("steered: {:?}", queues.iter().map(PortQueue::steered_flows).collect::<Vec<_>>());
    Ok(())
}
