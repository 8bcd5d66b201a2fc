//! File descriptors: raises the limit, and calculates how many connections it allows.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, warn};

/// Descriptors reserved for everything except connections: listeners, second sockets of UDP peers, ports, the state
/// file, HTTP, the runtime.
const RESERVED: usize = 256;
/// Descriptors for each connection: one, and another one while it waits for a slow peer.
const PER_CONNECTION: usize = 2;

/// Raises the soft limit of file descriptors to the hard limit. Returns the limit in effect.
pub fn raise_limit() -> usize {
    let (soft, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            warn!(%error, "cannot read the limit of file descriptors; assuming 1024");
            return 1024;
        }
    };
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(error) => {
            warn!(%error, soft, hard, "cannot raise the limit of file descriptors; it stays unchanged");
            soft
        }
    };
    debug!(limit, "file descriptors");
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Returns how many connections this number of file descriptors allows; at least one.
pub fn connections_for(descriptors: usize) -> usize {
    (descriptors.saturating_sub(RESERVED) / PER_CONNECTION).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_all_else() {
        for (descriptors, connections) in [(65_536, 32_640), (1024, 384), (512, 128), (10, 1)] {
            assert_eq!(connections_for(descriptors), connections, "{descriptors}");
        }
    }

    #[test]
    fn the_limit_is_raised_as_far_as_may_be() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits");
        assert_eq!(raise_limit() as u64, hard);
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).expect("limits"), (hard, hard));
    }
}
