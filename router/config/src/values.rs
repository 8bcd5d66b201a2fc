//! Value types of the configuration file: the values that a key accepts, and the error message for others.
//!
//! Each type deserializes from the TOML value directly, so that an error points at the line with the wrong value.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use namehop_client::nfd::Code;
use namehop_client::nfd::numbers::origin;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use namehop_engine::strategy::{StrategyError, StrategyInstance, registry};
use namehop_face::FacePersistency;
use namehop_face::uri::{FaceUri, Host, is_interface_name};
use namehop_port::drivers::{self, parse_uri};
use namehop_port::encapsulation::tunnel::TUNNELS;
use namehop_port::faces::PortAddress;
use namehop_wire::Name;

/// A number of bytes, written as a whole number or as text with a unit: `"512 MiB"`, `"64 KiB"`, `"2 GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` is not a size in bytes; write for example 1048576, \"64 KiB\", \"512 MiB\" or \"2 GiB\"")
        };
        let trimmed = text.trim();
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| trimmed.strip_suffix(unit).map(|digits| (digits, *factor)))
            .unwrap_or((trimmed, 1));
        let count: u64 = digits.trim().replace('_', "").parse().map_err(|_| wrong())?;
        count.checked_mul(factor).map(ByteSize).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The binary units only, so that the output parses to the same number.
        match UNITS[..4].iter().find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{} {unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;
        impl Visitor<'_> for SizeVisitor {
            type Value = ByteSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size in bytes, such as 1048576 or \"512 MiB\"")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<ByteSize, E> {
                u64::try_from(value).map(ByteSize).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(value))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(SizeVisitor)
    }
}

/// Deserializes a string with `parse`. An error points at the value, even in a list; deserializing a `String` first
/// would lose this.
fn deserialize_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct TextVisitor<F>(F);
    impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for TextVisitor<F> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.0)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(TextVisitor(parse))
}

/// Serialization as text for fields of types of other crates, with `#[serde(with = "as_text")]`.
pub(crate) mod as_text {
    use super::*;

    pub fn serialize<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        deserialize_text(deserializer, |text| text.parse().map_err(|error: T::Err| error.to_string()))
    }
}

/// Serialization of the persistency of a configured face, with `#[serde(with = "persistency")]`.
pub(crate) mod persistency {
    use super::*;

    pub fn serialize<S: Serializer>(value: &FacePersistency, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FacePersistency, D::Error> {
        // On-demand faces are created by received packets only.
        deserialize_text(deserializer, |text| match text {
            "persistent" => Ok(FacePersistency::Persistent),
            "permanent" => Ok(FacePersistency::Permanent),
            _ => Err(format!(
                "`{text}` is not a persistency of a configured face; write \"permanent\" or \"persistent\""
            )),
        })
    }
}

/// Declares a wrapper of a type that is written as text, with its own error message.
macro_rules! text_value {
    ($(#[$doc:meta])* $name:ident($inner:ty), $parse:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(pub $inner);

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                let parse: fn(&str) -> Result<$inner, String> = $parse;
                parse(text).map($name)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_text(deserializer, str::parse)
            }
        }
    };
}

text_value!(
    /// A name in URI form, such as `/example/video`.
    NameText(Name),
    |text| Name::from_str(text)
        .map_err(|error| format!("`{text}` is not a name: {error}; write for example \"/example/video\""))
);
text_value!(
    /// The URI of a peer to which the router can create a face, such as `udp4://192.0.2.1:6363`.
    UriText(FaceUri),
    parse_peer
);
text_value!(
    /// The URI of a port, such as `dev://eth1` or `memif:///run/x.sock?id=0`.
    PortText(FaceUri),
    |text| match parse_uri(text) {
        Ok(uri @ FaceUri::Port(_)) => Ok(uri),
        Ok(_) => Err(format!("`{text}` is not a port; write for example \"dev://eth1\": {}", drivers::usage())),
        Err(error) => Err(error.to_string()),
    }
);
text_value!(
    /// The name of a network interface, such as `eth1n`.
    InterfaceText(String),
    |text| match is_interface_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` cannot be the name of a network interface; write for example \"eth1n\"")),
    }
);
text_value!(
    /// An IP address of a port with its prefix length, such as `192.0.2.1/24`.
    PortAddressText(PortAddress),
    str::parse
);
text_value!(
    /// An IP address, such as `192.0.2.254`.
    IpText(IpAddr),
    |text| text.parse().map_err(|_| format!("`{text}` is not an IP address; write for example \"192.0.2.254\""))
);
text_value!(
    /// An address with port to listen on, such as `127.0.0.1:6363`.
    AddressText(SocketAddr),
    |text| text.parse().map_err(|_| {
        format!("`{text}` is not an address with port; write for example \"127.0.0.1:6363\" or \"[::]:6363\"")
    })
);
text_value!(
    /// The full name of a strategy, built in or loaded; written as a short name (`best-route`) or a full name with
    /// parameters.
    StrategyText(Name),
    parse_strategy
);

text_value!(
    /// The origin of a route, by name or number.
    OriginText(u64),
    |text| origin::from_name(text).ok_or_else(|| {
        format!(
            "`{text}` is not a route origin; write app, autoreg, client, autoconf, nlsr, prefixann, static, or a \
             number in quotes"
        )
    })
);

/// Deserializes an address with port.
pub(crate) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    AddressText::deserialize(deserializer).map(|address| address.0)
}

/// Deserializes a list of addresses with port.
pub(crate) fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    let list = Vec::<AddressText>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|address| address.0).collect())
}

/// Accepts peers to which the router can create a face, so that errors appear at start and not at run time.
fn parse_peer(text: &str) -> Result<FaceUri, String> {
    let refuse = |problem: &str| {
        Err(format!(
            "`{text}` {problem}; write for example \"udp4://192.0.2.1:6363\", \"tcp6://[2001:db8::1]:6363\" or \
             \"ws://192.0.2.1:9696\""
        ))
    };
    let uri = match parse_uri(text) {
        Ok(uri) => uri,
        Err(error) => return Err(error.to_string()),
    };
    match &uri {
        FaceUri::Udp { .. } if uri.is_multicast() => {
            return Err(format!(
                "`{text}` is a multicast group; to create multicast faces, set `interfaces` in section \
                 [faces.multicast]"
            ));
        }
        FaceUri::WebSocket { secure: true, .. } => {
            return refuse("needs TLS, which faces to peers do not support; use ws");
        }
        FaceUri::Udp { .. } | FaceUri::Tcp { .. } | FaceUri::WebSocket { .. } => {}
        uri if uri.is_on_port(None) => return Ok(uri.clone()),
        _ => {
            let bare = drivers::DRIVERS.iter().filter(|driver| driver.scheme.can_be_bare);
            let schemes =
                bare.map(|driver| driver.scheme.name).chain(TUNNELS.iter().flat_map(|tunnel| tunnel.scheme.names));
            let schemes: Vec<&str> = schemes.collect();
            return refuse(&format!(
                "is not a peer: the schemes of peers are udp4, udp6, tcp4, tcp6, ws, ether, {}",
                schemes.join(", ")
            ));
        }
    }
    if uri.has_host_name() {
        return Ok(uri);
    }
    if !uri.is_canonical() {
        return refuse(
            "is not canonical: with a numeric address it needs the address family (udp4, not udp) and the port",
        );
    }
    let is_multicast = uri.host_port().is_some_and(|at| match &at.host {
        Host::V4(address) => address.is_multicast(),
        Host::V6 { address, .. } => address.is_multicast(),
        Host::Name(_) => false,
    });
    if is_multicast { refuse("is a multicast group, which only UDP supports") } else { Ok(uri) }
}

/// Returns the full name of a strategy. Accepts short names, such as `asf` for `/localhost/nfd/strategy/asf`, and full
/// names.
fn parse_strategy(text: &str) -> Result<Name, String> {
    let name = registry::full_name(text).map_err(|error| format!("`{text}` is not a strategy name: {error}"))?;
    match StrategyInstance::parse(name.as_ref()) {
        Ok(built_in) => Ok(built_in.name().clone()),
        // It may name a loaded strategy.
        Err(StrategyError::NotFound) => Ok(name),
        Err(error) => Err(format!("strategy `{text}`: {error}")),
    }
}

impl Serialize for NameText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.as_ref())
    }
}

/// Implements `Serialize` with the `Display` form of the inner value.
macro_rules! printed {
    ($($name:ident)*) => {
        $(impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        })*
    };
}

printed!(UriText PortText InterfaceText PortAddressText IpText);

impl Serialize for OriginText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&origin::name(self.0))
    }
}

impl Serialize for StrategyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back_as_printed() {
        for (text, bytes) in [
            ("1", 1),
            ("64 KiB", 65536),
            ("512MiB", 512 << 20),
            ("2 GB", 2_000_000_000),
            ("4 TiB", 4 << 40),
            ("1_000", 1000),
        ] {
            let size: ByteSize = text.parse().expect(text);
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse::<ByteSize>().expect("printed"), size);
        }
        for text in ["", "many", "-1", "1 PiB", "99999999999 GiB"] {
            assert!(text.parse::<ByteSize>().unwrap_err().contains("512 MiB"), "{text}");
        }
    }
}
