//! Names for measurements: prefixes for a FIB and names below them, computed from their number.
//!
//! A name is a function of its number and the seed, through bijections. So names never repeat within the
//! [capacity](Workload::name_capacity), and no list is stored: 13,548,815 prefixes take no memory. All components are
//! generic and of equal length. Their bytes are uniformly distributed, as models of tries assume, and fast to write.
//! Each name's prefix is drawn independently, so that adjacent numbers are not adjacent in any table.

use namehop_wire::MAX_PACKET_SIZE;
use serde::Serialize;

use crate::permutation::{Permutation, mix};

/// TLV-TYPE of all components.
pub(crate) const GENERIC_COMPONENT: u8 = 8;
/// Bytes of TLV-TYPE and TLV-LENGTH of a component.
pub(crate) const HEADER_BYTES: usize = 2;
/// Length of a component's value in bytes in the published workload.
const PUBLISHED_COMPONENT_BYTES: usize = 9;
const WORD_BYTES: usize = 8;
/// Maximum length of a component with a TLV-LENGTH of one byte.
pub(crate) const MAX_COMPONENT_BYTES: usize = 252;
/// Maximum number of components of a name that the forwarder accepts.
const MAX_COMPONENTS: usize = namehop_wire::MAX_NAME_COMPONENTS;
/// Maximum size of a name, which leaves room for the rest of a packet.
const MAX_VALUE_BYTES: usize = MAX_PACKET_SIZE / 2;

/// Parameters of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorkloadParameters {
    /// Number of prefixes in the FIB.
    pub prefixes: u64,
    /// Average number of components of prefixes.
    pub prefix_components: usize,
    /// Prefixes have up to this number of components less or more than the average, all lengths being equally frequent.
    pub prefix_spread: usize,
    /// Components of each name, at least as many as the longest prefix.
    pub components: usize,
    /// Bytes of each component, 1 to 252.
    pub component_bytes: usize,
    /// Seed of the bytes. Different seeds give different names.
    pub seed: u64,
}

impl Default for WorkloadParameters {
    /// The numbers of Takemasa et al. (2017), 6.2, with all prefixes of the average length.
    fn default() -> Self {
        WorkloadParameters {
            prefixes: 13_548_815,
            prefix_components: 4,
            prefix_spread: 0,
            components: 7,
            component_bytes: PUBLISHED_COMPONENT_BYTES,
            seed: 1,
        }
    }
}

/// Why a workload is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// There are no prefixes, or they may be empty.
    #[error("a workload needs at least one prefix of at least one component")]
    NoPrefix,
    /// Names are shorter than prefixes, or too long.
    #[error(
        "names must have at least as many components as prefixes, more if prefixes differ in length, and at most \
         {MAX_COMPONENTS}"
    )]
    Components,
    /// Components are empty or too long.
    #[error("components must have 1 to {MAX_COMPONENT_BYTES} bytes")]
    ComponentBytes,
    /// Names are too long for a packet.
    #[error("names of {0} bytes are too long: the maximum is {MAX_VALUE_BYTES}")]
    TooLong(usize),
    /// The parameters do not allow enough different prefixes.
    #[error("only {0} different prefixes of this shape exist")]
    TooFewPrefixes(u64),
}

/// Generator of names by number; see the module documentation.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    parameters: WorkloadParameters,
    prefix_values: Permutation,
    /// Number of bits of the prefix values.
    prefix_bits: u32,
    /// The same for the components after the prefix; `None` if there are none.
    suffix: Option<(Permutation, u32)>,
}

impl Workload {
    /// Checks the parameters and creates the generator.
    pub fn new(parameters: WorkloadParameters) -> Result<Self, WorkloadError> {
        let WorkloadParameters { prefixes, prefix_components, prefix_spread, components, component_bytes, seed } =
            parameters;
        if prefixes == 0 || prefix_components <= prefix_spread {
            return Err(WorkloadError::NoPrefix);
        }
        let (shortest, longest) = (prefix_components - prefix_spread, prefix_components + prefix_spread);
        if !(longest + usize::from(prefix_spread > 0)..=MAX_COMPONENTS).contains(&components) {
            return Err(WorkloadError::Components);
        }
        if !(1..=MAX_COMPONENT_BYTES).contains(&component_bytes) {
            return Err(WorkloadError::ComponentBytes);
        }
        let value_bytes = components * (HEADER_BYTES + component_bytes);
        if value_bytes > MAX_VALUE_BYTES {
            return Err(WorkloadError::TooLong(value_bytes));
        }
        let bits = |components: usize| ((8 * components * component_bytes).min(64)) as u32;
        let prefix_bits = bits(shortest);
        if prefixes - 1 > u64::MAX >> (64 - prefix_bits) {
            return Err(WorkloadError::TooFewPrefixes(1 << prefix_bits));
        }
        let suffix_components = components - longest;
        let suffix = (suffix_components > 0)
            .then(|| (Permutation::new(bits(suffix_components), seed ^ 0x7375_6666), bits(suffix_components)));
        Ok(Workload { parameters, prefix_values: Permutation::new(prefix_bits, seed), prefix_bits, suffix })
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &WorkloadParameters {
        &self.parameters
    }

    /// Size of a name's TLV-VALUE in bytes.
    pub fn name_bytes(&self) -> usize {
        self.parameters.components * (HEADER_BYTES + self.parameters.component_bytes)
    }

    /// Maximum size of a prefix's TLV-VALUE in bytes.
    pub fn prefix_bytes(&self) -> usize {
        let WorkloadParameters { prefix_components, prefix_spread, component_bytes, .. } = self.parameters;
        (prefix_components + prefix_spread) * (HEADER_BYTES + component_bytes)
    }

    /// Number of components of prefix number `prefix`.
    #[inline(always)]
    pub fn prefix_components_of(&self, prefix: u64) -> usize {
        let WorkloadParameters { prefixes, prefix_components, prefix_spread, .. } = self.parameters;
        match prefix_spread {
            0 => prefix_components,
            _ => prefix_components - prefix_spread + (prefix % prefixes) as usize % (2 * prefix_spread + 1),
        }
    }

    /// Size in bytes of the TLV-VALUE of prefix number `prefix`, which starts the names below it.
    #[inline(always)]
    fn prefix_bytes_of(&self, prefix: u64) -> usize {
        self.prefix_components_of(prefix) * (HEADER_BYTES + self.parameters.component_bytes)
    }

    /// Names with a number below this are all different.
    pub fn name_capacity(&self) -> u64 {
        match self.suffix {
            None => self.parameters.prefixes,
            Some((_, bits)) => u64::MAX >> (64 - bits),
        }
    }

    /// Writes the TLV-VALUE of prefix number `number` (modulo the number of prefixes) to the start of `out`; returns
    /// its length.
    ///
    /// # Panics
    /// Panics if `out` is shorter than the prefix; [`prefix_bytes`](Self::prefix_bytes) are always enough.
    #[inline]
    pub fn write_prefix(&self, number: u64, out: &mut [u8]) -> usize {
        let out = &mut out[..self.prefix_bytes_of(number)];
        let value = self.prefix_values.apply(number % self.parameters.prefixes);
        self.write_components(value, self.prefix_bits, out);
        out.len()
    }

    /// Number of the prefix of name number `name`.
    #[inline(always)]
    pub fn prefix_of(&self, name: u64) -> u64 {
        let prefixes = self.parameters.prefixes;
        match self.suffix {
            // Without further components each prefix is one name.
            None => name % prefixes,
            Some(_) => {
                let draw = mix(name ^ self.parameters.seed.rotate_left(32));
                ((u128::from(draw) * u128::from(prefixes)) >> 64) as u64
            }
        }
    }

    /// Writes the TLV-VALUE of name number `number` to the start of `out`; returns its length.
    ///
    /// # Panics
    /// Panics if `out` is shorter than [`name_bytes`](Self::name_bytes).
    #[inline]
    pub fn write_name(&self, number: u64, out: &mut [u8]) -> usize {
        let out = &mut out[..self.name_bytes()];
        let prefix_number = self.prefix_of(number);
        let (prefix, rest) = out.split_at_mut(self.prefix_bytes_of(prefix_number));
        self.write_components(self.prefix_values.apply(prefix_number), self.prefix_bits, prefix);
        if let Some((values, bits)) = self.suffix {
            self.write_components(values.apply(number), bits, rest);
        }
        out.len()
    }

    /// Fills `out` with components that encode the `bits` bits of `value`. Each component takes as many bits as it has
    /// room for; when all bits are used, further bytes are derived from them.
    #[inline(always)]
    fn write_components(&self, value: u64, bits: u32, out: &mut [u8]) {
        match self.parameters.component_bytes {
            // The published length; as a constant it gives all stores here a fixed size.
            PUBLISHED_COMPONENT_BYTES => write_components_of(PUBLISHED_COMPONENT_BYTES, value, bits, out),
            component_bytes => write_components_of(component_bytes, value, bits, out),
        }
    }
}

#[inline(always)]
fn write_components_of(component_bytes: usize, value: u64, bits: u32, out: &mut [u8]) {
    let (mut rest, mut used, mut word) = (out, 0, value);
    while rest.len() >= HEADER_BYTES + component_bytes {
        let (component, after) = rest.split_at_mut(HEADER_BYTES + component_bytes);
        let (header, text) = component.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&[GENERIC_COMPONENT, component_bytes as u8]);
        word = if used < bits as usize { value.rotate_right(used as u32) } else { next_word(word) };
        write_text(word, text);
        rest = after;
        used += 8 * component_bytes;
    }
}

/// Fills a component with the bytes of `word`, followed by words derived from it.
#[inline(always)]
fn write_text(word: u64, text: &mut [u8]) {
    let (mut word, mut rest) = (word, text);
    while rest.len() >= WORD_BYTES {
        let (chunk, after) = rest.split_at_mut(WORD_BYTES);
        chunk.copy_from_slice(&word.to_le_bytes());
        word = next_word(word);
        rest = after;
    }
    let count = rest.len();
    rest.copy_from_slice(&word.to_le_bytes()[..count]);
}

/// Derives a word from a well-mixed one. One multiplication suffices, because these words are only filling.
#[inline(always)]
pub(crate) const fn next_word(word: u64) -> u64 {
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use namehop_wire::NameRef;
    use proptest::prelude::*;

    use super::*;

    fn name(workload: &Workload, number: u64) -> Vec<u8> {
        let mut value = vec![0; workload.name_bytes()];
        assert_eq!(workload.write_name(number, &mut value), value.len());
        value
    }

    fn prefix(workload: &Workload, number: u64) -> Vec<u8> {
        let mut value = vec![0; workload.prefix_bytes()];
        let bytes = workload.write_prefix(number, &mut value);
        value.truncate(bytes);
        value
    }

    #[test]
    fn the_published_workload() {
        let workload = Workload::new(WorkloadParameters::default()).expect("workload");
        assert_eq!((workload.name_bytes(), workload.prefix_bytes()), (77, 44));
        assert!(workload.name_capacity() > 80_000_000);
        let mut names = HashSet::new();
        let mut prefixes = HashSet::new();
        for number in 0..100_000 {
            let value = name(&workload, number);
            assert_eq!(value[..44], prefix(&workload, workload.prefix_of(number)));
            assert!(names.insert(value), "name {number} is repeated");
            assert!(prefixes.insert(prefix(&workload, number)), "prefix {number} is repeated");
        }
        // Draws are uniform: 100,000 of 13.5 million hit about 99,632 different prefixes.
        let drawn: HashSet<u64> = (0..100_000).map(|number| workload.prefix_of(number)).collect();
        assert!((99_400..99_850).contains(&drawn.len()), "{}", drawn.len());
    }

    #[test]
    fn all_prefixes_and_names_of_small_shapes_are_different() {
        for (prefix_components, components, component_bytes) in [(1, 1, 2), (1, 2, 2), (2, 3, 1), (1, 3, 1)] {
            let prefixes = 1 << (8 * prefix_components * component_bytes);
            let parameters = WorkloadParameters {
                prefixes,
                prefix_components,
                prefix_spread: 0,
                components,
                component_bytes,
                seed: 3,
            };
            let workload = Workload::new(parameters).expect("workload");
            let all: HashSet<_> = (0..prefixes).map(|number| prefix(&workload, number)).collect();
            assert_eq!(all.len() as u64, prefixes);
            let capacity = workload.name_capacity();
            let all: HashSet<_> = (0..capacity).map(|number| name(&workload, number)).collect();
            assert_eq!(all.len() as u64, capacity);
        }
    }

    #[test]
    fn lengths_are_mixed_evenly() {
        let workload = Workload::new(WorkloadParameters { prefix_spread: 2, ..Default::default() }).expect("workload");
        let mut by_length = [0; 8];
        let mut names = HashSet::new();
        for number in 0..10_000 {
            let value = name(&workload, number);
            let prefix_number = workload.prefix_of(number);
            let prefix = prefix(&workload, prefix_number);
            assert!(value.starts_with(&prefix) && value.len() == 77);
            let length = NameRef::from_value(&prefix).expect("valid prefix").len();
            assert_eq!(length, workload.prefix_components_of(prefix_number));
            by_length[length] += 1;
            assert!(names.insert(value), "name {number} is repeated");
        }
        assert!(by_length[2..=6].iter().all(|count| (1_800..2_200).contains(count)), "{by_length:?}");
    }

    #[test]
    fn seeds_give_different_names() {
        let workload =
            |seed| Workload::new(WorkloadParameters { seed, ..WorkloadParameters::default() }).expect("fits");
        assert_ne!(name(&workload(1), 0), name(&workload(2), 0));
        assert_eq!(name(&workload(1), 9), name(&workload(1), 9));
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let good = WorkloadParameters::default();
        let error = |parameters| Workload::new(parameters).expect_err("refused");
        assert_eq!(error(WorkloadParameters { prefixes: 0, ..good }), WorkloadError::NoPrefix);
        assert_eq!(error(WorkloadParameters { prefix_components: 8, ..good }), WorkloadError::Components);
        assert_eq!(error(WorkloadParameters { prefix_spread: 3, ..good }), WorkloadError::Components);
        assert_eq!(error(WorkloadParameters { prefix_spread: 4, ..good }), WorkloadError::NoPrefix);
        assert_eq!(error(WorkloadParameters { components: 65, ..good }), WorkloadError::Components);
        assert_eq!(error(WorkloadParameters { component_bytes: 0, ..good }), WorkloadError::ComponentBytes);
        assert_eq!(error(WorkloadParameters { component_bytes: 253, ..good }), WorkloadError::ComponentBytes);
        let long = WorkloadParameters { components: 64, component_bytes: 252, ..good };
        assert_eq!(error(long), WorkloadError::TooLong(64 * 254));
        let few = WorkloadParameters { prefix_components: 1, component_bytes: 2, ..good };
        assert_eq!(error(few), WorkloadError::TooFewPrefixes(1 << 16));
    }

    proptest! {
        #[test]
        fn names_are_valid_and_below_their_prefix(
            prefix_components in 1usize..8,
            more in 0usize..8,
            component_bytes in 1usize..60,
            seed: u64,
            number: u64,
        ) {
            let components = prefix_components + more;
            let prefixes = 1000.min(1 << (8 * prefix_components * component_bytes).min(20));
            let parameters =
                WorkloadParameters { prefixes, prefix_components, prefix_spread: 0, components, component_bytes, seed };
            let workload = Workload::new(parameters).expect("workload");
            let value = name(&workload, number);
            let parsed = NameRef::from_value(&value).expect("valid name");
            prop_assert_eq!(parsed.len(), components);
            prop_assert!(parsed.components().all(|component| component.value.len() == component_bytes));
            let prefix = prefix(&workload, workload.prefix_of(number));
            let parsed_prefix = NameRef::from_value(&prefix).expect("valid prefix");
            prop_assert!(parsed_prefix.is_prefix_of(parsed));
        }
    }
}
