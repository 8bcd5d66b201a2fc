//! Options of a port in the local URI of a face: its VLAN and Internet addresses.

use std::fmt;
use std::iter;
use std::net::IpAddr;

use super::FaceUriError;
use super::display::Hardware;
use super::parse::{UriParser, is_of_one_device};
use crate::address::VlanId;

/// Options after the port in the local URI of a face: `?vlan=7&ip=192.0.2.1&port=6363`. All but the VLAN are for UDP
/// and VXLAN faces; omitted ones follow from the port's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PortOptions {
    /// `vlan=`: the VLAN; `None` for untagged frames.
    pub vlan: Option<VlanId>,
    /// `ip=`: one of the port's addresses.
    pub address: Option<IpAddr>,
    /// `port=`: local UDP port.
    pub port: Option<u16>,
    /// `source_port=name`: the source port of sent packets encodes their name, and any source port of the peer is
    /// accepted.
    pub source_port_by_name: bool,
    /// `mac=`: hardware address of the next hop, which is then not resolved.
    pub next_hop: Option<[u8; 6]>,
}

impl PortOptions {
    /// Returns options with only a VLAN, or none.
    pub fn of_vlan(vlan: Option<VlanId>) -> PortOptions {
        PortOptions { vlan, ..PortOptions::default() }
    }

    /// Whether there are no Internet options, as for faces directly over Ethernet.
    pub fn is_link(&self) -> bool {
        *self == PortOptions::of_vlan(self.vlan)
    }

    /// Writes the options, each with a separator in front of it: `first`, then `&`.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, first: char) -> fmt::Result {
        let mut separators = iter::once(first).chain(iter::repeat('&'));
        let mut option = |text: fmt::Arguments<'_>| write!(f, "{}{text}", separators.next().unwrap_or('&'));
        if let Some(vlan) = self.vlan {
            option(format_args!("vlan={vlan}"))?;
        }
        if let Some(address) = self.address {
            option(format_args!("ip={address}"))?;
        }
        if let Some(port) = self.port {
            option(format_args!("port={port}"))?;
        }
        if self.source_port_by_name {
            option(format_args!("source_port=name"))?;
        }
        match self.next_hop {
            Some(address) => option(format_args!("mac={}", Hardware(address))),
            None => Ok(()),
        }
    }
}

/// How options can begin behind a device without parameters.
const FIRST_OPTIONS: [&str; 5] = ["?vlan=", "?ip=", "?port=", "?source_port=", "?mac="];

impl UriParser<'_> {
    /// Divides the text behind `://` into the device and the options behind its question mark, which the name of a
    /// device may contain, too.
    pub fn device_and_options<'t>(
        &self,
        text: &'t str,
        expected: &'static str,
    ) -> Result<(&'t str, PortOptions), FaceUriError> {
        match FIRST_OPTIONS.iter().filter_map(|option| text.find(option)).min() {
            Some(at) => Ok((&text[..at], self.options(&text[at + 1..], expected)?)),
            None => Ok((text, PortOptions::default())),
        }
    }

    /// Parses the options, without the leading separator.
    ///
    /// # Errors
    /// If a text is not an option, or if options are not in their order.
    pub fn options(&self, text: &str, expected: &'static str) -> Result<PortOptions, FaceUriError> {
        let mut options = PortOptions::default();
        let mut last = None;
        for option in text.split('&') {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let position = match key {
                "vlan" => {
                    let Some(vlan) = VlanId::new(self.number(value, "VLAN", expected)?) else {
                        return self.refuse(format!("`{value}` is not a VLAN"), expected);
                    };
                    options.vlan = Some(vlan);
                    0
                }
                "ip" => {
                    let Ok(address) = value.parse::<IpAddr>() else {
                        return self.refuse(format!("`{value}` is not an IP address"), expected);
                    };
                    if !is_of_one_device(&address) {
                        return self.refuse(format!("`{value}` is not a unicast hardware address"), expected);
                    }
                    options.address = Some(address);
                    1
                }
                "port" => {
                    options.port = Some(self.port(value, expected)?);
                    2
                }
                "source_port" if value == "name" => {
                    options.source_port_by_name = true;
                    3
                }
                "mac" => {
                    options.next_hop = Some(self.device_address(value, expected)?);
                    4
                }
                _ => return self.refuse(format!("`{option}` is not an option of a port"), expected),
            };
            // Another order would allow several spellings of one address.
            if last.is_some_and(|last| last >= position) {
                let text = format!("option `{key}` is out of order: the order is vlan, ip, port, source_port, mac");
                return self.refuse(text, expected);
            }
            last = Some(position);
        }
        Ok(options)
    }
}
