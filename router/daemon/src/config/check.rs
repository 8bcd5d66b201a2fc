//! Checks that the types of the configuration cannot express: ranges, and values that must fit each other.
//!
//! Reads only the configuration, so the result is the same on every host.

use namehop_client::nfd::names::{self, module};
use namehop_client::nfd::numbers::origin;
use namehop_disk::{MAX_CAPACITY_BYTES, MIN_CAPACITY_BYTES};
use namehop_engine::dispatch::{MAX_COMPONENTS, MAX_WORKERS};
use namehop_engine::schedule::MAX_LOOKAHEAD;
use namehop_face::FaceUri;
use namehop_face::registry::MIN_MTU_BYTES;
use namehop_wire::{MAX_PACKET_SIZE, Name};

use super::fault::Fault;
use super::{Auto, Config, StaticFace};
use crate::log_filter::parse_filter;

/// Longest path of a Unix socket in bytes: `sun_path` of unix(7) without its final zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;

impl Config {
    /// Returns the first error.
    pub(super) fn first_fault(&self) -> Option<Fault> {
        self.range_fault()
            .or_else(|| self.unix_fault())
            .or_else(|| Some(Fault::new("log.level", parse_filter(&self.log.level).err()?)))
            .or_else(|| {
                let metrics = &self.metrics;
                let anywhere = metrics.enabled && !metrics.listen.ip().is_loopback() && metrics.listen.port() == 0;
                anywhere.then(|| {
                    Fault::new("metrics.listen", "port 0 is allowed only with a loopback address; choose another port")
                })
            })
            .or_else(|| self.authorization_fault())
            .or_else(|| self.route_fault())
            .or_else(|| self.strategy_fault())
            .or_else(|| self.routing_fault())
            .or_else(|| self.port_fault())
            .or_else(|| self.face.iter().enumerate().find_map(|(index, face)| mtu_fault(index, face)))
    }

    fn range_fault(&self) -> Option<Fault> {
        let (forwarding, store, faces, ports) = (&self.forwarding, &self.content_store, &self.faces, &self.ports);
        let management = &self.management;
        let ranges = [
            ("forwarding.dispatch_components", forwarding.dispatch_components as u64, 1, MAX_COMPONENTS as u64),
            ("forwarding.poll_us", forwarding.poll_us, 0, 1_000_000),
            ("forwarding.longest_pause_us", forwarding.longest_pause_us, 50, 100_000),
            ("forwarding.dead_nonce_list_lifetime_ms", forwarding.dead_nonce_list_lifetime_ms, 50, 600_000),
            ("forwarding.max_name_bytes", forwarding.max_name_bytes as u64, 255, MAX_PACKET_SIZE as u64),
            ("forwarding.long_name_bytes_per_s", forwarding.long_name_bytes_per_s, 0, 1 << 40),
            ("forwarding.max_interest_lifetime_ms", forwarding.max_interest_lifetime_ms, 1, 864_000_000),
            ("faces.strangers_per_address", faces.strangers_per_address as u64, 1, 65_280),
            ("faces.silent_timeout_s", faces.silent_timeout_s, 1, 1 << 32),
            ("faces.send_queue_bytes", faces.send_queue_bytes.0, 16_384, 1 << 30),
            ("faces.blocked_timeout_s", faces.blocked_timeout_s, 1, 1 << 32),
            ("faces.udp.idle_timeout_s", faces.udp.idle_timeout_s, 1, 1 << 32),
            ("management.max_remote_routes_per_face", management.max_remote_routes_per_face as u64, 1, 1 << 24),
            ("routing.gateway.cost", self.routing.gateway.cost, 0, 1 << 32),
            ("routing.gateway.refresh_s", self.routing.gateway.refresh_s, 1, 86_400),
            ("ports.idle_timeout_s", ports.idle_timeout_s, 1, 1 << 32),
            ("ports.memif_ring_frames", ports.memif_ring_frames.into(), 2, 16_384),
            ("ports.memif_buffer_bytes", ports.memif_buffer_bytes.into(), 512, 9_216),
        ];
        let disk = store.disk.as_ref().and_then(|disk| {
            let capacity = disk.capacity_bytes.0;
            range_fault("content_store.disk.capacity_bytes", capacity, MIN_CAPACITY_BYTES, MAX_CAPACITY_BYTES)
                .or_else(|| range_fault("content_store.disk.read_timeout_ms", disk.read_timeout_ms, 1, 10_000))
        });
        let automatic = [
            ("forwarding.workers", forwarding.workers, 1, MAX_WORKERS),
            ("forwarding.lookahead", forwarding.lookahead, 1, MAX_LOOKAHEAD),
            ("faces.udp.mtu", faces.udp.mtu, MIN_MTU_BYTES, MAX_PACKET_SIZE),
            ("forwarding.pit_capacity", forwarding.pit_capacity, 64, 1 << 28),
            ("forwarding.measurement_capacity", forwarding.measurement_capacity, 64, 1 << 24),
            ("forwarding.small_buffers", forwarding.small_buffers, 256, 1 << 24),
            ("forwarding.large_buffers", forwarding.large_buffers, 64, 1 << 24),
            ("content_store.capacity_packets", store.capacity_packets, 0, 1 << 28),
            ("faces.max_faces", faces.max_faces, 4, 65_280),
            ("management.max_remote_routes", management.max_remote_routes, 1, 1 << 24),
            ("management.max_routes", management.max_routes, 1, 1 << 28),
        ];
        let sizes = [
            ("faces.all_send_queues_bytes", faces.all_send_queues_bytes, 1 << 20, 1 << 40),
            ("memory.limit", self.memory.limit, 1 << 20, 1 << 50),
        ];
        let automatic = automatic
            .into_iter()
            .map(|(path, value, low, high)| (path, value.value(), low, high))
            .chain(sizes.into_iter().map(|(path, value, low, high)| (path, value.bytes(), low, high)))
            .find_map(|(path, value, low, high)| range_fault(path, value? as u64, low as u64, high as u64));
        let out_of_range = |(path, value, low, high)| range_fault(path, value, low, high);
        ranges.into_iter().find_map(out_of_range).or(disk).or(automatic)
    }

    fn unix_fault(&self) -> Option<Fault> {
        let unix = &self.faces.unix;
        if unix.mode_bits().is_none() {
            let message =
                format!("`{}` is not a file mode; write octal digits, for example \"0666\" or \"0660\"", unix.mode);
            return Some(Fault::new("faces.unix.mode", message));
        }
        let Auto::Value(path) = &unix.path else { return None };
        let length_bytes = path.as_os_str().len();
        (length_bytes > MAX_SOCKET_PATH_BYTES).then(|| {
            let message = format!(
                "`path` is {length_bytes} bytes long; the path of a Unix socket has at most {MAX_SOCKET_PATH_BYTES} \
                 bytes; choose a shorter one"
            );
            Fault::new("faces.unix.path", message)
        })
    }

    /// Returns the prefixes under which the router itself answers: `/localhost/nfd` for applications on this host and,
    /// with trust anchors, `/localhop/nfd` for commands of other hosts. Without anchors `/localhop/nfd` is an ordinary
    /// name, which may lead to a gateway that accepts such commands.
    pub fn served_prefixes(&self) -> Vec<Name> {
        let neighbours = (!self.management.localhop.anchors.is_empty()).then(names::localhop);
        std::iter::once(names::localhost()).chain(neighbours).collect()
    }

    fn route_fault(&self) -> Option<Fault> {
        let served = self.served_prefixes();
        let is_served = |prefix: &Name| served.iter().any(|served| served.is_prefix_of(prefix.as_ref()));
        let index = self.route.iter().position(|route| is_served(&route.prefix.0))?;
        let message = format!(
            "`prefix` {} is a name that the router itself answers; remove the route",
            self.route[index].prefix.0
        );
        Some(Fault::new(format!("route[{index}].prefix"), message))
    }

    fn routing_fault(&self) -> Option<Fault> {
        let (daemon, gateway) = (&self.routing.daemon, &self.routing.gateway);
        if let Some(position) = daemon.origins.iter().position(|origin| origin.0 == origin::NLSR) {
            let message = "routes of origin `nlsr` come from the routing daemon itself; remove this origin";
            return Some(Fault::new(format!("routing.daemon.origins[{position}]"), message));
        }
        let alone = match (&gateway.key, &gateway.certificate) {
            (None, None) => return None,
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(("routing.gateway.key", "`key` needs `certificate`, the certificate of this key")),
            (None, Some(_)) => Some(("routing.gateway.certificate", "`certificate` needs `key`, its private key")),
        };
        if let Some((path, message)) = alone {
            return Some(Fault::new(path, message));
        }
        (!self.management.localhop.anchors.is_empty()).then(|| {
            // Two such routers would keep each other's routes alive for ever.
            let message = "`key` makes this router the client of a gateway, and `anchors` in section \
                           [management.localhop] make it a gateway; it cannot be both: remove one of them";
            Fault::new("routing.gateway.key", message)
        })
    }

    fn authorization_fault(&self) -> Option<Fault> {
        for (index, rule) in self.management.authorizations.iter().enumerate() {
            let unknown = rule.modules.iter().position(|module| !module::WITH_COMMANDS.contains(&module.as_str()));
            if let Some(position) = unknown {
                let message = format!(
                    "`{}` is not a management module; the modules are {}",
                    rule.modules[position],
                    module::WITH_COMMANDS.join(", ")
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

/// Checks the MTU of a configured face. Streams carry whole packets, so only faces over datagrams and frames have an
/// MTU.
fn mtu_fault(index: usize, face: &StaticFace) -> Option<Fault> {
    let mtu = face.mtu?;
    let path = format!("face[{index}].mtu");
    match &face.uri.0 {
        FaceUri::Udp { .. } | FaceUri::Ethernet(_) | FaceUri::Memif { .. } | FaceUri::Vxlan { .. } => {
            range_fault(path, mtu, MIN_MTU_BYTES as u64, MAX_PACKET_SIZE as u64)
        }
        uri => Some(Fault::new(
            path,
            format!("{} faces carry whole packets and have no `mtu`; remove it, or use udp4 or udp6", uri.scheme()),
        )),
    }
}
