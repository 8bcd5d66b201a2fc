//! Limits on the number of routes, in total and registered by other hosts.
//!
//! A route takes some kilobytes in all tables together. Without limits, an application, or a neighbour with a trusted
//! key, could register any number of them.

use std::collections::HashMap;

use namehop_packet::FaceId;

use super::RibError;

/// Maximum numbers of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteLimits {
    /// Routes that other hosts registered for one face.
    pub per_face: usize,
    /// Routes that other hosts registered for all faces together.
    pub remote: usize,
    /// All routes.
    pub total: usize,
}

impl Default for RouteLimits {
    fn default() -> Self {
        RouteLimits { per_face: 1000, remote: 10_000, total: usize::MAX }
    }
}

/// Counts the routes that other hosts registered, by face.
#[derive(Debug, Default)]
pub(super) struct RemoteRoutes {
    pub(super) limits: RouteLimits,
    pub(super) by_face: HashMap<FaceId, usize>,
    pub(super) total: usize,
}

impl RemoteRoutes {
    pub(super) fn new(limits: RouteLimits) -> Self {
        RemoteRoutes { limits, ..RemoteRoutes::default() }
    }

    /// Checks that the face may have one more route.
    pub(super) fn check(&self, face: FaceId) -> Result<(), RibError> {
        let of_face = self.by_face.get(&face).copied().unwrap_or_default();
        if of_face >= self.limits.per_face {
            Err(RibError::TooManyOfFace(of_face))
        } else if self.total >= self.limits.remote {
            Err(RibError::TooManyRemote(self.total))
        } else {
            Ok(())
        }
    }

    /// Updates the counts after a route of the face changed. `was` and `is` say if it was and is remote; a missing
    /// route is not.
    pub(super) fn count(&mut self, face: FaceId, was: bool, is: bool) {
        match (was, is) {
            (false, true) => {
                *self.by_face.entry(face).or_default() += 1;
                self.total += 1;
            }
            (true, false) => {
                self.total -= 1;
                if let Some(count) = self.by_face.get_mut(&face) {
                    *count -= 1;
                    if *count == 0 {
                        self.by_face.remove(&face);
                    }
                }
            }
            _ => {}
        }
    }
}
