//! Tests of face URIs: tables of accepted and rejected texts, and round trips of arbitrary values.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::address::VlanId;

const EXPECTED: &str = "a name, as in link://a?vlan=7&ip=192.0.2.1&port=6363";
/// Ports with options behind a question mark.
static LINK: PortScheme = PortScheme {
    name: "link",
    parse: |parser, text| {
        let (device, options) = parser.device_and_options(text, EXPECTED)?;
        Ok((parser.interface(device, EXPECTED)?, options))
    },
    separator: Some('?'),
    can_be_bare: false,
};
/// Ports with a parameter of the device, which can carry bare packets.
static PIPE: PortScheme = PortScheme {
    name: "pipe",
    parse: |parser, text| {
        let (device, options) = text.split_once('&').map_or((text, None), |(device, options)| (device, Some(options)));
        let options = options.map(|options| parser.options(options, EXPECTED)).transpose()?;
        Ok((parser.path(device, EXPECTED)?, options.unwrap_or_default()))
    },
    separator: Some('&'),
    can_be_bare: true,
};
/// Ports without options.
static FILE: PortScheme = PortScheme {
    name: "file",
    parse: |parser, text| Ok((parser.path(text, EXPECTED)?, PortOptions::default())),
    separator: None,
    can_be_bare: false,
};

static TUNNEL: TunnelScheme = TunnelScheme {
    names: ["tunnel4", "tunnel6"],
    network: "vni",
    max_network: 0xFF_FFFF,
    has_inner_address: true,
    expected: "an address and a network, as in tunnel4://192.0.2.7?vni=42",
};

fn parse(text: &str) -> Result<FaceUri, FaceUriError> {
    FaceUri::parse(text, &UriSchemes { ports: &[&LINK, &PIPE, &FILE], tunnels: &[&TUNNEL] })
}

fn uri(text: &str) -> FaceUri {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// (text, its normal spelling, canonical)
const ACCEPTED: &[(&str, &str, bool)] = &[
    ("udp4://192.0.2.1:6363", "udp4://192.0.2.1:6363", true),
    ("udp4://192.0.2.1:6363/", "udp4://192.0.2.1:6363", true),
    ("udp4://192.0.2.1", "udp4://192.0.2.1", false),
    ("udp4://Router.Example.NET:1", "udp4://router.example.net:1", false),
    ("UDP6://[2001:DB8::1]:6363", "udp6://[2001:db8::1]:6363", true),
    ("udp6://[fe80::1%eth0]:6363", "udp6://[fe80::1%eth0]:6363", true),
    ("udp6://[::ffff:192.0.2.1]:6363", "udp6://[::ffff:192.0.2.1]:6363", false),
    ("udp://192.0.2.1:6363", "udp://192.0.2.1:6363", false),
    ("tcp4://127.0.0.1:6363", "tcp4://127.0.0.1:6363", true),
    ("tcp6://[::1]:6363", "tcp6://[::1]:6363", true),
    ("tcp://localhost", "tcp://localhost", false),
    ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock", true),
    ("unix:///tmp/a b%20:c?d", "unix:///tmp/a b%20:c?d", true),
    ("fd://17", "fd://17", true),
    ("ether://[08:00:27:01:DD:01]", "ether://[08:00:27:01:dd:01]", true),
    ("ether://[08-00-27-01-dd-01]", "ether://[08:00:27:01:dd:01]", true),
    ("udp6://[fe80::1%0000:03:00.0]:6363", "udp6://[fe80::1%0000:03:00.0]:6363", true),
    ("LINK://eth0.7", "link://eth0.7", true),
    ("link://a?b?ip=192.0.2.1&port=6363", "link://a?b?ip=192.0.2.1&port=6363", true),
    ("pipe:///x?id=1&vlan=7", "pipe:///x?id=1&vlan=7", true),
    ("file:///a?vlan=7", "file:///a?vlan=7", true),
    ("udp4+dev://eth0:56363", "udp4+dev://eth0:56363", true),
    ("udp6+dev://wlan0:7001", "udp6+dev://wlan0:7001", true),
    ("ws://[::1]:9696", "ws://[::1]:9696", true),
    ("ws://example.net", "ws://example.net", false),
    ("wss://example.net:443/ws/", "wss://example.net:443/ws/", true),
    ("wsclient://192.0.2.1:40000", "wsclient://192.0.2.1:40000", true),
    ("internal://", "internal://", true),
    ("null://", "null://", true),
    ("contentstore://", "contentstore://", true),
];

/// (text, what the message must contain)
const REFUSED: &[(&str, &str)] = &[
    ("", "no scheme"),
    ("udp4", "no scheme"),
    ("192.0.2.1:6363", "no scheme"),
    ("sctp://192.0.2.1:6363", "`sctp` is not a known scheme"),
    ("udp4://", "the host is missing"),
    ("udp4://:6363", "the host is missing"),
    ("udp4://192.0.2.1:0", "port 0"),
    ("udp4://192.0.2.1:", "`` is not a valid port"),
    ("udp4://192.0.2.1:65536", "`65536` is not a valid port"),
    ("udp4://192.0.2.1:+80", "`+80` is not a valid port"),
    ("udp4://192.0.2.1:080", "`080` is not a valid port"),
    ("udp4://192.0.2.256:80", "not an IPv4 address"),
    ("udp4://[2001:db8::1]:6363", "the scheme says IPv4"),
    ("udp6://192.0.2.1:6363", "the scheme says IPv6"),
    ("udp6://2001:db8::1:6363", "needs brackets"),
    ("udp6://[2001:db8::1:6363", "not closed"),
    ("udp6://[2001:db8::1]6363", "`6363` follows"),
    ("udp6://[2001:db8::g]:6363", "not an IPv6 address"),
    ("udp6://[2001:db8::1%eth0]:6363", "only a link-local"),
    ("udp6://[fe80::1%]:6363", "not a network interface"),
    ("tcp://exa mple:80", "not a host"),
    ("tcp4://192.0.2.1:80/path", "`80/path` is not a valid port"),
    ("unix://run/nfd.sock", "not absolute"),
    ("unix://", "not absolute"),
    ("unix:///a\nb", "control character"),
    ("fd://", "not a valid file descriptor"),
    ("fd://-1", "not a valid file descriptor"),
    ("fd://4294967296", "not a valid file descriptor"),
    ("ether://08:00:27:01:dd:01", "not in brackets"),
    ("ether://[08:00:27:01:dd]", "not a hardware address"),
    ("ether://[08:00:27:01:dd:+1]", "not a hardware address"),
    ("ether://[08:00:27:01:dd:01:02]", "more than six"),
    ("link://", "not a network interface"),
    ("link://name-that-is-far-too-long", "not a network interface"),
    ("link://a/b", "not a network interface"),
    ("link://eth0?vlan=0", "not a VLAN"),
    ("pipe:///x?id=1&", "`` is not an option of a port"),
    ("pipe:///x?id=1&vlan=7&role=client", "not an option of a port"),
    ("file://x", "not absolute"),
    ("udp4+dev://eth0", "port is missing"),
    ("ws://host/a b", "the path contains"),
    ("wsclient://example.net:80", "not a numeric address"),
    ("internal://x", "`x` follows"),
];

#[test]
fn accepted_texts_have_one_normal_spelling() {
    for (text, normal, canonical) in ACCEPTED {
        let uri = uri(text);
        assert_eq!(uri.to_string(), *normal);
        assert_eq!(uri.is_canonical(), *canonical, "{text}");
        assert_eq!(parse(normal).as_ref(), Ok(&uri));
    }
}

#[test]
fn refusals_say_what_is_wrong_and_what_is_expected() {
    for (text, reason) in REFUSED {
        let error = parse(text).expect_err(text);
        let message = error.to_string();
        assert!(message.contains(reason), "{text:?}: {message}");
        assert!(message.contains("; expected "), "{message}");
    }
    let long = format!("unix:///{}", "x".repeat(2000));
    let message = long.parse::<FaceUri>().expect_err("too long").to_string();
    assert!(message.contains("too long") && message.len() < 300);
}

#[test]
fn unknown_schemes_are_errors_that_list_the_known_ones() {
    let message = parse("sctp://192.0.2.1:6363").expect_err("unknown").to_string();
    assert!(
        message.contains("one of udp4, ") && message.ends_with(", link, pipe, file, tunnel4, tunnel6, followed by ://"),
        "{message}"
    );
    let message = "link://eth0".parse::<FaceUri>().expect_err("a port").to_string();
    assert!(message.contains("`link` is not a known scheme") && !message.contains("pipe"), "{message}");
}

#[test]
fn canonizing_fills_in_family_and_port() {
    let table = [
        ("udp://192.0.2.1", "udp4://192.0.2.1:6363"),
        ("udp://224.0.23.170", "udp4://224.0.23.170:56363"),
        ("udp6://[ff02::1234]", "udp6://[ff02::1234]:56363"),
        ("tcp://[::1]", "tcp6://[::1]:6363"),
        ("udp6://[::ffff:192.0.2.1]:1", "udp4://192.0.2.1:1"),
        ("ws://127.0.0.1", "ws://127.0.0.1:9696"),
        ("wss://example.net", "wss://example.net:443"),
    ];
    for (text, canonical) in table {
        let uri = uri(text);
        let result = uri.canonize().expect(text);
        assert_eq!(result.to_string(), canonical);
        assert!(result.is_canonical());
    }
    let local: FaceUri = "tcp4://localhost:99".parse().expect("local");
    assert_eq!(local.canonize().expect("resolves").to_string(), "tcp4://127.0.0.1:99");
}

#[test]
fn socket_addresses_become_uris_and_come_back() {
    let mapped: SocketAddr = "[::ffff:192.0.2.9]:6363".parse().expect("address");
    assert_eq!(FaceUri::udp(mapped).to_string(), "udp4://192.0.2.9:6363");
    let zoned = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), 6363, 0, 1));
    let uri = FaceUri::tcp(zoned);
    assert_eq!(uri.socket_address(), Some(zoned), "{uri}");
    let number: FaceUri = "udp6://[fe80::1%123456]:6".parse().expect("uri");
    let Some(SocketAddr::V6(back)) = number.socket_address() else {
        panic!("an IPv6 address");
    };
    assert_eq!(back.scope_id(), 123_456);
    let name: FaceUri = "udp4://example.net:6".parse().expect("uri");
    assert_eq!(name.socket_address(), None);
}

#[test]
fn multicast_groups_are_recognised() {
    for (text, multicast) in [
        ("udp4://224.0.23.170:56363", true),
        ("udp6://[ff02::1234%lo]:56363", true),
        ("ether://[01:00:5e:00:17:aa]", true),
        ("udp4://192.0.2.1:6363", false),
        ("ether://[02:00:00:00:00:01]", false),
    ] {
        let uri: FaceUri = text.parse().expect(text);
        assert_eq!(uri.is_multicast(), multicast, "{text}");
    }
}

fn device() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9.@_-]{0,14}"
}

fn host() -> impl Strategy<Value = Host> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|bytes| Host::V4(Ipv4Addr::from(bytes))),
        any::<[u8; 16]>().prop_map(|bytes| Host::V6 { address: Ipv6Addr::from(bytes), zone: None }),
        (any::<u64>(), device()).prop_map(|(low, zone)| Host::V6 {
            address: Ipv6Addr::from((0xfe80_u128 << 112) | u128::from(low)),
            zone: Some(zone)
        }),
        "[a-z][a-z0-9-]{0,20}(\\.[a-z0-9]{1,8}){0,3}".prop_map(Host::Name),
    ]
}

fn host_port() -> impl Strategy<Value = HostPort> {
    (host(), proptest::option::of(1_u16..)).prop_map(|(host, port)| HostPort { host, port })
}

fn family_for(host: &Host, choice: Option<bool>) -> Option<IpFamily> {
    let chosen = choice.map(|v6| if v6 { IpFamily::V6 } else { IpFamily::V4 });
    match host {
        Host::V4(_) => chosen.map(|_| IpFamily::V4),
        Host::V6 { .. } => chosen.map(|_| IpFamily::V6),
        Host::Name(_) => chosen,
    }
}

fn one_address() -> impl Strategy<Value = IpAddr> {
    let v4 = (1_u32..0xE000_0000).prop_map(|bits| Ipv4Addr::from_bits(bits).into());
    let v6 = (1_u128 << 64..0xFF << 120).prop_map(|bits| Ipv6Addr::from_bits(bits).into());
    prop_oneof![v4, v6]
}

fn one_hardware_address() -> impl Strategy<Value = [u8; 6]> {
    any::<[u8; 5]>().prop_map(|[a, b, c, d, e]| [2, a, b, c, d, e])
}

fn port_options() -> impl Strategy<Value = PortOptions> {
    let next_hop = prop::option::of(one_hardware_address());
    let vlan = prop::option::of((1_u16..=4094).prop_map(|identifier| VlanId::new(identifier).expect("a VLAN")));
    (vlan, prop::option::of(one_address()), prop::option::of(1_u16..), any::<bool>(), next_hop).prop_map(
        |(vlan, address, port, source_port_by_name, next_hop)| PortOptions {
            vlan,
            address,
            port,
            source_port_by_name,
            next_hop,
        },
    )
}

fn port_uri() -> impl Strategy<Value = FaceUri> {
    let path = || "/[a-z0-9?=/.]{1,60}";
    let with_options = prop_oneof![
        device().prop_map(|name| format!("link://{name}")),
        path().prop_map(|path| format!("pipe://{path}"))
    ];
    prop_oneof![
        (with_options, port_options()).prop_map(|(text, options)| uri(&text).with_options(options)),
        path().prop_map(|path| uri(&format!("file://{path}"))),
    ]
}

fn face_uri() -> impl Strategy<Value = FaceUri> {
    prop_oneof![
        (host_port(), any::<Option<bool>>())
            .prop_map(|(at, choice)| FaceUri::Udp { family: family_for(&at.host, choice), at }),
        (host_port(), any::<Option<bool>>())
            .prop_map(|(at, choice)| FaceUri::Tcp { family: family_for(&at.host, choice), at }),
        "/[^\\p{C}]{1,60}".prop_map(FaceUri::Unix),
        any::<u32>().prop_map(FaceUri::FileDescriptor),
        any::<[u8; 6]>().prop_map(FaceUri::Ethernet),
        port_uri(),
        (one_address(), 0_u32..1 << 24, prop::option::of(one_hardware_address())).prop_map(|(address, vni, inner)| {
            FaceUri::Tunnel(TunnelUri { scheme: &TUNNEL, address, network: vni, inner })
        }),
        (device(), any::<bool>(), 1_u16..).prop_map(|(device, v6, port)| FaceUri::UdpDevice {
            family: if v6 { IpFamily::V6 } else { IpFamily::V4 },
            device,
            port
        }),
        (host_port(), any::<bool>(), "([a-z/?=]{0,20})")
            .prop_map(|(at, secure, path)| { FaceUri::WebSocket { secure, at, path } }),
        host_port().prop_filter("numeric", |at| !matches!(at.host, Host::Name(_))).prop_map(FaceUri::WebSocketClient),
        Just(FaceUri::Internal),
        Just(FaceUri::Null),
        Just(FaceUri::ContentStore),
    ]
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(uri in face_uri()) {
        let text = uri.to_string();
        prop_assert_eq!(parse(&text), Ok(uri.clone()));
        prop_assert!(text.starts_with(uri.scheme()));
    }

    #[test]
    fn arbitrary_text_never_panics_and_what_parses_prints_stably(
        text in "(udp|tcp|udp6|tcp4|ws|wss|unix|ether|link|udp4\\+dev|pipe|file|fd|null|tunnel4|tunnel6)?(://)?\
                 [\\[\\]%a-f0-9:./?&=idnpvmort-]{0,40}"
    ) {
        if let Ok(uri) = parse(&text) {
            let normal = uri.to_string();
            prop_assert_eq!(parse(&normal), Ok(uri));
        }
    }
}

#[test]
fn a_vlan_is_named_behind_its_interface() {
    let vlan = uri("link://eth0?vlan=7");
    assert_eq!(vlan, uri("link://eth0").with_options(PortOptions::of_vlan(VlanId::new(7))));
    assert_eq!(vlan.port().to_string(), "link://eth0");
    assert!(vlan.is_on(&vlan.port()) && !vlan.is_on(&uri("link://eth1")));
    for refused in ["0", "4095", "65543", "07", "", "-1", "7&x=1"] {
        let error = parse(&format!("link://eth0?vlan={refused}")).expect_err(refused);
        assert!(error.to_string().contains("link://a?vlan=7"), "{error}");
    }
    assert!(parse("link://?vlan=7").is_err());
    let file = uri("file:///a");
    assert!(file.options().is_none() && file.with_options(PortOptions::of_vlan(VlanId::new(7))) == file);
}

#[test]
fn the_local_end_of_a_udp_face_on_a_port_has_options_in_one_order() {
    for (port, separator) in [("link://eth0", '?'), ("pipe:///x?id=1", '&')] {
        let all = format!("{port}{separator}vlan=7&ip=2001:db8::1&port=6363&source_port=name&mac=08:00:27:01:dd:01");
        let uri = uri(&all);
        assert_eq!(uri.to_string(), all);
        assert_eq!(uri.port().to_string(), port);
        assert_eq!(uri.network().to_string(), format!("{port}{separator}vlan=7"));
        assert!(uri.is_on(&uri.port()) && uri.is_canonical());
    }
    assert!(!uri("pipe:///x?id=1&vlan=7").is_on(&uri("pipe:///x?id=2")));
    for refused in [
        "ip=192.0.2",
        "ip=224.0.0.1",
        "ip=::ffff:192.0.2.1",
        "ip=0.0.0.0",
        "port=0",
        "port=70000",
        "source_port=random",
        "mac=01:00:5e:00:17:aa",
        "mac=08:00",
        "port=1&ip=192.0.2.1",
        "port=1&port=2",
        "ip=192.0.2.1&vlan=7",
        "ip=192.0.2.1&",
    ] {
        let error = parse(&format!("link://eth0?{refused}")).expect_err(refused);
        assert!(error.to_string().contains("link://a?vlan=7&ip=192.0.2.1&port=6363"), "{error}");
    }
}

#[test]
fn the_other_end_of_a_tunnel_has_an_address_and_a_network() {
    for text in ["tunnel4://192.0.2.7?vni=0", "tunnel6://[2001:db8::7]?vni=16777215&inner=08:00:27:01:dd:01"] {
        let uri = uri(text);
        assert!(uri.is_canonical() && uri.is_on_port(None) && uri.to_string() == text);
    }
    for refused in [
        "tunnel4://192.0.2.7",
        "tunnel4://192.0.2.7?vni=16777216",
        "tunnel4://[::1]?vni=1",
        "tunnel6://192.0.2.7?vni=1",
        "tunnel6://2001:db8::7?vni=1",
        "tunnel4://host?vni=1",
        "tunnel4://192.0.2.7?vni=1&inner=01:00:5e:00:17:aa",
        "tunnel4://192.0.2.7:4789?vni=1",
        "tunnel4://224.0.0.1?vni=1",
    ] {
        let error = parse(refused).expect_err(refused);
        assert!(error.to_string().contains("tunnel4://192.0.2.7?vni=42"), "{error}");
    }
}

#[test]
fn a_udp_face_is_on_a_port_when_its_local_end_is() {
    let udp = uri("udp4://192.0.2.7:6363");
    assert!(udp.is_on_port(Some(&uri("link://eth0"))));
    assert!(!udp.is_on_port(None) && !udp.is_on_port(Some(&udp)));
    assert!(!udp.is_on_port(Some(&uri("udp4+dev://eth0:56363"))));
}

#[test]
fn only_some_ports_carry_bare_packets() {
    for (text, is_bare) in [("link://eth0", false), ("pipe:///x", true), ("file:///x", false)] {
        assert_eq!(uri(text).is_on_port(None), is_bare, "{text}");
    }
}
