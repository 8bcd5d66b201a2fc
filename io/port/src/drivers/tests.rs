//! Tests of the list of drivers and of the URIs of their ports.

use namehop_face::address::VlanId;
use namehop_face::uri::PortOptions;
use namehop_packet::BufferPool;
use proptest::prelude::*;

use super::*;

/// (text, its normal spelling)
const ACCEPTED: &[(&str, &str)] = &[
    ("dev://eth0.7", "dev://eth0.7"),
    ("dev://eth0?vlan=7", "dev://eth0?vlan=7"),
    ("PCI://0000:03:00.0", "pci://0000:03:00.0"),
    ("pci://0000:af:1f.7?vlan=7", "pci://0000:af:1f.7?vlan=7"),
    ("pci://0000:03:00.0?ip=192.0.2.1&port=6363", "pci://0000:03:00.0?ip=192.0.2.1&port=6363"),
    ("xdp://eth0?vlan=7", "xdp://eth0?vlan=7"),
    ("tap://ndn0?vlan=7", "tap://ndn0?vlan=7"),
    ("pcap:///a/in.pcap", "pcap:///a/in.pcap"),
    ("pcap://?out=/out.pcap&mac=08-00-27-01-DD-01", "pcap://?out=/out.pcap&mac=08:00:27:01:dd:01"),
    ("pcap:///in.pcap?out=/out.pcap", "pcap:///in.pcap?out=/out.pcap"),
    ("pcap:///in.pcap?mac=08:00:27:01:dd:01", "pcap:///in.pcap?mac=08:00:27:01:dd:01"),
    ("memif:///run/ndn/fw.sock?id=3", "memif:///run/ndn/fw.sock?id=3"),
    ("memif:///run/ndn/fw.sock?id=3&role=server", "memif:///run/ndn/fw.sock?id=3"),
    ("memif:///run/ndn/fw.sock?id=3&role=client", "memif:///run/ndn/fw.sock?id=3&role=client"),
    ("memif:///x?id=1&role=client&vlan=7&ip=2001:db8::1", "memif:///x?id=1&role=client&vlan=7&ip=2001:db8::1"),
    ("memif:///x?id=1?id=2&vlan=7", "memif:///x?id=1?id=2&vlan=7"),
    // The zone of a link-local address is the port.
    ("udp6://[fe80::1%0000:03:00.0]:6363", "udp6://[fe80::1%0000:03:00.0]:6363"),
];

/// (text, what the message must contain)
const REFUSED: &[(&str, &str)] = &[
    ("dev://", "not a network interface"),
    ("dev://name-that-is-far-too-long", "not a network interface"),
    ("dev://a/b", "not a network interface"),
    ("pci://", "not a PCI address"),
    ("pci://03:00.0", "not a PCI address"),
    ("pci://0000:03:00.8", "not a PCI address"),
    ("pci://0000:AF:00.0", "not a PCI address"),
    ("pci://0000:03:00.0?vlan=0", "not a VLAN"),
    ("tap://", "not a network interface"),
    ("pcap://", "neither a capture to read"),
    ("pcap://in.pcap", "not absolute"),
    ("pcap:///in?out=out", "not absolute"),
    ("pcap:///in?mac=01:00:00:00:00:01", "not a unicast hardware address"),
    ("pcap:///in?mac=08:00:27:01:dd:01&out=/out", "not a hardware address"),
    ("pcap:///in?rate=1", "not an option"),
    ("memif:///run/x.sock", "`?id=` is missing"),
    ("memif://x?id=1", "not absolute"),
    ("memif:///x?id=z", "not a valid interface id"),
    ("memif:///x?id=1&role=master", "`master` is not a role"),
    ("memif:///x?id=1&", "`` is not an option of a port"),
    ("memif:///x?id=1&vlan=7&role=client", "not an option of a port"),
];

#[test]
fn accepted_texts_have_one_normal_spelling() {
    for (text, normal) in ACCEPTED {
        let uri = parse_uri(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(uri.to_string(), *normal);
        assert!(uri.is_canonical(), "{text}");
        assert_eq!(parse_uri(normal), Ok(uri));
    }
}

#[test]
fn the_other_end_of_a_vxlan_has_an_address_and_a_network() {
    for text in ["vxlan4://192.0.2.7?vni=0", "vxlan6://[2001:db8::7]?vni=16777215&inner=08:00:27:01:dd:01"] {
        let uri = parse_uri(text).expect(text);
        assert!(uri.is_canonical() && uri.is_on_port(None) && uri.to_string() == text);
    }
    for (refused, reason) in [
        ("vxlan4://192.0.2.7", "the network `?vni=` is missing"),
        ("vxlan4://192.0.2.7?vni=16777216", "`16777216` is not a VNI"),
        ("vxlan6://192.0.2.7?vni=1", "not a unicast address of this family"),
    ] {
        let message = parse_uri(refused).expect_err(refused).to_string();
        assert!(message.contains(reason) && message.contains("vxlan4://192.0.2.7?vni=42"), "{message}");
    }
}

#[test]
fn refusals_say_what_is_wrong_and_what_is_expected() {
    for (text, reason) in REFUSED {
        let message = parse_uri(text).expect_err(text).to_string();
        assert!(message.contains(reason), "{text:?}: {message}");
        let scheme = text.split("://").next().unwrap_or_default();
        let expected = message.split("; expected ").nth(1).expect("the accepted form");
        assert!(expected.contains(&format!("{scheme}://")), "{message}");
    }
}

#[test]
fn unknown_schemes_are_errors_that_list_those_of_all_drivers() {
    let message = parse_uri("sctp://192.0.2.1:6363").expect_err("unknown").to_string();
    assert!(message.contains("`sctp` is not a known scheme"), "{message}");
    for driver in DRIVERS {
        assert!(message.contains(&format!(", {}", driver.scheme.name)), "{message}");
    }
}

#[test]
fn each_driver_has_a_scheme_of_its_own_that_its_form_shows() {
    for driver in DRIVERS {
        let name = driver.scheme.name;
        assert_eq!(DRIVERS.iter().filter(|other| other.scheme == driver.scheme).count(), 1, "{name}");
        assert!(driver.form.starts_with(&format!("{name}://")) && usage().contains(driver.form), "{name}");
        // No driver takes the scheme of another kind of face.
        assert!(format!("{name}://[::1]:6363").parse::<FaceUri>().is_err_and(|error| error.problem.contains(name)));
    }
    for (text, _) in ACCEPTED {
        let uri = parse_uri(text).expect("accepted");
        let scheme = text.split("://").next().unwrap_or_default().to_ascii_lowercase();
        assert_eq!(Driver::of(&uri).is_some_and(|driver| driver.scheme.name == scheme), uri.as_port().is_some());
    }
}

#[test]
fn other_uris_are_errors_that_list_the_drivers() {
    let mut opener = Opener::new(&BufferPool::new(8, 8), RingSizes::default());
    let wishes = Wishes { header_bytes: 18, mtu_bytes: None, queues: 1 };
    let uri: FaceUri = "udp4://192.0.2.1:6363".parse().expect("a face URI");
    let error = opener.open(&uri, &wishes).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("is not a port") && error.contains("tap://INTERFACE for a new"), "{error}");
}

#[test]
fn the_documentation_has_a_row_for_each_driver() {
    let documentation = include_str!("../../../../docs/operation.md");
    for driver in DRIVERS {
        assert!(documentation.contains(&format!("\n| `{}` | ", driver.form)), "{} in docs/operation.md", driver.form);
    }
}

#[test]
fn messages_list_the_forms_of_some_drivers() {
    assert_eq!(forms(|driver| driver.scheme.can_be_bare), "memif:///SOCKET?id=NUMBER");
    assert_eq!(forms(|driver| driver.traits.uses_interface), "dev://INTERFACE or xdp://INTERFACE");
    assert_eq!(forms(|_| false), "");
}

#[test]
fn a_port_gives_access_to_a_device_a_socket_or_files() {
    let access = |text: &str| Driver::access_to(&parse_uri(text).expect("URI"));
    assert_eq!(access("dev://eth0?vlan=7"), Some(Access::Device("eth0".to_owned())));
    assert_eq!(access("pci://0000:03:00.0"), Some(Access::Device("0000:03:00.0".to_owned())));
    assert_eq!(access("memif:///run/x.sock?id=1&role=client&vlan=7"), Some(Access::Socket("/run/x.sock".into())));
    assert_eq!(access("pcap:///in.pcap"), Some(Access::Files));
    assert_eq!(access("udp4://192.0.2.1:6363"), None);
}

fn port_text() -> impl Strategy<Value = String> {
    let vlan = prop::option::of((1_u16..=4094).prop_map(VlanId::new));
    let interface =
        ("(dev|xdp|tap)", "[a-z][a-z0-9.@_?-]{0,14}").prop_map(|(scheme, name)| format!("{scheme}://{name}"));
    let card = (any::<u16>(), any::<u8>(), 0_u8..32, 0_u8..8)
        .prop_map(|(domain, bus, device, function)| format!("pci://{domain:04x}:{bus:02x}:{device:02x}.{function}"));
    let memif = ("/[^\\p{C}]{1,60}", any::<u32>(), "(&role=client)?")
        .prop_map(|(socket, id, role)| format!("memif://{socket}?id={id}{role}"));
    let pcap = "pcap:///[a-z./]{1,20}(\\?out=/[a-z./]{1,20}(&mac=02:00:00:00:00:0[0-9])?)?";
    (prop_oneof![interface, card, memif, pcap.prop_map(|text| text)], vlan).prop_map(|(text, vlan)| {
        let uri = parse_uri(&text).unwrap_or_else(|error| panic!("{error}"));
        uri.with_options(PortOptions::of_vlan(vlan.flatten())).to_string()
    })
}

proptest! {
    #[test]
    fn printing_and_parsing_are_inverse(text in port_text()) {
        let uri = parse_uri(&text).unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(uri.to_string(), text);
        prop_assert!(uri.is_on(&uri.port()) && Driver::access_to(&uri).is_some());
    }

    #[test]
    fn arbitrary_text_never_panics_and_what_parses_prints_stably(
        text in "(dev|xdp|pci|tap|memif|pcap)://[\\[\\]%a-f0-9:./?&=idnpvmortlcu-]{0,40}"
    ) {
        if let Ok(uri) = parse_uri(&text) {
            let normal = uri.to_string();
            prop_assert_eq!(parse_uri(&normal), Ok(uri));
        }
    }
}
