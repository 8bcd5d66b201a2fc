//! Collects the metrics on the control thread, where most of them are.

use std::rc::Rc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use namehop_face::LinkDrop;
use namehop_manage::http::HttpServer;
use namehop_manage::metrics::Snapshot;
use namehop_manage::server::{ControlPlane, Management};
use namehop_table::table_memory_in_use;

use crate::control::Control;
use crate::supervise::Supervisor;

/// Most queued requests for metrics.
const REQUESTS: usize = 16;

/// Serves metrics while the control thread runs.
pub fn serve(server: HttpServer, management: &Rc<Management<Control>>, supervisor: Supervisor) {
    let started = Instant::now();
    let (requests, mut inbox) = mpsc::channel::<oneshot::Sender<Snapshot>>(REQUESTS);
    let management = Rc::clone(management);
    let collecting = async move {
        while let Some(reply) = inbox.recv().await {
            // The client may have disconnected.
            let _ = reply.send(collect(&management, started).await);
        }
    };
    spawn_local(supervisor.clone().watch_endless("metrics collection", collecting));
    let serving = async move {
        // Called on a thread for blocking work; the control thread collects the snapshot.
        let request = move || {
            let (reply, answer) = oneshot::channel();
            let sent = requests.blocking_send(reply);
            let snapshot = sent.ok().and_then(|()| answer.blocking_recv().ok()).unwrap_or_default();
            // Takes some milliseconds with large tables, so not on the control thread.
            Snapshot { table_memory: table_memory_in_use(), ..snapshot }
        };
        server.run(request).await;
    };
    spawn_local(supervisor.watch_endless("metrics server", serving));
}

async fn collect(management: &Management<Control>, started: Instant) -> Snapshot {
    let control = management.control();
    let (rib_routes, rib_entries) = management.rib_sizes();
    Snapshot {
        table_memory: Vec::new(),
        uptime_seconds: started.elapsed().as_secs_f64(),
        engine: control.engine_status().await,
        workers: control.worker_statuses().await,
        power: control.power(),
        latency: control.latency().await,
        fib_waiting: control.with_fib(|fib| fib.reclaim() as u64),
        link_drops: LinkDrop::ALL.iter().map(|&reason| (reason, control.faces().link_drops().get(reason))).collect(),
        fib_entries: control.with_fib(|fib| fib.len() as u64),
        rib_entries: rib_entries as u64,
        rib_routes: rib_routes as u64,
        readvertise: management.readvertise_status(),
        faces: control.faces().snapshot(),
        gone: management.gone_faces(),
    }
}
