//! Trust anchors: a certificate file, written as a string, or as a table with the prefixes for which its keys may
//! register routes.

use std::fmt;
use std::path::PathBuf;

use namehop_manage::authentication::Anchor;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::values::NameText;

/// A trust anchor, an element of `anchors`.
#[derive(Debug, Clone)]
pub struct TrustAnchor {
    /// Certificate file.
    pub certificate: PathBuf,
    /// Names under which its keys may register routes, besides the names of their own identities.
    pub prefixes: Vec<NameText>,
}

/// A trust anchor written as a table.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    certificate: PathBuf,
    #[serde(default)]
    prefixes: Vec<NameText>,
}

impl Serialize for TrustAnchor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.prefixes.as_slice() {
            [] => self.certificate.serialize(serializer),
            prefixes => {
                Table { certificate: self.certificate.clone(), prefixes: prefixes.to_vec() }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for TrustAnchor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnchorVisitor;
        impl<'de> Visitor<'de> for AnchorVisitor {
            type Value = TrustAnchor;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a certificate file, or { certificate = \"FILE\", prefixes = [\"/name\"] }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TrustAnchor, E> {
                Ok(TrustAnchor { certificate: text.into(), prefixes: Vec::new() })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TrustAnchor, A::Error> {
                let Table { certificate, prefixes } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TrustAnchor { certificate, prefixes })
            }
        }
        deserializer.deserialize_any(AnchorVisitor)
    }
}

impl From<&TrustAnchor> for Anchor {
    fn from(anchor: &TrustAnchor) -> Self {
        let prefixes = anchor.prefixes.iter().map(|prefix| prefix.0.clone()).collect();
        Anchor { certificate: anchor.certificate.clone(), prefixes }
    }
}
