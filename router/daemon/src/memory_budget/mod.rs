//! Fits the settings that bound memory to the available memory.
//!
//! Each setting has a usual value and a least value. [`Budget::fit`] places each setting that the configuration leaves
//! at `"auto"` at the same fraction of the way from its least to its usual value: the largest fraction at which
//! everything fits. Configured values are kept. This module only calculates; [`host`] reads the available memory.

mod engine;
pub mod host;
mod need;
mod report;
#[cfg(test)]
mod tests;

use crate::placement::worker_count;
use host::HostMemory;
use namehop_config::Config;
use need::Need;

use need::needs;

/// Number of steps from the least to the usual values.
const STEPS: usize = 1024;
/// Fraction of the available memory that the settings may take. The rest is for the kernel, its socket buffers, and
/// other programs.
const PART: (usize, usize) = (3, 4);
/// Largest address space for the table of names, in packets, which allows commands to enlarge the cache.
const MOST_RESERVED_PACKETS: usize = 4 << 20;
/// Maximum number of routes, if memory allows more.
const MOST_ROUTES: usize = 1 << 28;

/// Upper bounds of everything that takes memory, for all workers together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Pending Interests.
    pub pit_capacity: usize,
    /// Bytes for long names of pending Interests.
    pub pit_memory_bytes: usize,
    /// Nonces in the Dead Nonce List.
    pub dead_nonce_capacity: usize,
    /// Timers that one worker can set within 2.1 s.
    pub new_timers: usize,
    /// FIB prefixes with measurements.
    pub measurement_capacity: usize,
    /// Packet buffers of 2 KiB.
    pub small_buffers: usize,
    /// Packet buffers of 9 KiB.
    pub large_buffers: usize,
    /// Number of cached Data.
    pub capacity_packets: usize,
    /// Bytes of cached Data.
    pub capacity_bytes: usize,
    /// Largest number of cached Data that a command can configure.
    pub reserved_packets: usize,
    /// Number of faces.
    pub max_faces: usize,
    /// Bytes in the send queues of all connections.
    pub all_send_queues_bytes: usize,
    /// Number of routes that other hosts registered.
    pub max_remote_routes: usize,
    /// Total number of routes.
    pub max_routes: usize,
}

/// A setting that bounds memory.
struct Setting {
    /// Section and key in the configuration; `None` for bounds that always follow from the memory.
    key: Option<(&'static str, &'static str)>,
    unit: Unit,
    /// Reads the configured value; `None` for `"auto"`.
    configured: fn(&Config) -> Option<usize>,
    usual: usize,
    least: usize,
    bound: fn(&mut Bounds) -> &mut usize,
}

/// The unit of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of entries, packets or faces.
    Number,
    /// Bytes.
    Bytes,
}

macro_rules! settings {
    (configured { $($section:ident . $key:ident: $unit:ident, $read:ident, $least:expr, $usual:expr;)* }
     following { $($bound:ident: $follow_least:expr, $follow_usual:expr;)* }) => {
        /// All settings that bound memory.
        const SETTINGS: &[Setting] = &[
            $(Setting {
                key: Some((stringify!($section), stringify!($key))),
                unit: Unit::$unit,
                configured: |config| config.$section.$key.$read(),
                usual: $usual,
                least: $least,
                bound: |bounds| &mut bounds.$key,
            },)*
            $(Setting {
                key: None,
                unit: Unit::Number,
                configured: |_| None,
                usual: $follow_usual,
                least: $follow_least,
                bound: |bounds| &mut bounds.$bound,
            },)*
        ];
    };
}

settings! {
    configured {
    forwarding.pit_capacity: Number, value, 2_048, 131_072;
    forwarding.measurement_capacity: Number, value, 512, 65_536;
    forwarding.small_buffers: Number, value, 1_024, 32_768;
    forwarding.large_buffers: Number, value, 128, 8_192;
    content_store.capacity_packets: Number, value, 512, 65_536;
    content_store.capacity_bytes: Bytes, bytes, 1 << 20, 512 << 20;
    faces.max_faces: Number, value, 128, 16_384;
    faces.all_send_queues_bytes: Bytes, bytes, 1 << 20, 256 << 20;
    management.max_remote_routes: Number, value, 250, 10_000;
    }
    following {
    pit_memory_bytes: 1 << 20, 64 << 20;
    dead_nonce_capacity: 1 << 14, 1 << 20;
    new_timers: 1 << 16, 1 << 24;
    max_routes: 1_000, 40_000;
    }
}

/// A setting with less than its usual value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// Section of the configuration.
    pub section: &'static str,
    /// Key in the section.
    pub key: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Its usual value.
    pub usual: usize,
    /// Its fitted value.
    pub value: usize,
}

/// Bounds that fit, with the calculation behind them.
#[derive(Debug, Clone)]
pub struct Budget {
    /// The bounds of the router.
    pub bounds: Bounds,
    /// Settings with less than their usual value.
    pub shrunk: Vec<Shrunk>,
    /// Maximum memory by purpose, largest first.
    pub needs: Vec<Need>,
    /// The sum of `needs`, without tables that fit on reserved huge pages.
    pub needed_bytes: usize,
    /// Bytes that the settings may take together; `None` if the available memory is unknown.
    pub limit_bytes: Option<usize>,
    /// Origin of the limit, for messages.
    pub source: String,
}

impl Budget {
    /// Fits `config` to the memory of this host, or to the limit that the configuration sets.
    pub fn of_host(config: &Config) -> Budget {
        Budget::fit(config, worker_count(config), HostMemory::read("/".as_ref()).as_ref())
    }

    /// Fits `config`, for this number of workers, to a host.
    pub fn fit(config: &Config, workers: usize, host: Option<&HostMemory>) -> Budget {
        let (limit_bytes, source) = match (config.memory.limit.bytes(), host) {
            (Some(limit), _) => (Some(limit), "`limit` in section [memory]".to_owned()),
            (None, Some(host)) => (Some(host.available_bytes / PART.1 * PART.0), host.to_string()),
            (None, None) => (None, "the amount of available memory is unknown".to_owned()),
        };
        let pool_bytes = host.map_or(0, |host| host.pool_bytes_for(config.memory.huge_pages));
        let needed = |step| need::total(config, &bounds_at(config, step), workers, pool_bytes);
        let fits = |step: &usize| limit_bytes.is_none_or(|limit| needed(*step) <= limit);
        // The need grows with each step, so a binary search works.
        let steps: Vec<usize> = (1..=STEPS).collect();
        let step = steps.partition_point(fits);
        let mut bounds = bounds_at(config, step);
        let left_bytes = limit_bytes.map_or(usize::MAX, |limit| limit.saturating_sub(needed(step)));
        let needs = needs(config, &bounds, workers);
        bounds.use_rest(config, left_bytes);
        Budget {
            shrunk: SETTINGS.iter().filter_map(|setting| setting.shrunk(config, &mut bounds.clone())).collect(),
            needs,
            needed_bytes: needed(step),
            bounds,
            limit_bytes,
            source,
        }
    }
}

/// Returns the bounds at `step`, where 0 stands for the least values and [`STEPS`] for the usual ones.
fn bounds_at(config: &Config, step: usize) -> Bounds {
    let mut bounds = Bounds::default();
    for setting in SETTINGS {
        *(setting.bound)(&mut bounds) = (setting.configured)(config).unwrap_or_else(|| setting.at(step));
    }
    // Unless configured, `use_rest` raises this into the remaining memory.
    bounds.max_routes = config.management.max_routes.value().unwrap_or(bounds.max_routes);
    bounds.reserved_packets = bounds.capacity_packets;
    bounds.max_remote_routes = bounds.max_remote_routes.min(bounds.max_routes);
    bounds
}

impl Setting {
    fn at(&self, step: usize) -> usize {
        self.least + (self.usual - self.least) * step / STEPS
    }

    fn shrunk(&self, config: &Config, bounds: &mut Bounds) -> Option<Shrunk> {
        let (section, key) = self.key.filter(|_| (self.configured)(config).is_none())?;
        let value = *(self.bound)(bounds);
        (value < self.usual).then_some(Shrunk { section, key, unit: self.unit, usual: self.usual, value })
    }
}

impl Bounds {
    /// Divides the remaining memory between routes and the cache, half each.
    fn use_rest(&mut self, config: &Config, left_bytes: usize) {
        let half = left_bytes / 2;
        if config.management.max_routes.value().is_none() {
            self.max_routes = self.max_routes.saturating_add(half / need::ROUTE_BYTES).min(MOST_ROUTES);
        }
        let packets = half / need::cached_packet_bytes();
        let most = MOST_RESERVED_PACKETS.max(self.capacity_packets);
        self.reserved_packets = self.capacity_packets.saturating_add(packets).min(most);
    }
}
