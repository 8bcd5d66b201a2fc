//! Ports of DPDK drivers that need no card.

use std::net::IpAddr;

use namehop_packet::{BufferPool, PortQueue};
use namehop_port::nic::{NicPort, Source};
use namehop_port::steering::{Flow, Origin};
use namehop_port::{Devices, Eal, mempool_bytes, use_mempools};

/// DPDK's null driver, which receives an endless stream of empty frames and supports no rules.
#[test]
fn a_driver_that_cannot_steer_says_so_and_works_as_before() {
    let environment = Eal::start(mempool_bytes(4095, 511), Devices::None).unwrap_or_else(|error| panic!("{error}"));
    let pool = BufferPool::new(4095, 511);
    use_mempools(&pool, environment).expect("memory for mempools");
    for (queues, name) in [(2, "net_null0"), (1, "net_null1")] {
        let source = Source { bus: "vdev", name: name.to_owned(), arguments: String::new(), mtu_bytes: 1500, queues };
        let (port, mut opened) = NicPort::open(environment, &source, &pool, "").expect("opened");
        assert_eq!(opened.len(), queues);
        let [source, destination] = [[192, 0, 2, 2], [192, 0, 2, 1]].map(IpAddr::from);
        let of_udp = Origin::Udp { source, destination, source_port: None, destination_port: 6363 };
        let of_ethernet = Flow { vlan: Some(7), origin: Origin::Ethernet([2, 0, 0, 0, 0, 1]) };
        if queues > 1 {
            let error = port.steer(of_ethernet).expect_err("the driver has no rules").to_string();
            assert!(error.contains("cannot steer frames to queue 0"), "{error}");
        } else {
            assert_eq!(port.steer(of_ethernet), Ok(None), "a port with one queue needs no rules");
            assert_eq!(port.steer(Flow { vlan: None, origin: of_udp }), Ok(None));
        }
        assert_eq!(port.release(&of_ethernet), Ok(()), "there is no rule to remove");
        for queue in &mut opened {
            assert_eq!(queue.steered_flows(), 0);
            let mut frames = Vec::new();
            queue.receive(&mut frames);
            assert!(!frames.is_empty());
            queue.transmit(&mut frames);
            assert!(frames.is_empty());
        }
    }
}
