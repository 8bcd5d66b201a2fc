//! What is known of strategies by name, and how their names are read.
//!
//! A strategy is chosen by a name: `/localhost/nfd/strategy/<strategy>[/<version>[/<key>~<value>...]]` (NFD Management Protocol,
//! "Strategy Choice"). Without a version the newest is meant; with one, that version or the next higher. There is one version of
//! each strategy, so an older number leads to it and a newer one to none.

use std::sync::Arc;

use namehop_wire::name::NameUriError;
use namehop_wire::{Name, NameRef};

use super::Strategy;
use super::built_in::{BuiltIn, STRATEGIES};
use super::parameter::{self, ParameterInfo};

/// The components in front of the strategy's own.
const PREFIX: [&str; 3] = ["localhost", "nfd", "strategy"];

/// Why a strategy name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy has this name and version.
    #[error("no such strategy")]
    NotFound,
    /// The strategy exists but refuses its parameters; the text says which and why.
    #[error("{0}")]
    BadParameters(String),
}

/// The name of a strategy as people write it: without a slash at its start it stands under `/localhost/nfd/strategy`.
///
/// # Errors
/// What is wrong with the URI. Whether there is such a strategy is not looked at.
pub fn full_name(text: &str) -> Result<Name, NameUriError> {
    if text.starts_with('/') { text.parse() } else { format!("/{}/{text}", PREFIX.join("/")).parse() }
}

/// All parameters there are, with the names of the strategies that have them.
pub fn all_parameters() -> Vec<(ParameterInfo, Vec<&'static str>)> {
    let mut all: Vec<(ParameterInfo, Vec<&'static str>)> = Vec::new();
    for info in STRATEGIES {
        for parameter in info.parameters() {
            match all.iter_mut().find(|(known, _)| *known == parameter) {
                Some((_, strategies)) => strategies.push(info.name),
                None => all.push((parameter, vec![info.name])),
            }
        }
    }
    all
}

/// Makes a strategy from values given as (key, value), or says what is wrong with them.
type Read = fn(&[(&str, &str)]) -> Result<BuiltIn, String>;

/// A strategy that can be chosen, whatever its parameters.
#[derive(Debug)]
pub struct StrategyInfo {
    /// Its name component.
    pub name: &'static str,
    /// Its version.
    pub version: u64,
    /// What it does, in one line.
    pub summary: &'static str,
    parameters: fn() -> Vec<ParameterInfo>,
    defaults: fn() -> BuiltIn,
    read: Read,
}

impl StrategyInfo {
    pub(super) const fn new<S: Strategy>(defaults: fn() -> BuiltIn, read: Read) -> Self {
        StrategyInfo {
            name: S::NAME,
            version: S::VERSION,
            summary: S::SUMMARY,
            parameters: parameter::describe::<S>,
            defaults,
            read,
        }
    }

    /// The strategy with default parameters.
    pub fn with_defaults(&self) -> StrategyInstance {
        StrategyInstance { inner: Arc::new(Inner { name: self.versioned_name(), strategy: (self.defaults)() }) }
    }

    /// Its parameters.
    pub fn parameters(&self) -> Vec<ParameterInfo> {
        (self.parameters)()
    }

    /// The name with version and without parameters.
    pub fn versioned_name(&self) -> Name {
        PREFIX.iter().fold(Name::new(), Name::append_generic).append_generic(self.name).append_version(self.version)
    }

    fn bad(&self, reason: String) -> StrategyError {
        let mut text = format!("{reason}. {} v{} takes:", self.name, self.version);
        for (index, ParameterInfo { key, default, min, max, meaning }) in self.parameters().iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            text.push_str(&format!("{separator} {key} (default {default}, {min} to {max}): {meaning}"));
        }
        StrategyError::BadParameters(text)
    }
}

#[derive(Debug, PartialEq)]
struct Inner {
    name: Name,
    strategy: BuiltIn,
}

/// A chosen strategy with its parameters. Cloning is cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyInstance {
    inner: Arc<Inner>,
}

impl StrategyInstance {
    /// Reads a strategy name.
    ///
    /// # Errors
    /// [`StrategyError::NotFound`] when there is no such strategy or not in such a high version,
    /// [`StrategyError::BadParameters`] when a parameter is unknown, given twice, or has an unacceptable value.
    pub fn parse(name: NameRef<'_>) -> Result<Self, StrategyError> {
        let mut components = name.components();
        for expected in PREFIX {
            if !components
                .next()
                .is_some_and(|component| component.is_generic() && component.value == expected.as_bytes())
            {
                return Err(StrategyError::NotFound);
            }
        }
        let info = components
            .next()
            .filter(|component| component.is_generic())
            .and_then(|component| STRATEGIES.iter().find(|info| info.name.as_bytes() == component.value))
            .ok_or(StrategyError::NotFound)?;
        if let Some(version) = components.next() {
            let version = version.as_version().ok_or_else(|| {
                StrategyError::BadParameters(format!(
                    "'{version}' is not a version: parameters come after the version, as in {}/<key>~<value>",
                    info.versioned_name()
                ))
            })?;
            if version > info.version {
                return Err(StrategyError::NotFound);
            }
        }
        let mut full_name = info.versioned_name();
        let mut values = Vec::new();
        for component in components {
            let pair = std::str::from_utf8(component.value)
                .ok()
                .filter(|_| component.is_generic())
                .and_then(|text| text.split_once('~'))
                .ok_or_else(|| info.bad(format!("'{component}' is not of the form <key>~<value>")))?;
            values.push(pair);
            full_name.push(component);
        }
        let strategy = (info.read)(&values).map_err(|reason| info.bad(reason))?;
        Ok(StrategyInstance { inner: Arc::new(Inner { name: full_name, strategy }) })
    }

    /// Full name with version and the parameters that were given.
    pub fn name(&self) -> &Name {
        &self.inner.name
    }

    /// Does it do more with Data than to send it to all downstreams?
    pub fn wants_data(&self) -> bool {
        self.inner.strategy.wants_data()
    }

    pub(super) fn strategy(&self) -> &BuiltIn {
        &self.inner.strategy
    }
}

impl Default for StrategyInstance {
    /// The first of [`STRATEGIES`], with default parameters.
    fn default() -> Self {
        STRATEGIES[0].with_defaults()
    }
}

#[cfg(test)]
#[path = "tests/registry.rs"]
mod tests;
