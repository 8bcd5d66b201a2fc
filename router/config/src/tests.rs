//! Tests that the default file, the defaults in code and the error messages agree.

mod ports;

use super::*;
use crate::settings::Settings;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("test.toml")).map_err(|error| error.to_string())
}

#[test]
fn the_files_are_those_of_the_declarations() {
    let settings = Config::describe();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, text) in [
        ("src/default.toml", reference::default_file(&settings)),
        ("../../docs/settings.md", reference::page(&settings)),
    ] {
        let path = folder.join(file);
        if std::env::var_os("NAMEHOP_WRITE_SETTINGS").is_some() {
            std::fs::write(&path, &text).expect("the file can be written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "{file} is out of date: run `make settings`");
    }
}

#[test]
fn the_default_file_has_the_defaults() {
    let documented = parse(&reference::default_file(&Config::describe())).expect("default.toml is valid");
    assert_eq!(documented.to_toml(), Config::default().to_toml());
}

/// Removes the comment signs of sections and keys that are only examples.
fn with_examples(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.to_owned());
    let example = |index: usize| {
        let shown = lines[index].strip_prefix("#   ")?;
        let is_key = key(shown).is_some_and(|key| !key.contains([' ', '"']));
        let has_default = lines.get(index + 1).is_some_and(|next| key(next) == key(shown));
        (shown.starts_with('[') || is_key && !has_default).then_some(shown)
    };
    (0..lines.len()).map(|index| format!("{}\n", example(index).unwrap_or(lines[index]))).collect()
}

#[test]
fn the_examples_of_the_default_file_are_valid() {
    let text = with_examples(DEFAULT_TOML);
    let config: Config = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!((config.port.len(), config.face.len(), config.route.len(), config.strategy.len()), (1, 1, 1, 1));
    assert!(config.content_store.disk.is_some() && config.fib.file.is_some());
    assert!(config.range_fault("").is_none());
}

#[test]
fn numbers_out_of_their_range_are_refused_where_they_stand() {
    for (text, message) in [
        ("[forwarding]\nworkers = 65\n", "2:1: `workers` is 65; it must be from 1 to 64"),
        ("[faces.udp]\nmtu = 63\n", "2:1: `mtu` is 63; it must be from 64 to 8800"),
        ("[memory]\nlimit = \"1 KiB\"\n", "2:1: `limit` is 1 KiB; it must be from 1 MiB to 1024 TiB"),
        ("[[port]]\nuri = \"xdp://eth1\"\n[[port]]\nuri = \"xdp://eth2\"\nqueues = 0\n", "5:1: `queues` is 0;"),
        (
            "[content_store.disk]\npath = \"/x\"\ncapacity_bytes = 1\n",
            "3:1: `capacity_bytes` is 1; it must be from 16 MiB",
        ),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(&format!("test.toml:{message}")), "{text:?}: {error}");
    }
}

#[test]
fn what_is_shown_reads_back() {
    let text = r#"
        [forwarding]
        lookahead = 12
        [[face]]
        uri = "udp4://192.0.2.1:6363"
        mtu = 1400
        [[route]]
        prefix = "/a/b"
        nexthop = "tcp4://192.0.2.2:6363"
        [[loaded_strategy]]
        name = "mine"
        file = "mine.o"
        [[strategy]]
        prefix = "/a"
        strategy = "asf"
        [[strategy]]
        prefix = "/b"
        strategy = "mine/v=1/patience~30"
        [[management.authorizations]]
        certificate = "any"
        modules = ["rib"]
        [management.localhop]
        anchors = ["a.ndncert", { certificate = "b.ndncert", prefixes = ["/b", "/c"] }]
    "#;
    let config = parse(text).expect("valid");
    assert_eq!(config.forwarding.lookahead, Auto::Value(12));
    assert_eq!(parse(&config.to_toml()).expect("printed configuration is valid").to_toml(), config.to_toml());
}

#[test]
fn errors_name_file_line_and_remedy() {
    for (text, location, remedy) in [
        ("\n[forwarding]\npit_size = 5\n", "test.toml:3:1:", "pit_capacity"),
        ("[forwarding]\npit_capacity = 1\n", "test.toml:2:1:", "64 to"),
        ("[forwarding]\nlookahead = 0\n", "test.toml:2:1:", "1 to 64"),
        ("[forwarding]\nlookahead = 65\n", "test.toml:2:1:", "1 to 64"),
        ("[forwarding]\nlookahead = \"all\"\n", "test.toml:2:13:", "\"auto\""),
        ("[content_store]\ncapacity_bytes = \"lots\"\n", "test.toml:2:18:", "512 MiB"),
        ("[content_store]\npolicy = \"mru\"\n", "test.toml:2:10:", "lru"),
        ("[content_store]\nunsolicited = \"admit\"\n", "test.toml:2:15:", "admit-local"),
        ("[memory]\nhuge_pages = \"4KiB\"\n", "test.toml:2:14:", "transparent"),
        ("[[face]]\nuri = \"tcp4://192.0.2.1:6363\"\npersistency = \"on-demand\"\n", "test.toml:3:15:", "permanent"),
        ("[faces.tcp]\nlisten = [\"localhost\"]\n", "test.toml:2:", "address"),
        ("[[route]]\nprefix = \"/a\"\nnexthop = \"udp:192.0.2.1\"\n", "test.toml:3:11:", "udp"),
        ("[[strategy]]\nprefix = \"/a\"\nstrategy = \"fastest\"\n", "test.toml:3:1:", "[[loaded_strategy]]"),
        ("[[loaded_strategy]]\nname = \"asf\"\nfile = \"x.o\"\n", "test.toml:2:1:", "another strategy"),
        ("[faces.unix]\nmode = \"rw\"\n", "test.toml:2:1:", "0660"),
        ("[log]\nlevel = \"namehop=loud\"\n", "test.toml:2:1:", "info"),
        (
            "[[management.authorizations]]\ncertificate = \"any\"\nmodules = [\"face\"]\n",
            "test.toml:3:12:",
            "strategy-choice",
        ),
        ("[management.localhop]\nanchors = [7]\n", "test.toml:2:12:", "{ certificate = \"FILE\", prefixes"),
        ("[management.localhop]\nanchors = [{ certificate = \"a\", prefix = \"/b\" }]\n", "test.toml:2:", "prefixes"),
        ("[faces.websocket]\nlocal = \"yes\"\n", "test.toml:2:9:", "true, false or \"auto\""),
        ("[log\n", "test.toml:1:", ""),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(location), "{text:?}: {error}");
        assert!(error.contains(remedy), "{text:?}: {error}");
    }
}

#[test]
fn unsolicited_peers_on_ports_have_slots_of_their_own() {
    let port = |name: &str| format!("[[port]]\nuri = \"dev://{name}\"\non_demand = true\n");
    let (one, two) = (port("eth1"), port("eth1?vlan=7") + &port("eth2"));
    for (ports, max_faces, on_port, on_ports) in [
        ("", 16_384, 0, 0),
        (&*one, 16_384, 4096, 4096),
        (&*one, 65_280, 4096, 4096),
        (&*two, 16_384, 2048, 4096),
        (&*(one.clone() + &two), 16_384, 2048, 4096),
        (&*one, 100, 25, 25),
        (&*two, 4, 0, 0),
    ] {
        let config = parse(&format!("[faces]\nmax_faces = {max_faces}\n{ports}")).expect("a configuration");
        let limits = (config.max_unsolicited_on_port(max_faces), config.max_unsolicited_on_ports(max_faces));
        assert_eq!(limits, (on_port, on_ports), "{ports} {max_faces}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error =
        Config::load(Path::new("/nonexistent/namehop.toml")).expect_err("a missing file is an error").to_string();
    assert!(error.starts_with("/nonexistent/namehop.toml: cannot read"), "{error}");
}

/// Loads a file from `folder` with the checks against this host; the error is without the folder's path.
fn load(folder: &Path, text: &str) -> Result<Config, String> {
    let file = folder.join("test.toml");
    std::fs::write(&file, text).expect("written");
    let prefix = format!("{}/", folder.display());
    Config::load(&file).map_err(|error| error.to_string().replacen(&prefix, "", 1))
}

#[test]
fn peers_that_no_face_can_be_made_to_are_refused() {
    for (uri, reason) in [
        ("udp://192.0.2.1:6363", "not canonical"),
        ("udp4://192.0.2.1", "the port"),
        ("dev://eth1", "udp4, udp6, tcp4, tcp6, ws, ether, memif, vxlan4, vxlan6"),
        ("unix:///tmp/x", "udp4, udp6, tcp4, tcp6, ws, ether, memif, vxlan4, vxlan6"),
        ("wss://example.net:443", "use ws"),
        ("udp4://224.0.23.170:56363", "[faces.multicast]"),
        ("udp6://[ff02::1234]:56363", "[faces.multicast]"),
        ("tcp4://224.0.23.170:6363", "which only UDP supports"),
    ] {
        for (table, location) in [
            (format!("\n[[face]]\nuri = \"{uri}\"\n"), "test.toml:3:7: "),
            (format!("[[route]]\nprefix = \"/a\"\nnexthop = \"{uri}\"\n"), "test.toml:3:11: "),
        ] {
            let error = parse(&table).expect_err(uri);
            assert!(error.starts_with(location) && error.contains(reason) && error.contains(uri), "{error}");
        }
    }
    for uri in [
        "udp6://[2001:db8::1]:6363",
        "tcp4://192.0.2.1:6363",
        "ws://192.0.2.1:9696/ndn",
        "udp://router.example",
        "tcp6://router.example:6363",
        "ws://router.example:9696/ndn",
    ] {
        parse(&format!("[[face]]\nuri = \"{uri}\"\n")).expect(uri);
    }
}

#[test]
fn the_mtu_of_a_face_is_checked_where_it_stands() {
    let first = "[[face]]\nuri = \"udp4://192.0.2.1:6363\"\nmtu = 64\n[[face]]\n";
    for (second, reason) in [
        ("uri = \"udp4://192.0.2.2:6363\"\nmtu = 5\n", "`mtu` is 5; it must be from 64 to 8800"),
        ("uri = \"udp4://192.0.2.2:6363\"\nmtu = 8801\n", "from 64 to 8800"),
        ("uri = \"tcp4://192.0.2.2:6363\"\nmtu = 1400\n", "tcp4 faces carry whole packets"),
    ] {
        let error = parse(&format!("{first}{second}")).expect_err(second);
        assert!(error.starts_with("test.toml:6:1: ") && error.contains(reason), "{error}");
    }
}

#[test]
fn addresses_are_refused_with_the_value_and_an_example() {
    for (text, location) in [
        ("[faces.tcp]\nlisten = [\"127.0.0.1:1\", \"foo:1\"]\n", "test.toml:2:26: "),
        ("[faces.udp]\nlisten = [\"foo:1\"]\n", "test.toml:2:11: "),
        ("[metrics]\nlisten = \"foo:1\"\n", "test.toml:2:10: "),
        ("[faces.websocket]\nlisten = [\n  \"foo:1\"\n]\n", "test.toml:3:3: "),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(location), "{error}");
        assert!(error.contains("`foo:1` is not an address with port") && error.contains("127.0.0.1:6363"), "{error}");
    }
}

#[test]
fn log_levels_and_modules_must_exist() {
    for (level, reason) in [("blah", "off, error, warn"), ("info,nfd=debug", "namehop_face"), ("", "log level")] {
        let error = parse(&format!("[log]\nlevel = \"{level}\"\n")).expect_err(level);
        assert!(error.starts_with("test.toml:2:1: ") && error.contains(reason), "{error}");
    }
}

#[test]
fn types_are_named_in_words() {
    for (text, meaning) in [
        ("[forwarding]\npoll_us = \"many\"\n", "expected a whole number, 0 or more"),
        ("[forwarding]\npit_capacity = \"many\"\n", "write one, or \"auto\""),
        ("[content_store]\ncapacity_bytes = \"many\"\n", "\"2 GiB\", or \"auto\""),
        ("[forwarding]\ndefault_hop_limit = 256\n", "expected a whole number from 0 to 255"),
        ("[[route]]\nprefix = \"/a\"\n", "missing field `nexthop`; `namehop config show`"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(meaning), "{error}");
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_position() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("test.toml");
    std::fs::write(&file, b"[log]\n# caf\xe9\nlevel = \"info\"\n").expect("written");
    let error = Config::load(&file).expect_err("Latin-1").to_string();
    assert!(error.ends_with("test.toml:2:6: this is not UTF-8 text; save the file as UTF-8"), "{error}");
}

#[test]
fn files_that_cannot_be_read_say_what_to_do() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let text = environment::unreadable(Path::new("/etc/namehop.toml"), &denied);
    assert!(text.contains("needs read permission") && text.contains("chmod"), "{text}");
    let folder = tempfile::tempdir().expect("folder");
    let error = Config::load(folder.path()).expect_err("a folder").to_string();
    assert!(error.contains("name a file, not a folder"), "{error}");
    let error = Config::read(&folder.path().join("absent")).expect_err("a missing file is an error").to_string();
    assert!(error.contains("namehop config show"), "{error}");
}

#[test]
fn a_socket_path_that_the_system_cannot_hold_is_refused() {
    let error = parse(&format!("[faces.unix]\npath = \"/{}\"\n", "x".repeat(107))).expect_err("108 bytes");
    assert!(error.starts_with("test.toml:2:1: `path` is 108 bytes long; "), "{error}");
    parse(&format!("[faces.unix]\npath = \"/{}\"\n", "x".repeat(106))).expect("107 bytes");
}

#[test]
fn settings_of_routing_must_fit_each_other() {
    let pair = "[routing.gateway]\nkey = \"k\"\ncertificate = \"c\"\n";
    for (text, location, reason) in [
        ("[routing.daemon]\norigins = [\"client\", \"clients\"]\n".to_owned(), "test.toml:2:22: ", "autoreg, client"),
        ("[routing.daemon]\norigins = [\"65\", \"nlsr\"]\n".to_owned(), "test.toml:2:18: ", "daemon itself"),
        ("[routing.gateway]\nkey = \"k\"\n".to_owned(), "test.toml:2:1: ", "needs `certificate`"),
        ("[routing.gateway]\ncertificate = \"c\"\n".to_owned(), "test.toml:2:1: ", "needs `key`"),
        (format!("{pair}refresh_s = 0\n"), "test.toml:4:1: ", "from 1 to 86400"),
        (format!("{pair}[management.localhop]\nanchors = [\"a\"]\n"), "test.toml:2:1: ", "cannot be both"),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.starts_with(location) && error.contains(reason), "{error}");
    }
    let shown = parse("[routing.daemon]\norigins = [\"255\", \"77\"]\n").expect("valid").to_toml();
    assert!(shown.contains("\"static\"") && shown.contains("\"77\""), "{shown}");
    parse(pair).expect("valid");
}

#[test]
fn key_and_certificate_for_a_gateway_must_be_there_and_belong_together() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    write_key_and_certificate(Path::new(&path("a.key")), Path::new(&path("a.ndncert")));
    write_key_and_certificate(Path::new(&path("b.key")), Path::new(&path("b.ndncert")));
    let text = |key: &str, certificate: &str| {
        format!("[routing.gateway]\nkey = \"{}\"\ncertificate = \"{}\"\n", path(key), path(certificate))
    };
    load(folder.path(), &text("a.key", "a.ndncert")).expect("all files are usable");
    for (key, certificate, location, reason) in [
        ("absent", "a.ndncert", "test.toml:2:1: `key` in section [routing.gateway]: ", "correct the path"),
        ("a.ndncert", "a.ndncert", "test.toml:2:1: `key` in section [routing.gateway]: ", "namehop key generate"),
        ("a.key", "absent", "test.toml:3:1: `certificate` in section [routing.gateway]: ", "correct the path"),
        ("a.key", "b.ndncert", "test.toml:3:1: `certificate` in section [routing.gateway]: ", "another key"),
    ] {
        let error = load(folder.path(), &text(key, certificate)).expect_err(certificate);
        assert!(error.starts_with(location) && error.contains(reason), "{error}");
    }
}

/// Writes a certificate file like `namehop key generate`.
fn write_certificate(path: &Path) {
    write_key_and_certificate(&path.with_extension("key"), path);
}

/// Writes both files of `namehop key generate`.
fn write_key_and_certificate(key_path: &Path, path: &Path) {
    use namehop_wire::ValidityPeriod;
    use namehop_wire::certificate::{save_certificate, self_signed_certificate};
    use namehop_wire::security::{KeySigner, KeyType, PrivateKey, save_private_key};
    let key = PrivateKey::generate(KeyType::Ed25519).expect("generated");
    save_private_key(key_path, &key).expect("written");
    let signer = KeySigner::new(key, "/operator/KEY/1".parse().expect("name"));
    let period = ValidityPeriod { not_before_s: 0, not_after_s: 4_000_000_000 };
    save_certificate(path, &self_signed_certificate(&signer, 1, period).expect("signed")).expect("written");
}

#[test]
fn certificates_must_be_there() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (good, bad, absent) = (path("good.ndncert"), path("bad.ndncert"), path("absent"));
    write_certificate(Path::new(&good));
    std::fs::write(&bad, "not a certificate").expect("written");
    let rule = |file: &str| format!("[[management.authorizations]]\ncertificate = \"{file}\"\nmodules = [\"rib\"]\n");
    let everything = format!(
        "{}{}[management.localhop]\nanchors = [\"{good}\"]\ncertificates = \"{}\"\n",
        rule("any"),
        rule(&good),
        folder.path().display()
    );
    load(folder.path(), &everything).expect("all files are usable");
    for (text, location, reason) in [
        (
            rule("any") + &rule(&absent),
            "test.toml:5:1: `certificate` in section [[management.authorizations]]: ",
            "No such file",
        ),
        (rule(&bad), "test.toml:2:1: `certificate` in ", "namehop key generate"),
        (
            format!("[management.localhop]\nanchors = [\"{good}\",\n\"{bad}\"]\n"),
            "test.toml:3:1: `anchors` in section [management.localhop]: ",
            "base64",
        ),
        (
            "[management.localhop]\nanchors = [\"absent\"]\n".to_owned(),
            "test.toml:2:12: `anchors` in section [management.localhop]: ",
            "relative to the working folder",
        ),
        (
            format!("[management.prefix_announcements]\ncertificates = \"{good}\"\n"),
            "test.toml:2:1: `certificates` in section [management.prefix_announcements]: ",
            "name a folder, not a file",
        ),
    ] {
        parse(&text).expect("valid without its files");
        let error = load(folder.path(), &text).expect_err(&text);
        assert!(error.starts_with(location) && error.contains(reason), "{error}");
    }
}

#[test]
fn the_server_that_power_is_estimated_with_must_be_there() {
    let folder = tempfile::tempdir().expect("folder");
    load(folder.path(), "[power]\nserver = \"e3-1220\"\n").expect("published");
    let text = "[power]\nserver = \"e3-1221\"\n";
    assert_eq!(parse(text).expect("valid without its files").power.server.as_deref(), Some("e3-1221"));
    let error = load(folder.path(), text).expect_err("neither published nor a file");
    assert!(error.starts_with("test.toml:2:1: ") && error.contains("`server` in section [power]: "), "{error}");
    assert!(error.contains("namehop power server"), "{error}");
}

#[test]
fn multicast_interfaces_have_names_that_interfaces_can_have() {
    let folder = tempfile::tempdir().expect("folder");
    for (interfaces, fault) in [
        ("[\"lo\"]", None),
        ("[\"all\"]", None),
        ("[\"lo\", \"late0\"]", None),
        (
            "[\"lo\", \"no/pe\"]",
            Some(("test.toml:2:21: `interfaces` in section [faces.multicast]: ", "this host has ", "lo")),
        ),
        ("[\"lo\", \"longer-than-fifteen\"]", Some(("test.toml:2:21: ", "cannot be the name", "longer"))),
        ("[\"all\", \"lo\"]", Some(("test.toml:2:15: ", "stands alone", "all"))),
    ] {
        match (load(folder.path(), &format!("[faces.multicast]\ninterfaces = {interfaces}\n")), fault) {
            (Ok(_), None) => {}
            (Err(error), Some((location, reason, name))) => {
                assert!(error.starts_with(location) && error.contains(reason) && error.contains(name), "{error}");
            }
            (result, _) => panic!("{interfaces}: {result:?}"),
        }
    }
}

#[test]
fn folders_of_socket_and_state_must_be_usable_and_are_not_made() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("file"), "").expect("written");
    let new =
        format!("[faces.unix]\npath = \"{}\"\n[state]\nfile = \"{}\"\n", at("new/a.sock"), at("new/b/state.json"));
    load(folder.path(), &new).expect("can be made");
    assert!(!Path::new(&at("new")).exists());
    for (text, location, reason) in [
        (format!("[faces.unix]\npath = \"{}\"\n", at("file/a.sock")), "[faces.unix]", "is not a folder"),
        (format!("[faces.unix]\npath = \"{}\"\n", at("file")), "[faces.unix]", "is not a socket"),
        (format!("[state]\nfile = \"{}\"\n", folder.path().display()), "[state]", "name a file"),
        (format!("[api]\ntoken_file = \"{}\"\n", at("file")), "[api]", "must hold one line"),
        (format!("[api]\ntoken_file = \"{}\"\n", at("missing")), "[api]", "correct the path"),
    ] {
        let error = load(folder.path(), &text).expect_err(&text);
        assert!(error.starts_with("test.toml:2:1: ") && error.contains(location) && error.contains(reason), "{error}");
    }
    load(folder.path(), &format!("[state]\nenabled = false\nfile = \"{}\"\n", at("file/x"))).expect("not used");
    load(folder.path(), &format!("[api]\nenabled = false\ntoken_file = \"{}\"\n", at("missing"))).expect("not used");
}
