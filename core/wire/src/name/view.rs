//! A name borrowed from a packet. It is checked once when made; after that no method can fail.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{ComponentRef, Name};
use crate::DecodeError;
use crate::tlv::{Reader, read_single_element, types};

/// A valid name: the VALUE of a Name element.
#[derive(Clone, Copy, Default)]
pub struct NameRef<'a> {
    value: &'a [u8],
    count: u32,
}

const GENERIC: u8 = types::GENERIC_NAME_COMPONENT as u8;

/// Result of one pass over a Name VALUE.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameScan<'a> {
    pub(crate) name: NameRef<'a>,
    pub(crate) parameters_digests: u32,
}

impl<'a> NameScan<'a> {
    #[inline]
    pub(crate) fn new(value: &'a [u8]) -> Result<Self, DecodeError> {
        let mut count = 0;
        let mut parameters_digests = 0;
        // Nearly all components are generic with a one-byte LENGTH, often all of a name.
        let mut rest = value;
        while let &[GENERIC, length @ 0..253, ref behind @ ..] = rest
            && let Some((_, behind)) = behind.split_at_checked(usize::from(length))
        {
            rest = behind;
            count += 1;
        }
        let mut reader = Reader::new(rest);
        while !reader.is_empty() {
            let element = reader.read_element()?;
            let component = ComponentRef::new(element.typ, element.value)?;
            count += 1;
            parameters_digests += u32::from(component.is_parameters_digest());
        }
        Ok(NameScan { name: NameRef { value, count }, parameters_digests })
    }
}

impl<'a> NameRef<'a> {
    /// The name without components, `/`.
    pub const fn root() -> Self {
        NameRef { value: &[], count: 0 }
    }

    /// Checks the VALUE of a Name element.
    ///
    /// # Errors
    /// When it is not a sequence of valid components.
    #[inline]
    pub fn from_value(value: &'a [u8]) -> Result<Self, DecodeError> {
        NameScan::new(value).map(|scan| scan.name)
    }

    /// Checks a complete Name element, which must fill `wire`.
    ///
    /// # Errors
    /// `UnexpectedType` when it is another element; otherwise as for [`from_value`](Self::from_value).
    pub fn from_element(wire: &'a [u8]) -> Result<Self, DecodeError> {
        let element = read_single_element(wire)?;
        if element.typ != types::NAME {
            return Err(DecodeError::UnexpectedType);
        }
        Self::from_value(element.value)
    }

    /// Makes a name from a value that is known to be valid and have `count` components.
    #[inline]
    pub(crate) const fn from_parts(value: &'a [u8], count: u32) -> Self {
        NameRef { value, count }
    }

    /// The VALUE: the components one after another.
    #[inline]
    pub const fn value(&self) -> &'a [u8] {
        self.value
    }

    /// Number of components.
    #[inline]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true for `/`.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// The components in order.
    #[inline]
    pub const fn components(&self) -> Components<'a> {
        Components { reader: Reader::new(self.value), left: self.count }
    }

    /// Component by index from the start, in time linear in the index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<ComponentRef<'a>> {
        self.components().nth(index)
    }

    /// Component by index from the end: 0 is the last one.
    #[inline]
    pub fn get_from_end(&self, index: usize) -> Option<ComponentRef<'a>> {
        self.get(self.len().checked_sub(index)?.checked_sub(1)?)
    }

    /// The last component.
    #[inline]
    pub fn last(&self) -> Option<ComponentRef<'a>> {
        self.get_from_end(0)
    }

    /// The first `count` components; all of them if there are fewer.
    #[inline]
    pub fn prefix(&self, count: usize) -> NameRef<'a> {
        if count >= self.len() {
            return *self;
        }
        let end = self.offset_of(count);
        NameRef { value: &self.value[..end], count: count as u32 }
    }

    /// The name without its last `count` components; `/` if there are fewer.
    #[inline]
    pub fn without_last(&self, count: usize) -> NameRef<'a> {
        self.prefix(self.len().saturating_sub(count))
    }

    /// The name without its first `count` components.
    #[inline]
    pub fn suffix(&self, count: usize) -> NameRef<'a> {
        let count = count.min(self.len());
        let start = self.offset_of(count);
        NameRef { value: &self.value[start..], count: self.count - count as u32 }
    }

    /// Offset in the VALUE after the first `count` components.
    fn offset_of(&self, count: usize) -> usize {
        let mut components = self.components();
        for _ in 0..count {
            components.next();
        }
        components.reader.position()
    }

    /// Returns true if this name is a prefix of `other`. Every name is a prefix of itself.
    #[inline]
    pub fn is_prefix_of(&self, other: NameRef<'_>) -> bool {
        // Both are valid, so equal bytes have the same component boundaries.
        other.value.starts_with(self.value)
    }

    /// An owned copy.
    pub fn to_owned(&self) -> Name {
        Name::from(*self)
    }
}

impl PartialEq for NameRef<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for NameRef<'_> {}

impl Hash for NameRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl Ord for NameRef<'_> {
    /// Canonical order. Comparing the VALUEs gives the same result as comparing component by component, because
    /// numbers in their shortest form sort like their bytes.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(other.value)
    }
}

impl PartialOrd for NameRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq<Name> for NameRef<'_> {
    fn eq(&self, other: &Name) -> bool {
        *self == other.as_ref()
    }
}

impl fmt::Debug for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<'a> IntoIterator for NameRef<'a> {
    type Item = ComponentRef<'a>;
    type IntoIter = Components<'a>;

    fn into_iter(self) -> Components<'a> {
        self.components()
    }
}

/// Iterator over the components of a name.
#[derive(Debug, Clone)]
pub struct Components<'a> {
    reader: Reader<'a>,
    left: u32,
}

impl<'a> Iterator for Components<'a> {
    type Item = ComponentRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<ComponentRef<'a>> {
        // Reading fails only at the end: the name was checked when it was made.
        let element = self.reader.read_element().ok()?;
        self.left -= 1;
        Some(ComponentRef { typ: element.typ, value: element.value })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Components<'_> {}
