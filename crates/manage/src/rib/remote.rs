//! How many routes other hosts may register.
//!
//! A route takes some kilobytes in all tables together, and a neighbour with a trusted key can register as many as it has time for.

use std::collections::HashMap;

use namehop_packet::FaceId;

use super::RibError;

/// Most routes that other hosts may have registered at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRouteLimits {
    /// For one face.
    pub per_face: usize,
    /// For all faces together.
    pub total: usize,
}

impl Default for RemoteRouteLimits {
    fn default() -> Self {
        RemoteRouteLimits { per_face: 1000, total: 10_000 }
    }
}

/// Counts routes that other hosts registered, by face.
#[derive(Debug, Default)]
pub(super) struct RemoteRoutes {
    limits: RemoteRouteLimits,
    pub(super) by_face: HashMap<FaceId, usize>,
    pub(super) total: usize,
}

impl RemoteRoutes {
    pub(super) fn new(limits: RemoteRouteLimits) -> Self {
        RemoteRoutes { limits, ..RemoteRoutes::default() }
    }

    /// Whether the face may have one more.
    pub(super) fn check(&self, face: FaceId) -> Result<(), RibError> {
        let of_face = self.by_face.get(&face).copied().unwrap_or_default();
        if of_face >= self.limits.per_face {
            Err(RibError::TooManyOfFace(of_face))
        } else if self.total >= self.limits.total {
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
