//! Tests of unsolicited peers, and of their eviction when the limit is reached.

mod socket_support;

use std::time::{Duration, Instant};

use namehop_face::registry::FaceUpdate;
use namehop_face::socket::SocketConfig;
use namehop_face::{FaceUri, LinkDrop};
use socket_support::*;
use tokio::net::{UdpSocket, UnixStream};

async fn client() -> UdpSocket {
    UdpSocket::bind(loopback()).await.expect("bind")
}

#[test]
fn new_peers_applications_and_commands_evict_unsolicited_peers() {
    let mut config = SocketConfig::without_listeners();
    config.udp = vec![loopback()];
    // Half of these few faces is reserved, and two of the other three are for datagrams.
    config.max_faces = 6;
    let (unix, path, _directory) = unix_config();
    config.unix = unix.unix;
    with_service(config, 256, async |mut service: Harness| {
        let server = service.address("udp4");
        let used = client().await;
        for number in [1, 2] {
            used.send_to(&packet(5, number), server).await.expect("send");
            service.next_frame().await;
        }
        let used_face = service.created().await;
        let mut peers = Vec::new();
        for _ in 0..10 {
            let peer = client().await;
            peer.send_to(&packet(5, 1), server).await.expect("send");
            peers.push(peer);
        }
        let drops = service.faces.link_drops();
        let given_way = || drops.get(LinkDrop::FaceEvicted);
        // One of these few slots changes owner per second, and this test takes only a few seconds.
        eventually("all datagrams have arrived", || given_way() + drops.get(LinkDrop::TooManyFaces) == 9).await;
        assert!(given_way() >= 1);
        assert_eq!(service.faces.len(), 2);
        assert!(service.faces.get(used_face.id()).is_some(), "a face in use must stay");
        // A new peer is admitted.
        let late = client().await;
        let late_uri = FaceUri::udp(late.local_addr().expect("address"));
        let deadline = Instant::now() + PATIENCE;
        while service.faces.find_by_remote(&late_uri).is_empty() {
            assert!(Instant::now() < deadline, "a new peer must get a face");
            late.send_to(&packet(5, 1), server).await.expect("send");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // An application and faces created by command may use all slots, but no more than the limit.
        let _application = UnixStream::connect(&path).await.expect("connect");
        eventually("the application has a face", || service.faces.len() == 3).await;
        for port in 20..25 {
            service
                .create(&format!("udp4://127.0.0.1:{port}"), FaceUpdate::default())
                .await
                .expect("a face created by command needs no free share");
        }
        assert_eq!(service.faces.len(), 6);
        let error = service.create("udp4://127.0.0.1:9", FaceUpdate::default()).await.expect_err("full");
        assert_eq!(error.status_code(), 406);
        assert!(error.to_string().contains("limit of 6 faces"), "{error}");
    });
}
