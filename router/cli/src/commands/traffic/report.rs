//! Report of a run, for people and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use namehop_traffic::loadgen::{ConsumerReport, LinkCounts, ProducerReport, SessionReport};
use serde::Serialize;

use crate::output::properties;
use crate::units::{show_bit_rate, show_duration};

/// Report of a run.
#[derive(Serialize)]
pub struct TrafficReport {
    elapsed_s: f64,
    /// CPU time of this process per packet sent or received.
    generator_cpu_us_per_packet: Option<f64>,
    generator_cpu_s: f64,
    consumers: Vec<Consumer>,
    producers: Vec<Producer>,
}

#[derive(Serialize)]
struct Consumer {
    name: String,
    elapsed_s: f64,
    interests: u64,
    interests_per_s: f64,
    data: u64,
    data_per_s: f64,
    data_bit_per_s: f64,
    nacks: u64,
    nacks_congestion: u64,
    nacks_duplicate: u64,
    nacks_no_route: u64,
    timeouts: u64,
    unanswered: u64,
    duplicates: u64,
    late: u64,
    unsolicited: u64,
    malformed: u64,
    congestion_marks: u64,
    held_back: u64,
    not_sent: u64,
    rtt_min_us: Option<f64>,
    rtt_avg_us: Option<f64>,
    rtt_p50_us: Option<f64>,
    rtt_p90_us: Option<f64>,
    rtt_p99_us: Option<f64>,
    rtt_p999_us: Option<f64>,
    rtt_max_us: Option<f64>,
    window: Option<usize>,
    largest_window: Option<usize>,
    window_decreases: Option<u64>,
    link: Link,
    error: Option<String>,
}

#[derive(Serialize)]
struct Producer {
    name: String,
    interests: u64,
    data: u64,
    nacks: u64,
    silent: u64,
    unmatched: u64,
    too_large: u64,
    delay_full: u64,
    delayed_at_end: u64,
    malformed: u64,
    bytes: u64,
    link: Link,
    error: Option<String>,
}

/// Frames that a link carried and dropped on this side.
#[derive(Serialize)]
struct Link {
    frames_sent: u64,
    frames_received: u64,
    frames_waiting: u64,
    /// By the name of the reason.
    send_losses: BTreeMap<&'static str, u64>,
    receive_losses: BTreeMap<&'static str, u64>,
}

impl TrafficReport {
    pub fn of(report: &SessionReport) -> TrafficReport {
        let sides = report.consumers.iter().map(|consumer| consumer.counts.interests + consumer.counts.exchanges);
        let answering = report.producers.iter().map(|producer| producer.counts.interests + producer.counts.data);
        let packets: u64 = sides.chain(answering).sum();
        let generator_cpu_s = report.own_cpu.total().as_secs_f64();
        TrafficReport {
            elapsed_s: report.elapsed_s,
            generator_cpu_us_per_packet: (packets > 0).then(|| generator_cpu_s * 1e6 / packets as f64),
            generator_cpu_s,
            consumers: report.consumers.iter().map(Consumer::of).collect(),
            producers: report.producers.iter().map(Producer::of).collect(),
        }
    }

    /// Returns the error of the first consumer or producer that ended early.
    pub fn first_error(&self) -> Option<String> {
        let consumers = self.consumers.iter().map(|consumer| (&consumer.name, &consumer.error));
        let mut all = consumers.chain(self.producers.iter().map(|producer| (&producer.name, &producer.error)));
        all.find_map(|(name, error)| error.as_ref().map(|error| format!("{name}: the connection failed: {error}")))
    }

    pub fn describe(&self) -> String {
        let consumers = self.consumers.iter().map(Consumer::describe);
        let mut text: String = consumers.chain(self.producers.iter().map(Producer::describe)).collect();
        let each = self.generator_cpu_us_per_packet.map(|us| format!(", {us:.3} us per packet")).unwrap_or_default();
        let share = 100.0 * self.generator_cpu_s / self.elapsed_s.max(f64::MIN_POSITIVE);
        let cost = format!("{:.2} s of CPU time, {share:.0} % of one CPU{each}", self.generator_cpu_s);
        text += &properties(&[("Generator", cost)]);
        text
    }
}

impl Consumer {
    fn of(report: &ConsumerReport) -> Consumer {
        let counts = &report.counts;
        let rtt = Some(&counts.rtt_ns).filter(|rtt| !rtt.is_empty());
        let percentile = |percent| rtt.map(|rtt| rtt.value_at_percentile(percent) as f64 / 1e3);
        let per_s = |count: u64| count as f64 / report.elapsed_s.max(f64::MIN_POSITIVE);
        Consumer {
            name: report.name.clone(),
            elapsed_s: report.elapsed_s,
            interests: counts.interests,
            interests_per_s: per_s(counts.interests),
            data: counts.exchanges,
            data_per_s: per_s(counts.exchanges),
            data_bit_per_s: per_s(counts.bytes) * 8.0,
            nacks: counts.nacks,
            nacks_congestion: counts.nacks_congestion,
            nacks_duplicate: counts.nacks_duplicate,
            nacks_no_route: counts.nacks_no_route,
            timeouts: counts.timeouts,
            unanswered: counts.unanswered,
            duplicates: counts.duplicates,
            late: counts.late,
            unsolicited: counts.unsolicited,
            malformed: counts.malformed,
            congestion_marks: counts.marked,
            held_back: counts.held_back,
            not_sent: counts.not_sent,
            rtt_min_us: rtt.map(|rtt| rtt.min() as f64 / 1e3),
            rtt_avg_us: rtt.map(|rtt| rtt.mean() / 1e3),
            rtt_p50_us: percentile(50.0),
            rtt_p90_us: percentile(90.0),
            rtt_p99_us: percentile(99.0),
            rtt_p999_us: percentile(99.9),
            rtt_max_us: rtt.map(|rtt| rtt.max() as f64 / 1e3),
            window: report.window.map(|(now, _, _)| now),
            largest_window: report.window.map(|(_, largest, _)| largest),
            window_decreases: report.window.map(|(_, _, decreases)| decreases),
            link: Link::of(&report.link),
            error: report.error.clone(),
        }
    }

    fn describe(&self) -> String {
        let time = show_duration(Duration::try_from_secs_f64(self.elapsed_s).unwrap_or_default());
        let share = 100.0 * self.data as f64 / self.interests.max(1) as f64;
        let mut pairs = vec![
            ("Consumer", self.name.clone()),
            ("Interests", format!("{} sent in {time}, {:.0} per second", self.interests, self.interests_per_s)),
            (
                "Data",
                format!(
                    "{} ({share:.2} %), {:.0} per second, {}",
                    self.data,
                    self.data_per_s,
                    show_bit_rate(self.data_bit_per_s)
                ),
            ),
            (
                "Losses",
                format!(
                    "{} Nacks ({} congestion, {} duplicate, {} no route), {} timed out, {} unanswered at the end",
                    self.nacks,
                    self.nacks_congestion,
                    self.nacks_duplicate,
                    self.nacks_no_route,
                    self.timeouts,
                    self.unanswered
                ),
            ),
            (
                "Other",
                format!(
                    "{} duplicate, {} late, {} unsolicited, {} malformed; {} deferred (name pending), {} Interests not \
                     sent",
                    self.duplicates, self.late, self.unsolicited, self.malformed, self.held_back, self.not_sent
                ),
            ),
        ];
        if let (Some(min), Some(p50), Some(p90), Some(p99), Some(p999), Some(max)) =
            (self.rtt_min_us, self.rtt_p50_us, self.rtt_p90_us, self.rtt_p99_us, self.rtt_p999_us, self.rtt_max_us)
        {
            let rtt =
                format!("min {min:.0}, 50% {p50:.0}, 90% {p90:.0}, 99% {p99:.0}, 99.9% {p999:.0}, max {max:.0} us");
            pairs.push(("RTT", rtt));
        }
        if let (Some(now), Some(largest), Some(decreases)) = (self.window, self.largest_window, self.window_decreases) {
            let marks = self.congestion_marks;
            pairs.push((
                "Window",
                format!("{now}, at most {largest}, reduced {decreases} times, {marks} congestion marks"),
            ));
        }
        pairs.push(("Link", self.link.describe()));
        properties(&pairs)
    }
}

impl Producer {
    fn of(report: &ProducerReport) -> Producer {
        let counts = report.counts;
        Producer {
            name: report.name.clone(),
            interests: counts.interests,
            data: counts.data,
            nacks: counts.nacks,
            silent: counts.silent,
            unmatched: counts.unmatched,
            too_large: counts.too_large,
            delay_full: counts.delay_full,
            delayed_at_end: counts.delayed_at_end,
            malformed: counts.malformed,
            bytes: counts.bytes,
            link: Link::of(&report.link),
            error: report.error.clone(),
        }
    }

    fn describe(&self) -> String {
        let unanswered = format!(
            "{} silent, {} for other prefixes, {} too large, {} delay queue full, {} delayed at the end",
            self.silent, self.unmatched, self.too_large, self.delay_full, self.delayed_at_end
        );
        properties(&[
            ("Producer", self.name.clone()),
            ("Received", format!("{} Interests, {} malformed frames", self.interests, self.malformed)),
            ("Answered", format!("{} Data, {} Nacks, {} bytes", self.data, self.nacks, self.bytes)),
            ("Unanswered", unanswered),
            ("Link", self.link.describe()),
        ])
    }
}

impl Link {
    fn of(counts: &LinkCounts) -> Link {
        Link {
            frames_sent: counts.frames_sent,
            frames_received: counts.frames_received,
            frames_waiting: counts.frames_waiting,
            send_losses: counts.send_losses.clone(),
            receive_losses: counts.receive_losses.clone(),
        }
    }

    fn describe(&self) -> String {
        let losses = |losses: &BTreeMap<&str, u64>| match losses.is_empty() {
            true => "none dropped".to_owned(),
            false => {
                let each: Vec<String> = losses.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                format!("dropped: {}", each.join(", "))
            }
        };
        format!(
            "{} frames sent, {}, {} waiting at the end; {} received, {}",
            self.frames_sent,
            losses(&self.send_losses),
            self.frames_waiting,
            self.frames_received,
            losses(&self.receive_losses)
        )
    }
}
