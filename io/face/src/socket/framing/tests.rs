//! Tests of cutting streams, with what browsers and programs of other protocols send to a TCP port.

use namehop_wire::tlv::Writer;

use super::*;

fn packet(typ: u32, value: &[u8]) -> Vec<u8> {
    let mut packet = Writer::new();
    packet.element(typ, value);
    packet.into_vec()
}

fn filled(typ: u32, length: usize) -> Vec<u8> {
    packet(typ, &vec![0xAB; length])
}

/// An LpPacket that carries an Interest.
fn carrier() -> Vec<u8> {
    packet(100, &[packet(0x62, &[1, 2, 3, 4]), packet(80, &filled(5, 9))].concat())
}

/// Cuts a whole stream; returns the packets handed over and why it stopped.
fn cut_all(bytes: &[u8]) -> (Vec<Vec<u8>>, Stop) {
    cut_from(&mut Framing::default(), bytes)
}

fn cut_from(framing: &mut Framing, bytes: &[u8]) -> (Vec<Vec<u8>>, Stop) {
    let mut found = Vec::new();
    let accept = |bytes: &[u8]| {
        found.push(bytes.to_vec());
        true
    };
    let (_, stop) = cut(bytes, framing, accept, || {});
    (found, stop)
}

#[test]
fn a_stream_split_at_every_byte_boundary_gives_the_same_packets() {
    let packets = [filled(100, 0), filled(5, 3), filled(6, 300), filled(100, 0), carrier(), filled(6, 40)];
    let stream = packets.concat();
    for split in 0..=stream.len() {
        let mut found = Vec::new();
        let mut framing = Framing::default();
        let mut accept = |bytes: &[u8]| {
            found.push(bytes.to_vec());
            true
        };
        let (first, stop) = cut(&stream[..split], &mut framing, &mut accept, || {});
        assert_eq!(stop, Stop::Incomplete);
        let (second, stop) = cut(&stream[first..], &mut framing, &mut accept, || {});
        assert_eq!(stop, Stop::Incomplete);
        assert_eq!(first + second, stream.len());
        assert_eq!(found, packets, "split at {split}");
    }
}

#[test]
fn refusal_keeps_the_packet_and_what_is_known_of_the_peer() {
    let stream = [filled(5, 3), filled(5, 4)].concat();
    let mut framing = Framing::default();
    assert_eq!(cut(&stream, &mut framing, |_| false, || {}), (0, Stop::Refused));
    assert!(!framing.is_proven);
    let mut taken = 0;
    let accept = |_: &[u8]| {
        taken += 1;
        taken == 1
    };
    let (used, stop) = cut(&stream, &mut framing, accept, || {});
    assert_eq!((used, stop), (5, Stop::Refused));
    assert!(framing.is_proven);
}

#[test]
fn garbage_and_oversize_stop_the_stream() {
    assert_eq!(cut_all(&[0, 0]).1, Stop::NotNdn);
    let oversize = [6, 0xFE, 0, 1, 0, 0];
    assert!(matches!(cut_all(&oversize).1, Stop::Bad(DecodeError::TooLong)));
    let not_shortest = [6, 0xFD, 0, 1, 0];
    assert!(matches!(cut_all(&not_shortest).1, Stop::Bad(_)));
}

#[test]
fn every_other_type_ends_a_stream_that_it_begins_and_is_skipped_later() {
    for typ in (1..=300).chain([900, 65_535, 65_536]).filter(|typ| ![5, 6, 100].contains(typ)) {
        for length in [0, 7, 8000] {
            let (other, interest) = (filled(typ, length), filled(5, 3));
            let stream = [&other[..], &interest].concat();
            assert_eq!(cut_all(&stream), (Vec::new(), Stop::NotNdn), "type {typ}");
            // As on a Unix socket.
            assert_eq!(
                cut_from(&mut Framing::of_trusted(), &stream),
                (vec![interest.clone()], Stop::Incomplete),
                "type {typ}"
            );
            for first in [filled(6, 2), filled(100, 0), carrier()] {
                let mut skipped = 0;
                let stream = [&first[..], &other, &interest, &other].concat();
                let stopped = cut(&stream, &mut Framing::default(), |_| true, || skipped += 1);
                assert_eq!(stopped, (stream.len(), Stop::Incomplete), "type {typ}");
                assert_eq!(skipped, 2, "type {typ}");
            }
        }
    }
}

#[test]
fn an_element_of_another_type_is_skipped_as_it_arrives() {
    // Shorter and longer than a packet may be.
    for length in [300, 8_797, 100_000] {
        let stream = [filled(6, 2), filled(200, length), filled(5, 3)].concat();
        for split in (4..stream.len()).step_by(1 + length / 1_000) {
            let (mut framing, mut packets, mut skipped) = (Framing::default(), 0, 0);
            let mut accept = |_: &[u8]| {
                packets += 1;
                true
            };
            let (first, _) = cut(&stream[..split], &mut framing, &mut accept, || skipped += 1);
            // At most a header or a packet is kept.
            assert!(split - first < 9, "split at {split}");
            let (second, stop) = cut(&stream[first..], &mut framing, &mut accept, || skipped += 1);
            assert_eq!(
                (first + second, stop, packets, skipped),
                (stream.len(), Stop::Incomplete, 2, 1),
                "split at {split}"
            );
        }
    }
}

#[test]
fn an_element_that_never_ends_is_skipped_for_ever() {
    for length in [1 << 63, u64::MAX] {
        let mut framing = Framing::of_trusted();
        let header = [&[200, 0xFF][..], &u64::to_be_bytes(length)].concat();
        let mut skipped = 0;
        for bytes in [&header, &filled(5, 3), &vec![0xFF; 100_000]] {
            let cut = cut(bytes, &mut framing, |_| false, || skipped += 1);
            assert_eq!(cut, (bytes.len(), Stop::Incomplete), "{length}");
        }
        assert_eq!(skipped, 1, "{length}");
    }
}

/// Returns the bytes that a browser sends when a page of another site calls `fetch` with this method and body. The page
/// also chooses `target`.
fn browser_request(method: &str, target: &str, body: &[u8]) -> (Vec<u8>, usize) {
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:6363\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\
         sec-ch-ua-platform: \"Linux\"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like \
         Gecko) Chrome/131.0.0.0 Safari/537.36\r\nsec-ch-ua: \"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\"\r\n\
         sec-ch-ua-mobile: ?0\r\nAccept: */*\r\nOrigin: https://page.example\r\nSec-Fetch-Site: cross-site\r\n\
         Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\nReferer: https://page.example/\r\n\
         Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\n\r\n",
        body.len()
    );
    ([head.as_bytes(), body].concat(), head.len())
}

/// Cuts `text` into elements of any type, and returns the end of the first one that ends at or after `end`.
fn elements_end(text: &[u8], end: usize) -> Option<usize> {
    let mut position = 0;
    while position < end {
        position += frame_length(&text[position..]).ok()??;
    }
    Some(position)
}

#[test]
fn a_web_page_that_posts_interests_hands_over_nothing() {
    let interest = filled(5, 60);
    let mut dangerous = 0;
    for length in 1..100 {
        let target = format!("/{}", "a".repeat(length));
        // The page pads the element that contains the end of the header, so that its Interest becomes an element of its
        // own.
        let (probe, head_bytes) = browser_request("POST", &target, &[b'x'; 400]);
        let Some(end) = elements_end(&probe, head_bytes) else { continue };
        let mut body = vec![b'x'; end - head_bytes];
        body.extend(&interest);
        body.resize(400, b'x');
        let (request, _) = browser_request("POST", &target, &body);
        assert_eq!(frame_length(&request[end..]), Ok(Some(interest.len())));
        dangerous += 1;
        assert_eq!(cut_all(&request), (Vec::new(), Stop::NotNdn), "{length}");
    }
    assert!(dangerous > 0, "some requests must look like an Interest if types are ignored");
}

#[test]
fn a_method_that_begins_like_a_link_packet_hands_over_nothing() {
    let interest = filled(5, 60);
    // All characters of methods (RFC 9110, section 5.6.2), as LENGTH and as the first field of the LpPacket.
    let token = (0x21..0x7F_u8).filter(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte));
    for second in token.clone() {
        for third in token.clone() {
            let method = format!("d{}{}", char::from(second), char::from(third));
            for target in
                ["/", "/PPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaP!"]
            {
                let (request, _) = browser_request(&method, target, &interest);
                assert_eq!(cut_all(&request), (Vec::new(), Stop::NotNdn), "{method} {target}");
            }
        }
    }
    // Several PitTokens are not a valid LpPacket.
    let request = format!("dDb /{}b {} HTTP/1.1\r\n", "t".repeat(31), "u".repeat(32));
    assert_eq!(usize::from(request.as_bytes()[1]), 2 * 34, "the LpPacket is complete and its fields are known");
    assert_eq!(cut_all(request.as_bytes()), (Vec::new(), Stop::NotNdn));
    // The closest that a text can come: a PitToken of 32 bytes (a space) and a Fragment.
    let request = format!("dEb /{}P!{}{}", "t".repeat(31), "f".repeat(33), " HTTP/1.1\r\n");
    assert_eq!(
        usize::from(request.as_bytes()[1]),
        2 + 32 + 2 + 33,
        "the LpPacket is complete and its fields are known"
    );
    assert_eq!(cut_all(request.as_bytes()), (Vec::new(), Stop::NotNdn));
}

#[test]
fn greetings_of_other_protocols_hand_over_nothing() {
    let tls_hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3][..], &[0x5A; 500]].concat();
    let greetings: [&[u8]; 12] = [
        b"GET / HTTP/1.1\r\nHost: localhost:6363\r\n\r\n",
        b"OPTIONS /x HTTP/1.1\r\nAccess-Control-Request-Method: dAV\r\n\r\n",
        b"DELETE / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\x04\0\0\0\0\0",
        &tls_hello,
        b"USER anonymous\r\nPASS guest\r\n",
        b"EHLO page.example\r\nMAIL FROM:<a@page.example>\r\n",
        b"SSH-2.0-OpenSSH_9.7\r\n",
        b"\x04\x01\x18\xDB\x7F\0\0\x01\0",
        b"\x00\x01\x00\x00\x21\x12\xA4\x42",
        b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe",
        b"data: hello\r\n",
    ];
    for greeting in greetings {
        for stream in [greeting.to_vec(), [greeting, &filled(5, 20)].concat()] {
            let (handed_over, _) = cut_all(&stream);
            assert!(handed_over.is_empty(), "{}", greeting.escape_ascii());
        }
    }
}

#[test]
fn the_opening_is_an_interest_or_data_or_a_valid_link_packet() {
    let idle = filled(100, 0);
    let later_fragment = packet(100, &[packet(0x51, &[0; 8]), packet(0x52, &[1]), packet(80, b"x")].concat());
    for good in [filled(5, 0), filled(6, 9), carrier(), [idle.clone(), idle.clone(), carrier()].concat()] {
        assert_eq!(cut_all(&good).1, Stop::Incomplete, "{good:x?}");
    }
    assert!(is_worth_a_face(&later_fragment));
    for bad in [packet(100, &[0x61, 0]), packet(100, &packet(80, b"text")), packet(100, &packet(80, b""))] {
        assert_eq!(cut_all(&bad), (Vec::new(), Stop::NotNdn), "{bad:x?}");
        assert!(!is_worth_a_face(&bad));
        let stream = [&bad[..], &filled(5, 3)].concat();
        let expected = (vec![bad.clone(), filled(5, 3)], Stop::Incomplete);
        assert_eq!(cut_from(&mut Framing::of_trusted(), &stream), expected, "{bad:x?}");
        // After a peer has shown that it speaks NDN, a bad packet is only dropped.
        for first in [idle.clone(), carrier(), filled(5, 3)] {
            let stream = [&first[..], &bad].concat();
            assert_eq!(cut_all(&stream), (vec![first, bad.clone()], Stop::Incomplete), "{bad:x?}");
        }
    }
}

#[test]
fn a_datagram_holds_exactly_one_packet() {
    for (datagram, expected) in [
        (filled(5, 3), Ok(())),
        (filled(6, 8796), Ok(())),
        (filled(6, 8797), Err(LinkDrop::FrameTooLong)),
        ([filled(5, 3), vec![0]].concat(), Err(LinkDrop::MalformedFrame)),
        (filled(5, 3)[..4].to_vec(), Err(LinkDrop::MalformedFrame)),
        (Vec::new(), Err(LinkDrop::NotNdnFrame)),
        (filled(7, 3), Err(LinkDrop::NotNdnFrame)),
        (vec![0, 1, 0, 0], Err(LinkDrop::NotNdnFrame)),
    ] {
        assert_eq!(check_message(&datagram), expected, "{datagram:x?}");
    }
}
