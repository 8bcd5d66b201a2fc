//! Report on each object and on all together, for people and as JSON.

use std::time::Duration;

use namehop_client::endpoint::EndpointCounters;
use namehop_traffic::segmented::{FetchCounts, FetchProgress};
use serde::Serialize;

use super::{Outcome, Wanted};
use crate::commands::fetching::{RoundTripTimes, Statistics, Transferred};
use crate::output::properties;

/// Report of a run.
#[derive(Serialize)]
pub struct FetchRunReport {
    objects: Vec<Object>,
    total: Total,
}

#[derive(Serialize)]
struct Object {
    /// The name as given by the user.
    asked_for: String,
    file: Option<String>,
    error: Option<String>,
    #[serde(flatten)]
    done: Done,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Done {
    Whole(Box<Statistics>),
    Part(Box<Transferred>),
}

#[derive(Serialize)]
struct Total {
    objects: usize,
    failed: usize,
    #[serde(flatten)]
    transferred: Transferred,
    /// Data that matched no pending Interest: late or duplicate.
    unsolicited: u64,
    malformed: u64,
}

impl FetchRunReport {
    /// Builds the report; `progress` is the last progress of each fetch.
    pub fn of(
        wanted: &[Wanted],
        outcomes: &[Outcome],
        progress: &[FetchProgress],
        elapsed: Duration,
        counters: EndpointCounters,
    ) -> Self {
        let all = wanted.iter().zip(outcomes).zip(progress);
        let objects = all.map(|((wanted, outcome), progress)| Object::of(wanted, outcome, progress, elapsed)).collect();
        let mut sum = FetchProgress::default();
        let mut failed = 0;
        let mut rtt_ns = None;
        for (outcome, progress) in outcomes.iter().zip(progress) {
            let (bytes, segments, counts) = match outcome {
                Outcome::Fetched(report) => {
                    match &mut rtt_ns {
                        None => rtt_ns = Some(report.rtt_ns.clone()),
                        // Cannot fail: all histograms have the same bounds.
                        Some(sum) => drop(sum.add(&report.rtt_ns)),
                    }
                    (report.bytes, report.segments, report.counts)
                }
                _ => {
                    failed += 1;
                    (progress.bytes, progress.segments, progress.counts)
                }
            };
            sum.bytes += bytes;
            sum.segments += segments;
            sum.counts = FetchCounts::plus(sum.counts, counts);
        }
        let rtt = rtt_ns.as_ref().and_then(RoundTripTimes::of);
        Self {
            objects,
            total: Total {
                objects: wanted.len(),
                failed,
                transferred: Transferred::of(&sum, elapsed, rtt),
                unsolicited: counters.unsolicited_data,
                malformed: counters.malformed,
            },
        }
    }

    pub fn describe(&self) -> String {
        let mut text: String = self.objects.iter().map(|object| object.describe() + "\n").collect();
        let total = &self.total;
        let mut pairs = vec![("Total", format!("{} objects, {} failed", total.objects, total.failed))];
        pairs.extend(total.transferred.describe());
        pairs.push((
            "Other",
            format!("{} late or duplicate Data, {} malformed frames", total.unsolicited, total.malformed),
        ));
        text += &properties(&pairs);
        text
    }
}

impl Object {
    fn of(wanted: &Wanted, outcome: &Outcome, progress: &FetchProgress, elapsed: Duration) -> Self {
        let error = match outcome {
            Outcome::Fetched(_) => None,
            Outcome::Failed(error) => Some(error.to_string()),
            Outcome::Interrupted => Some("interrupted".to_owned()),
        };
        let done = match outcome {
            Outcome::Fetched(report) => Done::Whole(Box::new(Statistics::of(report))),
            _ => Done::Part(Box::new(Transferred::of(progress, elapsed, None))),
        };
        let file = wanted.file.as_ref().map(|file| file.display().to_string());
        Self { asked_for: wanted.name.to_string(), file, error, done }
    }

    fn describe(&self) -> String {
        let mut pairs = match &self.done {
            Done::Whole(statistics) => statistics.describe(),
            Done::Part(transferred) => {
                let mut pairs = vec![("Name", self.asked_for.clone())];
                pairs.extend(transferred.describe());
                pairs
            }
        };
        match (&self.error, &self.file) {
            (Some(error), _) => pairs.push(("Error", error.clone())),
            (None, Some(file)) => pairs.push(("File", file.clone())),
            (None, None) => {}
        }
        properties(&pairs)
    }
}
