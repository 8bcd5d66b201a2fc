//! Printing of face URIs in their normal spelling.

use std::fmt;

use super::{FaceUri, Host, HostPort};

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::V4(address) => write!(f, "{address}")?,
            Host::V6 { address, zone: None } => write!(f, "[{address}]")?,
            // The zone follows a plain percent sign, as other NDN software writes it.
            Host::V6 { address, zone: Some(zone) } => write!(f, "[{address}%{zone}]")?,
            Host::Name(name) => f.write_str(name)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// A hardware address in its printed form.
pub struct Hardware(pub [u8; 6]);

impl fmt::Display for Hardware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaceUri::Port(port) => return port.fmt(f),
            FaceUri::Tunnel(tunnel) => return tunnel.fmt(f),
            _ => {}
        }
        write!(f, "{}://", self.scheme())?;
        match self {
            FaceUri::Udp { at, .. } | FaceUri::Tcp { at, .. } => write!(f, "{at}"),
            FaceUri::WebSocketClient(at) => write!(f, "{at}"),
            FaceUri::WebSocket { at, path, .. } if path.is_empty() => write!(f, "{at}"),
            FaceUri::WebSocket { at, path, .. } => write!(f, "{at}/{path}"),
            FaceUri::Unix(path) => f.write_str(path),
            FaceUri::FileDescriptor(number) => write!(f, "{number}"),
            FaceUri::Ethernet(address) => write!(f, "[{}]", Hardware(*address)),
            FaceUri::UdpDevice { device, port, .. } => write!(f, "{device}:{port}"),
            FaceUri::Internal | FaceUri::Null | FaceUri::ContentStore | FaceUri::Port(_) | FaceUri::Tunnel(_) => Ok(()),
        }
    }
}
