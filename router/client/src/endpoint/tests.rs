//! Endpoints against the loopback forwarder and against hand-made peers.

use std::sync::Mutex as StdMutex;

use namehop_wire::builder::DataBuilder;
use namehop_wire::lp::{KnowsPitTokens, PathMtuProbe};
use namehop_wire::security::{DigestSigner, HmacSigner, HmacVerifier, verify_interest};
use namehop_wire::tlv::Writer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::frames::FrameReader;
use super::*;
use crate::testing::Loopback;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn data(name: &Name, content: &str) -> Vec<u8> {
    DataBuilder::new(name).content(content.as_bytes()).sign(&DigestSigner).unwrap()
}

fn interest(uri: &str) -> InterestBuilder {
    InterestBuilder::new(name(uri)).lifetime_ms(500)
}

async fn content(endpoint: &Endpoint, builder: InterestBuilder) -> Result<String, ExpressError> {
    let response = endpoint.request(builder).await?;
    Ok(String::from_utf8(response.data().unwrap().content.to_vec()).unwrap())
}

/// Returns an endpoint and the other end of its connection.
fn pair() -> (Endpoint, tokio::io::DuplexStream) {
    let (near, far) = tokio::io::duplex(1 << 20);
    (Endpoint::from_stream(near), far)
}

/// Reads the registration command of an endpoint. The endpoint first announces that it returns PIT tokens.
async fn sent_registration(far: &mut tokio::io::DuplexStream) -> Vec<u8> {
    let mut reported = [0; KnowsPitTokens::FRAME_LEN];
    far.read_exact(&mut reported).await.unwrap();
    assert_eq!(reported, KnowsPitTokens::Tells.frame());
    let mut command = vec![0; 9000];
    let length = far.read(&mut command).await.unwrap();
    command.truncate(length);
    command
}

#[tokio::test]
async fn the_longest_prefix_answers_and_withdrawal_ends_it() {
    let hub = Loopback::new();
    let (producer, consumer) = (hub.endpoint(), hub.endpoint());
    for prefix in ["/A", "/A/B"] {
        producer.produce(&name(prefix), move |request| Answer::Data(data(&request.interest.name.to_owned(), prefix)));
        producer.register_route(&name(prefix), &RouteOptions::default()).await.unwrap();
    }
    assert_eq!(content(&consumer, interest("/A/B/1")).await.unwrap(), "/A/B");
    assert_eq!(content(&consumer, interest("/A/1")).await.unwrap(), "/A");
    producer.withdraw(&name("/A/B"));
    assert_eq!(content(&consumer, interest("/A/B/2")).await.unwrap(), "/A");
    producer.unregister_route(&name("/A"), &RouteOptions::default()).await.unwrap();
    producer.unregister_route(&name("/A/B"), &RouteOptions::default()).await.unwrap();
    let error = content(&consumer, interest("/A/3")).await.unwrap_err();
    assert_eq!(error, ExpressError::Nack(NackReason::NO_ROUTE));
    assert_eq!((producer.counters().in_interests, producer.counters().out_data), (3, 3));
}

#[tokio::test]
async fn fields_specific_to_namehop_are_answered() {
    let (_endpoint, mut far) = pair();
    let mut probe = vec![0; 1400];
    PathMtuProbe::write_probe(7, &mut probe);
    let answered: [(&[u8], &[u8]); 2] =
        [(&KnowsPitTokens::Asks.frame(), &KnowsPitTokens::Tells.frame()), (&probe, &PathMtuProbe::answer(7))];
    for (frame, expected) in answered {
        far.write_all(frame).await.unwrap();
        let mut answer = vec![0; expected.len()];
        far.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn refused_commands_are_errors() {
    let (endpoint, mut far) = pair();
    let answer = tokio::spawn(async move {
        let command = sent_registration(&mut far).await;
        let command = Interest::decode(&command).unwrap();
        assert!(command.check_parameters_digest() && command.nonce.is_some());
        assert!(name("/localhost/nfd/rib/register").is_prefix_of(command.name));
        let mut response = Writer::new();
        response.nested(101, |writer| {
            writer.nni(102, 403).element(103, b"authorization rejected");
        });
        let packet = DataBuilder::new(command.name).content(response.into_vec()).sign(&DigestSigner).unwrap();
        far.write_all(&packet).await.unwrap();
        far
    });
    let error = endpoint.register_route(&name("/A"), &RouteOptions::default()).await.unwrap_err();
    assert_eq!(error, CommandError::Refused { code: 403, text: "authorization rejected".to_owned() });
    answer.await.unwrap();
}

#[tokio::test]
async fn commands_are_signed_with_the_given_key() {
    let (near, mut far) = tokio::io::duplex(65536);
    let endpoint = Endpoint::from_stream(near);
    let secret = b"shared by the operator and the forwarder";
    endpoint.clone().sign_commands_with(Arc::new(HmacSigner::new(secret, name("/operator/KEY/1"))));
    let registration =
        tokio::spawn(async move { endpoint.register_route(&name("/A"), &RouteOptions::default()).await });
    let command = sent_registration(&mut far).await;
    let command = Interest::decode(&command).unwrap();
    verify_interest(&command, &HmacVerifier::new(secret)).unwrap();
    assert!(verify_interest(&command, &HmacVerifier::new(b"another secret")).is_err());
    drop(far);
    assert!(registration.await.unwrap().is_err());
}

#[tokio::test]
async fn many_requests_wait_at_once_and_answers_may_come_in_any_order() {
    let hub = Loopback::new();
    let (producer, consumer) = (hub.endpoint(), hub.endpoint());
    let held = Arc::new(StdMutex::new(Vec::new()));
    let holder = Arc::clone(&held);
    producer.produce(&name("/A"), move |request| {
        holder.lock().unwrap().push((request.responder(), request.interest.name.to_owned()));
        Answer::None
    });
    producer.register_route(&name("/A"), &RouteOptions::default()).await.unwrap();
    let requests: Vec<_> = (0..50)
        .map(|number| {
            let consumer = consumer.clone();
            tokio::spawn(async move { content(&consumer, interest(&format!("/A/{number}"))).await })
        })
        .collect();
    while held.lock().unwrap().len() < 50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(consumer.pending_count(), 50);
    for (responder, name) in held.lock().unwrap().drain(..).rev() {
        responder.send_data(&data(&name, &name.to_string()));
    }
    for (number, request) in requests.into_iter().enumerate() {
        assert_eq!(request.await.unwrap().unwrap(), format!("/A/{number}"));
    }
    assert_eq!(consumer.pending_count(), 0);
}

#[tokio::test]
async fn data_is_matched_by_prefix_and_by_digest() {
    let (endpoint, mut far) = pair();
    let packet = data(&name("/A/1"), "x");
    let full_name = Data::decode(&packet).unwrap().full_name();
    let wrong = name("/A/1").append(namehop_wire::ComponentRef::implicit_digest(&[7; 32]));
    let express = |builder: InterestBuilder| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { endpoint.request(builder.lifetime_ms(200)).await.is_ok() })
    };
    let by_prefix = express(InterestBuilder::new(name("/A")).can_be_prefix(true));
    let short = express(InterestBuilder::new(name("/A")));
    let exact = express(InterestBuilder::new(name("/A/1")));
    let by_digest = express(InterestBuilder::new(full_name));
    let by_wrong_digest = express(InterestBuilder::new(wrong));
    let mut frames = 0;
    let mut buffer = vec![0; 9000];
    while frames < 5 {
        let length = far.read(&mut buffer).await.unwrap();
        let mut reader = namehop_wire::tlv::Reader::new(&buffer[..length]);
        while reader.read_element().is_ok() {
            frames += 1;
        }
    }
    far.write_all(&packet).await.unwrap();
    assert!(by_prefix.await.unwrap() && exact.await.unwrap() && by_digest.await.unwrap());
    assert!(!short.await.unwrap() && !by_wrong_digest.await.unwrap());
    assert_eq!(endpoint.pending_count(), 0);
}

#[tokio::test]
async fn a_nack_of_an_older_transmission_is_ignored() {
    let (endpoint, mut far) = pair();
    let asking = tokio::spawn({
        let endpoint = endpoint.clone();
        async move { endpoint.express(interest("/A").nonce(7).build().unwrap()).await }
    });
    let mut buffer = vec![0; 9000];
    let length = far.read(&mut buffer).await.unwrap();
    let nack = |nonce: u32| {
        let mut writer = Writer::new();
        let interest = interest("/A").nonce(nonce).build().unwrap();
        write_lp(&mut writer, &LpFields { nack: Some(NackReason::CONGESTION), ..LpFields::default() }, &interest);
        writer.into_vec()
    };
    assert_eq!(Interest::decode(&buffer[..length]).unwrap().nonce, Some(7));
    far.write_all(&nack(6)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(endpoint.pending_count(), 1);
    far.write_all(&nack(7)).await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap_err(), ExpressError::Nack(NackReason::CONGESTION));
}

#[tokio::test]
async fn interests_without_nonce_get_one_and_others_keep_theirs() {
    let (endpoint, mut far) = pair();
    let bare = interest("/A").build().unwrap();
    assert_eq!(Interest::decode(&bare).unwrap().nonce, None);
    let with = interest("/B").nonce(5).build().unwrap();
    tokio::spawn(async move { tokio::join!(endpoint.express(bare), endpoint.express(with)) });
    let mut frames = FrameReader::new(&mut far);
    let mut seen = Vec::new();
    while seen.len() < 2 {
        assert!(frames.fill().await.unwrap());
        while let Some(frame) = frames.next_frame().unwrap() {
            let interest = Interest::decode(frame).unwrap();
            seen.push((interest.name.to_string(), interest.nonce, interest.lifetime_ms));
        }
    }
    assert!(matches!(&seen[0], (name, Some(_), Some(500)) if name == "/A"), "{seen:?}");
    assert_eq!(seen[1], ("/B".to_owned(), Some(5), Some(500)));
}

#[tokio::test]
async fn time_outs_and_dropped_futures_leave_nothing_behind() {
    let (endpoint, _far) = pair();
    let error = endpoint.request(InterestBuilder::new(name("/A")).lifetime_ms(20)).await.unwrap_err();
    assert_eq!(error, ExpressError::Timeout { lifetime_ms: 20 });
    let dropped = tokio::time::timeout(Duration::from_millis(20), endpoint.request(interest("/A"))).await;
    assert!(dropped.is_err());
    assert_eq!(endpoint.pending_count(), 0);
}

#[tokio::test]
async fn a_lost_connection_ends_what_waits_and_what_comes_later() {
    let (endpoint, far) = pair();
    let waiting = tokio::spawn({
        let endpoint = endpoint.clone();
        async move { endpoint.request(interest("/A")).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(far);
    assert!(matches!(waiting.await.unwrap(), Err(ExpressError::Closed(_))));
    assert!(matches!(endpoint.request(interest("/B")).await, Err(ExpressError::Closed(_))));
    assert!(!endpoint.closed().await.is_empty());
}

#[tokio::test]
async fn garbage_is_counted_and_survived() {
    let (endpoint, mut far) = pair();
    // An Interest without a name; an LpPacket with a Nack around Data; an IDLE packet.
    far.write_all(&[5, 0, 0x64, 6, 0xFD, 3, 0x20, 0, 0x50, 0, 0x64, 0]).await.unwrap();
    let answered = tokio::spawn({
        let endpoint = endpoint.clone();
        async move { content(&endpoint, interest("/A")).await }
    });
    let mut frames = FrameReader::new(&mut far);
    assert!(frames.fill().await.unwrap());
    far.write_all(&data(&name("/A"), "x")).await.unwrap();
    assert_eq!(answered.await.unwrap().unwrap(), "x");
    assert!(endpoint.counters().malformed >= 2, "{:?}", endpoint.counters());
}

#[tokio::test]
async fn data_malformed_after_its_name_answers_no_interest() {
    let (endpoint, mut far) = pair();
    let digest = format!("/A/sha256digest={}", "00".repeat(32));
    let requests = [digest, "/A".to_owned()].map(|uri| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { content(&endpoint, interest(&uri)).await })
    });
    while endpoint.pending_count() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A Data with a name and nothing else, then a correct one.
    far.write_all(b"\x06\x05\x07\x03\x08\x01A").await.unwrap();
    far.write_all(&data(&name("/A"), "x")).await.unwrap();
    let [by_digest, by_name] = requests;
    assert_eq!(by_name.await.unwrap().unwrap(), "x");
    assert!(matches!(by_digest.await.unwrap(), Err(ExpressError::Timeout { .. })));
}

#[tokio::test]
async fn nothing_longer_than_a_packet_is_sent() {
    let (endpoint, far) = pair();
    let mut frames = FrameReader::new(far);
    let sized = |bytes: usize| {
        let packet =
            |content: usize| DataBuilder::new(name("/A")).content(vec![1; content]).sign(&DigestSigner).unwrap();
        packet(bytes - (packet(8000).len() - 8000))
    };
    let responder = Responder::new(Arc::clone(&endpoint.inner.shared), PitToken::from_slice(&[7; 32]).unwrap());
    for (bytes, with_token) in [(8758, true), (8759, false), (8800, false)] {
        responder.send_data(&sized(bytes));
        assert!(frames.fill().await.unwrap());
        let frame = frames.next_frame().unwrap().unwrap();
        let packet = namehop_wire::lp::LpPacket::decode(frame).unwrap();
        assert_eq!(packet.fragment.unwrap().len(), bytes);
        assert_eq!(!packet.pit_token.is_empty(), with_token, "{bytes}");
    }
    let sent = endpoint.counters();
    responder.send_data(&vec![6; 8801]);
    responder.send_nack(NackReason::NO_ROUTE, &vec![5; 8790]);
    assert_eq!(endpoint.counters(), sent);
    responder.send_nack(NackReason::NO_ROUTE, &vec![5; 8770]);
    assert_eq!(endpoint.counters().out_nacks, 1);

    // The Interest fits exactly without a Nonce, but forwarders require one.
    let long = name("/A").append_generic(vec![1; 8782]);
    let mut interest = Writer::new();
    interest.nested(5, |writer| {
        writer.element(7, long.value());
    });
    assert!(interest.len() <= MAX_PACKET_SIZE && interest.len() + 6 > MAX_PACKET_SIZE, "{}", interest.len());
    let error = endpoint.express(interest.into_vec()).await.unwrap_err();
    assert_eq!(error, ExpressError::BadInterest(DecodeError::TooLong));
}

#[tokio::test]
async fn unsolicited_data_is_shown_to_the_watcher() {
    let (endpoint, mut far) = pair();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    endpoint.watch_unsolicited(move |name| drop(sender.send(name.to_string())));
    far.write_all(&data(&name("/A"), "x")).await.unwrap();
    assert_eq!(seen.recv().await.unwrap(), "/A");
    assert_eq!(endpoint.counters().unsolicited_data, 1);
}

#[tokio::test]
async fn closing_writes_what_is_queued() {
    let (endpoint, mut far) = pair();
    let packet = data(&name("/A"), "x");
    endpoint.send_data(&packet);
    endpoint.close().await;
    let mut received = Vec::new();
    far.read_to_end(&mut received).await.unwrap();
    assert_eq!(received, packet);
    assert_eq!(endpoint.closed().await, "closed by the application");
    assert_eq!(
        endpoint.request(interest("/A")).await.unwrap_err(),
        ExpressError::Closed("closed by the application".to_owned())
    );
}

#[tokio::test]
async fn datagrams_and_web_sockets_carry_packets() {
    let udp = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri: TransportUri = format!("udp4://{}", udp.local_addr().unwrap()).parse().unwrap();
    let endpoint = Endpoint::connect(Some(&uri.to_string())).await.unwrap();
    assert!(!endpoint.is_local());
    let server = tokio::spawn(async move {
        let mut buffer = vec![0; 9000];
        let (length, from) = udp.recv_from(&mut buffer).await.unwrap();
        let answer = data(&Interest::decode(&buffer[..length]).unwrap().name.to_owned(), "u");
        // In two fragments, the second first (NDNLPv2).
        for (index, piece) in [(1u64, &answer[9..]), (0, &answer[..9])] {
            let mut frame = Writer::new();
            frame.nested(100, |writer| {
                writer.element(81, &(70 + index).to_be_bytes()).nni(82, index).nni(83, 2).element(80, piece);
            });
            udp.send_to(frame.as_slice(), from).await.unwrap();
        }
    });
    assert_eq!(content(&endpoint, interest("/U")).await.unwrap(), "u");
    server.await.unwrap();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: TransportUri = format!("ws://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = tokio::spawn(async move {
        use futures_util::{SinkExt, StreamExt};
        use tokio_tungstenite::tungstenite::Message;
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let Message::Binary(frame) = socket.next().await.unwrap().unwrap() else { panic!("text") };
        let answer = data(&Interest::decode(&frame).unwrap().name.to_owned(), "w");
        socket.send(Message::Binary(answer.into())).await.unwrap();
    });
    let endpoint = Endpoint::connect(Some(&uri.to_string())).await.unwrap();
    assert!(endpoint.is_local());
    assert_eq!(content(&endpoint, interest("/W")).await.unwrap(), "w");
    server.await.unwrap();
}

#[tokio::test]
async fn signature_times_increase() {
    let (endpoint, _far) = pair();
    let times: Vec<u64> = (0..100).map(|_| endpoint.next_signature_time_ms()).collect();
    assert!(times.is_sorted_by(|earlier, later| earlier < later));
}
