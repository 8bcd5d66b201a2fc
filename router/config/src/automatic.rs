//! Values that may be `"auto"`: Namehop then chooses a value that suits the host or other keys.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::values::ByteSize;

/// A value, or `"auto"` to let Namehop choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auto<T> {
    /// Namehop chooses.
    #[default]
    Auto,
    /// The configured value.
    Value(T),
}

impl<T> Auto<T> {
    /// Returns the configured value; `None` for `"auto"`.
    pub fn value(self) -> Option<T> {
        match self {
            Auto::Auto => None,
            Auto::Value(value) => Some(value),
        }
    }
}

impl Auto<ByteSize> {
    /// Returns the configured size in bytes; `None` for `"auto"`.
    pub fn bytes(self) -> Option<usize> {
        self.value().map(|size| usize::try_from(size.0).unwrap_or(usize::MAX))
    }
}

impl<T: Serialize> Serialize for Auto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Auto::Auto => serializer.serialize_str("auto"),
            Auto::Value(value) => value.serialize(serializer),
        }
    }
}

/// A type of values that may be `"auto"`. Each function reads a form of the value in a file, or returns the remedy.
pub trait Automatic: Sized {
    /// What may be written, for messages.
    const EXPECTED: &'static str;

    /// Reads a number.
    fn from_number(_: i64) -> Result<Self, String> {
        Err(format!("write {}", Self::EXPECTED))
    }

    /// Reads a text other than `auto`.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Reads `true` or `false`.
    fn from_bool(_: bool) -> Result<Self, String> {
        Err(format!("write {}", Self::EXPECTED))
    }
}

impl Automatic for usize {
    const EXPECTED: &'static str = "a number, or \"auto\"";

    fn from_number(number: i64) -> Result<Self, String> {
        usize::try_from(number).map_err(|_| "write a number, 0 or more, or \"auto\"".to_owned())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("`{text}` is not a number; write one, or \"auto\""))
    }
}

impl Automatic for ByteSize {
    const EXPECTED: &'static str = "a size in bytes, such as 1048576 or \"512 MiB\", or \"auto\"";

    fn from_number(number: i64) -> Result<Self, String> {
        u64::try_from(number).map(ByteSize).map_err(|_| "a size cannot be negative".to_owned())
    }

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}, or \"auto\""))
    }
}

impl Automatic for bool {
    const EXPECTED: &'static str = "true, false or \"auto\"";

    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("`{text}` is not true, false or \"auto\""))
    }

    fn from_bool(value: bool) -> Result<Self, String> {
        Ok(value)
    }
}

impl Automatic for PathBuf {
    const EXPECTED: &'static str = "a path or \"auto\"";

    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("an empty path; write a path or \"auto\"".to_owned()),
            path => Ok(PathBuf::from(path)),
        }
    }
}

impl<'de, T: Automatic> Deserialize<'de> for Auto<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AutoVisitor(PhantomData))
    }
}

struct AutoVisitor<T>(PhantomData<T>);

impl<T: Automatic> Visitor<'_> for AutoVisitor<T> {
    type Value = Auto<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Auto<T>, E> {
        T::from_number(number).map(Auto::Value).map_err(E::custom)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Auto<T>, E> {
        T::from_bool(value).map(Auto::Value).map_err(E::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Auto<T>, E> {
        if text == "auto" {
            return Ok(Auto::Auto);
        }
        T::from_text(text).map(Auto::Value).map_err(E::custom)
    }
}
