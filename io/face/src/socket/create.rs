//! Creating faces on command (NFD management protocol, `faces/create`): which requests are refused, and with which
//! status.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use namehop_packet::FaceScope;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

use super::datagram_path::Path;
use super::error::CreateError;
use super::listen::{any_of_family, source_towards};
use super::shared::ServiceState;
use super::{connected, locality, tcp, websocket};
use crate::registry::{Face, FaceFlags, FacePersistency, FaceUpdate};
use crate::uri::FaceUri;

type Reply = oneshot::Sender<Result<Arc<Face>, CreateError>>;

/// Executes one command and replies, at once or when the connection is established.
pub(super) fn create(
    shared: &Rc<ServiceState>,
    uri: FaceUri,
    local_uri: Option<&FaceUri>,
    update: FaceUpdate,
    reply: Reply,
) {
    let is_permanent = update.persistency == Some(FacePersistency::Permanent);
    // Sending a reply fails only if the receiver has stopped waiting for it.
    match check(shared, uri, local_uri, &update) {
        Err(error) => drop(reply.send(Err(error))),
        Ok(Wanted::Udp(peer)) => drop(reply.send(create_udp(shared, peer, &update))),
        // A permanent face is created whether or not its peer can be reached now.
        Ok(Wanted::Tcp(peer)) if is_permanent => drop(reply.send(tcp::create_down(shared, peer, &update))),
        Ok(Wanted::WebSocket(server)) if is_permanent => {
            drop(reply.send(websocket::create_down(shared, server, &update)));
        }
        Ok(Wanted::Tcp(peer)) => {
            connect(shared, FaceUri::tcp(peer), reply, async move |shared| tcp::create(&shared, peer, update).await);
        }
        Ok(Wanted::WebSocket(server)) => {
            let uri = server.uri.clone();
            connect(shared, uri, reply, async move |shared| websocket::create(&shared, server, update).await);
        }
    }
}

enum Wanted {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    WebSocket(websocket::Server),
}

fn check(
    shared: &ServiceState,
    uri: FaceUri,
    local_uri: Option<&FaceUri>,
    update: &FaceUpdate,
) -> Result<Wanted, CreateError> {
    let refuse = |text: &str| Err(CreateError::NotAcceptable(text.to_owned()));
    if !uri.is_canonical() {
        return Err(CreateError::Malformed(format!(
            "face URI {uri} is not canonical: write a numeric address, the address family and the port, for example \
             udp4://192.0.2.1:6363"
        )));
    }
    let address = uri.socket_address();
    let wanted = match (&uri, address) {
        (FaceUri::Udp { .. }, _) if uri.is_multicast() => {
            return refuse("multicast faces are created from the configuration, not by command");
        }
        (FaceUri::Udp { .. }, Some(address)) => Wanted::Udp(address),
        (FaceUri::Tcp { .. }, Some(address)) if address.ip().is_multicast() => {
            return refuse("TCP does not support multicast");
        }
        (FaceUri::Tcp { .. }, Some(address)) => Wanted::Tcp(address),
        (FaceUri::WebSocket { secure: true, .. }, _) => return refuse("WebSocket over TLS is not supported"),
        (FaceUri::WebSocket { .. }, Some(address)) => {
            Wanted::WebSocket(websocket::Server { address, uri: uri.clone() })
        }
        (FaceUri::Udp { .. } | FaceUri::Tcp { .. }, None) => {
            return Err(CreateError::Malformed(format!(
                "face URI {uri} names an interface that this host does not have"
            )));
        }
        _ => {
            let scheme = uri.scheme();
            return Err(CreateError::NotAcceptable(format!(
                "faces of scheme {scheme} cannot be created over sockets: use udp4, udp6, tcp4, tcp6 or ws"
            )));
        }
    };
    if local_uri.is_some() {
        return refuse("a local URI cannot be chosen for this scheme");
    }
    if update.persistency == Some(FacePersistency::OnDemand) {
        return refuse("a face created by command cannot be on-demand: choose persistent or permanent");
    }
    let local_fields = update.flags_mask & update.flags.0 & FaceFlags::LOCAL_FIELDS.0 != 0;
    let loopback_is_local = match wanted {
        Wanted::Udp(_) => false,
        Wanted::Tcp(_) => shared.config.tcp_is_local,
        Wanted::WebSocket(_) => shared.config.websocket_is_local,
    };
    let may_be_local =
        address.is_some_and(|address| locality::scope(loopback_is_local, address, address) == FaceScope::Local);
    if local_fields && !may_be_local {
        return refuse("local fields are available only on faces to this host");
    }
    if update.mtu_bytes.is_some() && !matches!(wanted, Wanted::Udp(_)) {
        return refuse("this transport carries whole packets, so its MTU cannot be set");
    }
    let normal = match &wanted {
        Wanted::Udp(address) => FaceUri::udp(*address),
        Wanted::Tcp(address) => FaceUri::tcp(*address),
        Wanted::WebSocket(server) => server.uri.clone(),
    };
    refuse_second(shared, &normal)?;
    Ok(wanted)
}

/// Returns an error if a face to `remote` exists. If there are several, the error names one that is not on-demand, if
/// possible.
pub(super) fn refuse_second(shared: &ServiceState, remote: &FaceUri) -> Result<(), CreateError> {
    let is_on_demand = |face: &Arc<Face>| face.persistency() == FacePersistency::OnDemand;
    match shared.table.find_by_remote(remote).into_iter().min_by_key(is_on_demand) {
        Some(face) => Err(CreateError::Exists(face)),
        None => Ok(()),
    }
}

/// Creates a face to `peer` on the channel that reaches it, or with a socket of its own.
fn create_udp(shared: &Rc<ServiceState>, peer: SocketAddr, update: &FaceUpdate) -> Result<Arc<Face>, CreateError> {
    let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
    let channels = shared.channels.borrow();
    let mut fitting = channels.iter().filter(|channel| channel.local.is_ipv4() == peer.is_ipv4()).peekable();
    if fitting.peek().is_none() {
        return Err(CreateError::Unreachable(format!(
            "no UDP socket is open for {family}: configure a UDP listener for it"
        )));
    }
    let source = source_towards(peer, any_of_family(peer))
        .map_err(|error| CreateError::Unreachable(format!("no {family} route to {peer}: {error}")))?;
    let (mut exact, mut any, mut other) = (None, None, None);
    for channel in fitting {
        let local = channel.local.ip();
        if local == source.ip() {
            exact = Some(channel);
        } else if local.is_unspecified() {
            any = Some(channel);
        } else if local.is_loopback() == peer.ip().is_loopback() {
            other = other.or(Some(channel));
        }
    }
    let Some(channel) = exact.or(any).or(other) else { return connected::create(shared, peer, update) };
    let mut local = if channel.local.ip().is_unspecified() { source } else { channel.local };
    local.set_port(channel.local.port());
    channel
        .open_unicast(shared, Path { remote: peer, local }, FacePersistency::Persistent, update)
        .map(|peer| Arc::clone(&peer.face))
        .map_err(|error| CreateError::NotAcceptable(error.to_string()))
}

/// Runs `attempt`. If an attempt for the same URI is in progress, waits for its outcome instead.
fn connect(
    shared: &Rc<ServiceState>,
    uri: FaceUri,
    reply: Reply,
    attempt: impl AsyncFnOnce(Rc<ServiceState>) -> Result<Arc<Face>, CreateError> + 'static,
) {
    if let Some(waiting) = shared.connecting.borrow_mut().get_mut(&uri) {
        waiting.push(reply);
        return;
    }
    shared.connecting.borrow_mut().insert(uri.clone(), Vec::new());
    let shared = Rc::clone(shared);
    spawn_local(async move {
        let result = attempt(Rc::clone(&shared)).await;
        let later = match &result {
            Ok(face) => CreateError::Exists(Arc::clone(face)),
            Err(error) => error.clone(),
        };
        for waiting in shared.connecting.borrow_mut().remove(&uri).unwrap_or_default() {
            let _ = waiting.send(Err(later.clone()));
        }
        let _ = reply.send(result);
    });
}
