//! Checks the things that a configuration needs from this host and this user: certificates, folders, files, network
//! interfaces.
//!
//! Finds errors that would keep the router from starting; creates nothing. Paths set to "auto" are not checked: they
//! depend on the user who runs the router, not on the file.

use std::env;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use namehop_power::description::read_server;
use nix::unistd::geteuid;

use namehop_manage::authentication::{TrustConfig, TrustError, TrustStore};
use namehop_manage::readvertise::{IdentityError, SigningIdentity};
use namehop_wire::security::SecurityError;

use crate::fault::Fault;
use crate::{Auto, Config, Trust};
use crate::{file_access, token_file};

impl Config {
    /// Returns the first thing that is missing or that this user may not use.
    pub(crate) fn environment_fault(&self) -> Option<Fault> {
        self.certificate_fault()
            .or_else(|| self.multicast_fault())
            .or_else(|| self.port_address_fault())
            .or_else(|| self.path_fault())
            .or_else(|| self.fib_file_fault())
            .or_else(|| self.token_fault())
            .or_else(|| self.power_fault())
            .or_else(|| self.loaded_strategy_fault())
    }

    fn certificate_fault(&self) -> Option<Fault> {
        let management = &self.management;
        management
            .authorizations
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.certificate != "any")
            .find_map(|(index, rule)| {
                let message = unusable_certificate(Path::new(&rule.certificate))?;
                Some(Fault::with_key(format!("management.authorizations[{index}].certificate"), &message))
            })
            .or_else(|| trust_fault("management.localhop", &management.localhop))
            .or_else(|| trust_fault("management.prefix_announcements", &management.prefix_announcements))
            .or_else(|| self.gateway_key_fault())
    }

    fn gateway_key_fault(&self) -> Option<Fault> {
        let gateway = &self.routing.gateway;
        let (key, certificate) = gateway.key.as_ref().zip(gateway.certificate.as_ref())?;
        let (setting, message) = match SigningIdentity::load(key, certificate).err()? {
            IdentityError::Key { source: SecurityError::Io(error), .. } => {
                ("key", format!("cannot read the key {}: {}", key.display(), unreadable(key, &error)))
            }
            error @ IdentityError::Key { .. } => {
                ("key", format!("{error}; it must hold a private key in PKCS#8, as written by `namehop key generate`"))
            }
            error @ IdentityError::OtherKey { .. } => ("certificate", error.to_string()),
            error @ IdentityError::Certificate { .. } => {
                ("certificate", unusable_certificate(certificate).unwrap_or_else(|| error.to_string()))
            }
        };
        Some(Fault::with_key(format!("routing.gateway.{setting}"), &message))
    }

    fn multicast_fault(&self) -> Option<Fault> {
        let names = &self.faces.multicast.interfaces;
        if let [all] = names.as_slice()
            && all == "all"
        {
            return None;
        }
        names.iter().enumerate().find_map(|(index, name)| {
            let message = match name.as_str() {
                "all" => "\"all\" stands alone; remove the other interfaces".to_owned(),
                // The router waits for an interface that does not exist yet.
                name if !is_interface_name(name) => format!(
                    "`{name}` cannot be the name of a network interface; this host has {}. Write one of these, \
                     [\"all\"], or [] for no multicast",
                    interfaces()
                ),
                _ => return None,
            };
            Some(Fault::with_key(format!("faces.multicast.interfaces[{index}]"), &message))
        })
    }

    /// Rejects port addresses that the host itself has: the kernel already answers for them.
    fn port_address_fault(&self) -> Option<Fault> {
        let addresses = self.port.iter().enumerate().flat_map(|(port, found)| {
            let numbered = found.addresses.iter().enumerate();
            numbered.map(move |(index, own)| (port, index, own.0.address))
        });
        addresses.into_iter().find_map(|(port, index, address)| {
            let interface = interface_with(address)?;
            let message = format!(
                "{address} is an address of this host itself, on interface {interface}; choose an address for the \
                 router alone"
            );
            Some(Fault::with_key(format!("port[{port}].addresses[{index}]"), &message))
        })
    }

    fn path_fault(&self) -> Option<Fault> {
        if let (true, Auto::Value(path)) = (self.faces.unix.enabled, &self.faces.unix.path) {
            let is_other = fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket());
            let message = match file_access::obstacle(path) {
                None if is_other => {
                    Some(format!("{} exists and is not a socket; remove it, or choose another path", path.display()))
                }
                obstacle => obstacle,
            };
            if let Some(message) = message {
                return Some(Fault::with_key("faces.unix.path", &message));
            }
        }
        match &self.state.file {
            Auto::Value(file) if self.state.enabled => {
                let message = file_access::state_obstacle(file)?;
                Some(Fault::with_key("state.file", &message))
            }
            _ => None,
        }
    }

    fn token_fault(&self) -> Option<Fault> {
        match &self.api.token_file {
            Auto::Value(file) if self.api.enabled && self.metrics.enabled => {
                Some(Fault::with_key("api.token_file", &token_file::read(file).err()?.to_string()))
            }
            _ => None,
        }
    }

    fn power_fault(&self) -> Option<Fault> {
        let error = read_server(self.power.server.as_ref()?).err()?;
        Some(Fault::with_key("power.server", &error.to_string()))
    }

    fn fib_file_fault(&self) -> Option<Fault> {
        let file = self.fib.file.as_ref()?;
        let is_folder = || Err(io::Error::from(io::ErrorKind::IsADirectory));
        let opened = fs::File::open(file).and_then(|open| if open.metadata()?.is_dir() { is_folder() } else { Ok(()) });
        let error = opened.err()?;
        let message = format!("cannot read the FIB entries in {}: {}", file.display(), unreadable(file, &error));
        Some(Fault::with_key("fib.file", &message))
    }
}

fn trust_fault(section: &str, trust: &Trust) -> Option<Fault> {
    let anchor = trust.anchors.iter().enumerate().find_map(|(index, anchor)| {
        Some(Fault::with_key(format!("{section}.anchors[{index}]"), &unusable_certificate(&anchor.certificate)?))
    });
    anchor.or_else(|| {
        let folder = trust.certificates.as_ref()?;
        let error = fs::read_dir(folder).and_then(|mut entries| entries.try_for_each(|entry| entry.map(drop))).err()?;
        let message =
            format!("cannot read the certificate folder {}: {}", folder.display(), unreadable(folder, &error));
        Some(Fault::with_key(format!("{section}.certificates"), &message))
    })
}

/// Returns why this file cannot be used as a certificate. Reads the file in the same way as the router at start.
fn unusable_certificate(path: &Path) -> Option<String> {
    let config = TrustConfig { anchors: vec![path.to_owned().into()], certificates: None };
    let source = match TrustStore::load(&config).err()? {
        TrustError::Certificate { source, .. } => source,
        error @ TrustError::Folder { .. } => return Some(error.to_string()),
    };
    let reason = match source {
        // A binary file fails as text with `InvalidData`.
        SecurityError::Io(error) if error.kind() != io::ErrorKind::InvalidData => unreadable(path, &error),
        error => format!(
            "{error}; it must hold an NDN certificate in base64, as written by `namehop key generate` or `ndnsec \
             cert-dump`"
        ),
    };
    Some(format!("cannot use the certificate {}: {reason}", path.display()))
}

/// Returns error and remedy for a file or folder that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "user {} needs read permission on it and search permission on its folders; change them with chmod or \
             chown, or run as the owner",
            geteuid()
        ),
        io::ErrorKind::NotFound if path.is_relative() => {
            let folder = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
            format!("correct the path, which is relative to the working folder {}", folder.display())
        }
        io::ErrorKind::IsADirectory => "name a file, not a folder".to_owned(),
        io::ErrorKind::NotADirectory => "name a folder, not a file".to_owned(),
        _ => "correct the path".to_owned(),
    };
    format!("{error}; {remedy}")
}

/// Returns the name of the network interface of this host that has `address`.
fn interface_with(address: IpAddr) -> Option<String> {
    nix::ifaddrs::getifaddrs().into_iter().flatten().find_map(|interface| {
        let found = interface.address?;
        let found = match (found.as_sockaddr_in(), found.as_sockaddr_in6()) {
            (Some(v4), _) => IpAddr::V4(v4.ip()),
            (_, Some(v6)) => IpAddr::V6(v6.ip()),
            _ => return None,
        };
        (found == address).then_some(interface.interface_name)
    })
}

/// Returns whether the kernel accepts this name for a network interface.
fn is_interface_name(name: &str) -> bool {
    let is_special = matches!(name, "" | "." | "..");
    !is_special
        && name.len() < nix::libc::IFNAMSIZ
        && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
}

/// Returns the names of this host's network interfaces, for messages.
fn interfaces() -> String {
    let mut names: Vec<String> =
        nix::ifaddrs::getifaddrs().into_iter().flatten().map(|interface| interface.interface_name).collect();
    names.sort();
    names.dedup();
    names.join(", ")
}
