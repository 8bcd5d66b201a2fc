//! Names of the NFD management protocol.

use namehop_wire::Name;

/// Modules of the management protocol.
pub mod module {
    /// Faces.
    pub const FACES: &str = "faces";
    /// Forwarding Information Base.
    pub const FIB: &str = "fib";
    /// Content Store.
    pub const CS: &str = "cs";
    /// Strategy choice.
    pub const STRATEGY_CHOICE: &str = "strategy-choice";
    /// Routing Information Base.
    pub const RIB: &str = "rib";
    /// Name dispatch table, which assigns names to workers.
    pub const NDT: &str = "ndt";
    /// Packet trace.
    pub const TRACE: &str = "trace";
    /// Latency measurement.
    pub const LATENCY: &str = "latency";
    /// Frame capture.
    pub const CAPTURE: &str = "capture";
    /// Status of the router as a whole.
    pub const STATUS: &str = "status";

    /// Modules with commands; authorization rules can name them.
    pub const WITH_COMMANDS: [&str; 9] = [FACES, FIB, CS, STRATEGY_CHOICE, RIB, NDT, TRACE, LATENCY, CAPTURE];
}

/// `/localhost/nfd`: management from this host.
pub fn localhost() -> Name {
    Name::new().append_generic("localhost").append_generic("nfd")
}

/// `/localhop/nfd`: RIB management by neighbours.
pub fn localhop() -> Name {
    Name::new().append_generic("localhop").append_generic("nfd")
}

/// Returns the prefix of commands to a forwarder: [`localhost`] if it is on this host, otherwise [`localhop`].
pub fn of_commands(is_local: bool) -> Name {
    if is_local { localhost() } else { localhop() }
}

/// `/localhost/nfd/<module>/<verb>`.
pub fn localhost_verb(module: &str, verb: &str) -> Name {
    localhost().append_generic(module).append_generic(verb)
}

/// `/localhost/nfd/faces/events`, the notification stream.
pub fn face_events() -> Name {
    localhost_verb(module::FACES, "events")
}
