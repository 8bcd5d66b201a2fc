//! Segment numbers in names: typed components, or markers of the naming conventions of 2014.

use namehop_wire::name::ComponentRef;
use namehop_wire::tlv::{Nni, decode_nni, types};
use namehop_wire::{Name, NameRef};

/// First byte of generic components that hold numbers (NDN naming conventions of 2014, revision 1).
const SEGMENT_MARKER: u8 = 0x00;
const VERSION_MARKER: u8 = 0xfd;

/// The form of segment components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Numbering {
    /// SegmentNameComponent, type 50.
    #[default]
    Typed,
    /// A generic component that begins with the byte 0.
    Marker,
}

impl Numbering {
    /// Returns the form and the number of a component that is a segment number.
    pub(super) fn of(component: ComponentRef<'_>) -> Option<(Self, u64)> {
        let numbered = |numbering: Self| numbering.segment(component).map(|segment| (numbering, segment));
        numbered(Self::Typed).or_else(|| numbered(Self::Marker))
    }

    /// Returns the segment numbering of an object, which has the form of the version at the end of `name`.
    pub(super) fn of_object(name: NameRef<'_>) -> Self {
        if name.last().is_some_and(is_marked_version) { Self::Marker } else { Self::Typed }
    }

    /// Returns the segment number if the component has this form.
    pub(super) fn segment(self, component: ComponentRef<'_>) -> Option<u64> {
        match self {
            Self::Typed => component.as_segment(),
            Self::Marker => marked(component, SEGMENT_MARKER),
        }
    }

    /// Returns the name of a segment of the object.
    pub(super) fn name(self, object: &Name, segment: u64) -> Name {
        match self {
            Self::Typed => object.clone().append_segment(segment),
            Self::Marker => object.clone().append_generic([&[SEGMENT_MARKER], Nni::new(segment).as_slice()].concat()),
        }
    }
}

/// Returns true if a component is a version of either form.
pub(super) fn is_version(component: ComponentRef<'_>) -> bool {
    component.is_version() || is_marked_version(component)
}

fn is_marked_version(component: ComponentRef<'_>) -> bool {
    marked(component, VERSION_MARKER).is_some()
}

fn marked(component: ComponentRef<'_>, marker: u8) -> Option<u64> {
    let (first, number) = component.value.split_first()?;
    let is_marked = component.typ == types::GENERIC_NAME_COMPONENT && *first == marker;
    decode_nni(number).ok().filter(|_| is_marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_both_forms_have_names_and_numbers() {
        let object: Name = "/a".parse().expect("a name");
        for segment in [0, 5, 255, 256, 70_000, 1 << 40] {
            for numbering in [Numbering::Typed, Numbering::Marker] {
                let name = numbering.name(&object, segment);
                assert_eq!(Numbering::of(name.last().expect("a component")), Some((numbering, segment)));
            }
        }
        let fifth: Name = "/a/%00%05".parse().expect("a name");
        assert_eq!(Numbering::Marker.name(&object, 5), fifth);
        // Three bytes are not a number, and `0` is a character.
        for other in ["/%00", "/%00%01%02%03", "/0", "/33=%00%05", "/%FB%05", "/%FD%05"] {
            let name: Name = other.parse().expect("a name");
            assert_eq!(Numbering::of(name.last().expect("a component")), None, "{other}");
        }
        let version: Name = "/a/%FD%05".parse().expect("a name");
        assert!(is_version(version.last().expect("a component")));
        assert_eq!(Numbering::of_object(version.as_ref()), Numbering::Marker);
    }
}
