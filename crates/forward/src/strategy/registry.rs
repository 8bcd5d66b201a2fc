//! Which strategies there are, and how their names are read.
//!
//! A strategy is chosen by a name: `/localhost/nfd/strategy/<strategy>[/<version>[/<key>~<value>...]]` (NFD management protocol,
//! strategy choice). Without a version the newest is meant; with one, that version or the next higher. There is one version of
//! each strategy, so an older number leads to it and a newer one leads nowhere.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use namehop_wire::{Name, NameRef};

use super::asf::AsfParameters;
use super::suppression::ExponentialSuppression;

/// The components in front of the strategy's own.
const PREFIX: [&str; 3] = ["localhost", "nfd", "strategy"];

/// Longest time a parameter may name: one hour.
const MAX_SUPPRESSION_MS: u32 = 3_600_000;
/// Longest time of the long-term parameters: 30 days.
const MAX_LONG_TERM_MS: u64 = 30 * 24 * 3_600_000;
/// Largest growth factor that makes sense: one step from the shortest to the longest interval.
const MAX_MULTIPLIER: f32 = 1_000_000.0;

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

/// A strategy, whatever its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StrategyKind {
    /// Lowest-cost next hop; others for retransmissions.
    BestRoute,
    /// All next hops.
    Multicast,
    /// One next hop by lot.
    Random,
    /// The next hop that answered last.
    Access,
    /// Adaptive smoothed-RTT forwarding.
    Asf,
    /// Flooding and learning from announcements.
    SelfLearning,
}

/// One parameter, for help texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterInfo {
    /// What stands before the `~`.
    pub key: &'static str,
    /// The default, as it would be written after the `~`.
    pub default: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// One strategy, for help texts and for parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyInfo {
    /// Which one.
    pub kind: StrategyKind,
    /// Its name component.
    pub name: &'static str,
    /// Its version.
    pub version: u64,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [ParameterInfo],
}

const SUPPRESSION_INITIAL: ParameterInfo = ParameterInfo {
    key: "retx-suppression-initial",
    default: "10",
    meaning: "first suppression interval, in milliseconds, at least 1",
};
const SUPPRESSION_MAX: ParameterInfo = ParameterInfo {
    key: "retx-suppression-max",
    default: "250",
    meaning: "longest suppression interval, in milliseconds, at least the first",
};
const SUPPRESSION_MULTIPLIER: ParameterInfo = ParameterInfo {
    key: "retx-suppression-multiplier",
    default: "2",
    meaning: "growth of the suppression interval with each retransmission, at least 1",
};
const PROBING_INTERVAL: ParameterInfo = ParameterInfo {
    key: "probing-interval",
    default: "60000",
    meaning: "time between two probes for a prefix, in milliseconds, at least 1000",
};
const MAX_TIMEOUTS: ParameterInfo = ParameterInfo {
    key: "max-timeouts",
    default: "3",
    meaning: "unanswered Interests in a row after which a next hop is avoided, at least 1",
};
const MEASUREMENTS_LIFETIME: ParameterInfo = ParameterInfo {
    key: "measurements-lifetime",
    default: "300000",
    meaning: "how long measurements of an unused next hop are kept, in milliseconds, at least the probing interval",
};

const SUPPRESSION_PARAMETERS: &[ParameterInfo] = &[SUPPRESSION_INITIAL, SUPPRESSION_MAX, SUPPRESSION_MULTIPLIER];

/// All strategies. The first is the default.
pub const STRATEGIES: &[StrategyInfo] = &[
    StrategyInfo {
        kind: StrategyKind::BestRoute,
        name: "best-route",
        version: 5,
        summary: "lowest-cost next hop; retransmissions try the others",
        parameters: SUPPRESSION_PARAMETERS,
    },
    StrategyInfo {
        kind: StrategyKind::Multicast,
        name: "multicast",
        version: 5,
        summary: "all next hops; new next hops get pending Interests",
        parameters: SUPPRESSION_PARAMETERS,
    },
    StrategyInfo {
        kind: StrategyKind::Asf,
        name: "asf",
        version: 5,
        summary: "next hop with the shortest round-trip time; probes the others",
        parameters: &[
            PROBING_INTERVAL,
            MAX_TIMEOUTS,
            MEASUREMENTS_LIFETIME,
            SUPPRESSION_INITIAL,
            SUPPRESSION_MAX,
            SUPPRESSION_MULTIPLIER,
        ],
    },
    StrategyInfo {
        kind: StrategyKind::Random,
        name: "random",
        version: 1,
        summary: "one next hop by lot",
        parameters: SUPPRESSION_PARAMETERS,
    },
    StrategyInfo {
        kind: StrategyKind::Access,
        name: "access",
        version: 1,
        summary: "the next hop that answered last; all next hops when it does not answer",
        parameters: SUPPRESSION_PARAMETERS,
    },
    StrategyInfo {
        kind: StrategyKind::SelfLearning,
        name: "self-learning",
        version: 1,
        summary: "floods unknown names and learns routes from prefix announcements",
        parameters: SUPPRESSION_PARAMETERS,
    },
];

impl StrategyKind {
    /// Its name, version and parameters.
    pub fn info(self) -> &'static StrategyInfo {
        // Every kind has its line; a test checks it.
        STRATEGIES.iter().find(|info| info.kind == self).unwrap_or(&STRATEGIES[0])
    }
}

impl fmt::Display for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

impl StrategyInfo {
    /// The name with version and without parameters.
    pub fn versioned_name(&self) -> Name {
        PREFIX.iter().fold(Name::new(), Name::append_generic).append_generic(self.name).append_version(self.version)
    }
}

/// A strategy's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameters {
    /// Suppression per PIT entry.
    BestRoute(ExponentialSuppression),
    /// Suppression per out-record.
    Multicast(ExponentialSuppression),
    /// Suppression per PIT entry.
    Random(ExponentialSuppression),
    /// Suppression per PIT entry.
    Access(ExponentialSuppression),
    /// Suppression per out-record, and its own.
    Asf(AsfParameters),
    /// Suppression per out-record.
    SelfLearning(ExponentialSuppression),
}

#[derive(Debug)]
struct Inner {
    name: Name,
    kind: StrategyKind,
    parameters: Parameters,
}

/// A chosen strategy with its parameters. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct StrategyInstance {
    inner: Arc<Inner>,
}

impl StrategyInstance {
    /// A strategy with default parameters.
    pub fn new(kind: StrategyKind) -> Self {
        let parameters = build(kind, AsfParameters::default());
        StrategyInstance { inner: Arc::new(Inner { name: kind.info().versioned_name(), kind, parameters }) }
    }

    /// Does it do more with Data than to send it to all downstreams?
    pub fn wants_data(&self) -> bool {
        match self.inner.parameters {
            Parameters::BestRoute(_) | Parameters::Random(_) | Parameters::Multicast(_) => false,
            Parameters::Access(_) | Parameters::Asf(_) | Parameters::SelfLearning(_) => true,
        }
    }

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
        let Some(version) = components.next() else {
            return Ok(StrategyInstance::new(info.kind));
        };
        let version = version.as_version().ok_or_else(|| {
            StrategyError::BadParameters(format!(
                "'{version}' is not a version: parameters come after the version, as in {}/<key>~<value>",
                info.versioned_name()
            ))
        })?;
        if version > info.version {
            return Err(StrategyError::NotFound);
        }
        let mut full_name = info.versioned_name();
        let mut values = AsfParameters::default();
        let mut seen: Vec<&str> = Vec::new();
        for component in components {
            let (key, value) = std::str::from_utf8(component.value)
                .ok()
                .filter(|_| component.is_generic())
                .and_then(|text| text.split_once('~'))
                .ok_or_else(|| bad(info, format!("'{component}' is not of the form <key>~<value>")))?;
            if !info.parameters.iter().any(|parameter| parameter.key == key) {
                return Err(bad(info, format!("unknown parameter '{key}'")));
            }
            if seen.contains(&key) {
                return Err(bad(info, format!("parameter '{key}' is given twice")));
            }
            seen.push(key);
            set(&mut values, key, value).map_err(|reason| bad(info, format!("{key}~{value}: {reason}")))?;
            full_name.push(component);
        }
        check(&values).map_err(|reason| bad(info, reason))?;
        let parameters = build(info.kind, values);
        Ok(StrategyInstance { inner: Arc::new(Inner { name: full_name, kind: info.kind, parameters }) })
    }

    /// Full name with version and the parameters that were given.
    pub fn name(&self) -> &Name {
        &self.inner.name
    }

    /// Which strategy it is.
    pub fn kind(&self) -> StrategyKind {
        self.inner.kind
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.inner.parameters
    }
}

impl Default for StrategyInstance {
    /// best-route with default parameters.
    fn default() -> Self {
        StrategyInstance::new(STRATEGIES[0].kind)
    }
}

impl PartialEq for StrategyInstance {
    /// Equal name means equal behaviour.
    fn eq(&self, other: &Self) -> bool {
        self.inner.name == other.inner.name
    }
}

impl Eq for StrategyInstance {}

fn build(kind: StrategyKind, values: AsfParameters) -> Parameters {
    match kind {
        StrategyKind::BestRoute => Parameters::BestRoute(values.suppression),
        StrategyKind::Multicast => Parameters::Multicast(values.suppression),
        StrategyKind::Random => Parameters::Random(values.suppression),
        StrategyKind::Access => Parameters::Access(values.suppression),
        StrategyKind::Asf => Parameters::Asf(values),
        StrategyKind::SelfLearning => Parameters::SelfLearning(values.suppression),
    }
}

fn bad(info: &StrategyInfo, reason: String) -> StrategyError {
    let mut text = format!("{reason}. {} v{} takes:", info.name, info.version);
    for (index, ParameterInfo { key, default, meaning }) in info.parameters.iter().enumerate() {
        let separator = if index == 0 { "" } else { ";" };
        text.push_str(&format!("{separator} {key} (default {default}): {meaning}"));
    }
    StrategyError::BadParameters(text)
}

fn set(values: &mut AsfParameters, key: &str, value: &str) -> Result<(), String> {
    if key == SUPPRESSION_INITIAL.key {
        values.suppression.initial_us = milliseconds_as_us(value)?;
    } else if key == SUPPRESSION_MAX.key {
        values.suppression.max_us = milliseconds_as_us(value)?;
    } else if key == SUPPRESSION_MULTIPLIER.key {
        values.suppression.multiplier = number(value, 1.0, MAX_MULTIPLIER)?;
    } else if key == PROBING_INTERVAL.key {
        values.probing_interval_ms = number(value, 1_000, MAX_LONG_TERM_MS)?;
    } else if key == MAX_TIMEOUTS.key {
        values.max_timeouts = number(value, 1, u32::MAX)?;
    } else if key == MEASUREMENTS_LIFETIME.key {
        values.measurements_lifetime_ms = number(value, 1_000, MAX_LONG_TERM_MS)?;
    } else {
        return Err("unknown parameter".to_owned());
    }
    Ok(())
}

/// Rules between parameters.
fn check(values: &AsfParameters) -> Result<(), String> {
    if values.suppression.max_us < values.suppression.initial_us {
        return Err(format!("{} is less than {}", SUPPRESSION_MAX.key, SUPPRESSION_INITIAL.key));
    }
    if values.measurements_lifetime_ms < values.probing_interval_ms {
        return Err(format!("{} is less than {}", MEASUREMENTS_LIFETIME.key, PROBING_INTERVAL.key));
    }
    Ok(())
}

fn milliseconds_as_us(value: &str) -> Result<u32, String> {
    // At most an hour: fits into 32 bits as microseconds.
    number(value, 1, MAX_SUPPRESSION_MS).map(|milliseconds| milliseconds * 1_000)
}

fn number<T: FromStr + PartialOrd + fmt::Display>(value: &str, min: T, max: T) -> Result<T, String> {
    match value.parse::<T>() {
        Ok(number) if number >= min && number <= max => Ok(number),
        _ => Err(format!("not a number from {min} to {max}")),
    }
}

#[cfg(test)]
#[path = "tests/registry.rs"]
mod tests;
