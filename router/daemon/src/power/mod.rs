//! Power of the host: measured if its CPUs count energy, else estimated if a server description is configured.
//!
//! | file | what |
//! |---|---|
//! | `powercap` | the energy counters of Linux |
//! | `estimate` | the model, applied to the work of the workers |
//! | `meter` | both, read once a second |

mod estimate;
mod meter;
mod powercap;

use std::path::Path;
use std::time::Instant;

use namehop_config::Power;
use namehop_power::description::read_server;
use tracing::warn;

use crate::control::Control;
use estimate::Work;
use meter::{INTERVAL, Meter};
use powercap::POWERCAP;

/// Returns the power meter of this host; `None` if power can be neither measured nor estimated.
pub(crate) fn meter(config: &Power) -> Option<Meter> {
    let server = config.server.as_ref().and_then(|server| match read_server(server) {
        Ok(server) => Some(server),
        // The file was readable when the configuration was checked.
        Err(error) => {
            warn!("cannot estimate the power of this host: {error}");
            None
        }
    });
    Meter::new(Path::new(POWERCAP), server)
}

/// Reads the meter once a second. Ends when a worker has ended.
pub(crate) async fn watch(mut meter: Meter, control: &Control) {
    while let Ok(workers) = control.workers().statuses().await {
        control.set_power(meter.look(Instant::now(), Work::of(&workers)));
        tokio::time::sleep(INTERVAL).await;
    }
}
