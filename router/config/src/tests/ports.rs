//! Sections about ports, and the faces on them.

use super::*;

#[test]
fn ports_and_their_faces_must_fit_together() {
    let text = r#"
        [ports]
        worker_processor = 1
        [[port]]
        uri = "dev://eth1"
        multicast = true
        on_demand = true
        [[port]]
        uri = "memif:///run/x.sock?id=1&role=client"
        [[face]]
        uri = "ether://[02:00:00:00:00:01]"
        local = "dev://eth1"
        mtu = 1400
        [[face]]
        uri = "memif:///run/x.sock?id=0"
        [[route]]
        prefix = "/a"
        nexthop = "ether://[02:00:00:00:00:01]"
        [[route]]
        prefix = "/b"
        nexthop = "memif:///run/x.sock?id=0"
    "#;
    let config = parse(text).expect("valid");
    assert_eq!(config.ports.worker_processor, Auto::Value(1));
    assert_eq!(parse(&config.to_toml()).expect("printed configuration is valid").to_toml(), config.to_toml());
    let ether = "ether://[02:00:00:00:00:01]";
    for (text, location, remedy) in [
        ("[ports]\nworker_processor = \"last\"\n".to_owned(), "test.toml:2:20: ", "\"auto\""),
        ("[ports]\nworker_processor = -1\n".to_owned(), "test.toml:2:20: ", "0 or more"),
        ("[ports]\nmemif_ring_frames = 1000\n".to_owned(), "test.toml:2:1: ", "power of two"),
        ("[ports]\nmemif_buffer_bytes = 100\n".to_owned(), "test.toml:2:1: ", "512"),
        ("[[port]]\nuri = \"udp4://192.0.2.1:6363\"\n".to_owned(), "test.toml:2:7: ", "dev://eth1"),
        (format!("[[face]]\nuri = \"{ether}\"\n"), "test.toml:2:1: ", "local = "),
        (format!("[[face]]\nuri = \"{ether}\"\nlocal = \"{ether}\"\n"), "test.toml:3:9: ", "dev://eth1"),
        ("[[face]]\nuri = \"tcp4://192.0.2.1:6363\"\nlocal = \"dev://eth1\"\n".to_owned(), "test.toml:3:1: ", "remove"),
        (
            "[[face]]\nuri = \"udp4://192.0.2.1:6363\"\nlocal = \"dev://eth1\"\n".to_owned(),
            "test.toml:3:1: ",
            "`addresses`",
        ),
        ("[[face]]\nuri = \"vxlan4://192.0.2.1?vni=1\"\n".to_owned(), "test.toml:2:1: ", "local = "),
        (format!("[[route]]\nprefix = \"/a\"\nnexthop = \"{ether}\"\n"), "test.toml:3:1: ", "[[face]]"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.starts_with(location) && error.contains(remedy), "{text}: {error}");
    }
}

#[test]
fn the_addresses_of_a_port_must_make_sense() {
    let port = "[[port]]\nuri = \"dev://eth1\"\n";
    let text = format!(
        "{port}addresses = [\"192.0.2.1/24\", \"2001:db8::1/64\"]\ngateways = [\"192.0.2.254\", \"2001:db8::ff\"]\n\
         [[face]]\nuri = \"udp4://203.0.113.7:6363\"\nlocal = \"dev://eth1?source_port=name\"\n\
         [[face]]\nuri = \"vxlan6://[2001:db8::7]?vni=42\"\nlocal = \"dev://eth1\"\nmtu = 1400\n"
    );
    let config = parse(&text).expect("valid");
    assert_eq!(parse(&config.to_toml()).expect("printed configuration is valid").to_toml(), config.to_toml());
    let completed: Vec<_> =
        config.face.iter().filter_map(|face| config.complete_local_uri(face)).map(|uri| uri.to_string()).collect();
    assert_eq!(completed, ["dev://eth1?ip=192.0.2.1&port=6363&source_port=name", "dev://eth1?ip=2001:db8::1"]);
    let nine: Vec<_> = (1..10).map(|last| format!("\"192.0.2.{last}/24\"")).collect();
    for (lines, remedy) in [
        ("addresses = [\"192.0.2.1\"]".to_owned(), "192.0.2.1/24"),
        ("addresses = [\"192.0.2.1/24\", \"192.0.2.1/16\"]".to_owned(), "twice"),
        (format!("addresses = [{}]", nine.join(", ")), "at most 8"),
        ("gateways = [\"192.0.2.254\"]".to_owned(), "`addresses`"),
        ("addresses = [\"192.0.2.1/24\"]\ngateways = [\"192.0.2.1\"]".to_owned(), "neighbour"),
        ("addresses = [\"192.0.2.1/24\"]\ngateways = [\"192.0.2.3\", \"192.0.2.4\"]".to_owned(), "one gateway"),
        ("addresses = [\"192.0.2.1/24\"]\ngateways = [\"eth1\"]".to_owned(), "192.0.2.254"),
    ] {
        let error = parse(&format!("{port}{lines}\n")).expect_err(&lines);
        assert!(error.contains(remedy), "{lines}: {error}");
    }
    let capture = "[[port]]\nuri = \"pcap:///a.pcap\"\naddresses = [\"192.0.2.1/24\"]\n";
    assert!(parse(capture).expect_err("capture").contains("only these ports can: dev://INTERFACE, "));
    let far = format!(
        "{port}addresses = [\"192.0.2.1/24\"]\n[[face]]\nuri = \"udp4://203.0.113.7:6363\"\nlocal = \"dev://eth1\"\n"
    );
    assert!(parse(&far).expect_err("a remote peer needs a gateway").contains("`gateways`"));
}

#[test]
fn vlans_on_a_port_have_addresses_of_their_own() {
    for (port, vlan) in [("dev://eth1", "dev://eth1?vlan=7"), ("memif:///x?id=1", "memif:///x?id=1&vlan=7")] {
        let text = format!(
            "[[port]]\nuri = \"{vlan}\"\naddresses = [\"198.51.100.1/24\"]\n\
             gateways = [\"198.51.100.254\"]\non_demand = true\n\
             [[port]]\nuri = \"{port}\"\naddresses = [\"192.0.2.1/24\"]\n\
             [[face]]\nuri = \"udp4://203.0.113.7:6363\"\nlocal = \"{vlan}\"\n\
             [[face]]\nuri = \"udp4://192.0.2.7:6363\"\nlocal = \"{port}\"\n"
        );
        let config = parse(&text).expect("valid");
        assert_eq!(parse(&config.to_toml()).expect("printed configuration is valid").to_toml(), config.to_toml());
        let completed: Vec<_> = config.face.iter().filter_map(|face| config.complete_local_uri(face)).collect();
        assert_eq!(completed[0].to_string(), format!("{vlan}&ip=198.51.100.1&port=6363"));
        assert_eq!(completed[1].network().to_string(), port);
        assert!(
            config.has_ports()
                && completed.iter().all(|local| local.is_on(&namehop_port::drivers::parse_uri(port).expect("URI")))
        );
    }
    let port = |uri: &str, rest: &str| format!("[[port]]\nuri = \"{uri}\"\n{rest}\n");
    let many: String = (1..10)
        .map(|vlan| {
            let addresses: Vec<_> = (1..9).map(|last| format!("\"192.0.{vlan}.{last}/24\"")).collect();
            port(&format!("dev://eth1?vlan={vlan}"), &format!("addresses = [{}]", addresses.join(", ")))
        })
        .collect();
    for (text, problem) in [
        (port("dev://eth1?vlan=7", "queues = 2"), "into the [[port]] dev://eth1"),
        (port("pci://0000:03:00.0?vlan=7", "mtu = 9000"), "not a setting of a VLAN"),
        (port("pci://0000:03:00.0?vlan=7", "kernel_interface = \"eth1n\""), "not a setting of a VLAN"),
        (port("dev://eth1?vlan=7&ip=192.0.2.1", ""), "more than a port"),
        (port("dev://eth1?vlan=7", "").repeat(2), "twice"),
        (many, "at most 64"),
        (
            port("dev://eth1", "addresses = [\"192.0.2.1/24\"]")
                + "[[face]]\nuri = \"udp4://192.0.2.7:6363\"\nlocal = \"dev://eth1?vlan=7\"\n",
            "dev://eth1?vlan=7 has no address",
        ),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn ports_have_an_mtu_and_a_share_for_the_kernel_where_those_are_theirs_to_choose() {
    let card = "[[port]]\nuri = \"pci://0000:03:00.0\"\n";
    let config = parse(&format!("{card}mtu = 9000\nkernel_interface = \"eth1n\"\n")).expect("valid");
    assert_eq!(parse(&config.to_toml()).expect("printed configuration is valid").to_toml(), config.to_toml());
    assert!(config.may_use_pci() && !parse("").expect("valid").may_use_pci());
    assert!(parse("[ports]\ninterfaces = [\"0000:03:00.0\"]\n").expect("valid").may_use_pci());
    parse("[[port]]\nuri = \"tap://ndn0\"\nmtu = 1280\n").expect("valid");
    for (text, remedy) in [
        (format!("{card}mtu = 9195\n"), "from 1280 to 9194"),
        ("[[port]]\nuri = \"dev://eth1\"\nmtu = 9000\n".to_owned(), "remove `mtu`"),
        ("[[port]]\nuri = \"tap://ndn0\"\nkernel_interface = \"x\"\n".to_owned(), "remove `kernel_interface`"),
        (format!("{card}kernel_interface = \"a/b\"\n"), "\"eth1n\""),
        ("[[port]]\nuri = \"pci://0000:03:00.0?ip=192.0.2.1\"\n".to_owned(), "more than a port"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(remedy), "{text}: {error}");
    }
}

#[test]
fn ports_can_have_several_queues_where_there_are_several() {
    let port = |uri: &str, queues: &str| parse(&format!("[[port]]\nuri = \"{uri}\"\nqueues = {queues}\n"));
    for (uri, queues, expected) in [
        ("dev://eth1", "4", Auto::Value(4)),
        ("pci://0000:03:00.0", "\"auto\"", Auto::Auto),
        ("tap://ndn0", "1", Auto::Value(1)),
        ("xdp://eth1", "2", Auto::Value(2)),
    ] {
        assert_eq!(port(uri, queues).expect(uri).port[0].queues, expected);
    }
    for (uri, queues, problem) in [
        ("dev://eth1", "0", "from 1 to 64"),
        ("dev://eth1", "65", "from 1 to 64"),
        ("dev://eth1", "\"many\"", "\"auto\""),
        ("tap://ndn0", "2", "one queue"),
        ("memif:///run/a.sock?id=0", "2", "one queue"),
    ] {
        let error = port(uri, queues).expect_err(uri).to_string();
        assert!(error.contains(problem), "{uri} {queues}: {error}");
    }
}
