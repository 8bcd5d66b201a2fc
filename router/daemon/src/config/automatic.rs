//! Values that may be `"auto"`: Namehop then chooses a value that suits the host or other keys.

use std::fmt;
use std::path::PathBuf;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::values::ByteSize;

/// A number, or `"auto"` to let Namehop choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoNumber {
    /// Namehop chooses.
    #[default]
    Auto,
    /// The configured number.
    Number(usize),
}

impl AutoNumber {
    /// Returns the configured number; `None` for `"auto"`.
    pub fn number(self) -> Option<usize> {
        match self {
            AutoNumber::Auto => None,
            AutoNumber::Number(number) => Some(number),
        }
    }
}

impl Serialize for AutoNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AutoNumber::Auto => serializer.serialize_str("auto"),
            AutoNumber::Number(number) => number.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AutoNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = AutoNumber;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or \"auto\"")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<AutoNumber, E> {
                let number = usize::try_from(value);
                number.map(AutoNumber::Number).map_err(|_| E::custom("write a number, 0 or more, or \"auto\""))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<AutoNumber, E> {
                match text {
                    "auto" => Ok(AutoNumber::Auto),
                    _ => Err(E::custom(format!("`{text}` is not a number; write one, or \"auto\""))),
                }
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// A size in bytes, or `"auto"` to let Namehop choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoSize {
    /// Namehop chooses.
    #[default]
    Auto,
    /// The configured size.
    Size(ByteSize),
}

impl AutoSize {
    /// Returns the configured size in bytes; `None` for `"auto"`.
    pub fn bytes(self) -> Option<usize> {
        match self {
            AutoSize::Auto => None,
            AutoSize::Size(size) => Some(usize::try_from(size.0).unwrap_or(usize::MAX)),
        }
    }
}

impl Serialize for AutoSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AutoSize::Auto => serializer.serialize_str("auto"),
            AutoSize::Size(size) => size.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AutoSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;
        impl Visitor<'_> for SizeVisitor {
            type Value = AutoSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size in bytes, such as 1048576 or \"512 MiB\", or \"auto\"")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<AutoSize, E> {
                let size = u64::try_from(value).map(ByteSize);
                size.map(AutoSize::Size).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<AutoSize, E> {
                match text {
                    "auto" => Ok(AutoSize::Auto),
                    _ => text.parse().map(AutoSize::Size).map_err(|error| E::custom(format!("{error}, or \"auto\""))),
                }
            }
        }
        deserializer.deserialize_any(SizeVisitor)
    }
}

/// `true`, `false`, or `"auto"` to let other keys decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoBool {
    /// Other keys decide.
    #[default]
    Auto,
    /// The configured value.
    Is(bool),
}

impl Serialize for AutoBool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AutoBool::Auto => serializer.serialize_str("auto"),
            AutoBool::Is(value) => serializer.serialize_bool(*value),
        }
    }
}

impl<'de> Deserialize<'de> for AutoBool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoolVisitor;
        impl Visitor<'_> for BoolVisitor {
            type Value = AutoBool;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or \"auto\"")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<AutoBool, E> {
                Ok(AutoBool::Is(value))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<AutoBool, E> {
                match text {
                    "auto" => Ok(AutoBool::Auto),
                    _ => Err(E::custom(format!("`{text}` is not true, false or \"auto\""))),
                }
            }
        }
        deserializer.deserialize_any(BoolVisitor)
    }
}

/// A path, or `"auto"` to let Namehop choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoPath {
    /// Namehop chooses a path that suits the host and the user.
    Auto,
    /// The configured path.
    Path(PathBuf),
}

impl Serialize for AutoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            AutoPath::Auto => serializer.serialize_str("auto"),
            AutoPath::Path(path) => path.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AutoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "auto" => Ok(AutoPath::Auto),
            "" => Err(de::Error::custom("an empty path; write a path or \"auto\"")),
            path => Ok(AutoPath::Path(PathBuf::from(path))),
        }
    }
}
