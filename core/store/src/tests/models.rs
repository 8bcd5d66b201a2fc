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

/// A window in front of a store.
struct Windowed {
    sketch: Sketch,
    /// Rejections before another victim is compared.
    patience: u32,
    /// Names in the window, the oldest first.
    window: Vec<u64>,
    rest: Box<dyn EvictionModel>,
    /// Capacity of the window.
    capacity: usize,
    rest_capacity: usize,
    /// The victim's value when it was determined, and the number of rejections since.
    bar: Option<(u8, u32)>,
}

impl Windowed {
    fn exceeds_victim(&mut self, name: u64) -> bool {
        if self.bar.is_none() {
            self.bar = self.rest.victim().map(|victim| (self.sketch.estimate(hash(victim)), 0));
        }
        let Some((bar, refused)) = &mut self.bar else { return false };
        let exceeds = self.sketch.estimate(hash(name)) > *bar;
        *refused += u32::from(!exceeds);
        if *refused == self.patience {
            self.rest.spared();
            self.bar = None;
        }
        exceeds
    }

    fn make_room(&mut self) {
        if self.window.len() < self.capacity {
            if let Some(victim) = self.rest.victim() {
                self.bar = None;
                self.rest.erase(victim);
            }
        } else if self.exceeds_victim(self.window[0]) {
            self.bar = None;
            self.leave_window(true);
        } else {
            self.window.remove(0);
        }
    }

    fn leave_window(&mut self, is_full: bool) {
        let data = Data { name: self.window.remove(0), freshness: 0 };
        self.rest.enter(data, is_full, 0, true, Decided::default());
    }

    fn arrive(&mut self, data: Data) {
        if self.names().contains(&data.name) {
            return self.hit(data.name);
        }
        if self.names().len() >= self.capacity + self.rest_capacity {
            self.make_room();
        }
        self.window.push(data.name);
        while self.window.len() > self.capacity && self.rest.names().len() < self.rest_capacity {
            self.leave_window(false);
        }
    }

    fn hit(&mut self, name: u64) {
        if !self.window.contains(&name) {
            self.rest.hit(name);
        }
    }
}

impl Model for Windowed {
    fn apply(&mut self, step: Step, _: Decided) {
        match step {
            Step::Request(data) => {
                self.sketch.count(hash(data.name));
                self.arrive(data);
            }
            Step::Data(data) => self.arrive(data),
            Step::Erase(name) => {
                if self.names().contains(&name) {
                    self.bar = None;
                }
                self.window.retain(|&other| other != name);
                self.rest.erase(name);
            }
        }
    }

    fn names(&self) -> Vec<u64> {
        let mut names = [self.window.clone(), self.rest.names()].concat();
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

/// Returns the number of packets in a window with this share by default.
fn window(parameters: &Parameters, usual: f64) -> usize {
    ((parameters.capacity as f64 * parameters.tuning.window.unwrap_or(usual)) as usize).max(1)
}

/// A policy of a store that has a model.
pub trait HasModel {
    fn model(parameters: &Parameters) -> Box<dyn Model>;
}

impl<A: HasAdmissionModel, E: HasEvictionModel> HasModel for crate::Guarded<A, E> {
    fn model(parameters: &Parameters) -> Box<dyn Model> {
        let (admission, eviction) = (A::model(parameters), E::model(parameters));
        Box::new(Guarded { admission, eviction, capacity: parameters.capacity, time: 0, bar: None })
    }
}

impl<A: HasAdmissionModel, E: HasEvictionModel> HasModel for crate::Windowed<A, E> {
    fn model(parameters: &Parameters) -> Box<dyn Model> {
        let AdmissionModel::TinyLfu(sketch, patience) = A::model(parameters) else { panic!("it does not compare") };
        let capacity = window(parameters, 0.03);
        let rest_capacity = parameters.capacity - capacity;
        let rest = E::model(parameters);
        Box::new(Windowed { sketch, patience, window: Vec::new(), rest, capacity, rest_capacity, bar: None })
    }
}
