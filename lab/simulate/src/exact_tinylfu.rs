//! TinyLFU with exact counts and with the choices that its descriptions leave open.
//!
//! The router's TinyLFU estimates counts, and counts up to 15 only. Both would blur a comparison of windows.

use std::collections::HashMap;

use namehop_store::{AdmissionPolicy, Parameters, TINYLFU_SAMPLE};
use namehop_table::TableError;

/// Choices for TinyLFU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TinyLfuChoices {
    /// Window: number of requests, per packet of the capacity, after which all counts are halved.
    pub window: u32,
    /// True if Data is admitted that was requested as often as the victim.
    pub admits_equals: bool,
    /// Eviction of the victim.
    pub victim: Victim,
}

/// Order in which victims are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// A random packet.
    Random,
    /// The oldest packet; it gets another round if it wins the comparison.
    Fifo,
}

/// Admission by exact counts of recent requests.
pub(crate) struct ExactTinyLfu<const ADMITS_EQUALS: bool> {
    /// Counts by name, each with the number of halvings that it includes.
    counts: HashMap<u64, (u32, u32)>,
    /// Number of requests between two halvings.
    sample: u64,
    /// Number of requests since the last halving.
    counted: u64,
    halvings: u32,
}

impl<const ADMITS_EQUALS: bool> AdmissionPolicy for ExactTinyLfu<ADMITS_EQUALS> {
    const COMPARES: bool = true;
    const COUNTS: bool = true;
    const ADMITS_EQUALS: bool = ADMITS_EQUALS;

    fn new(parameters: &Parameters) -> Result<Self, TableError> {
        let window = parameters.tuning.sample.unwrap_or(TINYLFU_SAMPLE);
        let sample = parameters.capacity as u64 * u64::from(window);
        Ok(ExactTinyLfu { counts: HashMap::new(), sample: sample.max(1), counted: 0, halvings: 0 })
    }

    fn requested(&mut self, name_hash: u64) {
        let (count, halvings) = self.counts.entry(name_hash).or_default();
        *count = halved(*count, self.halvings - *halvings).saturating_add(1);
        *halvings = self.halvings;
        self.counted += 1;
        if self.counted >= self.sample {
            self.counted = 0;
            self.halvings += 1;
        }
    }

    fn admits(&mut self, _: u64) -> bool {
        true
    }

    fn worth(&self, name_hash: u64) -> u32 {
        self.counts.get(&name_hash).map_or(0, |&(count, halvings)| halved(count, self.halvings - halvings))
    }

    fn prefetch(&self, _: u64) {}
}

fn halved(count: u32, times: u32) -> u32 {
    count.checked_shr(times).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use namehop_traffic::workload::{Workload, WorkloadKind, WorkloadShape};
    use proptest::prelude::*;

    use super::*;
    use crate::policy::SimulatedPolicy;
    use crate::run::{Plan, Source, run};
    use crate::store::{Counts, store};

    /// A store under TinyLFU with FIFO, which counts all requests so far.
    struct Model {
        choices: TinyLfuChoices,
        capacity: usize,
        requests: Vec<u64>,
        /// Oldest first.
        stored: Vec<u64>,
    }

    impl Model {
        fn count(&self, name: u64) -> usize {
            let samples = self.requests.chunks(self.capacity * self.choices.window as usize);
            samples.fold(0, |count, sample| {
                let is_complete = sample.len() == self.capacity * self.choices.window as usize;
                (count + sample.iter().filter(|&&other| other == name).count()) >> usize::from(is_complete)
            })
        }

        fn request(&mut self, name: u64) -> bool {
            self.requests.push(name);
            if self.stored.contains(&name) {
                return true;
            }
            if self.stored.len() < self.capacity {
                self.stored.push(name);
                return false;
            }
            let victim = self.stored.remove(0);
            let (count, of_victim) = (self.count(name), self.count(victim));
            let is_admitted = count > of_victim || self.choices.admits_equals && count == of_victim;
            self.stored.push(if is_admitted { name } else { victim });
            false
        }
    }

    proptest! {
        #[test]
        fn hits_are_those_of_the_model(
            names in prop::collection::vec(0..12_u64, 0..200),
            capacity in 1..6_usize,
            window in 1..6_u32,
            admits_equals: bool,
        ) {
            let choices = TinyLfuChoices { window, admits_equals, victim: Victim::Fifo };
            let mut model = Model { choices, capacity, requests: Vec::new(), stored: Vec::new() };
            let expected: Vec<bool> = names.iter().map(|&name| model.request(name)).collect();
            let mut hits = Vec::new();
            let mut store = store(SimulatedPolicy::ExactTinyLfu(choices), capacity).expect("memory");
            store.request(&names, &mut |hit| hits.push(hit));
            prop_assert_eq!(hits, expected);
        }
    }

    /// The router's counters are estimates up to 15.
    #[test]
    fn rates_are_nearly_those_of_the_router() {
        let shape = WorkloadShape { objects: 20_000, ..WorkloadShape::published(WorkloadKind::Web) };
        let choices = TinyLfuChoices { window: 50, admits_equals: false, victim: Victim::Random };
        let router: SimulatedPolicy = "tinylfu-random:sample=50".parse().expect("a policy");
        let stores = vec![(SimulatedPolicy::ExactTinyLfu(choices), 500), (router, 500)];
        let plan = Plan { stores, requests: 300_000, warm_up: 100_000, threads: 1 };
        let outcomes = run(&mut Source::Workload(Workload::new(shape)), &plan, &|_| ()).expect("outcomes");
        let of = |rate: fn(&Counts) -> f64| (rate(&outcomes[0].counts), rate(&outcomes[1].counts));
        for (exact, router) in [of(Counts::hit_rate), of(Counts::insertion_rate)] {
            assert!((exact - router).abs() < 0.005, "{exact} and {router}");
        }
    }
}
