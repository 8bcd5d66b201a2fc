//! What the types of the configuration cannot express: ranges, and values that must fit each other.
//!
//! Looks at nothing but the configuration, so that the answer is the same on every computer.

use namehop_face::FaceUri;
use namehop_face::registry::MIN_MTU_BYTES;
use namehop_forward::schedule::MAX_BURST;
use namehop_store::PolicyKind;
use namehop_table::HugePages;
use namehop_wire::MAX_PACKET_SIZE;

use super::fault::Fault;
use super::{AutoNumber, AutoPath, Config, MANAGEMENT_MODULES, StaticFace};
use crate::logging;

/// Longest path of a Unix socket in bytes: `sun_path` of unix(7) without its final zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;

impl Config {
    /// The first value that is wrong.
    pub(super) fn first_fault(&self) -> Option<Fault> {
        self.range_fault()
            .or_else(|| {
                let error = self.content_store.policy.parse::<PolicyKind>().err()?;
                Some(Fault::new("content_store.policy", error.to_string()))
            })
            .or_else(|| {
                let error = self.memory.huge_pages.parse::<HugePages>().err()?;
                Some(Fault::new("memory.huge_pages", error.to_string()))
            })
            .or_else(|| self.unix_fault())
            .or_else(|| Some(Fault::new("log.level", logging::parse_filter(&self.log.level).err()?)))
            .or_else(|| {
                let metrics = &self.metrics;
                let anywhere = metrics.enabled && !metrics.listen.ip().is_loopback() && metrics.listen.port() == 0;
                anywhere.then(|| Fault::new("metrics.listen", "port 0 is for loopback addresses only; choose a port"))
            })
            .or_else(|| self.authorization_fault())
            .or_else(|| self.port_fault())
            .or_else(|| self.face.iter().enumerate().find_map(|(index, face)| mtu_fault(index, face)))
    }

    fn range_fault(&self) -> Option<Fault> {
        let (forwarding, store, faces, ports) = (&self.forwarding, &self.content_store, &self.faces, &self.ports);
        let ranges = [
            ("forwarding.pit_capacity", forwarding.pit_capacity as u64, 64, 1 << 28),
            ("forwarding.dead_nonce_list_lifetime_ms", forwarding.dead_nonce_list_lifetime_ms, 50, 600_000),
            ("forwarding.max_name_bytes", forwarding.max_name_bytes as u64, 255, MAX_PACKET_SIZE as u64),
            ("forwarding.long_name_bytes_per_s", forwarding.long_name_bytes_per_s, 0, 1 << 40),
            ("forwarding.max_interest_lifetime_ms", forwarding.max_interest_lifetime_ms, 1, 864_000_000),
            ("forwarding.measurement_capacity", forwarding.measurement_capacity as u64, 64, 1 << 24),
            ("forwarding.small_buffers", forwarding.small_buffers as u64, 256, 1 << 24),
            ("forwarding.large_buffers", forwarding.large_buffers as u64, 64, 1 << 24),
            ("content_store.capacity_packets", store.capacity_packets as u64, 0, 1 << 28),
            ("faces.max_faces", faces.max_faces as u64, 4, 65_280),
            ("faces.send_queue_bytes", faces.send_queue_bytes.0, 16_384, 1 << 30),
            ("faces.udp.mtu", faces.udp.mtu as u64, MIN_MTU_BYTES as u64, MAX_PACKET_SIZE as u64),
            ("faces.udp.idle_timeout_s", faces.udp.idle_timeout_s, 1, 1 << 32),
            ("ports.idle_timeout_s", ports.idle_timeout_s, 1, 1 << 32),
            ("ports.memif_ring_frames", ports.memif_ring_frames.into(), 2, 16_384),
            ("ports.memif_buffer_bytes", ports.memif_buffer_bytes.into(), 512, 9_216),
        ];
        let lookahead = match forwarding.lookahead {
            AutoNumber::Auto => None,
            AutoNumber::Number(packets) => range_fault("forwarding.lookahead", packets as u64, 1, MAX_BURST as u64),
        };
        let out_of_range = |(path, value, low, high)| range_fault(path, value, low, high);
        ranges.into_iter().find_map(out_of_range).or(lookahead)
    }

    fn unix_fault(&self) -> Option<Fault> {
        let unix = &self.faces.unix;
        if unix.mode_bits().is_none() {
            let message =
                format!("`{}` is not a file mode; write octal digits, for example \"0666\" or \"0660\"", unix.mode);
            return Some(Fault::new("faces.unix.mode", message));
        }
        let AutoPath::Path(path) = &unix.path else { return None };
        let length_bytes = path.as_os_str().len();
        (length_bytes > MAX_SOCKET_PATH_BYTES).then(|| {
            let message = format!(
                "`path` is {length_bytes} bytes long; the path of a Unix socket has at most {MAX_SOCKET_PATH_BYTES}, so \
                 choose a shorter one"
            );
            Fault::new("faces.unix.path", message)
        })
    }

    fn authorization_fault(&self) -> Option<Fault> {
        for (index, rule) in self.management.authorizations.iter().enumerate() {
            let unknown = rule.modules.iter().position(|module| !MANAGEMENT_MODULES.contains(&module.as_str()));
            if let Some(position) = unknown {
                let message = format!(
                    "`{}` is not a management module; the modules are {}",
                    rule.modules[position],
                    MANAGEMENT_MODULES.join(", ")
                );
                return Some(Fault::new(format!("management.authorizations[{index}].modules[{position}]"), message));
            }
        }
        None
    }
}

fn range_fault(path: impl Into<String>, value: u64, low: u64, high: u64) -> Option<Fault> {
    if (low..=high).contains(&value) {
        return None;
    }
    let path = path.into();
    let key = path.rsplit('.').next().unwrap_or_default();
    let message = format!("`{key}` is {value}; it must be from {low} to {high}");
    Some(Fault::new(path, message))
}

/// Streams carry whole packets, so only faces over datagrams and frames have an MTU to set.
fn mtu_fault(index: usize, face: &StaticFace) -> Option<Fault> {
    let mtu = face.mtu?;
    let path = format!("face[{index}].mtu");
    match &face.uri.0 {
        FaceUri::Udp { .. } | FaceUri::Ethernet(_) | FaceUri::Memif { .. } => {
            range_fault(path, mtu, MIN_MTU_BYTES as u64, MAX_PACKET_SIZE as u64)
        }
        uri => Some(Fault::new(
            path,
            format!("{} faces carry whole packets and have no `mtu`; remove it, or use udp4 or udp6", uri.scheme()),
        )),
    }
}
