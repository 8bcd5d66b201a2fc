//! The commands of the management protocol: the list of all, and what they have in common.
//!
//! Each verb is defined in the file of its module, with its fields and the function that carries it out. A new verb is
//! one more entry there. A new module is also a line in [`Management::MODULES`] and in [`module::WITH_COMMANDS`].

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use namehop_client::nfd::names::module;
use namehop_client::nfd::{ControlParameters, ControlResponse, Element, FieldSet, numbers::status_code};

use super::dispatcher::Requester;
use super::{ControlPlane, Management};

/// A command.
pub(super) struct Verb<C: 'static> {
    /// Name component after the module.
    pub(super) name: &'static str,
    /// Fields that must be present.
    pub(super) required: FieldSet,
    /// Fields that may be present.
    pub(super) optional: FieldSet,
    /// The function that carries it out.
    pub(super) action: Action<C>,
}

/// Future response to a command that waits for another thread.
pub(super) type Response = Pin<Box<dyn Future<Output = ControlResponse>>>;

/// How a command is carried out.
pub(super) enum Action<C: 'static> {
    /// Immediately.
    Now(fn(&Management<C>, ControlParameters, Requester) -> ControlResponse),
    /// In a task, because it waits for other threads while other commands continue.
    Task(fn(Rc<Management<C>>, ControlParameters, Requester) -> Response),
    /// Immediately. The command takes ApplicationParameters instead of ControlParameters.
    WithApplicationParameters(fn(&Management<C>, &[u8], Requester) -> ControlResponse),
    /// Immediately. The command takes ControlParameters, and a file in ApplicationParameters.
    WithFile(fn(&Management<C>, ControlParameters, &[u8], Requester) -> ControlResponse),
}

/// State of a command after it has been started.
pub(super) enum Begun {
    /// Carried out or refused.
    Done(ControlResponse),
    /// Waits for another thread.
    Running(Response),
}

impl<C: ControlPlane> Management<C> {
    /// The modules that have verbs.
    pub(super) const MODULES: [(&str, &[Verb<C>]); 9] = [
        (module::FACES, Self::FACE_VERBS),
        (module::FIB, Self::FIB_VERBS),
        (module::CS, Self::CS_VERBS),
        (module::STRATEGY_CHOICE, Self::STRATEGY_VERBS),
        (module::RIB, Self::RIB_VERBS),
        (module::NDT, Self::NDT_VERBS),
        (module::TRACE, Self::TRACE_VERBS),
        (module::LATENCY, Self::LATENCY_VERBS),
        (module::CAPTURE, Self::CAPTURE_VERBS),
    ];

    /// Returns the verb with this name.
    pub(super) fn find_verb(module: &[u8], name: &[u8]) -> Option<&'static Verb<C>> {
        let (_, verbs) = Self::MODULES.iter().find(|(found, _)| found.as_bytes() == module)?;
        verbs.iter().find(|verb| verb.name.as_bytes() == name)
    }

    /// Starts a command. The caller has authorized the requester and checked the parameters. `file` holds
    /// ApplicationParameters: the file of the command, or its only input.
    pub(super) fn begin(
        self: &Rc<Self>,
        verb: &Verb<C>,
        parameters: ControlParameters,
        file: &[u8],
        requester: Requester,
    ) -> Begun {
        match &verb.action {
            Action::Now(carry_out) => Begun::Done(carry_out(self, parameters, requester)),
            Action::WithFile(carry_out) => Begun::Done(carry_out(self, parameters, file, requester)),
            Action::WithApplicationParameters(carry_out) => Begun::Done(carry_out(self, file, requester)),
            Action::Task(start) => Begun::Running(start(Rc::clone(self), parameters, requester)),
        }
    }
}

impl<C> Verb<C> {
    /// Decodes and checks the parameters.
    pub(super) fn decode(&self, wire: &[u8]) -> Result<ControlParameters, ControlResponse> {
        let parameters = ControlParameters::decode(wire)
            .map_err(|error| bad_request(format!("malformed ControlParameters: {error}")))?;
        self.check(&parameters).map(|()| parameters)
    }

    /// Checks that the required fields are present and no others than the command's.
    pub(super) fn check(&self, parameters: &ControlParameters) -> Result<(), ControlResponse> {
        let fields = parameters.fields();
        if let Some(field) = self.required.without(fields).names().next() {
            return Err(bad_request(format!("{field} is required")));
        }
        let allowed = self.required | self.optional;
        if let Some(field) = fields.without(allowed).names().next() {
            return Err(bad_request(format!("{field} is not a parameter of this command")));
        }
        if allowed.contains(FieldSet::MASK) && parameters.flags.is_some() != parameters.mask.is_some() {
            return Err(bad_request("Flags and Mask must be given together".to_owned()));
        }
        Ok(())
    }
}

pub(super) fn bad_request(text: String) -> ControlResponse {
    ControlResponse::new(status_code::BAD_REQUEST, text)
}
