//! The ForwardingHint of an Interest: names that lead to the producer (NDN packet specification, interest.rst).

use crate::DecodeError;
use crate::name::NameRef;
use crate::tlv::{Element, OrderedReader, Reader, is_critical, types};

/// A valid list of at least one name.
///
/// Also reads the older format, in which each name is in a Delegation after a Preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardingHint<'a> {
    value: &'a [u8],
}

impl<'a> ForwardingHint<'a> {
    /// Checks the VALUE. Returns `None` when it holds no name.
    ///
    /// # Errors
    /// When an element is neither a valid name, a valid delegation, nor one that can be ignored.
    pub fn decode(value: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let mut reader = Reader::new(value);
        let mut has_name = false;
        while !reader.is_empty() {
            has_name |= delegation_name(&reader.read_element()?)?.is_some();
        }
        Ok(has_name.then_some(ForwardingHint { value }))
    }

    /// The VALUE.
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The names in order.
    pub const fn iter(&self) -> ForwardingHintNames<'a> {
        ForwardingHintNames { reader: Reader::new(self.value) }
    }
}

impl<'a> IntoIterator for ForwardingHint<'a> {
    type Item = NameRef<'a>;
    type IntoIter = ForwardingHintNames<'a>;

    fn into_iter(self) -> ForwardingHintNames<'a> {
        self.iter()
    }
}

/// Iterator over the names of a forwarding hint.
#[derive(Debug, Clone)]
pub struct ForwardingHintNames<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for ForwardingHintNames<'a> {
    type Item = NameRef<'a>;

    fn next(&mut self) -> Option<NameRef<'a>> {
        // Reading fails only at the end: the list was checked when it was decoded.
        while let Ok(element) = self.reader.read_element() {
            if let Ok(Some(name)) = delegation_name(&element) {
                return Some(name);
            }
        }
        None
    }
}

fn delegation_name<'a>(element: &Element<'a>) -> Result<Option<NameRef<'a>>, DecodeError> {
    match element.typ {
        types::NAME => NameRef::from_value(element.value).map(Some),
        types::DELEGATION => {
            let rank = |typ| match typ {
                types::PREFERENCE => 1,
                types::NAME => 2,
                _ => 0,
            };
            let mut elements = OrderedReader::new(element.value, rank);
            let mut name = None;
            while let Some(inner) = elements.next_element()? {
                if inner.typ == types::NAME {
                    name = Some(NameRef::from_value(inner.value)?);
                }
            }
            name.ok_or(DecodeError::MissingElement).map(Some)
        }
        typ if is_critical(typ) => Err(DecodeError::CriticalElement),
        _ => Ok(None),
    }
}
