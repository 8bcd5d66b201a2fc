//! Declares settings: each is one field, with its doc comment, default and range.
//!
//! [`settings!`] makes the type that a file is read into, and the check of its ranges. `default.toml` and
//! `docs/settings.md` are written from the same declarations (`make settings`).

use std::ops::RangeInclusive;

use crate::automatic::Auto;
use crate::fault::Fault;
use crate::values::ByteSize;

/// A section of the configuration, or an element of a list of sections.
pub(crate) trait Settings: Sized {
    /// Returns the section's doc comment, its keys and the sections below it.
    #[cfg(test)]
    fn describe() -> super::reference::Description;

    /// Returns the first key with a number out of its range, in this section, which is at `path`, and those below it.
    fn range_fault(&self, path: &str) -> Option<Fault>;
}

/// A number with a range, or a value that holds one.
pub(crate) trait Number {
    /// Returns the number; `None` if the value holds none, so that no range applies.
    fn number(&self) -> Option<u64>;

    /// Returns a number as a file has it for a key of this type.
    fn text(number: u64) -> String {
        number.to_string()
    }

    /// Returns the error if the number of `key` at `path` is out of `range`.
    fn fault(&self, path: &str, key: &str, range: RangeInclusive<u64>) -> Option<Fault> {
        let number = self.number().filter(|number| !range.contains(number))?;
        let [number, low, high] = [number, *range.start(), *range.end()].map(Self::text);
        let message = format!("`{key}` is {number}; it must be from {low} to {high}");
        Some(Fault::new(join(path, key), message))
    }
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {
        $(impl Number for $number {
            fn number(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        })*
    };
}

whole_numbers!(u16 u64 usize);

impl Number for ByteSize {
    fn number(&self) -> Option<u64> {
        Some(self.0)
    }

    fn text(number: u64) -> String {
        ByteSize(number).to_string()
    }
}

impl<N: Number> Number for Option<N> {
    fn number(&self) -> Option<u64> {
        self.as_ref()?.number()
    }

    fn text(number: u64) -> String {
        N::text(number)
    }
}

impl<N: Number> Number for Auto<N> {
    fn number(&self) -> Option<u64> {
        match self {
            Auto::Auto => None,
            Auto::Value(value) => value.number(),
        }
    }

    fn text(number: u64) -> String {
        N::text(number)
    }
}

/// Returns the smallest and largest number of a range as text, for a key of type `N`.
#[cfg(test)]
pub(crate) fn bounds<N: Number>(range: RangeInclusive<u64>) -> [String; 2] {
    [*range.start(), *range.end()].map(N::text).map(|text| super::reference::with_commas(&text))
}

/// Returns `path.key`, or only `key` at the top.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Declares a section of the configuration as a struct.
///
/// `section` has a default for each key (`= VALUE`). `element` is one of several sections, which are written only if
/// needed: its keys are required unless `serde(default)` is there. A key has, in this order: name and type, default,
/// `in RANGE` of `u64`, `example TOML`, and attributes of serde. After the keys stand the sections below it: `one`,
/// with a text of its own if wanted, `maybe` and `many`.
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        pub section $section:ident {
            $(
                $(#[doc = $doc:literal])*
                pub $key:ident: $type:ty = $default:expr
                    $(, in $range:expr)? $(, example $example:literal)? $(, serde($($serde:tt)*))?;
            )*
            $(one $one:ident: $one_type:ty $(, $one_about:literal)?;)*
            $(maybe $maybe:ident: $maybe_type:ty;)*
            $(many $many:ident: $many_type:ty;)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $section {
            $(
                $(#[doc = $doc])*
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )*
            $(
                #[doc = concat!("Section `", stringify!($one), "`.")]
                pub $one: $one_type,
            )*
            $(
                #[doc = concat!("Section `", stringify!($maybe), "`, if the file has it.")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $maybe: Option<$maybe_type>,
            )*
            $(
                #[doc = concat!("The sections `", stringify!($many), "`.")]
                pub $many: Vec<$many_type>,
            )*
        }

        impl Default for $section {
            fn default() -> Self {
                $section {
                    $($key: $default,)*
                    $($one: <$one_type>::default(),)*
                    $($maybe: None,)*
                    $($many: Vec::new(),)*
                }
            }
        }

        impl $crate::settings::Settings for $section {
            #[cfg(test)]
            fn describe() -> $crate::reference::Description {
                let keys = vec![$(settings!(@key $key, false, [$($doc)*], $type, [$($range)?], [$($example)?])),*];
                let parts = vec![
                    $(settings!(@part $one, $one_type, Once, [$($one_about)?]),)*
                    $(settings!(@part $maybe, $maybe_type, Optionally, []),)*
                    $(settings!(@part $many, $many_type, Repeatedly, []),)*
                ];
                let about = &[$($about),*];
                let defaults = ::toml::Table::try_from($section::default()).expect("sections are TOML tables");
                $crate::reference::Description { about, keys, parts }.with_defaults(&defaults)
            }

            fn range_fault(&self, path: &str) -> Option<$crate::fault::Fault> {
                let _ = path;
                $($(settings!(@range self, path, $key, $range);)?)*
                $(
                    let path_of_one = $crate::settings::join(path, stringify!($one));
                    if let Some(fault) = self.$one.range_fault(&path_of_one) {
                        return Some(fault);
                    }
                )*
                $(
                    let path_of_maybe = $crate::settings::join(path, stringify!($maybe));
                    let below = self.$maybe.as_ref();
                    if let Some(fault) = below.and_then(|below| below.range_fault(&path_of_maybe)) {
                        return Some(fault);
                    }
                )*
                $(
                    let list = $crate::settings::join(path, stringify!($many));
                    for (index, element) in self.$many.iter().enumerate() {
                        if let Some(fault) = element.range_fault(&format!("{list}[{index}]")) {
                            return Some(fault);
                        }
                    }
                )*
                None
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        pub element $section:ident {
            $(
                $(#[doc = $doc:literal])*
                pub $key:ident: $type:ty
                    $(, in $range:expr)? $(, example $example:literal)? $(, serde($($serde:tt)*))?;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $section {
            $(
                $(#[doc = $doc])*
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )*
        }

        impl $crate::settings::Settings for $section {
            #[cfg(test)]
            fn describe() -> $crate::reference::Description {
                let keys = vec![$({
                    let attributes: &[&str] = &[$(stringify!($($serde)*))?];
                    let is_required = !attributes.concat().contains("default");
                    settings!(@key $key, is_required, [$($doc)*], $type, [$($range)?], [$($example)?])
                }),*];
                let about = &[$($about),*];
                let described = $crate::reference::Description { about, keys, parts: Vec::new() };
                let shortest: $section =
                    ::toml::from_str(&described.shortest()).expect("the examples of required keys are a valid section");
                let defaults = ::toml::Table::try_from(shortest).expect("sections are TOML tables");
                described.with_defaults(&defaults)
            }

            fn range_fault(&self, path: &str) -> Option<$crate::fault::Fault> {
                let _ = path;
                $($(settings!(@range self, path, $key, $range);)?)*
                None
            }
        }
    };
    (@key $key:ident, $required:expr, [$($doc:literal)*], $type:ty, [$($range:expr)?], [$($example:literal)?]) => {
        $crate::reference::Key {
            name: stringify!($key),
            meaning: &[$($doc),*],
            example: [$($example)?].into_iter().next(),
            range: [$($crate::settings::bounds::<$type>($range))?].into_iter().next(),
            is_required: $required,
            default: None,
        }
    };
    (@part $name:ident, $type:ty, $occurs:ident, [$($about:literal)?]) => {
        $crate::reference::Part {
            name: stringify!($name),
            occurs: $crate::reference::Occurs::$occurs,
            description: <$type as $crate::settings::Settings>::describe().with_about(&[$($about)?]),
        }
    };
    (@range $section:ident, $path:ident, $key:ident, $range:expr) => {
        if let Some(fault) = $crate::settings::Number::fault(&$section.$key, $path, stringify!($key), $range) {
            return Some(fault);
        }
    };
}

pub(crate) use settings;
