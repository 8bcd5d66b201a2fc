//! Checks that the declarations of the settings cannot express: values that must fit each other.
//!
//! Reads only the configuration, so the result is the same on every host.

use namehop_client::nfd::names::{self, module};
use namehop_client::nfd::numbers::origin;
use namehop_face::FaceUri;
use namehop_wire::Name;

use crate::fault::Fault;
use crate::log_filter::parse_filter;
use crate::settings::Settings;
use crate::{Auto, Config, StaticFace};

/// Longest path of a Unix socket in bytes: `sun_path` of unix(7) without its final zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;

impl Config {
    /// Returns the first error.
    pub(crate) fn first_fault(&self) -> Option<Fault> {
        self.range_fault("")
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

/// Checks the MTU of a configured face. Streams carry whole packets, so only faces over datagrams and frames have an
/// MTU.
fn mtu_fault(index: usize, face: &StaticFace) -> Option<Fault> {
    face.mtu?;
    match &face.uri.0 {
        FaceUri::Udp { .. } => None,
        uri if uri.is_on_port(None) => None,
        uri => Some(Fault::new(
            format!("face[{index}].mtu"),
            format!("{} faces carry whole packets and have no `mtu`; remove it, or use udp4 or udp6", uri.scheme()),
        )),
    }
}
