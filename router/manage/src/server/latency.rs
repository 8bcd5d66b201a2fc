//! Module `latency`: how long packets stay in the router. Namehop's own addition to the NFD management protocol. A
//! command starts and stops the measurement; the results are the dataset `status/latency`.

use std::num::NonZeroU32;

use namehop_client::nfd::{ControlParameters, ControlResponse, FieldSet};

use super::verbs::{Action, Verb, bad_request};
use super::{ControlPlane, Management};

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const LATENCY_VERBS: &[Verb<C>] = &[Verb {
        name: "sample",
        // One packet in Count is measured; 0 ends the measurement.
        required: FieldSet::COUNT,
        optional: FieldSet::NONE,
        action: Action::Task(|this, parameters, _| Box::pin(async move { this.sample_latency(parameters).await })),
    }];

    async fn sample_latency(&self, parameters: ControlParameters) -> ControlResponse {
        let Ok(count) = u32::try_from(parameters.count.unwrap_or(0)) else {
            return bad_request(format!("Count must be from 0 to {}", u32::MAX));
        };
        self.control.sample_latency(NonZeroU32::new(count)).await;
        ControlResponse::ok(&ControlParameters { count: Some(count.into()), ..ControlParameters::default() })
    }
}
