//! The command Interests of readvertising: `rib/register` and `rib/unregister` under the destination's prefix (NFD
//! management protocol, RIB management), as signed Interests of packet format v0.3.
//!
//! NLSR, ndn-dv and NFD accept the same form: `<prefix>/rib/<verb>/<ControlParameters>/<parameters digest>`. ndn-dv
//! requires exactly these six components.

use namehop_client::nfd::numbers::origin;
use namehop_client::nfd::{CommandOptions, ControlParameters, Element, build_command};
use namehop_wire::security::Signer;
use namehop_wire::{BuildError, Name};

use super::announcer::Action;

/// Fields of a command besides name and cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RegistrationFields {
    /// Includes the Origin field, with the value for clients.
    pub(super) has_origin: bool,
    /// Lifetime of the registration in milliseconds; `None` = no ExpirationPeriod field.
    pub(super) expiration_ms: Option<u64>,
}

/// Builds a command under the prefix of the destination's module `rib`. `time_ms` must be higher than in all earlier
/// commands of this signer.
pub(super) fn build(
    destination: &Name,
    prefix: Name,
    action: Action,
    fields: RegistrationFields,
    signer: &dyn Signer,
    time_ms: u64,
    lifetime_ms: u64,
) -> Result<Vec<u8>, BuildError> {
    let (verb, cost) = match action {
        Action::Announce(cost) => ("register", Some(cost)),
        Action::Withdraw => ("unregister", None),
    };
    let parameters = ControlParameters {
        name: Some(prefix),
        origin: fields.has_origin.then_some(origin::CLIENT),
        cost,
        expiration_period_ms: cost.and(fields.expiration_ms),
        ..ControlParameters::default()
    };
    let name = destination.clone().append_generic(verb).append_generic(parameters.to_vec());
    let options = CommandOptions { time_ms, lifetime_ms, must_be_fresh: true, application_parameters: None };
    build_command(name, signer, &options)
}
