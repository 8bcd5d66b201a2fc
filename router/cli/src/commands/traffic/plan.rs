//! Configuration of consumers and producers, as command-line options and as TOML, with the same names, defaults and
//! errors.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use namehop_client::target::TransportUri;
use namehop_face::FaceUri;
use namehop_port::drivers;
use namehop_traffic::loadgen::{
    ConsumerConfig, ConsumerPlan, DataShape, LinkAddress, LinkUri, Names, Pacing, Pattern, ProducerConfig, Reply,
    ReplyKind, ReplyPattern,
};
use namehop_traffic::segmented::WindowKind;
use namehop_traffic::workload::{WorkloadKind, WorkloadShape};
use namehop_wire::Name;
use namehop_wire::lp::NackReason;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::units::{milliseconds, parse_duration};

/// Interests in flight if neither a window nor a rate is given.
const DEFAULT_WINDOW: usize = 128;
/// Default maximum window of congestion control, in Interests.
const DEFAULT_MAX_WINDOW: usize = 1024;
/// Default maximum number of Interests in flight of a consumer with a rate.
const DEFAULT_MAX_IN_FLIGHT: usize = 65_536;
const DEFAULT_LIFETIME: Duration = Duration::from_secs(4);
/// Default bytes of Content per Data.
const DEFAULT_PAYLOAD_BYTES: usize = 1000;

/// Options for the link of a consumer or producer.
#[derive(Args, Clone, Debug, Default)]
pub struct LinkArgs {
    #[arg(long, value_name = "URI", help = link_help())]
    pub link: Option<LinkUri>,
    #[arg(long, value_name = "URI", requires = "link", value_parser = drivers::parse_uri, help = local_help())]
    pub local: Option<FaceUri>,
    /// Maximum frame size of that link in bytes, 64 to 8800; larger packets are fragmented [default: that of the
    /// interface, 2048 on memif]
    #[arg(long, value_name = "BYTES", requires = "link")]
    pub mtu: Option<usize>,
}

fn link_help() -> String {
    format!(
        "Link in place of a forwarder's socket: {}, with &role=client if the other end creates the socket, or \
         ether://[ADDRESS] through --local. The URI of a socket is also accepted",
        drivers::forms(|driver| driver.scheme.can_be_bare)
    )
}

fn local_help() -> String {
    let ports = drivers::forms(|driver| driver.traits.uses_interface);
    format!("Port of that link: {ports}, with ?vlan=NUMBER for a VLAN")
}

/// Plan of a whole run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(default, deserialize_with = "time")]
    pub duration: Option<Duration>,
    #[serde(default, deserialize_with = "checked")]
    pub consumer: Vec<ConsumerEntry>,
    #[serde(default, deserialize_with = "checked")]
    pub producer: Vec<ProducerEntry>,
}

/// A consumer. On the command line, its patterns are separate.
#[derive(Args, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsumerEntry {
    #[arg(skip)]
    pub name: Option<String>,
    #[arg(skip)]
    #[serde(deserialize_with = "written")]
    pub link: Option<LinkUri>,
    #[arg(skip)]
    #[serde(deserialize_with = "local")]
    pub local: Option<FaceUri>,
    #[arg(skip)]
    pub mtu: Option<usize>,
    /// Number of Interests in flight; with --congestion, the initial number [default: 128]
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "rate")]
    pub window: Option<usize>,
    /// Law of the window: fixed, cubic, aimd, adaptive. All but fixed react to congestion marks, Nacks with reason
    /// Congestion, and time-outs
    #[arg(long, value_name = "LAW", conflicts_with = "rate")]
    #[serde(deserialize_with = "written")]
    pub congestion: Option<WindowKind>,
    /// Maximum window [default: 1024]
    #[arg(long, value_name = "N", requires = "congestion")]
    pub max_window: Option<usize>,
    /// Interests per second, instead of a window
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Send at random times (a Poisson process) instead of equal intervals
    #[arg(long, requires = "rate")]
    pub poisson: bool,
    /// Maximum number of Interests in flight at a rate; others are counted as not sent [default: 65536]
    #[arg(long, value_name = "N", requires = "rate")]
    pub max_in_flight: Option<usize>,
    /// End after this many Interests
    #[arg(short = 'c', long, value_name = "N")]
    pub count: Option<u64>,
    /// Seed of random choices; the same seed gives the same names [default: a new one each time]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    #[arg(skip)]
    pub pattern: Vec<PatternEntry>,
}

/// Interests of a consumer.
#[derive(Args, Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternEntry {
    /// Prefix of the names; a number of 8 bytes follows
    #[serde(deserialize_with = "one_written")]
    pub prefix: Name,
    #[arg(skip)]
    pub weight: Option<u32>,
    /// Cycle through this many names instead of using each once
    #[arg(long, value_name = "N")]
    pub names: Option<u64>,
    /// Choose among --names at random, with this exponent of a Zipf distribution
    #[arg(long, value_name = "ALPHA", requires = "names")]
    pub zipf: Option<f64>,
    /// Request the names of a workload of 'namehop cache simulate': web, video, mixed, lossy, flash
    #[arg(long, value_name = "KIND", conflicts_with_all = ["names", "zipf"])]
    #[serde(default, deserialize_with = "written")]
    pub workload: Option<WorkloadKind>,
    /// Set CanBePrefix
    #[arg(long)]
    #[serde(default)]
    pub can_be_prefix: bool,
    /// Set MustBeFresh
    #[arg(long)]
    #[serde(default)]
    pub must_be_fresh: bool,
    /// InterestLifetime, after which an Interest counts as timed out [default: 4s]
    #[arg(short = 'l', long, value_name = "DURATION", value_parser = parse_duration)]
    #[serde(default, deserialize_with = "time")]
    pub lifetime: Option<Duration>,
    /// HopLimit
    #[arg(long, value_name = "N")]
    pub hop_limit: Option<u8>,
    /// Delegation of the forwarding hint; can be repeated
    #[arg(long, value_name = "NAME")]
    #[serde(default, deserialize_with = "all_written")]
    pub forwarding_hint: Vec<Name>,
    /// Request, by implicit digest, the Data that 'namehop traffic producer' makes with this many bytes of payload
    #[arg(long, value_name = "BYTES")]
    pub digest_payload: Option<usize>,
    /// Freshness period of that Data
    #[arg(long, value_name = "DURATION", requires = "digest_payload", value_parser = parse_duration)]
    #[serde(default, deserialize_with = "time")]
    pub digest_freshness: Option<Duration>,
}

/// A producer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProducerEntry {
    pub name: Option<String>,
    #[serde(deserialize_with = "written")]
    pub link: Option<LinkUri>,
    #[serde(deserialize_with = "local")]
    pub local: Option<FaceUri>,
    pub mtu: Option<usize>,
    #[serde(deserialize_with = "written")]
    pub control: Option<TransportUri>,
    pub register: Option<bool>,
    pub seed: Option<u64>,
    pub pattern: Vec<ReplyPatternEntry>,
}

/// Interests under a prefix, and their replies.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyPatternEntry {
    #[serde(deserialize_with = "one_written")]
    pub prefix: Name,
    #[serde(default)]
    pub reply: Vec<ReplyEntry>,
}

/// A reply: Data, unless a Nack or silence is configured.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplyEntry {
    #[arg(skip)]
    pub weight: Option<u32>,
    /// Answer with a Nack of this reason: congestion, duplicate, no-route
    #[arg(
        long,
        value_name = "REASON",
        value_parser = parse_reason,
        conflicts_with_all = ["silent", "payload", "freshness", "suffix"]
    )]
    #[serde(deserialize_with = "reason")]
    pub nack: Option<NackReason>,
    /// Do not answer
    #[arg(long, conflicts_with_all = ["payload", "freshness", "suffix", "delay"])]
    pub silent: bool,
    /// Bytes of content per Data [default: 1000]
    #[arg(short = 's', long, value_name = "BYTES")]
    pub payload: Option<usize>,
    /// FreshnessPeriod of the Data [default: none]
    #[arg(short = 'f', long, value_name = "DURATION", value_parser = parse_duration)]
    #[serde(deserialize_with = "time")]
    pub freshness: Option<Duration>,
    /// Components of the Data's name after the Interest's name; such Interests need CanBePrefix
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "written")]
    pub suffix: Option<Name>,
    /// Delay of the answer
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[serde(deserialize_with = "time")]
    pub delay: Option<Duration>,
}

/// Checks an entry as a whole.
pub trait PlanEntry {
    fn check(&self) -> Result<(), String>;
}

impl PlanEntry for ConsumerEntry {
    fn check(&self) -> Result<(), String> {
        link_address(&self.link, &self.local, self.mtu)?;
        self.plan().and_then(|plan| plan.check().map_err(|error| error.to_string()))
    }
}

impl PlanEntry for ProducerEntry {
    fn check(&self) -> Result<(), String> {
        if self.pattern.is_empty() {
            return Err("a producer needs at least one [[producer.pattern]] with a prefix".to_owned());
        }
        let link = link_address(&self.link, &self.local, self.mtu)?;
        if matches!(link, Some(LinkAddress::Port(_))) && (self.register == Some(true) || self.control.is_some()) {
            return Err(
                "prefixes cannot be registered over a port: remove register and control, and add a route to the \
                 router's face of this link ('namehop route add')"
                    .to_owned(),
            );
        }
        self.patterns()?.iter().try_for_each(|pattern| pattern.check().map_err(|error| error.to_string()))
    }
}

/// Returns the address of an entry's own link, if it has one.
fn link_address(
    uri: &Option<LinkUri>,
    local: &Option<FaceUri>,
    mtu_bytes: Option<usize>,
) -> Result<Option<LinkAddress>, String> {
    match uri {
        Some(uri) => LinkAddress::new(uri.clone(), local.clone(), mtu_bytes).map(Some),
        None if local.is_some() || mtu_bytes.is_some() => Err("local and mtu need a link: give link = URI".to_owned()),
        None => Ok(None),
    }
}

impl ConsumerEntry {
    fn plan(&self) -> Result<ConsumerPlan, String> {
        let pacing = match self.rate {
            Some(_) if self.window.is_some() || self.congestion.is_some() || self.max_window.is_some() => {
                return Err("a consumer takes either a rate or a window: remove one".to_owned());
            }
            Some(per_second) => Pacing::Rate {
                per_second,
                poisson: self.poisson,
                max_in_flight: self.max_in_flight.unwrap_or(DEFAULT_MAX_IN_FLIGHT),
            },
            None if self.poisson || self.max_in_flight.is_some() => {
                return Err("poisson and max_in_flight need a rate: give rate = INTERESTS-PER-SECOND".to_owned());
            }
            None => {
                let size = self.window.unwrap_or(DEFAULT_WINDOW);
                let law = self.congestion.unwrap_or(WindowKind::Fixed);
                if law == WindowKind::Fixed && self.max_window.is_some() {
                    return Err("max_window needs congestion control: give congestion = \"cubic\"".to_owned());
                }
                let max = if law == WindowKind::Fixed { size } else { self.max_window.unwrap_or(DEFAULT_MAX_WINDOW) };
                Pacing::Window { size, law, max }
            }
        };
        let seed = self.seed.unwrap_or_else(super::run::any_seed);
        let patterns = self.pattern.iter().map(|pattern| pattern.pattern(seed)).collect::<Result<Vec<_>, _>>()?;
        if patterns.is_empty() {
            return Err("a consumer needs at least one [[consumer.pattern]] with a prefix".to_owned());
        }
        Ok(ConsumerPlan { patterns, pacing, count: self.count, seed })
    }

    /// Returns the consumer's configuration; without a link of its own, it uses the forwarder's socket.
    pub fn config(&self, name: String, forwarder: &TransportUri) -> Result<ConsumerConfig, String> {
        let name = self.name.clone().unwrap_or(name);
        let link = link_address(&self.link, &self.local, self.mtu)?;
        let link = link.unwrap_or_else(|| LinkAddress::Socket(forwarder.clone()));
        Ok(ConsumerConfig { name, link, plan: self.plan()? })
    }
}

impl PatternEntry {
    fn pattern(&self, seed: u64) -> Result<Pattern, String> {
        let names = match (self.names, self.zipf, self.workload) {
            (None, None, None) => Names::New,
            (Some(names), None, None) => Names::Cycle(names),
            (Some(names), Some(alpha), None) => Names::Zipf { names, alpha },
            (None, None, Some(kind)) => Names::Workload(WorkloadShape { seed, ..WorkloadShape::published(kind) }),
            (None, Some(_), None) => return Err("zipf needs a number of names: give names = NUMBER".to_owned()),
            _ => return Err("a pattern takes either names or a workload: remove one".to_owned()),
        };
        let digest_of = match (self.digest_payload, self.digest_freshness) {
            (None, Some(_)) => return Err("digest_freshness needs digest_payload".to_owned()),
            (payload, freshness) => payload.map(|payload_bytes| DataShape {
                suffix: Name::new(),
                freshness_ms: freshness.map_or(0, milliseconds),
                payload_bytes,
            }),
        };
        Ok(Pattern {
            weight: self.weight.unwrap_or(1),
            prefix: self.prefix.clone(),
            names,
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            lifetime: self.lifetime.unwrap_or(DEFAULT_LIFETIME),
            hop_limit: self.hop_limit,
            forwarding_hint: self.forwarding_hint.clone(),
            digest_of,
        })
    }
}

impl ProducerEntry {
    fn patterns(&self) -> Result<Vec<ReplyPattern>, String> {
        let replies = |pattern: &ReplyPatternEntry| match pattern.reply.as_slice() {
            [] => ReplyEntry::default().reply().map(|reply| vec![reply]),
            replies => replies.iter().map(ReplyEntry::reply).collect(),
        };
        let patterns = self.pattern.iter();
        patterns
            .map(|pattern| Ok(ReplyPattern { prefix: pattern.prefix.clone(), replies: replies(pattern)? }))
            .collect()
    }

    /// Returns the producer's configuration; without a link of its own, it uses the forwarder's socket.
    pub fn config(&self, name: String, forwarder: &TransportUri) -> Result<ProducerConfig, String> {
        let link = link_address(&self.link, &self.local, self.mtu)?;
        Ok(ProducerConfig {
            name: self.name.clone().unwrap_or(name),
            link: link.unwrap_or_else(|| LinkAddress::Socket(forwarder.clone())),
            control: self.control.clone(),
            registers: self.register.unwrap_or(true),
            patterns: self.patterns()?,
            seed: self.seed.unwrap_or_else(super::run::any_seed),
        })
    }
}

impl ReplyEntry {
    fn reply(&self) -> Result<Reply, String> {
        let has_data = self.payload.is_some() || self.freshness.is_some() || self.suffix.is_some();
        let kind = match (self.nack, self.silent) {
            (Some(_), true) => return Err("a reply is either a Nack or silent: remove one".to_owned()),
            (Some(_), _) | (_, true) if has_data => {
                return Err(
                    "payload, freshness and suffix are for Data only: remove them from a reply with nack or silent"
                        .to_owned(),
                );
            }
            (Some(reason), false) => ReplyKind::Nack(reason),
            (None, true) => ReplyKind::Silence,
            (None, false) => ReplyKind::Data(DataShape {
                suffix: self.suffix.clone().unwrap_or_default(),
                freshness_ms: self.freshness.map_or(0, milliseconds),
                payload_bytes: self.payload.unwrap_or(DEFAULT_PAYLOAD_BYTES),
            }),
        };
        Ok(Reply { weight: self.weight.unwrap_or(1), kind, delay: self.delay.unwrap_or_default() })
    }
}

fn parse_reason(text: &str) -> Result<NackReason, String> {
    match text {
        "congestion" => Ok(NackReason::CONGESTION),
        "duplicate" => Ok(NackReason::DUPLICATE),
        "no-route" => Ok(NackReason::NO_ROUTE),
        _ => Err(format!("unknown Nack reason '{text}' (congestion, duplicate, no-route)")),
    }
}

fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NackReason>, D::Error> {
    parse_reason(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parse_duration(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

/// Deserializes a value written as text.
fn one_written<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn written<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<Option<T>, D::Error> {
    one_written(deserializer).map(Some)
}

fn local<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<FaceUri>, D::Error> {
    drivers::parse_uri(&String::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

fn all_written<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

/// An entry that is checked during deserialization, so that errors name its line.
struct Checked<T>(T);

impl<'de, T: Deserialize<'de> + PlanEntry> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = T::deserialize(deserializer)?;
        entry.check().map_err(D::Error::custom)?;
        Ok(Checked(entry))
    }
}

fn checked<'de, D: Deserializer<'de>, T: Deserialize<'de> + PlanEntry>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Checked<T>>::deserialize(deserializer)?.into_iter().map(|checked| checked.0).collect())
}

#[cfg(test)]
mod tests;
