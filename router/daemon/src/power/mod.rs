//! Power of the computer: measured where its processors count energy, otherwise estimated where a description of it is configured.
//!
//! | file | what |
//! |---|---|
//! | `description` | the server that the model works with: a published one or a file |
//! | `powercap` | the energy counters that Linux shows |
//! | `estimate` | the model, with what workers do |
//! | `meter` | both, looked at once a second |

mod description;
mod estimate;
mod meter;
mod powercap;

use std::path::Path;
use std::time::Instant;

use tracing::warn;

pub use description::{DescriptionError, read_server};

use crate::config;
use crate::control::Control;
use estimate::Work;
use meter::{INTERVAL, Meter};
use powercap::POWERCAP;

/// The meter of this computer, if its power can be measured, or estimated because there is a description of it.
pub(crate) fn meter(config: &config::Power) -> Option<Meter> {
    let server = config.server.as_ref().and_then(|server| match read_server(server) {
        Ok(server) => Some(server),
        // It could be read when the configuration was checked.
        Err(error) => {
            warn!("the power of this computer is not estimated: {error}");
            None
        }
    });
    Meter::new(Path::new(POWERCAP), server)
}

/// Looks at the meter once a second. Ends when a worker has ended.
pub(crate) async fn watch(mut meter: Meter, control: &Control) {
    while let Ok(workers) = control.workers().statuses().await {
        control.set_power(meter.look(Instant::now(), Work::of(&workers)));
        tokio::time::sleep(INTERVAL).await;
    }
}
