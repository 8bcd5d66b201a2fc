//! Which policy a store uses, its size and its settings.

use std::fmt;
use std::str::FromStr;

use crate::{PolicyKind, UnknownPolicy};

/// Default number of counters of `filter` per request of the history: one request in 256 collides with another name's
/// counter, far fewer than the requests that Filter admits because they repeat.
const COUNTERS_PER_REQUEST: u64 = 256;
/// Default limit of the number of counters, as in the thesis.
const MAX_COUNTERS: u64 = 1 << 24;

/// Size of the store and settings of its policy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Packet numbers are below this.
    pub slots: usize,
    /// Number of packets in a full store; at most `slots`.
    pub capacity: usize,
    /// Settings of the policy.
    pub tuning: Tuning,
}

impl Parameters {
    /// Makes parameters with default settings.
    pub fn new(slots: usize, capacity: usize) -> Self {
        Parameters { slots, capacity, tuning: Tuning::default() }
    }

    /// Returns the number of requests in a sample: `usual` per packet of the store unless configured.
    pub(crate) fn sample(&self, usual: u32) -> u64 {
        (self.capacity as u64).saturating_mul(self.tuning.sample.unwrap_or(usual).into())
    }

    /// Returns this share of the capacity, rounded down.
    pub(crate) fn share(&self, share: f64) -> usize {
        (self.capacity as f64 * share) as usize
    }
}

/// Settings of policies. Each policy reads its own settings only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// `filter`: requests in the history queue (q); the store's capacity in packets when absent.
    pub history: Option<u32>,
    /// `filter`: number of requests for a name in the history at which its Data is admitted (θ), including the
    /// request that fetched it.
    pub threshold: u16,
    /// `filter`: counters in the table (h), a power of two; 256 for each request of the history when absent, at most
    /// 2^24.
    pub counters: Option<u32>,
    /// Policies with `tinylfu` in their name: requests after which counters are halved, per packet of the store. When
    /// absent, 50 for `tinylfu-clock` and `w-tinylfu-clock`, and 10 for the others.
    pub sample: Option<u32>,
    /// `w-tinylfu`, `w-tinylfu-clock`: share of the store that new packets enter. When absent, 0.01 and 0.03.
    pub window: Option<f64>,
    /// `w-tinylfu`: share of the main part (the rest of the store) for packets that were used there.
    pub protected: f64,
    /// `s3-fifo`: share of the store that new packets enter.
    pub small: f64,
    /// `s3-fifo`: number of ghosts per packet of the store.
    pub ghosts: f64,
    /// `s3-fifo`: hits in the small queue after which a packet moves to the main one.
    pub promote: u8,
    /// `random`, `tinylfu-random`: seed of the sequence of random numbers.
    pub seed: u64,
}

impl Default for Tuning {
    /// The settings that the policies' authors recommend.
    fn default() -> Self {
        Tuning {
            history: None,
            threshold: 2,
            counters: None,
            sample: None,
            window: None,
            protected: 0.8,
            small: 0.1,
            ghosts: 0.9,
            promote: 2,
            seed: 1,
        }
    }
}

impl Tuning {
    /// Returns the number of counters of `filter` when it remembers `history` requests.
    pub fn filter_counters(&self, history: u64) -> u64 {
        let usual = || history.saturating_mul(COUNTERS_PER_REQUEST).min(MAX_COUNTERS);
        self.counters.map_or_else(usual, u64::from).next_power_of_two()
    }
}

/// A policy with its settings, written `name` or `name:setting=value:…`, as in `filter:history=10000:threshold=3`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PolicyChoice {
    /// The policy.
    pub kind: PolicyKind,
    /// Its settings.
    pub tuning: Tuning,
}

impl From<PolicyKind> for PolicyChoice {
    fn from(kind: PolicyKind) -> Self {
        PolicyChoice { kind, tuning: Tuning::default() }
    }
}

/// A text does not name a policy with settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyChoiceError {
    /// The policy is unknown.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The policy has no such setting.
    #[error("content store policy '{kind}' has no setting '{setting}'")]
    Setting {
        /// The policy.
        kind: PolicyKind,
        /// The setting as written.
        setting: String,
    },
    /// A setting cannot have this value.
    #[error("'{setting}' cannot be '{value}', it must be {expected}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// The value as written.
        value: String,
        /// The allowed values.
        expected: &'static str,
    },
}

impl FromStr for PolicyChoice {
    type Err = PolicyChoiceError;

    fn from_str(text: &str) -> Result<Self, PolicyChoiceError> {
        let mut parts = text.split(':');
        let kind: PolicyKind = parts.next().unwrap_or("").parse()?;
        let mut choice = PolicyChoice::from(kind);
        for part in parts {
            let (setting, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(&setting) = settings_of(kind).iter().find(|&&known| known == setting) else {
                return Err(PolicyChoiceError::Setting { kind, setting: setting.to_owned() });
            };
            set(&mut choice.tuning, setting, value).map_err(|expected| PolicyChoiceError::Value {
                setting,
                value: value.to_owned(),
                expected,
            })?;
        }
        Ok(choice)
    }
}

/// Names of the settings that a policy reads.
fn settings_of(kind: PolicyKind) -> &'static [&'static str] {
    match kind {
        PolicyKind::Filter => &["history", "threshold", "counters"],
        PolicyKind::TinyLfu | PolicyKind::TinyLfuClock => &["sample"],
        PolicyKind::TinyLfuRandom => &["sample", "seed"],
        PolicyKind::WTinyLfuClock => &["sample", "window"],
        PolicyKind::WTinyLfu => &["sample", "window", "protected"],
        PolicyKind::S3Fifo => &["small", "ghosts", "promote"],
        PolicyKind::Random => &["seed"],
        _ => &[],
    }
}

/// Sets one setting; the error says which values are allowed.
fn set(tuning: &mut Tuning, setting: &str, value: &str) -> Result<(), &'static str> {
    match setting {
        "history" => tuning.history = Some(within(value, 1, u32::MAX / 64, "a number from 1 to 67108863")?),
        "threshold" => tuning.threshold = within(value, 1, u16::MAX, "a number from 1 to 65535")?,
        "counters" => {
            let counters: u32 = within(value, 1, 1 << 30, POWER)?;
            tuning.counters = Some(if counters.is_power_of_two() { counters } else { return Err(POWER) });
        }
        "sample" => tuning.sample = Some(within(value, 1, 1000, "a number from 1 to 1000")?),
        "window" => tuning.window = Some(within(value, 0.0, 1.0, SHARE)?),
        "protected" => tuning.protected = within(value, 0.0, 1.0, SHARE)?,
        "small" => tuning.small = within(value, 0.0, 1.0, SHARE)?,
        "ghosts" => tuning.ghosts = within(value, 0.0, 10.0, "a number from 0 to 10")?,
        "promote" => tuning.promote = within(value, 1, 63, "a number from 1 to 63")?,
        _ => tuning.seed = within(value, 0, u64::MAX, "a number")?,
    }
    Ok(())
}

const POWER: &str = "a power of two up to 1073741824";
const SHARE: &str = "a share from 0 to 1";

fn within<T: FromStr + PartialOrd>(text: &str, least: T, most: T, expected: &'static str) -> Result<T, &'static str> {
    text.parse().ok().filter(|value| *value >= least && *value <= most).ok_or(expected)
}

impl fmt::Display for PolicyChoice {
    /// Writes the name, and the settings that differ from the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        let usual = Tuning::default();
        for &setting in settings_of(self.kind) {
            let (value, usual) = (shown(&self.tuning, setting), shown(&usual, setting));
            if value != usual {
                write!(f, ":{setting}={value}")?;
            }
        }
        Ok(())
    }
}

fn optional(value: &Option<impl fmt::Display>) -> String {
    value.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn shown(tuning: &Tuning, setting: &str) -> String {
    match setting {
        "history" => optional(&tuning.history),
        "threshold" => tuning.threshold.to_string(),
        "counters" => optional(&tuning.counters),
        "sample" => optional(&tuning.sample),
        "window" => optional(&tuning.window),
        "protected" => tuning.protected.to_string(),
        "small" => tuning.small.to_string(),
        "ghosts" => tuning.ghosts.to_string(),
        "promote" => tuning.promote.to_string(),
        _ => tuning.seed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_with_settings_read_back() {
        for text in [
            "lru",
            "filter",
            "filter:history=10000:threshold=3:counters=65536",
            "tinylfu-random:sample=50:seed=7",
            "s3-fifo:small=0.2:ghosts=0.5:promote=1",
            "w-tinylfu:window=0.2:protected=0.5",
        ] {
            let choice: PolicyChoice = text.parse().expect(text);
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("filter:threshold=2".parse::<PolicyChoice>().expect("a valid policy").to_string(), "filter");
    }

    #[test]
    fn impossible_settings_are_refused() {
        let error = |text: &str| text.parse::<PolicyChoice>().expect_err(text).to_string();
        assert!(error("best").starts_with("unknown content store policy 'best'"));
        assert_eq!(error("lru:threshold=2"), "content store policy 'lru' has no setting 'threshold'");
        assert_eq!(error("filter:"), "content store policy 'filter' has no setting ''");
        assert_eq!(error("filter:threshold=0"), "'threshold' cannot be '0', it must be a number from 1 to 65535");
        assert_eq!(error("filter:counters=3"), format!("'counters' cannot be '3', it must be {POWER}"));
        for value in ["NaN", "-0.1", "1.5", "inf", ""] {
            assert_eq!(
                error(&format!("s3-fifo:small={value}")),
                format!("'small' cannot be '{value}', it must be {SHARE}")
            );
        }
    }
}
