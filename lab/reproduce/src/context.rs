//! The context of items: settings, instruments, and earlier measurements.

use namehop_bench::machine::Machine;
use namehop_bench::measurements::EngineMeasurements;
use namehop_bench::progress::{OnProgress, Progress};
use namehop_bench::sweep::{Sweep, SweepFigures, SweepMeasurements};
use namehop_bench::workload::WorkloadParameters;
use namehop_orders::ScheduleKind;
use namehop_simulate::policy::SimulatedPolicy;
use namehop_simulate::run::{Outcome, Plan, Source, run};
use namehop_table::table_memory_by_pages;
use namehop_traffic::workload::{Workload, WorkloadShape};

use crate::measured::engine::{self, ScheduleRuns};
use crate::measured::memory::{self, Dram};
use crate::measured::policies::Policies;
use crate::measured::programs::{ProgramMeasurements, ProgramRuns};
use crate::measured::{MachineFigures, Measured};
use crate::report::{Report, number};
use crate::{ReproduceError, Settings, published};

/// Instruments for whole packets. Items that need a missing instrument are not listed.
#[derive(Default)]
pub struct Instruments<'a> {
    /// The forwarding engine.
    pub engine: Option<&'a mut dyn EngineMeasurements>,
    /// Routers between links.
    pub links: Option<&'a mut dyn SweepMeasurements>,
    /// Compiled P4 programs.
    pub programs: Option<&'a mut dyn ProgramMeasurements>,
}

/// The context in which items run.
pub struct Context<'a> {
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    pub(crate) instruments: Instruments<'a>,
    /// Measured P4 programs, by name and requested entries.
    pub(crate) programs_measured: Vec<(String, u64, ProgramRuns)>,
    /// Figures of the engine by number of workers, kept because most items need the same.
    measured: Vec<(usize, Vec<ScheduleRuns>)>,
    /// Page kinds of the tables when the engine was last measured.
    table_pages: String,
    dram: Option<Dram>,
    /// Simulated caches by workload.
    simulated: Vec<(WorkloadShape, Outcome)>,
    /// Figures of the engine by policy, once measured.
    policies: Option<Policies>,
    /// Figures of routers between links, once measured.
    swept: Vec<SweepFigures>,
    on_progress: &'a OnProgress<'a>,
}

impl<'a> Instruments<'a> {
    fn engine(&mut self) -> Result<&mut (dyn EngineMeasurements + 'a), ReproduceError> {
        self.engine.as_deref_mut().ok_or_else(|| ReproduceError::Engine("no engine is available".into()))
    }
}

/// Whether an item measures more than one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManyWorkers {
    Yes,
    No,
}

impl<'a> Context<'a> {
    /// Creates a context; `on_progress` is called with what is being measured.
    pub fn new(settings: Settings, instruments: Instruments<'a>, on_progress: &'a OnProgress<'a>) -> Self {
        let machine = Machine::detect();
        Context {
            settings,
            machine,
            instruments,
            programs_measured: Vec::new(),
            measured: Vec::new(),
            table_pages: String::new(),
            dram: None,
            simulated: Vec::new(),
            policies: None,
            swept: Vec::new(),
            on_progress,
        }
    }

    pub(crate) fn has_engine(&self) -> bool {
        self.instruments.engine.is_some()
    }

    pub(crate) fn progress(&self, what: &str) {
        (self.on_progress)(Progress::of(what));
    }

    pub(crate) fn machine_figures(&self) -> MachineFigures {
        MachineFigures::of(&self.machine)
    }

    /// Speed of random lines from memory, on the largest pages available; measured once.
    pub(crate) fn dram(&mut self) -> Result<Dram, ReproduceError> {
        if let Some(figures) = &self.dram {
            return Ok(figures.clone());
        }
        self.progress("memory, random lines");
        let figures = memory::dram(&self.settings.memory, self.settings.runs)?;
        Ok(self.dram.insert(figures).clone())
    }

    /// Outcomes of policies at capacities with a workload, in the order of `stores`. Each is simulated once. The stores
    /// of one call are simulated in one pass.
    pub(crate) fn simulated(
        &mut self,
        shape: WorkloadShape,
        stores: &[(SimulatedPolicy, usize)],
    ) -> Result<Vec<Outcome>, ReproduceError> {
        let known = |context: &Self, (policy, capacity): (SimulatedPolicy, usize)| {
            let mut of_shape = context.simulated.iter().filter(|(of, _)| *of == shape).map(|(_, outcome)| *outcome);
            of_shape.find(|outcome| outcome.policy == policy && outcome.capacity == capacity)
        };
        let missing: Vec<_> = stores.iter().copied().filter(|&store| known(self, store).is_none()).collect();
        if !missing.is_empty() {
            let requests = self.settings.cache_requests;
            let plan = Plan { stores: missing, requests, warm_up: requests / 2, threads: self.machine.cores };
            let outcomes = self.simulate(shape, &plan)?;
            self.simulated.extend(outcomes.into_iter().map(|outcome| (shape, outcome)));
        }
        Ok(stores.iter().filter_map(|&store| known(self, store)).collect())
    }

    /// Runs a simulation with a workload.
    pub(crate) fn simulate(&self, shape: WorkloadShape, plan: &Plan) -> Result<Vec<Outcome>, ReproduceError> {
        let what = format!("simulating caches: {}, alpha {}, {} packets", shape.kind, shape.alpha, shape.packets());
        let on_progress = |done| (self.on_progress)(Progress { what: what.clone(), done, total: plan.requests });
        Ok(run(&mut Source::Workload(Workload::new(shape)), plan, &on_progress)?)
    }

    /// Figures of the engine with each policy, measured once.
    pub(crate) fn policies(&mut self) -> Result<&Policies, ReproduceError> {
        let Context { settings, instruments, on_progress, policies, .. } = self;
        if policies.is_none() {
            let engine = instruments.engine()?;
            *policies = Some(Policies::measure(engine, settings, *on_progress)?);
            self.table_pages = table_pages();
        }
        policies.as_ref().ok_or_else(|| ReproduceError::Engine("no policy figures are available".into()))
    }

    /// Figures of routers between links in the cases of a sweep, measured once.
    pub(crate) fn sweep(&mut self, sweep: Sweep) -> Result<SweepFigures, ReproduceError> {
        if let Some(figures) = self.swept.iter().find(|figures| figures.sweep == sweep) {
            return Ok(figures.clone());
        }
        let Context { settings, instruments, on_progress, .. } = self;
        let links =
            instruments.links.as_deref_mut().ok_or_else(|| ReproduceError::Links("no links are available".into()))?;
        let figures = links.measure(sweep, settings.runs.max(1), *on_progress).map_err(ReproduceError::Links)?;
        self.swept.push(figures.clone());
        Ok(figures)
    }

    /// 10^9 bytes per second that all cores read sequentially in total.
    pub(crate) fn sequential_gigabytes_per_second(&mut self) -> Result<Option<Measured>, ReproduceError> {
        self.progress("memory, sequential reads");
        Ok(memory::sequential_gigabytes_per_second(&self.settings.memory, self.machine.cores, self.settings.runs)?)
    }

    /// Figures of all schedules with `workers` workers, measured once.
    pub(crate) fn schedules(&mut self, workers: usize) -> Result<Vec<ScheduleRuns>, ReproduceError> {
        if let Some((_, figures)) = self.measured.iter().find(|(asked, _)| *asked == workers) {
            return Ok(figures.clone());
        }
        let Context { settings, instruments, on_progress, .. } = self;
        let engine = instruments.engine()?;
        let figures = engine::measure(engine, settings, workers, *on_progress)?;
        self.table_pages = table_pages();
        self.measured.push((workers, figures.clone()));
        Ok(figures)
    }

    /// Figures for one schedule.
    pub(crate) fn schedule(&mut self, schedule: ScheduleKind, workers: usize) -> Result<ScheduleRuns, ReproduceError> {
        let figures = self.schedules(workers)?;
        let of_schedule = figures.into_iter().find(|figures| figures.schedule == schedule);
        of_schedule.ok_or(ReproduceError::MissingSchedule(schedule))
    }

    /// Adds the conditions and limits of engine measurements to a report.
    pub(crate) fn of_engine(&self, report: Report, many_workers: ManyWorkers) -> Report {
        let Settings { prefixes, engine_time, runs, .. } = self.settings;
        let WorkloadParameters { prefix_components, prefix_spread, .. } = self.settings.workload();
        let conditions = [
            format!("{}, time-stamp counter of {} GHz", self.machine.processor, number(self.machine.cycles_hz / 1e9)),
            format!(
                "{prefixes} prefixes of {} to {} components, {prefix_components} on average, so that a search reads 4 \
                 buckets on average; names of {} components that are never requested twice, {} bytes of content; the \
                 published path (Content Store, PIT and FIB by name; FIFO) unless a row says otherwise",
                prefix_components - prefix_spread,
                prefix_components + prefix_spread,
                published::NAME_COMPONENTS,
                published::PAYLOAD_BYTES
            ),
            format!(
                "{} of {} s per schedule, the schedules taking turns; median (minimum to maximum)",
                count(runs.max(1), "run"),
                engine_time.as_secs_f64()
            ),
            format!("pages of the FIB and of all data kept between runs: {}", self.table_pages),
        ];
        let mut limits = vec![
            "No network card is involved: complete Ethernet frames come from memory, where the same core has just \
             written them, and go to memory. The published figures include receiving from and sending to network \
             cards."
                .to_owned(),
            "The publications state the average lengths of prefixes and names, and lookups slightly above 3.87 per \
             Interest. They do not state how lengths are distributed: here all lengths of prefixes are equally \
             frequent, and all names have the average length."
                .to_owned(),
            format!(
                "The numbers of pending Interests and cached packets are not published; here they are {} and {}.",
                published::IN_FLIGHT,
                published::CS_PACKETS
            ),
            "The published packets are carried in IP packets; here Interests and Data follow the Ethernet header."
                .to_owned(),
        ];
        if many_workers == ManyWorkers::Yes {
            limits.push(
                "All workers share one FIB; in the publications each thread has its own. Each worker has its own \
                 Content Store and PIT, as in the publications."
                    .to_owned(),
            );
        }
        report.with_conditions(conditions).with_limits(limits)
    }

    /// Returns the conditions of memory measurements.
    pub(crate) fn memory_conditions(&self, pages: &str) -> String {
        let MemorySummary { mebibytes, milliseconds } = MemorySummary::of(&self.settings);
        let runs = count(self.settings.runs.max(1), "run");
        format!(
            "memory: {runs} of {milliseconds} ms per figure, on {mebibytes} MiB of {pages}; median (minimum to \
             maximum)"
        )
    }
}

struct MemorySummary {
    mebibytes: usize,
    milliseconds: u128,
}

impl MemorySummary {
    fn of(settings: &Settings) -> Self {
        let area_bytes = settings.memory.area_bytes.max(1);
        MemorySummary { mebibytes: (1 << area_bytes.ilog2()) >> 20, milliseconds: settings.memory.time.as_millis() }
    }
}

/// Formats a count with its noun.
pub(crate) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Describes the pages of all current tables.
pub(crate) fn table_pages() -> String {
    let kinds = table_memory_by_pages();
    let kind = |(pages, _, bytes): &(_, usize, usize)| format!("{} MiB on {pages}", bytes.div_ceil(1 << 20));
    kinds.iter().map(kind).collect::<Vec<_>>().join(", ")
}
