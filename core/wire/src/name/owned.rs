//! A name that owns its bytes, and can be built component by component.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{ComponentRef, Components, NameRef};
use crate::tlv::{Nni, Writer, types};

/// A name. `Name::default()` is `/`.
///
/// Hashes and compares like its VALUE, so a map keyed by `Name` can be searched with [`NameRef::value`].
#[derive(Clone, Default)]
pub struct Name {
    value: Vec<u8>,
    count: u32,
}

impl Name {
    /// The name without components, `/`.
    pub const fn new() -> Self {
        Name { value: Vec::new(), count: 0 }
    }

    /// Borrowed form.
    #[inline]
    pub fn as_ref(&self) -> NameRef<'_> {
        NameRef::from_parts(&self.value, self.count)
    }

    /// The VALUE: the components one after another.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The complete Name element.
    pub fn to_element(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(self.value.len() + 10);
        writer.element(types::NAME, &self.value);
        writer.into_vec()
    }

    /// Number of components.
    #[inline]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true for `/`.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The components in order.
    pub fn components(&self) -> Components<'_> {
        self.as_ref().components()
    }

    /// Component by index from the start.
    pub fn get(&self, index: usize) -> Option<ComponentRef<'_>> {
        self.as_ref().get(index)
    }

    /// Component by index from the end: 0 is the last one.
    pub fn get_from_end(&self, index: usize) -> Option<ComponentRef<'_>> {
        self.as_ref().get_from_end(index)
    }

    /// The last component.
    pub fn last(&self) -> Option<ComponentRef<'_>> {
        self.as_ref().last()
    }

    /// The first `count` components; all of them if there are fewer.
    pub fn prefix(&self, count: usize) -> NameRef<'_> {
        self.as_ref().prefix(count)
    }

    /// Returns true if this name is a prefix of `other`.
    pub fn is_prefix_of(&self, other: NameRef<'_>) -> bool {
        self.as_ref().is_prefix_of(other)
    }

    /// Adds a component at the end.
    pub fn push(&mut self, component: ComponentRef<'_>) -> &mut Self {
        let mut writer = Writer::from(std::mem::take(&mut self.value));
        writer.element(component.typ, component.value);
        self.value = writer.into_vec();
        self.count += 1;
        self
    }

    /// Adds a generic component of `length` bytes; `write` appends them to the vector that it gets.
    pub(super) fn push_generic_with<E>(
        &mut self,
        length: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut writer = Writer::from(std::mem::take(&mut self.value));
        writer.var_number(types::GENERIC_NAME_COMPONENT.into()).var_number(length as u64);
        self.value = writer.into_vec();
        let end = self.value.len() + length;
        write(&mut self.value)?;
        debug_assert_eq!(self.value.len(), end);
        self.count += 1;
        Ok(())
    }

    /// Removes all components and keeps the memory.
    pub fn clear(&mut self) -> &mut Self {
        self.value.clear();
        self.count = 0;
        self
    }

    /// Adds all components of another name at the end.
    pub fn push_name(&mut self, name: NameRef<'_>) -> &mut Self {
        self.value.extend_from_slice(name.value());
        self.count += name.len() as u32;
        self
    }

    /// Removes the last component. No effect on `/`.
    pub fn pop(&mut self) -> &mut Self {
        let shorter = self.as_ref().without_last(1);
        let (length, count) = (shorter.value().len(), shorter.len());
        self.value.truncate(length);
        self.count = count as u32;
        self
    }

    /// This name with a component added.
    #[must_use]
    pub fn append(mut self, component: ComponentRef<'_>) -> Self {
        self.push(component);
        self
    }

    /// This name with all components of another one added.
    #[must_use]
    pub fn append_name(mut self, name: NameRef<'_>) -> Self {
        self.push_name(name);
        self
    }

    /// This name with a GenericNameComponent added.
    #[must_use]
    pub fn append_generic(self, value: impl AsRef<[u8]>) -> Self {
        self.append(ComponentRef::generic(value.as_ref()))
    }

    /// This name with a KeywordNameComponent added.
    #[must_use]
    pub fn append_keyword(self, value: impl AsRef<[u8]>) -> Self {
        self.append(ComponentRef::keyword(value.as_ref()))
    }

    /// This name with a VersionNameComponent added.
    #[must_use]
    pub fn append_version(self, version: u64) -> Self {
        self.append_number(types::VERSION_NAME_COMPONENT, version)
    }

    /// This name with a SegmentNameComponent added.
    #[must_use]
    pub fn append_segment(self, segment: u64) -> Self {
        self.append_number(types::SEGMENT_NAME_COMPONENT, segment)
    }

    /// This name with a ByteOffsetNameComponent added.
    #[must_use]
    pub fn append_byte_offset(self, offset: u64) -> Self {
        self.append_number(types::BYTE_OFFSET_NAME_COMPONENT, offset)
    }

    /// This name with a TimestampNameComponent added: microseconds since the Unix epoch.
    #[must_use]
    pub fn append_timestamp_us(self, timestamp_us: u64) -> Self {
        self.append_number(types::TIMESTAMP_NAME_COMPONENT, timestamp_us)
    }

    /// This name with a SequenceNumNameComponent added.
    #[must_use]
    pub fn append_sequence(self, sequence: u64) -> Self {
        self.append_number(types::SEQUENCE_NUM_NAME_COMPONENT, sequence)
    }

    fn append_number(self, typ: u32, number: u64) -> Self {
        let number = Nni::new(number);
        self.append(ComponentRef { typ, value: number.as_slice() })
    }
}

impl From<NameRef<'_>> for Name {
    fn from(name: NameRef<'_>) -> Self {
        Name { value: name.value().to_vec(), count: name.len() as u32 }
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl<'a> From<&'a Name> for NameRef<'a> {
    fn from(name: &'a Name) -> Self {
        name.as_ref()
    }
}

impl<'a> FromIterator<ComponentRef<'a>> for Name {
    fn from_iter<I: IntoIterator<Item = ComponentRef<'a>>>(components: I) -> Self {
        components.into_iter().fold(Name::new(), Name::append)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<[u8]> for Name {
    fn borrow(&self) -> &[u8] {
        &self.value
    }
}

impl PartialEq<NameRef<'_>> for Name {
    fn eq(&self, other: &NameRef<'_>) -> bool {
        self.as_ref() == *other
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
