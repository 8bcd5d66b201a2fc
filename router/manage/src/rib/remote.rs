//! How many routes there may be, and how many of them other hosts may register.
//!
//! A route takes some kilobytes in all tables together, and an application, or a neighbour with a trusted key, can register as many as
//! it has time for.

use std::collections::HashMap;

use namehop_packet::FaceId;

use super::RibError;

/// Most routes at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteLimits {
    /// That other hosts registered for one face.
    pub per_face: usize,
    /// That other hosts registered for all faces together.
    pub remote: usize,
    /// Of all, whoever registered them.
    pub total: usize,
}

impl Default for RouteLimits {
    fn default() -> Self {
        RouteLimits { per_face: 1000, remote: 10_000, total: usize::MAX }
    }
}

/// Counts routes that other hosts registered, by face.
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

    /// Whether the face may have one more.
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

    /// Notes that a route of the face, which `was` remote or did not exist, `is` remote or gone now.
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
