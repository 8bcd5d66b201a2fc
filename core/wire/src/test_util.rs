//! Generators shared by the property tests.

use std::ops::Range;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::builder::{DataBuilder, InterestBuilder};
use crate::name::{ComponentRef, Name};

/// A component of any valid type; the usual types are frequent.
fn any_component() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let bytes = || prop_oneof![vec(any::<u8>(), 0..20), vec(Just(b'.'), 0..4), vec(any::<u8>(), 250..260)];
    let number = prop_oneof![
        any::<u8>().prop_map(|n| n.to_be_bytes().to_vec()),
        any::<u16>().prop_map(|n| n.to_be_bytes().to_vec()),
        any::<u64>().prop_map(|n| n.to_be_bytes().to_vec()),
    ];
    prop_oneof![
        8 => (Just(8_u32), bytes()),
        1 => (Just(1_u32), vec(any::<u8>(), 32)),
        1 => (Just(32_u32), bytes()),
        2 => (prop_oneof![Just(50_u32), Just(52), Just(54), Just(56), Just(58)], prop_oneof![number, bytes()]),
        1 => (3..=0xFFFF_u32, bytes()),
    ]
}

/// A name without parameters digest, with a number of components in `count`.
pub(crate) fn any_name(count: Range<usize>) -> impl Strategy<Value = Name> {
    vec(any_component(), count).prop_map(|components| {
        let valid = components.iter().map(|(typ, value)| ComponentRef::new(*typ, value).expect("valid component"));
        valid.collect()
    })
}

/// Fields of an Interest.
#[derive(Debug, Clone)]
pub(crate) struct InterestParts {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) forwarding_hint: Vec<Name>,
    pub(crate) nonce: Option<u32>,
    pub(crate) lifetime_ms: Option<u64>,
    pub(crate) hop_limit: Option<u8>,
    pub(crate) application_parameters: Option<Vec<u8>>,
}

impl InterestParts {
    pub(crate) fn builder(&self) -> InterestBuilder {
        let mut builder =
            InterestBuilder::new(&self.name).can_be_prefix(self.can_be_prefix).must_be_fresh(self.must_be_fresh);
        for name in &self.forwarding_hint {
            builder = builder.forwarding_hint(name);
        }
        if let Some(nonce) = self.nonce {
            builder = builder.nonce(nonce);
        }
        if let Some(lifetime_ms) = self.lifetime_ms {
            builder = builder.lifetime_ms(lifetime_ms);
        }
        if let Some(hop_limit) = self.hop_limit {
            builder = builder.hop_limit(hop_limit);
        }
        if let Some(parameters) = &self.application_parameters {
            builder = builder.application_parameters(parameters.clone());
        }
        builder
    }
}

pub(crate) fn any_interest() -> impl Strategy<Value = InterestParts> {
    (
        any_name(1..6),
        any::<bool>(),
        any::<bool>(),
        vec(any_name(0..3), 0..3),
        option::of(any::<u32>()),
        option::of(any::<u64>()),
        option::of(any::<u8>()),
        option::of(vec(any::<u8>(), 0..300)),
    )
        .prop_map(
            |(
                name,
                can_be_prefix,
                must_be_fresh,
                forwarding_hint,
                nonce,
                lifetime_ms,
                hop_limit,
                application_parameters,
            )| InterestParts {
                name,
                can_be_prefix,
                must_be_fresh,
                forwarding_hint,
                nonce,
                lifetime_ms,
                hop_limit,
                application_parameters,
            },
        )
}

/// Fields of a Data.
#[derive(Debug, Clone)]
pub(crate) struct DataParts {
    pub(crate) name: Name,
    pub(crate) content_type: u64,
    pub(crate) freshness_ms: Option<u64>,
    /// Name of one component.
    pub(crate) final_block_id: Option<Name>,
    pub(crate) content: Option<Vec<u8>>,
}

impl DataParts {
    pub(crate) fn builder(&self) -> DataBuilder {
        let mut builder = DataBuilder::new(&self.name).content_type(self.content_type);
        if let Some(freshness_ms) = self.freshness_ms {
            builder = builder.freshness_ms(freshness_ms);
        }
        if let Some(component) = self.final_block_id.as_ref().and_then(Name::last) {
            builder = builder.final_block_id(component);
        }
        if let Some(content) = &self.content {
            builder = builder.content(content.clone());
        }
        builder
    }
}

pub(crate) fn any_data() -> impl Strategy<Value = DataParts> {
    (
        any_name(0..6),
        prop_oneof![Just(0), any::<u64>()],
        option::of(any::<u64>()),
        option::of(any_name(1..2)),
        option::of(prop_oneof![vec(any::<u8>(), 0..300), vec(any::<u8>(), 1000..5000)]),
    )
        .prop_map(|(name, content_type, freshness_ms, final_block_id, content)| DataParts {
            name,
            content_type,
            freshness_ms,
            final_block_id,
            content,
        })
}

/// Converts a text of hexadecimal digits and spaces to bytes.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("digits");
    digits.chunks(2).map(byte).collect()
}

/// Makes a packet from its outer type and the parts of its VALUE.
pub(crate) fn packet(typ: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut writer = crate::tlv::Writer::new();
    writer.element(typ, &parts.concat());
    writer.into_vec()
}

/// A directory that is removed when the test ends.
pub(crate) struct Directory(std::path::PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("namehop-wire-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("directory");
        Directory(path)
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
