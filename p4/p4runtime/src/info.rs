//! p4info: the objects of a program that a controller can access, and their ids.

pub use crate::generated::p4::config::v1::*;

/// An object of p4info.
pub trait Object {
    /// Returns its id and names. An object without a preamble has the id 0 and empty names.
    fn preamble(&self) -> &Preamble;

    /// As [`Object::preamble`]; an object without one gets one.
    fn preamble_mut(&mut self) -> &mut Preamble;
}

static NO_PREAMBLE: Preamble = Preamble { id: 0, name: String::new(), alias: String::new(), annotations: Vec::new() };

macro_rules! objects {
    ($($type:ident),*) => { $(impl Object for $type {
        fn preamble(&self) -> &Preamble {
            self.preamble.as_ref().unwrap_or(&NO_PREAMBLE)
        }

        fn preamble_mut(&mut self) -> &mut Preamble {
            self.preamble.get_or_insert_default()
        }
    })* };
}

objects!(Table, Action, ActionProfile, Counter, DirectCounter, Meter, DirectMeter);
objects!(ControllerPacketMetadata, ValueSet, Register, Digest);

impl P4Ids {
    /// Returns the kind of object that an id belongs to; `Unspecified` if the kind is not known.
    pub fn prefix(id: u32) -> p4_ids::Prefix {
        i32::try_from(id >> 24).ok().and_then(|prefix| p4_ids::Prefix::try_from(prefix).ok()).unwrap_or_default()
    }
}
