//! Parsers of text: URIs, strategy names, route files, and the configuration files of router and clients.

use std::fs;
use std::path::{Path, PathBuf};

use namehop_client::client_conf::{Candidate, ClientConfError, Environment, Origin};
use namehop_client::target::TransportUri;
use namehop_config::Config;
use namehop_engine::strategy::{StrategyError, StrategyInstance};
use namehop_manage::route_file::{RouteLine, parse_route_file};
use namehop_port::drivers::parse_uri;
use namehop_wire::{Name, NameRef};

use crate::files::Folder;

/// Checks a face URI: its printed form parses to the same URI.
pub fn face_uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = parse_uri(text) else { return };
    let printed = uri.to_string();
    let again = parse_uri(&printed).unwrap_or_else(|error| panic!("own form {printed} does not parse: {error}"));
    assert_eq!(again, uri, "{printed}");
}

/// Checks a name in URI form: its printed form parses to the same name.
pub fn name_uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(name) = text.parse::<Name>() else { return };
    let printed = name.as_ref().to_string();
    let again: Name = printed.parse().unwrap_or_else(|error| panic!("own form {printed} does not parse: {error}"));
    assert_eq!(again, name);
}

/// Checks a configuration: it is valid and its printed form parses to the same, or the error names the file.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = Path::new("fuzz.toml");
    match Config::parse(text, file) {
        Ok(config) => {
            let printed = config.to_toml();
            let again = Config::parse(&printed, file).unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(again.to_toml(), printed);
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml"), "{error}"),
    }
}

/// Checks a strategy name, given as text behind its fixed prefix or as a whole name: the full name gives the same
/// strategy.
pub fn strategy_name(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).ok();
    let named = text.and_then(|text| format!("/localhost/nfd/strategy/{text}").parse::<Name>().ok());
    let Some(name) = named.or_else(|| NameRef::from_value(bytes).ok().map(|name| name.to_owned())) else { return };
    match StrategyInstance::parse(name.as_ref()) {
        Ok(strategy) => {
            let again = StrategyInstance::parse(strategy.name().as_ref()).expect("its full name");
            assert_eq!(again, strategy);
        }
        Err(StrategyError::BadParameters(reason)) => assert!(!reason.is_empty()),
        Err(StrategyError::NotFound) => {}
    }
}

/// Checks a transport URI of a client: its printed form parses to the same URI.
pub fn transport_uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = text.parse::<TransportUri>() else { return };
    let printed = uri.to_string();
    let again: TransportUri =
        printed.parse().unwrap_or_else(|error| panic!("own form {printed} does not parse: {error}"));
    assert_eq!(again, uri, "{printed}");
}

/// Checks a route file: its routes, printed one per line, parse to the same routes, or the error names an existing
/// line.
pub fn route_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let routes = match parse_route_file(text) {
        Ok(routes) => routes,
        Err(error) => {
            assert!((1..=text.lines().count()).contains(&error.line), "{error}");
            assert!(error.to_string().starts_with(&format!("line {}: ", error.line)));
            return;
        }
    };
    assert!(routes.is_sorted_by(|earlier, later| earlier.line < later.line));
    let printed: String = routes
        .iter()
        .map(|route| {
            let cost = route.cost.map(|cost| format!(" {cost}")).unwrap_or_default();
            format!("{} {}{cost}\n", route.prefix, route.next_hop)
        })
        .collect();
    let again = parse_route_file(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    let without_line = |route: &RouteLine| (route.prefix.clone(), route.next_hop.clone(), route.cost);
    assert!(again.iter().map(without_line).eq(routes.iter().map(without_line)), "{printed}");
}

/// Checks a `client.conf`: it gives one transport, by itself or by default, or the error names the file.
pub fn client_conf(bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.path("client.conf");
    fs::write(&path, bytes).expect("written");
    let default = PathBuf::from("/default.sock");
    let surroundings = Environment {
        config_files: vec![path.clone()],
        default_sockets: vec![default.clone()],
        ..Environment::default()
    };
    let file = Origin::File(path.clone());
    match surroundings.candidates(None) {
        Ok(candidates) => {
            let [Candidate { uri, origin }] = &candidates[..] else { panic!("{candidates:?}") };
            assert!(*origin == file || (*origin == Origin::Default && uri.unix_path() == Some(&default)));
        }
        Err(error) => {
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            match error {
                ClientConfError::BadUri { origin, .. } => assert_eq!(origin, file),
                ClientConfError::Unreadable { .. } => assert!(std::str::from_utf8(bytes).is_err()),
            }
        }
    }
}
