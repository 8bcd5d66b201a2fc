//! The objects of a running program that its control plane changes: table contents (`state`, `rows`, `entry`), action
//! profiles (`profiles`, `groups`), default actions (`defaults`), cells (`cells`, `live`), and packet replication
//! (`replication`).

pub mod cells;
pub mod defaults;
pub mod entry;
pub mod error;
mod groups;
pub mod live;
pub mod profiles;
pub mod replication;
pub mod rows;
pub mod state;
#[cfg(test)]
pub mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namehop_p4_compile::description::{DamagedP4Info, Description};
use thiserror::Error;

use crate::Control as Switch;
use crate::program::{CommandError, Program};
use error::ObjectError;
use live::Live;
use replication::Replication;
use state::State;

/// Why the objects of a program are not known.
#[derive(Debug, Error)]
pub enum DescriptionError {
    /// The description is not one of this version.
    #[error("the description of {0} is not valid: {1}")]
    Malformed(String, serde_json::Error),
    /// The p4info in it is damaged.
    #[error(transparent)]
    P4Info(#[from] DamagedP4Info),
    /// One of the program's own entries or default actions cannot be read.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// The objects of a started program. They are locked one by one; the caller makes one change after the other.
pub struct Objects {
    state: Mutex<State>,
    pub live: Arc<Live>,
    replication: Mutex<Replication>,
}

impl Objects {
    /// Reads the description of a started program.
    ///
    /// # Errors
    /// Fails if the program's description does not fit this version.
    pub fn new(program: &Arc<Program>, switch: Switch) -> Result<Objects, DescriptionError> {
        let description: Description = serde_json::from_str(&program.description)
            .map_err(|error| DescriptionError::Malformed(program.name.clone(), error))?;
        let live = Arc::new(Live::new(Arc::clone(program), switch, description.meters.len()));
        let state = State::new(description, Arc::clone(&live), program.own_entries()?);
        let state = Mutex::new(state.with_defaults(program.own_defaults()?));
        Ok(Objects { state, live, replication: Mutex::default() })
    }

    /// Locks the contents of the tables.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the multicast groups and mirroring sessions.
    pub fn replication(&self) -> MutexGuard<'_, Replication> {
        self.replication.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets all state to that at the program's start.
    ///
    /// # Errors
    /// Fails if the program refuses one of its own entries, which is a bug.
    pub fn reset(&self) -> Result<(), ObjectError> {
        let mut state = self.state();
        state.reset()?;
        let own = state.description.counters.iter().enumerate().filter(|(_, counter)| counter.table.is_none());
        for (place, counter) in own {
            for index in 0..counter.size as usize {
                self.live.program.set_counter(place, index, 0, 0);
            }
        }
        for (place, register) in state.description.registers.iter().enumerate() {
            self.live.each_register_cell(place, 0..register.size, |_, cell| cell.fill(0));
        }
        for (place, meter) in state.description.meters.iter().enumerate() {
            self.live.set_rates(place, 0..meter.size, None);
        }
        Ok(self.replication().reset(&self.live.switch)?)
    }
}
