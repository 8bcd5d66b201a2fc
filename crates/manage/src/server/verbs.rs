//! The commands of the management protocol and the fields that each takes.

use crate::nfd::{ControlParameters, ControlResponse, FieldSet, numbers::status_code};

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    CreateFace,
    UpdateFace,
    DestroyFace,
    AddNextHop,
    RemoveNextHop,
    ConfigureCs,
    EraseCs,
    SetStrategy,
    UnsetStrategy,
    RegisterRoute,
    UnregisterRoute,
    AnnouncePrefix,
}

/// Properties of a face that can be chosen.
const FACE_PROPERTIES: FieldSet = FieldSet::FLAGS
    .with(FieldSet::MASK)
    .with(FieldSet::FACE_PERSISTENCY)
    .with(FieldSet::BASE_CONGESTION_MARKING_INTERVAL)
    .with(FieldSet::DEFAULT_CONGESTION_THRESHOLD)
    .with(FieldSet::MTU);

impl Verb {
    /// The command that a module and verb name.
    pub(super) fn find(module: &[u8], verb: &[u8]) -> Option<Verb> {
        Some(match (module, verb) {
            (b"faces", b"create") => Verb::CreateFace,
            (b"faces", b"update") => Verb::UpdateFace,
            (b"faces", b"destroy") => Verb::DestroyFace,
            (b"fib", b"add-nexthop") => Verb::AddNextHop,
            (b"fib", b"remove-nexthop") => Verb::RemoveNextHop,
            (b"cs", b"config") => Verb::ConfigureCs,
            (b"cs", b"erase") => Verb::EraseCs,
            (b"strategy-choice", b"set") => Verb::SetStrategy,
            (b"strategy-choice", b"unset") => Verb::UnsetStrategy,
            (b"rib", b"register") => Verb::RegisterRoute,
            (b"rib", b"unregister") => Verb::UnregisterRoute,
            (b"rib", b"announce") => Verb::AnnouncePrefix,
            _ => return None,
        })
    }

    /// Required and optional fields.
    const fn fields(self) -> (FieldSet, FieldSet) {
        match self {
            Verb::CreateFace => (FieldSet::URI, FieldSet::LOCAL_URI.with(FACE_PROPERTIES)),
            Verb::UpdateFace => (FieldSet::NONE, FieldSet::FACE_ID.with(FACE_PROPERTIES)),
            Verb::DestroyFace => (FieldSet::FACE_ID, FieldSet::NONE),
            Verb::AddNextHop => (FieldSet::NAME, FieldSet::FACE_ID.with(FieldSet::COST)),
            Verb::RemoveNextHop => (FieldSet::NAME, FieldSet::FACE_ID),
            Verb::ConfigureCs => (FieldSet::NONE, FieldSet::CAPACITY.with(FieldSet::FLAGS).with(FieldSet::MASK)),
            Verb::EraseCs => (FieldSet::NAME, FieldSet::COUNT),
            Verb::SetStrategy => (FieldSet::NAME.with(FieldSet::STRATEGY), FieldSet::NONE),
            Verb::UnsetStrategy => (FieldSet::NAME, FieldSet::NONE),
            Verb::RegisterRoute => (
                FieldSet::NAME,
                FieldSet::FACE_ID
                    .with(FieldSet::ORIGIN)
                    .with(FieldSet::COST)
                    .with(FieldSet::FLAGS)
                    .with(FieldSet::EXPIRATION_PERIOD),
            ),
            Verb::UnregisterRoute => (FieldSet::NAME, FieldSet::FACE_ID.with(FieldSet::ORIGIN)),
            Verb::AnnouncePrefix => (FieldSet::NONE, FieldSet::NONE),
        }
    }

    /// Are these the fields of the command?
    pub(super) fn check(self, parameters: &ControlParameters) -> Result<(), ControlResponse> {
        let (required, optional) = self.fields();
        let fields = parameters.fields();
        if let Some(field) = required.without(fields).names().next() {
            return Err(bad_request(format!("{field} is required")));
        }
        if let Some(field) = fields.without(required | optional).names().next() {
            return Err(bad_request(format!("{field} is not a parameter of this command")));
        }
        let takes_mask = (required | optional).contains(FieldSet::MASK);
        if takes_mask && parameters.flags.is_some() != parameters.mask.is_some() {
            return Err(bad_request("Flags and Mask must be given together".to_owned()));
        }
        Ok(())
    }
}

pub(super) fn bad_request(text: String) -> ControlResponse {
    ControlResponse::new(status_code::BAD_REQUEST, text)
}
