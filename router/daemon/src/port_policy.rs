//! The ports that commands may open.
//!
//! Every application on this host can send commands. A router that runs as root could create and replace files anywhere
//! for them, and use every network interface. So a command may open memif sockets in configured folders only, and
//! configured interfaces only, unless it is signed by a key that the configuration lists. Ports of the configuration
//! and of the saved state are not checked: they were allowed before.

use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};

use tracing::warn;

use namehop_config::Config;
use namehop_face::FaceUri;
use namehop_manage::server::PortForbidden;
use namehop_port::drivers::{Access, Driver};

/// Folder in which applications look for memif sockets (NDN-DPDK).
const SYSTEM_FOLDER: &str = "/run/ndn";

/// The configured rules for ports that commands may open.
pub struct PortPolicy {
    folders: Vec<PathBuf>,
    interfaces: Vec<String>,
    /// Ports that the configuration names; commands may open them.
    configured: Vec<FaceUri>,
}

impl PortPolicy {
    /// Creates the policy of a configuration.
    pub fn new(config: &Config) -> Self {
        let folders = config.ports.memif_folders.iter().flat_map(|folder| match folder.as_str() {
            "auto" => usual_folders(),
            path => vec![PathBuf::from(path)],
        });
        let faces = config.face.iter().map(|face| face.local.as_ref().map_or(&face.uri.0, |local| &local.0));
        let ports = config.port.iter().map(|port| &port.uri.0);
        let is_port = |uri: &&FaceUri| uri.as_port().is_some();
        PortPolicy {
            folders: folders.collect(),
            interfaces: config.ports.interfaces.clone(),
            configured: ports.chain(faces).filter(is_port).map(FaceUri::port).collect(),
        }
    }

    /// Checks whether a command may open this port. Permission for an interface includes all VLANs on it.
    ///
    /// # Errors
    /// [`PortForbidden`]: why not, and what to do.
    pub fn check(&self, port: &FaceUri) -> Result<(), PortForbidden> {
        if self.configured.contains(&port.port()) {
            return Ok(());
        }
        match Driver::access_to(port) {
            Some(Access::Socket(socket)) => self.check_socket(port.scheme(), &socket),
            Some(Access::Files) => Err(PortForbidden::File(port.clone())),
            Some(Access::Device(device)) if !self.interfaces.iter().any(|name| *name == device || name == "all") => {
                Err(PortForbidden::Interface(device))
            }
            Some(Access::Device(_)) | None => Ok(()),
        }
    }

    fn check_socket(&self, scheme: &'static str, socket: &Path) -> Result<(), PortForbidden> {
        let folder = socket.parent().unwrap_or(Path::new("/"));
        let is_plain = socket.is_absolute() && !socket.components().any(|part| matches!(part, Component::ParentDir));
        if is_plain && self.folders.iter().any(|allowed| is_within(folder, allowed)) {
            return Ok(());
        }
        Err(PortForbidden::SocketFolder { scheme, folder: folder.to_owned(), allowed: self.folders.clone() })
    }

    /// Creates the folder of a port's socket if it is one of the configured folders. Never creates another folder.
    pub fn make_folder_for(&self, port: &FaceUri) {
        let Some(Access::Socket(socket)) = Driver::access_to(port) else { return };
        if let Some(folder) = socket.parent().filter(|&folder| self.folders.iter().any(|allowed| allowed == folder))
            && let Err(error) = fs::create_dir_all(folder)
        {
            warn!(folder = %folder.display(), %error, "cannot create the folder for sockets of ports");
        }
    }

    /// Creates the folders of the sockets of all configured ports.
    pub fn make_folders_of_configured_ports(&self) {
        self.configured.iter().for_each(|port| self.make_folder_for(port));
    }
}

/// Returns the folders that `auto` stands for.
fn usual_folders() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let mut folders = vec![PathBuf::from(SYSTEM_FOLDER)];
    folders.extend(variable("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("ndn")));
    // systemd separates several folders by colons.
    folders.extend(variable("RUNTIME_DIRECTORY").iter().flat_map(env::split_paths));
    folders
}

/// Returns whether `folder` is `allowed` or below it, after resolving symbolic links.
fn is_within(folder: &Path, allowed: &Path) -> bool {
    match (folder.canonicalize(), allowed.canonicalize()) {
        (Ok(folder), Ok(allowed)) => folder.starts_with(allowed),
        // Neither exists: the folder will be created.
        (Err(_), Err(_)) => folder == allowed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use namehop_port::drivers::parse_uri;

    use super::*;

    fn policy(text: &str) -> PortPolicy {
        PortPolicy::new(&Config::parse(text, Path::new("test.toml")).expect("a configuration"))
    }

    fn memif(socket: &Path) -> FaceUri {
        parse_uri(&format!("memif://{}?id=0", socket.display())).expect("a FaceUri")
    }

    #[test]
    fn memif_sockets_stay_in_their_folders() {
        let folder = tempfile::tempdir().expect("folder");
        let (allowed, other) = (folder.path().join("allowed"), folder.path().join("other"));
        let policy = policy(&format!("[ports]\nmemif_folders = [\"{}\"]", allowed.display()));
        let socket = allowed.join("x.sock");
        assert_eq!(policy.check(&memif(&socket)), Ok(()), "a listed folder may not exist yet");
        assert!(!allowed.exists(), "a check creates no folder");
        policy.make_folder_for(&memif(&socket));
        assert!(allowed.is_dir());
        assert_eq!(policy.check(&memif(&socket)), Ok(()));

        fs::create_dir_all(allowed.join("below")).expect("made");
        fs::create_dir_all(&other).expect("made");
        symlink(&other, allowed.join("link")).expect("made");
        assert_eq!(policy.check(&memif(&allowed.join("below/x.sock"))), Ok(()));
        for refused in ["../other/x.sock", "link/x.sock", "link/../x.sock", "missing/x.sock", "../allowedx/x.sock"] {
            let error = policy.check(&memif(&allowed.join(refused))).expect_err(refused);
            assert!(matches!(error, PortForbidden::SocketFolder { .. }), "{error}");
        }
        for refused in [other.join("x.sock"), "/etc/x.sock".into(), "/x.sock".into()] {
            assert!(policy.check(&memif(&refused)).is_err(), "{}", refused.display());
            policy.make_folder_for(&memif(&refused));
        }
        let missing = allowed.join("missing/x.sock");
        policy.make_folder_for(&memif(&missing));
        assert!(!allowed.join("missing").exists(), "only the listed folder is created");
    }

    #[test]
    fn interfaces_are_those_of_the_configuration() {
        let uri = |text: &str| parse_uri(text).expect("a FaceUri");
        let by_default = policy("");
        assert_eq!(by_default.check(&uri("dev://eth1")), Err(PortForbidden::Interface("eth1".to_owned())));
        let listed = policy(
            "[ports]\ninterfaces = [\"eth1\"]\n[[port]]\nuri = \"dev://eth2\"\n[[face]]\nuri = \
             \"ether://[08:00:27:01:01:01]\"\nlocal = \"dev://eth3\"",
        );
        for interface in ["eth1", "eth2", "eth3", "eth3?vlan=7"] {
            assert_eq!(listed.check(&uri(&format!("dev://{interface}"))), Ok(()), "{interface}");
        }
        assert!(listed.check(&uri("dev://eth4")).is_err() && listed.check(&uri("dev://eth4?vlan=7")).is_err());
        assert!(listed.check(&uri("pcap:///in.pcap")).is_err());
        let with_capture = policy("[[port]]\nuri = \"pcap:///in.pcap\"");
        assert_eq!(with_capture.check(&uri("pcap:///in.pcap")), Ok(()));
        assert!(with_capture.check(&uri("pcap:///in.pcap?out=/etc/passwd")).is_err());
        assert_eq!(policy("[ports]\ninterfaces = [\"all\"]").check(&uri("dev://eth4")), Ok(()));
    }
}
