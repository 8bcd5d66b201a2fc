//! Applies the configured and the saved settings when the router starts.
//!
//! Settings made at run time take precedence over the configuration file. Creating a face is retried until its peer
//! answers, and its routes wait for it. Everything else is in effect before the first command is answered.

mod host_names;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use namehop_client::nfd::Code;
use namehop_client::nfd::numbers::{origin, route_flags};
use namehop_config::Config;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tracing::{debug, error, warn};

use namehop_engine::strategy::{StrategyInstance, registry};
use namehop_face::FaceUri;
use namehop_face::registry::{Face, FaceFlags, FacePersistency, FaceUpdate, PitTokenMode};
use namehop_face::socket::CreateError;
use namehop_manage::rib::Route;
use namehop_manage::server::{ControlPlane, Management, RouteError, StateChange};
use namehop_port::drivers::parse_uri;
use namehop_wire::Name;
use namehop_wire::security::unix_time_ms;

use crate::control::Control;
use host_names::NamedFace;

use crate::state::{FaceRecord, RouteKey, RouteTerms, SavedState};

/// Default strategy choices, as in NFD, besides best-route for the root prefix.
const INITIAL_STRATEGIES: [(&str, &str); 3] =
    [("/localhost", "multicast"), ("/localhost/nfd", "best-route"), ("/ndn/broadcast", "multicast")];

/// First and longest pause between two attempts to create a face.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Routes added between two yields, so that a million routes do not block other tasks, in particular the shutdown.
const PORTION: usize = 1024;

/// Longest time that the start waits for faces.
const FACES_TIMEOUT: Duration = Duration::from_millis(500);

/// A face to create, and its routes.
#[derive(Default)]
struct PlannedFace {
    update: FaceUpdate,
    /// Routes that wait for the face, by prefix; the face id is set when the face exists.
    routes: BTreeMap<Name, Route>,
    outcome: Outcome,
}

/// The outcome of creating a planned face.
#[derive(Default)]
enum Outcome {
    /// Creation is in progress.
    #[default]
    Pending,
    /// The face exists; on a multicast group possibly several faces.
    Made(Vec<Arc<Face>>),
    /// The face cannot be created.
    Failed,
}

/// Planned faces by remote URI and, over Ethernet and on multicast groups, local URI.
type FacePlan = BTreeMap<(String, Option<String>), Rc<RefCell<PlannedFace>>>;

/// Applies all settings. Frees each saved route as it takes effect: a million of them take as much memory here as in
/// the tables.
pub async fn apply(management: &Rc<Management<Control>>, config: &Config, saved: SavedState) {
    load_strategies(management, config, &saved);
    choose_strategies(management.control(), config, &saved);
    if let Some(settings) = saved.content_store.clone() {
        management.control().configure_cs(settings.into()).await;
    }
    let mut plan = FacePlan::new();
    plan_configured(&mut plan, config);
    plan_saved(&mut plan, &saved);
    management.control().await_sockets().await;
    let mut faces = JoinSet::new();
    // Open ports before faces: a face might otherwise open its port without the port's configuration.
    let opening = Rc::clone(management);
    faces.spawn_local(async move { opening.control().open_ports().await });
    for ((uri, local), face) in &plan {
        match parse_uri(uri) {
            // The configuration creates the multicast faces over sockets, not this function.
            Ok(uri @ FaceUri::Udp { .. }) if uri.is_multicast() => {
                use_multicast_faces(management, &uri, local.as_deref(), face).await;
            }
            Ok(uri) if uri.has_host_name() => {
                let planned = mem::take(&mut *face.borrow_mut());
                let routes = planned.routes.into_iter().collect();
                drop(faces.spawn_local(NamedFace::new(management, uri, planned.update, routes).start()));
            }
            Ok(uri) => {
                let local = local.as_ref().and_then(|local| parse_uri(local).ok());
                drop(faces.spawn_local(make_face(Rc::clone(management), uri, local, Rc::clone(face))));
            }
            Err(error) => {
                warn!(%uri, %error, "cannot restore a face");
                face.borrow_mut().outcome = Outcome::Failed;
            }
        }
    }
    // Most faces are created at once. A peer that does not answer must not make applications wait.
    let _ = timeout(FACES_TIMEOUT, async { while faces.join_next().await.is_some() {} }).await;
    faces.detach_all();
    add_saved_routes(management, &plan, saved.routes).await;
}

/// Loads configured and saved strategies, except strategies that ended the router by a fault. Configured ones were
/// tested when the configuration was read, so errors are rare here: the file was changed since.
fn load_strategies(management: &Management<Control>, config: &Config, saved: &SavedState) {
    let restore = |name: &str, object: Vec<u8>| {
        if management.control().saving().faulty_strategies().contains(name, &object) {
            return Err(
                "it crashed the router earlier; load a corrected version with `namehop strategy load`".to_owned()
            );
        }
        management.restore_strategy(name, &object)
    };
    for loaded in &config.loaded_strategy {
        if let Err(error) = loaded.read().and_then(|object| restore(&loaded.name, object)) {
            error!(name = loaded.name, error, "cannot load a configured strategy");
        }
    }
    for (name, loaded) in &saved.loaded_strategies {
        let object = loaded.object().ok_or_else(|| "the state file is damaged".to_owned());
        if let Err(error) = object.and_then(|object| restore(name, object)) {
            error!(name, error, "cannot restore a loaded strategy");
        }
    }
}

fn choose_strategies(control: &Control, config: &Config, saved: &SavedState) {
    let parse = |short: &str| {
        let name = registry::full_name(short).ok()?;
        StrategyInstance::parse(name.as_ref()).ok()
    };
    let initial =
        INITIAL_STRATEGIES.iter().filter_map(|(prefix, short)| Some((Name::from_str(prefix).ok()?, parse(short)?)));
    let configured = config.strategy.iter().filter_map(|choice| {
        let (prefix, name) = (&choice.prefix.0, &choice.strategy.0);
        let strategy = control.with_strategies(|all| all.parse(name.as_ref()));
        let strategy = strategy.inspect_err(|error| warn!(%prefix, %name, %error, "cannot set a strategy"));
        Some((prefix.clone(), strategy.ok()?))
    });
    for (prefix, strategy) in initial.chain(configured) {
        if let Err(error) = control.with_fib(|fib| fib.set_strategy(prefix.as_ref(), strategy)) {
            warn!(%prefix, %error, "cannot set a strategy");
        }
    }
    for (prefix, strategy) in &saved.strategies {
        let Ok(prefix) = Name::from_str(prefix) else { continue };
        let result = match strategy
            .as_deref()
            .map(|text| Name::from_str(text).map(|name| control.with_strategies(|all| all.parse(name.as_ref()))))
        {
            None => control
                .with_fib(|fib| fib.unset_strategy(prefix.as_ref()))
                .map(|_| ())
                .map_err(|error| error.to_string()),
            Some(Ok(Ok(strategy))) => {
                control.with_fib(|fib| fib.set_strategy(prefix.as_ref(), strategy)).map_err(|error| error.to_string())
            }
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(error)) => Err(error.to_string()),
        };
        if let Err(error) = result {
            warn!(%prefix, error, "cannot restore a saved strategy choice");
        }
    }
}

fn plan_configured(plan: &mut FacePlan, config: &Config) {
    for face in &config.face {
        let tokens = face.pit_tokens.map(PitTokenMode::from);
        let switches = [
            (FaceFlags::RELIABILITY, face.reliability.then_some(true)),
            (FaceFlags::CONGESTION_MARKING, face.congestion_marking),
            (FaceFlags::KEEP_ALIVE, face.keep_alive),
            (FaceFlags::PIT_TOKENS_ON, tokens.map(|tokens| tokens == PitTokenMode::On)),
            (FaceFlags::PIT_TOKENS_OFF, tokens.map(|tokens| tokens == PitTokenMode::Off)),
        ];
        let union = |is_chosen: fn(Option<bool>) -> bool| {
            let chosen = switches.into_iter().filter(|(_, switch)| is_chosen(*switch));
            chosen.fold(FaceFlags::default(), |flags, (flag, _)| flags.union(flag))
        };
        let local = config.complete_local_uri(face).map(|local| local.to_string());
        plan.entry((face.uri.0.to_string(), local)).or_default().borrow_mut().update = FaceUpdate {
            persistency: Some(face.persistency),
            flags: union(|switch| switch == Some(true)),
            flags_mask: union(|switch| switch.is_some()).0,
            mtu_bytes: face.mtu,
            ..FaceUpdate::default()
        };
    }
    for route in &config.route {
        let flags = if route.child_inherit { route_flags::CHILD_INHERIT } else { 0 }
            | if route.capture { route_flags::CAPTURE } else { 0 };
        let permanent = FaceUpdate { persistency: Some(FacePersistency::Permanent), ..FaceUpdate::default() };
        let local = config.local_uri_of(&route.nexthop.0).map(|local| local.to_string());
        let face = plan
            .entry((route.nexthop.0.to_string(), local))
            .or_insert_with(|| Rc::new(RefCell::new(PlannedFace { update: permanent, ..PlannedFace::default() })));
        face.borrow_mut().routes.insert(route.prefix.0.clone(), static_route(route.cost, flags, None));
    }
}

/// Creates a static route without its face id, which is set when the face exists.
fn static_route(cost: u64, flags: u64, expires_at_ms: Option<u64>) -> Route {
    Route {
        face: Default::default(),
        origin: origin::STATIC,
        cost,
        flags,
        expires_at_ms,
        announcement: None,
        is_remote: false,
    }
}

fn plan_saved(plan: &mut FacePlan, saved: &SavedState) {
    for face in saved.faces.values() {
        plan.entry((face.uri.clone(), face.local_uri.clone())).or_default().borrow_mut().update = saved_update(face);
    }
    // Persistent faces are not saved, but their routes are.
    for key in saved.routes.keys() {
        plan.entry((key.face.clone(), key.local.clone())).or_default();
    }
}

/// Adds the saved routes to existing faces, and to the plan of faces that are still being created.
async fn add_saved_routes(management: &Management<Control>, plan: &FacePlan, routes: BTreeMap<RouteKey, RouteTerms>) {
    let (now_ms, now_unix_ms) = (management.now_ms(), unix_time_ms());
    let mut failed_routes: BTreeMap<String, usize> = BTreeMap::new();
    for (number, (key, terms)) in routes.into_iter().enumerate() {
        if number % PORTION == 0 {
            yield_now().await;
        }
        let expires_at_ms = match terms.remaining_ms(now_unix_ms) {
            Some(0) => continue,
            Some(remaining_ms) => Some(now_ms.saturating_add(remaining_ms)),
            None => None,
        };
        let Ok(prefix) = Name::from_str(&key.prefix) else { continue };
        let route = static_route(terms.cost, terms.flags, expires_at_ms);
        let face_key = (key.face, key.local);
        let Some(planned) = plan.get(&face_key) else { continue };
        let planned = &mut *planned.borrow_mut();
        match &planned.outcome {
            Outcome::Made(faces) => faces.iter().for_each(|face| add_route(management, face, &prefix, &route)),
            Outcome::Pending => drop(planned.routes.insert(prefix, route)),
            Outcome::Failed => *failed_routes.entry(face_key.0).or_default() += 1,
        }
    }
    for (uri, routes) in failed_routes {
        warn!(%uri, routes, "cannot restore saved routes: their face does not exist");
    }
}

fn saved_update(face: &FaceRecord) -> FaceUpdate {
    FaceUpdate {
        persistency: FacePersistency::from_code(face.persistency),
        flags: FaceFlags(face.flags),
        // Flags of local fields belong to the connection that requested them.
        flags_mask: FaceFlags::RELIABILITY
            .union(FaceFlags::CONGESTION_MARKING)
            .union(FaceFlags::KEEP_ALIVE)
            .union(FaceFlags::PIT_TOKENS)
            .0,
        base_congestion_marking_interval_ns: face.base_congestion_marking_interval_ns,
        default_congestion_threshold_bytes: face.default_congestion_threshold_bytes,
        mtu_bytes: face.mtu,
    }
}

/// Uses the existing multicast faces of a group: the face with this local URI, or the faces of all interfaces.
async fn use_multicast_faces(
    management: &Management<Control>,
    uri: &FaceUri,
    local: Option<&str>,
    planned: &RefCell<PlannedFace>,
) {
    let mut faces = management.control().faces().find_by_remote(uri);
    faces.retain(|face| local.is_none_or(|local| face.local_uri().to_string() == local));
    if faces.is_empty() {
        warn!(%uri, local, "cannot add routes to a multicast face that does not exist; see [faces.multicast]");
        planned.borrow_mut().outcome = Outcome::Failed;
    } else {
        settle(management, planned, faces).await;
    }
}

/// Creates a face; retries while its peer does not answer.
async fn make_face(
    management: Rc<Management<Control>>,
    uri: FaceUri,
    local: Option<FaceUri>,
    planned: Rc<RefCell<PlannedFace>>,
) {
    let mut pause = RETRY_PAUSE;
    let update = planned.borrow().update;
    loop {
        match attempt(&management, &uri, local.as_ref(), update).await {
            Ok(face) => {
                debug!(%uri, "face restored");
                return settle(&management, &planned, vec![face]).await;
            }
            Err(error @ CreateError::Unreachable(_)) => {
                let routes = planned.borrow().routes.len();
                warn!(%uri, %error, routes, "cannot restore a face yet; retrying");
            }
            Err(error) => {
                let planned = &mut *planned.borrow_mut();
                warn!(%uri, %error, routes = planned.routes.len(), "cannot restore a face");
                planned.routes.clear();
                planned.outcome = Outcome::Failed;
                return;
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE_MAX);
    }
}

/// Creates a face, or applies `update` to the face that exists already.
async fn attempt(
    management: &Management<Control>,
    uri: &FaceUri,
    local: Option<&FaceUri>,
    update: FaceUpdate,
) -> Result<Arc<Face>, CreateError> {
    match management.control().create_face(uri.clone(), local.cloned(), update).await {
        Err(CreateError::Exists(face)) => {
            if management.control().update_face(&face, update).await.is_err() {
                warn!(%uri, "the face exists and does not accept its saved properties");
            }
            Ok(face)
        }
        made => made,
    }
}

/// Records that the faces exist and adds the routes that waited for them.
async fn settle(management: &Management<Control>, planned: &RefCell<PlannedFace>, faces: Vec<Arc<Face>>) {
    let routes = mem::take(&mut planned.borrow_mut().routes);
    // Routes that are added from now on need not wait.
    planned.borrow_mut().outcome = Outcome::Made(faces.clone());
    for (number, (prefix, route)) in routes.into_iter().enumerate() {
        if number % PORTION == 0 {
            yield_now().await;
        }
        faces.iter().for_each(|face| add_route(management, face, &prefix, &route));
    }
}

/// Adds a route to an existing face.
fn add_route(management: &Management<Control>, face: &Face, prefix: &Name, route: &Route) {
    let route = Route { face: face.id(), ..route.clone() };
    let origin = route.origin;
    if let Err(error) = management.add_route(prefix.as_ref(), route) {
        warn!(%prefix, face = %face.id(), %error, "cannot restore a route");
        if error == RouteError::Dedicated {
            // The route can never take effect, so remove it from the state file, which an older version may have
            // written.
            let change = StateChange::RouteUnregistered { prefix: prefix.as_ref(), face: face.id(), origin };
            // If this cannot be saved, the next start rejects the route again.
            let _ = management.control().save(change);
        }
    }
}
