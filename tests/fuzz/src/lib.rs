//! The checks of all fuzz targets. Each function takes any bytes and panics only if Namehop is faulty.
//!
//! The fuzzer (`make fuzz`) calls them with evolving inputs. The test of this crate calls them with the stored corpus
//! and a fixed number of its mutations. So every test run repeats the findings of fuzzing.
//!
//! ```
//! for target in namehop_fuzz_checks::TARGETS {
//!     (target.check)(b"not a packet");
//! }
//! ```

#![forbid(unsafe_code)]

mod engine;
mod fib_file;
mod files;
mod framing;
mod http;
mod internet;
mod keys;
mod link;
mod management;
mod messages;
mod packets;
mod program;
mod script;
mod state;
mod text;

/// The check of a target.
pub type Check = fn(&[u8]);

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the fuzz target and of its corpus folder.
    pub name: &'static str,
    /// The check that the fuzzer runs.
    pub check: Check,
    /// The check that the test runs: the same, or a more thorough one where the fuzzer must be fast.
    pub replay: Check,
    /// Cost of an input in relation to one of a plain parser. The test divides the number of mutations by it.
    pub cost: usize,
}

const fn target(name: &'static str, check: Check, cost: usize) -> Target {
    Target { name, check, replay: check, cost }
}

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    target("name", packets::name, 1),
    target("interest", packets::interest, 1),
    target("data", packets::data, 1),
    target("link_packet", packets::link_packet, 1),
    target("signature_info", packets::signature_info, 1),
    target("certificate", packets::certificate, 1),
    target("keys", keys::keys, 1),
    target("prefix_announcement", packets::prefix_announcement, 1),
    target("stream_framing", framing::stream_framing, 1),
    target("link_service", link::link_service, 1),
    // Each input starts a thread.
    target("internet_frames", internet::internet_frames, 10),
    Target { replay: engine::engine_with_all_schedules, ..target("engine", engine::engine, 2) },
    target("control_parameters", packets::control_parameters, 1),
    target("management", management::management, 4),
    target("management_messages", messages::management_messages, 1),
    target("datasets", messages::datasets, 1),
    // Each input creates a runtime and the descriptions of all requests.
    target("http_request", http::http_request, 20),
    target("rdr_metadata", messages::rdr_metadata, 1),
    target("face_uri", text::face_uri, 1),
    target("name_uri", text::name_uri, 1),
    target("strategy_name", text::strategy_name, 1),
    target("strategy_program", program::strategy_program, 2),
    target("transport_uri", text::transport_uri, 1),
    target("client_conf", text::client_conf, 2),
    target("route_file", text::route_file, 1),
    target("configuration", text::configuration, 1),
    target("state_record", state::state_record, 1),
    target("state_file", state::state_file, 4),
    target("fib_file", fib_file::fib_file, 2),
    // Each input creates a tier with all its buffers.
    target("cs_disk_file", namehop_disk::testing::check_file, 10),
    // Each input is a program with its test, run in a thread with a deep stack.
    target("p4_program", namehop_p4_compile::testing::program, 40),
    // Each input is undone in a running program.
    target("p4runtime_messages", namehop_switch::testing::messages, 40),
    target("p4runtime_port", namehop_switch::testing::port, 100),
];

/// Runs the check of one target.
///
/// # Panics
/// Namehop is faulty, or there is no such target.
pub fn run(target: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|known| known.name == target).expect("a known target");
    (target.check)(bytes);
}
