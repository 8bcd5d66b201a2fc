//! Module `ndt`: which worker owns which names. Namehop's own addition to the NFD management protocol.

use namehop_client::nfd::numbers::status_code;
use namehop_client::nfd::{ControlParameters, ControlResponse, FieldSet};

use super::verbs::{Action, Verb};
use super::{ControlPlane, DispatchError, Management};

impl<C: ControlPlane> Management<C> {
    /// Verbs of the module.
    pub(super) const NDT_VERBS: &[Verb<C>] = &[Verb {
        name: "move",
        // Count is the index of the worker.
        required: FieldSet::NAME.with(FieldSet::COUNT),
        optional: FieldSet::NONE,
        action: Action::Task(|this, parameters, _| Box::pin(async move { this.move_name(parameters).await })),
    }];

    async fn move_name(&self, parameters: ControlParameters) -> ControlResponse {
        let (name, worker) = (parameters.name.unwrap_or_default(), parameters.count.unwrap_or(0));
        match self.control.move_name(name.as_ref(), worker).await {
            Ok(entry) => ControlResponse::ok(&ControlParameters {
                name: Some(name),
                count: Some(entry.worker),
                ..ControlParameters::default()
            }),
            Err(error) => {
                let code = match error {
                    DispatchError::NoSuchWorker => status_code::NOT_FOUND,
                    DispatchError::MovedLately => status_code::CONFLICT,
                    DispatchError::RouterEnds => status_code::INTERNAL_ERROR,
                };
                ControlResponse::new(code, error.to_string())
            }
        }
    }
}
