//! Tests of the kernel's share of a link.

use super::*;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_LLDP: u16 = 0x88CC;

/// Creates a bench where the kernel has a share of the link; also returns the kernel's end of it.
fn shared(network: PortNetwork) -> (Bench, Arc<Mutex<Wire>>) {
    let mut bench = Bench::with_addresses(Framing::Ethernet, 0, network);
    let kernel = Arc::new(Mutex::new(Wire { room: 2, ..Wire::default() }));
    let queue = Box::new(TestPort(Arc::clone(&kernel), bench.pool.clone()));
    bench.ask(move |control| control.share(PortId(0), queue).expect("shared"));
    (bench, kernel)
}

#[test]
fn what_is_not_ndn_goes_to_the_kernel_and_what_does_not_fit_is_counted() {
    let (mut bench, kernel) = shared(PortNetwork::default());
    let face = bench.face(PEER);
    let others = [ETHERTYPE_LLDP, ETHERTYPE_IPV4, ETHERTYPE_IPV4].map(|kind| frame(HERE, PEER, kind, &[1; 60]));
    let mut burst = others.to_vec();
    burst.insert(1, frame(HERE, PEER, ETHERTYPE_NDN, &INTEREST));
    // Refused NDN frames do not go to the kernel.
    burst.push(frame(HERE, UNKNOWN, ETHERTYPE_NDN, &INTEREST));
    bench.wire().incoming = burst;
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool));
    assert_eq!(frames.iter().map(|frame| frame.face).collect::<Vec<_>>(), [face.id()]);
    assert_eq!(kernel.lock().expect("wire").sent, others[..2]);
    let counted = [LinkDrop::SendQueueFull, LinkDrop::NotNdnFrame, LinkDrop::UnknownSender].map(|it| bench.dropped(it));
    assert_eq!(counted, [1, 0, 1]);
}

#[test]
fn packets_for_the_addresses_of_the_port_stay_and_others_pass() {
    let addresses = vec!["192.0.2.1/24".parse().expect("an address")];
    let (mut bench, kernel) = shared(PortNetwork { addresses, ..PortNetwork::default() });
    let ip = |last: u8| {
        let mut header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 9, 192, 0, 2, last];
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xFFFF) + (sum >> 16);
        header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        frame(HERE, PEER, ETHERTYPE_IPV4, &header)
    };
    for last in [1, 5] {
        bench.receive(ip(last));
    }
    // The port does not handle TCP, so the kernel may answer.
    assert_eq!(kernel.lock().expect("wire").sent, [ip(1), ip(5)]);
    assert_eq!(bench.dropped(LinkDrop::ForeignFrame) + bench.dropped(LinkDrop::NotNdnFrame), 0);
}

#[test]
fn what_the_kernel_sends_leaves_through_the_port() {
    let (mut bench, kernel) = shared(PortNetwork::default());
    let sent = frame(PEER, HERE, ETHERTYPE_IPV4, &[2; 60]);
    kernel.lock().expect("wire").incoming.push(sent.clone());
    let mut frames = Vec::new();
    assert!(bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool), "the worker had work to do");
    bench.flush();
    assert_eq!(bench.wire().sent, std::slice::from_ref(&sent));
    bench.control.set_state(PortId(0), false);
    bench.set.apply_changes(&mut bench.records);
    kernel.lock().expect("wire").incoming.push(sent);
    bench.set.receive(bench.now, &mut frames, &mut bench.records, &bench.pool);
    bench.flush();
    assert_eq!((bench.wire().sent.len(), bench.dropped(LinkDrop::LinkDown)), (1, 1));
}
