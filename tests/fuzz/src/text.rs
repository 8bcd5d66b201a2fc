//! Parsers of text: URIs and the configuration file.

use std::path::Path;

use namehop_face::uri::FaceUri;
use namehop_router::config::Config;
use namehop_wire::Name;

/// A face URI: its printed form reads back as the same.
pub fn face_uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = text.parse::<FaceUri>() else { return };
    let printed = uri.to_string();
    let again: FaceUri = printed.parse().unwrap_or_else(|error| panic!("own form {printed} does not parse: {error}"));
    assert_eq!(again, uri, "{printed}");
}

/// A name in URI form: its printed form reads back as the same.
pub fn name_uri(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(name) = text.parse::<Name>() else { return };
    let printed = name.as_ref().to_string();
    let again: Name = printed.parse().unwrap_or_else(|error| panic!("own form {printed} does not parse: {error}"));
    assert_eq!(again, name);
}

/// A configuration: valid, or an error that names the file; what is valid reads back from its printed form.
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
