//! The maximum memory use of a router with given bounds.

use namehop_config::Config;
use namehop_packet::BufferPool;

use super::Bounds;

/// Program, heap, threads and HTTP server of a router without traffic.
const BASE_BYTES: usize = 20 << 20;
/// Rings and lists of a worker.
const WORKER_BYTES: usize = 2 << 20;
/// DPDK with its drivers: about 14 MB measured with a TAP port. In addition it has its own memory for all packet
/// buffers.
const PORTS_BYTES: usize = 16 << 20;
/// A face with its transport and counters, and the 16 KiB that it may queue beyond the budget of all send queues.
const FACE_BYTES: usize = (16 << 10) + (6 << 10);
/// A route in the RIB, in the FIB, and in the list of saved routes: a million with short names take 260 MB, and twice
/// as much after a restart.
pub(super) const ROUTE_BYTES: usize = 1 << 10;
/// Additional memory of a route that another host registered, with its announcement.
const REMOTE_ROUTE_BYTES: usize = 3 << 10;
/// Memory of an incomplete packet besides its buffer.
const INCOMPLETE_PACKET_BYTES: usize = 1_700;
/// Index of the second tier of the Content Store for each GiB of it, and disk buffers of each worker.
const DISK_INDEX_BYTES_PER_GIB: usize = 5 << 20;
const DISK_WORKER_BYTES: usize = 7 << 20;

/// Memory for one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The purpose, for messages.
    pub purpose: &'static str,
    /// The settings that bound this memory, for messages.
    pub settings: &'static str,
    /// Maximum number of bytes.
    pub bytes: usize,
}

/// Returns the maximum memory for each purpose with these bounds, largest first.
pub fn needs(config: &Config, bounds: &Bounds, workers: usize) -> Vec<Need> {
    let Bounds { small_buffers, large_buffers, max_faces, max_routes, .. } = *bounds;
    let of_engine = bounds.of_engine(config, 0, workers).memory();
    let of_all = |bytes: usize| bytes.saturating_mul(workers);
    let buffers = BufferPool::bytes_for(small_buffers, large_buffers);
    let ports = if config.has_ports() { PORTS_BYTES.saturating_add(buffers) } else { 0 };
    let disk = config.content_store.disk.as_ref().map_or(0, |disk| {
        let gibibytes = usize::try_from(disk.capacity_bytes.0.div_ceil(1 << 30)).unwrap_or(usize::MAX);
        gibibytes.saturating_mul(DISK_INDEX_BYTES_PER_GIB).saturating_add(of_all(DISK_WORKER_BYTES))
    });
    let remote_routes = bounds.max_remote_routes.saturating_mul(REMOTE_ROUTE_BYTES);
    let need = |purpose, settings, bytes| Need { purpose, settings, bytes };
    let mut needs = vec![
        need("program and threads", "[forwarding] workers", BASE_BYTES.saturating_add(of_all(WORKER_BYTES))),
        need("packet buffers", "[forwarding] small_buffers, large_buffers", buffers),
        need("ports", "[forwarding] small_buffers, large_buffers", ports),
        need("incomplete packets", "[forwarding] large_buffers", (large_buffers / 4) * INCOMPLETE_PACKET_BYTES),
        need("pending Interests", "[forwarding] pit_capacity", of_all(of_engine.pit)),
        need("dead nonce list", "[forwarding] pit_capacity", of_all(of_engine.dead_nonces)),
        need("strategy measurements", "[forwarding] measurement_capacity", of_all(of_engine.measurements)),
        need("cached Data", "[content_store] capacity_bytes, capacity_packets", of_all(of_engine.content_store)),
        need("disk cache", "[content_store.disk] capacity_bytes", disk),
        need("send queues", "[faces] all_send_queues_bytes", bounds.all_send_queues_bytes),
        need("faces", "[faces] max_faces", max_faces.saturating_mul(FACE_BYTES)),
        need(
            "routes",
            "[management] max_routes, max_remote_routes",
            max_routes.saturating_mul(ROUTE_BYTES).saturating_add(remote_routes),
        ),
    ];
    needs.retain(|need| need.bytes > 0);
    needs.sort_by_key(|need| std::cmp::Reverse(need.bytes));
    needs
}

/// Returns the maximum memory in bytes, without tables on reserved huge pages, which have room for `pool_bytes`.
pub(super) fn total(config: &Config, bounds: &Bounds, workers: usize, pool_bytes: usize) -> usize {
    let all = needs(config, bounds, workers).iter().map(|need| need.bytes).fold(0, usize::saturating_add);
    let tables = bounds.of_engine(config, 0, workers).memory();
    let on_pool = (tables.total() - tables.measurements).saturating_mul(workers).min(pool_bytes);
    all - on_pool
}

/// Returns the bytes of one more cached packet, besides the packet itself.
pub(super) fn cached_packet_bytes() -> usize {
    const MANY: usize = 1 << 20;
    use namehop_engine::{CsConfig, EngineConfig};
    let of = |capacity_packets| {
        let cs = CsConfig { capacity_packets, capacity_bytes: 0, ..CsConfig::default() };
        EngineConfig { cs, ..EngineConfig::default() }.memory().content_store
    };
    (of(MANY) - of(0)).div_ceil(MANY)
}
