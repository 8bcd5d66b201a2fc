//! URIs of ports. This module knows no driver: each driver declares the [`PortScheme`] of its URIs, which parses the
//! part behind `://`.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{FaceUriError, PortOptions, UriParser};

/// Parses what follows `://` into the device in its normal spelling and the options of the port.
pub type ParsePort = fn(&UriParser<'_>, &str) -> Result<(String, PortOptions), FaceUriError>;

/// The URIs of one driver of ports. Two schemes are equal if their names are.
pub struct PortScheme {
    /// The scheme in lower case, such as `dev`.
    pub name: &'static str,
    /// Parses the part behind `://`.
    pub parse: ParsePort,
    /// The character in front of the first option: `?`, or `&` behind parameters of the device. `None` if ports of this
    /// scheme have no options.
    pub separator: Option<char>,
    /// Whether a port can carry bare NDN packets of one face. The URI of the port is then both URIs of that face.
    pub can_be_bare: bool,
}

impl fmt::Debug for PortScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for PortScheme {
    fn eq(&self, other: &PortScheme) -> bool {
        self.name == other.name
    }
}

impl Eq for PortScheme {}

impl Hash for PortScheme {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The URI of a port, as `dev://eth0`. As the local end of a face it can have options, as `dev://eth0?vlan=7` and
/// `dev://eth0?ip=192.0.2.1&port=6363`. Only parsing makes one, so its driver has checked it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PortUri {
    scheme: &'static PortScheme,
    device: String,
    options: PortOptions,
}

impl PortUri {
    /// Parses what follows the scheme and `://`.
    pub(super) fn parse(
        scheme: &'static PortScheme,
        parser: &UriParser<'_>,
        text: &str,
    ) -> Result<PortUri, FaceUriError> {
        let (device, options) = (scheme.parse)(parser, text)?;
        Ok(PortUri { scheme, device, options })
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> &'static PortScheme {
        self.scheme
    }

    /// Returns the device and its parameters, in the driver's normal spelling: all between the scheme and the options.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns VLAN and Internet addresses; `None` if ports of this scheme have no options.
    pub fn options(&self) -> Option<&PortOptions> {
        self.scheme.separator.map(|_| &self.options)
    }

    /// Returns the same port with these options; unchanged if ports of this scheme have no options.
    pub fn with_options(&self, options: PortOptions) -> PortUri {
        match self.scheme.separator {
            Some(_) => PortUri { scheme: self.scheme, device: self.device.clone(), options },
            None => self.clone(),
        }
    }
}

impl fmt::Display for PortUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name, self.device)?;
        match self.scheme.separator {
            Some(separator) => self.options.write(f, separator),
            None => Ok(()),
        }
    }
}
