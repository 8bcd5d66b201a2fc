//! Transport URIs: the addresses accepted by `--transport`, `NDN_CLIENT_TRANSPORT` and `client.conf`.
//!
//! This module only parses and prints; it opens no sockets and resolves no host names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Default port of UDP and TCP faces (NFD face management).
pub const DEFAULT_PORT: u16 = 6363;
/// Default port of WebSocket faces (NFD face management).
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;

/// Address family required by a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Either family; the host name's first address is preferred.
    Any,
    /// IPv4 only (`tcp4`, `udp4`).
    V4,
    /// IPv6 only (`tcp6`, `udp6`).
    V6,
}

impl Family {
    fn suffix(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::V4 => "4",
            Self::V6 => "6",
        }
    }
}

/// Host and port of an IP transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Host name or numeric address, without the brackets of an IPv6 literal.
    pub host: String,
    /// Port; the scheme's default if the URI has none.
    pub port: u16,
    /// Address family that the scheme requires.
    pub family: Family,
}

impl HostPort {
    fn parse(text: &str, family: Family, default_port: u16) -> Result<Self, String> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or("missing ] after an IPv6 address")?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err("unexpected text after ]".to_owned()),
            }
        } else if text.matches(':').count() > 1 {
            return Err("an IPv6 address needs brackets, as in tcp6://[::1]:6363".to_owned());
        } else {
            match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        if host.is_empty() {
            return Err("host is missing".to_owned());
        }
        if host.contains(['[', ']']) {
            return Err("brackets are for an IPv6 address, as in tcp6://[::1]:6363".to_owned());
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| format!("'{port}' is not a port number"))?,
            None => default_port,
        };
        Ok(Self { host: host.to_owned(), port, family })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Address of a forwarder's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportUri {
    /// Stream socket: `unix:///run/nfd/nfd.sock`.
    Unix(PathBuf),
    /// `tcp://host:port`, `tcp4://`, `tcp6://`.
    Tcp(HostPort),
    /// `udp://host:port`, `udp4://`, `udp6://`.
    Udp(HostPort),
    /// `ws://host:port/path`; the text after the host is kept verbatim.
    WebSocket(HostPort, String),
}

/// The text is not a transport URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{uri}' is not a transport URI: {reason} (forms: unix:///path, tcp://host:port, udp://host:port, ws://host:port)"
)]
pub struct TransportUriError {
    /// The given text.
    pub uri: String,
    /// Reason for the rejection.
    pub reason: String,
}

impl FromStr for TransportUri {
    type Err = TransportUriError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |reason: String| TransportUriError { uri: text.to_owned(), reason };
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| fail("no '://' in it".to_owned()))?;
        let family = if scheme.ends_with('4') {
            Family::V4
        } else if scheme.ends_with('6') {
            Family::V6
        } else {
            Family::Any
        };
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(PathBuf::from(rest))),
            "unix" => Err(fail("the path must be absolute".to_owned())),
            "tcp" | "tcp4" | "tcp6" => HostPort::parse(rest, family, DEFAULT_PORT).map(Self::Tcp).map_err(fail),
            "udp" | "udp4" | "udp6" => HostPort::parse(rest, family, DEFAULT_PORT).map(Self::Udp).map_err(fail),
            "ws" | "wsclient" => {
                let (host, path) = match rest.split_once('/') {
                    Some((host, path)) => (host, path),
                    None => (rest, ""),
                };
                let host = HostPort::parse(host, Family::Any, DEFAULT_WEBSOCKET_PORT).map_err(fail)?;
                Ok(Self::WebSocket(host, path.to_owned()))
            }
            "wss" => Err(fail("TLS WebSockets are not supported".to_owned())),
            other => Err(fail(format!("unknown scheme '{other}'"))),
        }
    }
}

impl fmt::Display for TransportUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(to) => write!(f, "tcp{}://{to}", to.family.suffix()),
            Self::Udp(to) => write!(f, "udp{}://{to}", to.family.suffix()),
            Self::WebSocket(to, path) => write!(f, "ws://{to}/{path}"),
        }
    }
}

impl TransportUri {
    /// Returns the path of a Unix socket URI.
    pub fn unix_path(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms_print_as_they_were_read() {
        for text in [
            "unix:///run/nfd/nfd.sock",
            "tcp://router.example:6363",
            "tcp4://127.0.0.1:16363",
            "udp6://[::1]:6363",
            "ws://127.0.0.1:9696/",
            "ws://localhost:80/ndn",
        ] {
            assert_eq!(text.parse::<TransportUri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn default_ports_and_plain_paths() {
        assert_eq!("tcp://h".parse::<TransportUri>().unwrap().to_string(), "tcp://h:6363");
        assert_eq!("udp4://10.0.0.1".parse::<TransportUri>().unwrap().to_string(), "udp4://10.0.0.1:6363");
        assert_eq!("ws://h".parse::<TransportUri>().unwrap().to_string(), "ws://h:9696/");
        assert_eq!("udp://[::1]".parse::<TransportUri>().unwrap().to_string(), "udp://[::1]:6363");
        assert_eq!("/tmp/x.sock".parse::<TransportUri>().unwrap().unix_path(), Some(Path::new("/tmp/x.sock")));
    }

    #[test]
    fn bad_texts_are_refused_with_a_reason() {
        for text in [
            "",
            "nfd.sock",
            "unix://relative",
            "tcp://",
            "tcp://h:99999",
            "tcp://::1",
            "ether://x",
            "wss://h/",
            "tcp://[::1",
        ] {
            let error = text.parse::<TransportUri>().unwrap_err();
            assert!(error.to_string().contains("transport URI"), "{error}");
        }
    }
}
