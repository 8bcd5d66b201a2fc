//! Interests of a consumer: weighted patterns, and the order of their names.

use std::time::Duration;

use crate::workload::zipf::{Draws, Zipf};
use crate::workload::{Workload, WorkloadShape};
use namehop_wire::Name;

use super::LoadError;
use super::packets::InterestTemplate;
use super::producer::DataShape;

/// Maximum number of patterns of a consumer: each received packet is compared with all of them.
pub const MAX_PATTERNS: usize = 64;

/// Numbers at the end of names `<prefix>/<8 bytes of number, most significant first>`.
#[derive(Clone, Debug, PartialEq)]
pub enum Names {
    /// A new number each time, counting from a random start, so that no cache has the Data.
    New,
    /// From 0 to this number, exclusive, and again from 0.
    Cycle(u64),
    /// Random numbers: rank k is drawn with probability proportional to k^-alpha; rank 1 is number 0.
    Zipf {
        /// Number of names.
        names: u64,
        /// Exponent, at least 0.
        alpha: f64,
    },
    /// The requests that `namehop cache simulate` generates for a workload.
    Workload(WorkloadShape),
}

/// Interests that differ only in sequence number and nonce.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Relative frequency of this pattern; at least 1.
    pub weight: u32,
    /// Prefix of the names.
    pub prefix: Name,
    /// Numbers after the prefix.
    pub names: Names,
    /// CanBePrefix.
    pub can_be_prefix: bool,
    /// MustBeFresh.
    pub must_be_fresh: bool,
    /// InterestLifetime; an Interest without an answer within it counts as timed out.
    pub lifetime: Duration,
    /// HopLimit.
    pub hop_limit: Option<u8>,
    /// Delegations of the ForwardingHint; empty for none.
    pub forwarding_hint: Vec<Name>,
    /// If set, names end with the implicit digest of the Data that a producer with this reply makes.
    pub digest_of: Option<DataShape>,
}

impl Pattern {
    /// Creates a pattern with new names and no options.
    pub fn new(prefix: Name, lifetime: Duration) -> Self {
        Self {
            weight: 1,
            prefix,
            names: Names::New,
            can_be_prefix: false,
            must_be_fresh: false,
            lifetime,
            hop_limit: None,
            forwarding_hint: Vec::new(),
            digest_of: None,
        }
    }
}

/// A pattern in use.
pub(super) struct Requests {
    pub(super) template: InterestTemplate,
    pub(super) lifetime_ns: u64,
    /// Sum of the weights up to and including this pattern.
    up_to_weight: u64,
    source: Source,
}

enum Source {
    /// Start and number of the names; 0 if they never repeat.
    Sequence {
        first: u64,
        names: u64,
        issued: u64,
    },
    Zipf(Zipf),
    Workload(Box<Workload>),
}

impl Requests {
    /// Prepares all patterns of a consumer.
    ///
    /// # Errors
    /// Fails if a pattern is invalid.
    pub(super) fn all(patterns: &[Pattern], draws: &mut Draws) -> Result<Vec<Requests>, LoadError> {
        let fail = |text: String| Err(LoadError::Configuration(text));
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return fail(format!("a consumer must have 1 to {MAX_PATTERNS} patterns, not {}", patterns.len()));
        }
        let mut up_to_weight = 0;
        let mut all: Vec<Requests> = Vec::new();
        for (index, pattern) in patterns.iter().enumerate() {
            let prefix = &pattern.prefix;
            if patterns[..index].iter().any(|other| other.prefix == *prefix) {
                return fail(format!("two patterns have the prefix {prefix}: their Data would be indistinguishable"));
            }
            if pattern.weight == 0 {
                return fail(format!("the weight of the pattern {prefix} is 0: weights must be at least 1"));
            }
            if pattern.lifetime < Duration::from_millis(1) || pattern.lifetime > super::LONGEST {
                return fail(format!("the lifetime of the pattern {prefix} must be between 1 ms and 30 days"));
            }
            up_to_weight += u64::from(pattern.weight);
            all.push(Requests {
                template: InterestTemplate::new(pattern)?,
                lifetime_ns: pattern.lifetime.as_nanos() as u64,
                up_to_weight,
                source: Source::new(pattern, draws)?,
            });
        }
        Ok(all)
    }

    /// Chooses a pattern by weight and returns its index.
    pub(super) fn choose(all: &[Requests], draws: &mut Draws) -> usize {
        match all {
            [_] => 0,
            _ => {
                let total = all.last().map_or(1, |last| last.up_to_weight);
                let at = draws.number() % total;
                all.partition_point(|requests| requests.up_to_weight <= at)
            }
        }
    }

    /// Returns the number of the next name.
    pub(super) fn next(&mut self, draws: &mut Draws) -> u64 {
        match &mut self.source {
            Source::Sequence { first, names, issued } => {
                let offset = if *names == 0 { *issued } else { *issued % *names };
                *issued += 1;
                first.wrapping_add(offset)
            }
            Source::Zipf(zipf) => zipf.draw(draws) - 1,
            Source::Workload(workload) => workload.next_request(),
        }
    }

    /// Returns the slot of a number in a table of `slots` entries, a power of two. Consecutive numbers have adjacent
    /// slots.
    pub(super) fn slot_index(&self, sequence: u64, slots: usize) -> usize {
        let spread = match self.source {
            Source::Sequence { .. } => sequence,
            Source::Zipf(_) | Source::Workload(_) => sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32,
        };
        spread as usize & (slots - 1)
    }
}

impl Source {
    fn new(pattern: &Pattern, draws: &mut Draws) -> Result<Source, LoadError> {
        let fail = |text: &str| Err(LoadError::Configuration(format!("pattern {}: {text}", pattern.prefix)));
        match &pattern.names {
            Names::New => Ok(Source::Sequence { first: draws.number() >> 1, names: 0, issued: 0 }),
            Names::Cycle(0) | Names::Zipf { names: 0, .. } => fail("the number of names must be at least 1"),
            Names::Cycle(names) => Ok(Source::Sequence { first: 0, names: *names, issued: 0 }),
            Names::Zipf { alpha, .. } if !(0.0..=10.0).contains(alpha) => {
                fail("the exponent of a Zipf distribution must be between 0 and 10")
            }
            Names::Zipf { names, alpha } => Ok(Source::Zipf(Zipf::new(*names, *alpha))),
            Names::Workload(shape) => Ok(Source::Workload(Box::new(Workload::new(*shape)))),
        }
    }
}
