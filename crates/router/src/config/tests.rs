//! The default file, the defaults in code and the error messages agree with each other.

use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("test.toml")).map_err(|error| error.to_string())
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let documented = parse(DEFAULT_TOML).expect("default.toml is valid");
    assert_eq!(documented.to_toml(), Config::default().to_toml());
}

#[test]
fn every_key_is_documented() {
    let written: toml::Table = Config::default().to_toml().parse().expect("own output is TOML");
    let documented: toml::Table = DEFAULT_TOML.parse().expect("default.toml is TOML");
    for (section, keys) in &written {
        let Some(keys) = keys.as_table() else { continue };
        for key in keys.keys() {
            assert!(documented[section].get(key).is_some(), "[{section}] {key} is not in default.toml");
        }
    }
}

#[test]
fn what_is_shown_reads_back() {
    let text = r#"
        [[face]]
        uri = "udp4://192.0.2.1:6363"
        mtu = 1400
        [[route]]
        prefix = "/a/b"
        nexthop = "tcp4://192.0.2.2:6363"
        [[strategy]]
        prefix = "/a"
        strategy = "asf"
        [[management.authorizations]]
        certificate = "any"
        modules = ["rib"]
    "#;
    let config = parse(text).expect("valid");
    assert_eq!(parse(&config.to_toml()).expect("own output is valid").to_toml(), config.to_toml());
}

#[test]
fn errors_name_file_line_and_remedy() {
    for (text, place, remedy) in [
        ("\n[forwarding]\npit_size = 5\n", "test.toml:3:1:", "pit_capacity"),
        ("[forwarding]\npit_capacity = 1\n", "test.toml:2:1:", "64 to"),
        ("[content_store]\ncapacity_bytes = \"lots\"\n", "test.toml:2:18:", "512 MiB"),
        ("[content_store]\npolicy = \"mru\"\n", "test.toml:2:1:", "lru"),
        ("[faces.tcp]\nlisten = [\"localhost\"]\n", "test.toml:2:", "address"),
        ("[[route]]\nprefix = \"/a\"\nnexthop = \"udp:192.0.2.1\"\n", "test.toml:3:11:", "udp"),
        ("[[strategy]]\nprefix = \"/a\"\nstrategy = \"fastest\"\n", "test.toml:3:12:", "strategy"),
        ("[faces.unix]\nmode = \"rw\"\n", "test.toml:2:1:", "0660"),
        ("[log]\nlevel = \"namehop=loud\"\n", "test.toml:2:1:", "info"),
        (
            "[[management.authorizations]]\ncertificate = \"any\"\nmodules = [\"face\"]\n",
            "test.toml:3:1:",
            "strategy-choice",
        ),
        ("[log\n", "test.toml:1:", ""),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(place), "{text:?}: {error}");
        assert!(error.contains(remedy), "{text:?}: {error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::load(Path::new("/nonexistent/namehop.toml")).expect_err("no such file").to_string();
    assert!(error.starts_with("/nonexistent/namehop.toml: cannot read"), "{error}");
}

#[test]
fn the_documentation_shows_the_same_defaults() {
    let documentation = include_str!("../../../../docs/configuration.md");
    assert!(documentation.contains(DEFAULT_TOML), "docs/configuration.md does not hold default.toml");
}
