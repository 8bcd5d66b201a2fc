//! The same policies as their papers describe them, with vectors that are searched linearly.

mod clock_pro;
mod queues;
mod several_queues;

use super::steps::{Data, Decided, Step, hash};
use crate::Parameters;
use crate::sketch::Sketch;

/// A model of a store with its policy, by name.
pub trait Model {
    /// Performs a step; `decided` holds the outcome of random decisions.
    fn apply(&mut self, step: Step, decided: Decided);
    /// Names in the store, in order.
    fn names(&self) -> Vec<u64>;
}

/// Eviction, by name.
pub trait EvictionModel {
    fn names(&self) -> Vec<u64>;
    fn hit(&mut self, name: u64);
    fn refreshed(&mut self, data: Data, _time: u64, _is_solicited: bool) {
        self.hit(data.name);
    }
    fn erase(&mut self, name: u64);
    /// The next victim.
    fn victim(&mut self) -> Option<u64>;
    /// The victim stays, because new packets were worth less.
    fn spared(&mut self) {}
    /// New Data enters; one packet is evicted first if the store is full.
    fn enter(&mut self, data: Data, is_full: bool, time: u64, is_solicited: bool, decided: Decided);
}

/// Admission, by name.
pub enum AdmissionModel {
    Everything,
    /// The last requests, at most `length`.
    Filter {
        requests: Vec<u64>,
        length: usize,
        threshold: usize,
    },
    /// Request counts of names, and the number of rejections before another victim is compared.
    TinyLfu(Sketch, u32),
}

struct Guarded {
    admission: AdmissionModel,
    eviction: Box<dyn EvictionModel>,
    capacity: usize,
    time: u64,
    /// The victim's value when it was determined, and the number of rejections since.
    bar: Option<(u8, u32)>,
}

impl Guarded {
    fn requested(&mut self, name: u64) {
        match &mut self.admission {
            AdmissionModel::Everything => {}
            AdmissionModel::Filter { requests, length, .. } => {
                requests.push(name);
                if requests.len() > *length {
                    requests.remove(0);
                }
            }
            AdmissionModel::TinyLfu(sketch, _) => sketch.count(hash(name)),
        }
    }

    fn arrive(&mut self, data: Data, is_solicited: bool, decided: Decided) {
        let names = self.eviction.names();
        if names.contains(&data.name) {
            return self.eviction.refreshed(data, self.time, is_solicited);
        }
        let is_full = names.len() >= self.capacity;
        let admits = match &self.admission {
            AdmissionModel::Everything => true,
            AdmissionModel::Filter { requests, threshold, .. } => {
                requests.iter().filter(|&&name| name == data.name).count() >= *threshold
            }
            AdmissionModel::TinyLfu(sketch, patience) if is_full => {
                let victim = if self.bar.is_none() { self.eviction.victim() } else { None };
                if let Some(victim) = victim {
                    self.bar = Some((sketch.estimate(hash(victim)), 0));
                }
                match &mut self.bar {
                    Some((bar, refused)) => {
                        let admits = sketch.estimate(hash(data.name)) > *bar;
                        *refused += u32::from(!admits);
                        if refused == patience {
                            self.eviction.spared();
                            self.bar = None;
                        }
                        admits
                    }
                    // The victim was drawn at random, so the name it was compared with is unknown.
                    None => decided.admitted,
                }
            }
            AdmissionModel::TinyLfu(..) => true,
        };
        if admits {
            if is_full {
                self.bar = None;
            }
            self.eviction.enter(data, is_full, self.time, is_solicited, decided);
        }
    }
}

impl Model for Guarded {
    fn apply(&mut self, step: Step, decided: Decided) {
        self.time += 1;
        match step {
            Step::Request(data) => {
                self.requested(data.name);
                if self.eviction.names().contains(&data.name) {
                    self.eviction.hit(data.name);
                } else {
                    self.arrive(data, true, decided);
                }
            }
            Step::Data(data) => self.arrive(data, false, decided),
            Step::Erase(name) => {
                if self.eviction.names().contains(&name) {
                    self.bar = None;
                }
                self.eviction.erase(name);
            }
        }
    }

    fn names(&self) -> Vec<u64> {
        let mut names = self.eviction.names();
        names.sort_unstable();
        names
    }
}

/// A policy that has a model of its eviction.
pub trait HasEvictionModel {
    fn model(parameters: &Parameters) -> Box<dyn EvictionModel>;
}

/// A policy that has a model of its admission.
pub trait HasAdmissionModel {
    fn model(parameters: &Parameters) -> AdmissionModel;
}

/// Implements one of these traits: a line for each policy, with a function that makes its model.
macro_rules! models {
    ($of:ident -> $model:ty: $($policy:ident $make:expr;)*) => {
        $(impl $of for crate::$policy {
            fn model(parameters: &Parameters) -> $model {
                let make: fn(&Parameters) -> $model = $make;
                make(parameters)
            }
        })*
    };
}

models! {
    HasEvictionModel -> Box<dyn EvictionModel>:
    Lru |_| Box::new(queues::Queue::new(queues::OnHit::Move));
    Fifo |_| Box::new(queues::Queue::new(queues::OnHit::Stay));
    Clock |_| Box::new(queues::Queue::new(queues::OnHit::AnotherRound));
    Random |_| Box::new(queues::AnyLeaves::default());
    Lfu |_| Box::new(queues::Lfu::default());
    Sieve |_| Box::new(queues::Sieve::default());
    PriorityFifo |_| Box::new(queues::PriorityFifo::default());
    Arc |parameters| Box::new(several_queues::Arc::new(parameters.capacity));
    S3Fifo |parameters| Box::new(several_queues::S3Fifo::new(parameters));
    WTinyLfu |parameters| Box::new(several_queues::WTinyLfu::new(parameters, sketch(parameters, 10, 32)));
    ClockPro |parameters| Box::new(clock_pro::ClockPro::new(parameters.capacity));
}

models! {
    HasAdmissionModel -> AdmissionModel:
    Everything |_| AdmissionModel::Everything;
    Filter |parameters| AdmissionModel::Filter {
        requests: Vec::new(),
        length: parameters.tuning.history.map_or(parameters.capacity, |history| history as usize),
        threshold: parameters.tuning.threshold.into(),
    };
    TinyLfu |parameters| AdmissionModel::TinyLfu(sketch(parameters, 10, 32), 1);
    PatientTinyLfu |parameters| AdmissionModel::TinyLfu(sketch(parameters, 50, 80), 32);
}

fn sketch(parameters: &Parameters, usual: u32, per_line: u64) -> Sketch {
    let sample = parameters.capacity as u64 * u64::from(parameters.tuning.sample.unwrap_or(usual));
    Sketch::new(sample, per_line).expect("memory")
}

/// Returns the model of a store with the given admission and eviction.
pub fn model_of<A: HasAdmissionModel, E: HasEvictionModel>(parameters: &Parameters) -> Box<dyn Model> {
    let (admission, eviction) = (A::model(parameters), E::model(parameters));
    Box::new(Guarded { admission, eviction, capacity: parameters.capacity, time: 0, bar: None })
}
