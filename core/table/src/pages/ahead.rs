//! Making memory ready before it is needed.
//!
//! The system clears a page when it is first touched. This takes a microsecond or so for 4 KiB, for 2 MiB up to tens of
//! milliseconds in a virtual machine, and whoever touches it waits. Workers must not wait, so a thread of its own touches memory
//! ahead of them. Whoever fills some memory from its start on says from time to time how far it has come, by one store (the
//! [`FillMark`]); the thread keeps a lead in front of that: four times what is in use already, but at least what the memory was made
//! with and at most [`most_lead_bytes`](ReadyAhead::most_lead_bytes). So a table that stays small takes little memory, and one that
//! fills fast has a lead that grows faster than it is used up. The part with the shortest lead goes first, in steps of a huge page. Whoever comes to memory that is not ready yet either
//! touches it, and waits for the system, or does without it for now: [`FillMark::is_ready`] tells.
//!
//! Nobody but the router needs this: before [`make_memory_ready_ahead`] is called, there is neither thread nor lead.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{BASE_ALIGNMENT, HUGE_2M_BYTES, Mapping, PageKind, Range};

/// Made ready at once, and at most so much beyond what is wanted.
const STEP_BYTES: usize = HUGE_2M_BYTES;
/// Longest lead. What of it is not used in the end is taken for nothing.
pub(crate) const MOST_LEAD_BYTES: usize = 8 << 20;
/// Memory that is wanted as a whole goes before other memory with a longer lead than this.
const WHOLE_COUNTS_AS_LEAD_BYTES: usize = 1 << 20;
/// The lead by what is in use. Less, and a cache that fills at gigabytes a second overtakes the thread between two looks.
const LEAD_BY_USE: usize = 4;
/// The mark is told first when this part of what was ready at first is in use, because waking the thread takes a while.
const FIRST_TOLD_PART: usize = 8;
/// What is filled from its start on lies on ordinary pages up to here, so that a little of it takes little memory.
const ORDINARY_BYTES: usize = HUGE_2M_BYTES;
/// Memory that can wait does up to here. The system has ordinary pages at hand, but a virtual machine may have to ask for each huge one
/// (64 MiB of ordinary ones took 22 ms, of huge ones 90 to 210), and whoever fills a cache for the first time shares the processors with that.
const ORDINARY_BYTES_TO_WAIT_FOR: usize = 256 << 20;
/// Memory that is used anywhere is made ready as a whole from so many uses on: a router with a few commands an hour does without.
const FEW_USES: usize = 256;
/// How often a mark is told, in bytes of what is filled.
const TELL_BYTES: usize = 16 << 10;
/// Between two steps for memory that can wait. Clearing memory takes from other processors what they share with this one, so a
/// cache that fills is to cost no more than a few per cent of what they do. This is some 1 GB in a second.
const REST: Duration = Duration::from_millis(2);
/// After some work the thread looks for more by itself, so often and so long. Then it sleeps until somebody wakes it.
const LOOK_EVERY: Duration = Duration::from_micros(100);
const LOOK_FOR: Duration = Duration::from_millis(100);

/// When memory that is used anywhere is made ready, which is all of it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Before its first use, so that nobody waits. For a router from which much is expected at once.
    BeforeUse,
    /// When it has had a few hundred uses. Until then it is on ordinary pages, of which each use takes at most one: a router that does little
    /// stays small.
    AfterFewUses,
}

/// How memory of tables that are made from now on is made ready: not at all (0), or as [`Readiness`] says.
static WANTED: AtomicU8 = AtomicU8::new(0);

/// From now on, the memory of tables is made ready by another thread, ahead of whoever fills them. Tables made before are not
/// changed.
pub fn make_memory_ready_ahead(readiness: Readiness) {
    WANTED.store(1 + readiness as u8, Ordering::Relaxed);
}

fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) > 0
}

/// Whether memory that is used anywhere stays small until it has had a few uses.
pub(super) fn starts_small() -> bool {
    WANTED.load(Ordering::Relaxed) == 1 + Readiness::AfterFewUses as u8
}

/// Is all memory ready that is to be ready by now? For tests and measurements.
pub fn is_memory_ready() -> bool {
    let helper = helper();
    helper.wake();
    helper.regions().iter().all(|region| region.missing().is_none()) && !helper.is_busy.load(Ordering::SeqCst)
}

/// How much of some memory is in use, in units of its owner. Kept by whoever fills it.
#[derive(Debug)]
pub(crate) struct FillMark {
    told: Arc<AtomicUsize>,
    /// From so many units on, it is to be told again. Never, when nobody wants to know.
    tell_at: usize,
    tell_every: usize,
    /// Bytes of the first memory with this mark that are ready, as the thread says. `None` when there is nothing to wait for.
    ready_bytes: Option<Arc<AtomicUsize>>,
    unit_bytes: usize,
    /// So many units were ready when `ready_bytes` was last looked at.
    ready_units: usize,
}

impl FillMark {
    /// A mark for units of so many bytes.
    pub(crate) fn new(unit_bytes: usize) -> Self {
        let unit_bytes = unit_bytes.max(1);
        FillMark {
            told: Arc::new(AtomicUsize::new(0)),
            tell_at: usize::MAX,
            tell_every: (TELL_BYTES / unit_bytes).max(1),
            ready_bytes: None,
            unit_bytes,
            ready_units: usize::MAX,
        }
    }

    /// So many units are in use. To be called whenever there are more than ever before. `true` when the thread was told.
    #[inline(always)]
    pub(crate) fn note(&mut self, units: usize) -> bool {
        let is_told = units >= self.tell_at;
        if is_told {
            self.tell(units);
        }
        is_told
    }

    /// Can the first `units` be used without waiting for the system? Asks for the first memory with this mark.
    #[inline(always)]
    pub(crate) fn is_ready(&mut self, units: usize) -> bool {
        units <= self.ready_units || self.is_ready_by_now(units)
    }

    #[cold]
    fn is_ready_by_now(&mut self, units: usize) -> bool {
        let Some(ready_bytes) = &self.ready_bytes else { return true };
        self.ready_units = ready_bytes.load(Ordering::Relaxed) / self.unit_bytes;
        let is_ready = units <= self.ready_units;
        if !is_ready {
            helper().wake();
        }
        is_ready
    }

    /// The counter, for an owner that counts in it by itself and calls [`wake_helper`].
    pub(crate) fn into_told(self) -> Arc<AtomicUsize> {
        self.told
    }

    #[cold]
    fn tell(&mut self, units: usize) {
        self.told.store(units, Ordering::Relaxed);
        self.tell_at = units.saturating_add(self.tell_every);
        helper().wake();
    }
}

/// Has the thread look at all marks, if there is one and it sleeps.
pub(crate) fn wake_helper() {
    helper().wake();
}

/// What is to be ready of some memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyAhead {
    /// Bytes for each unit of the mark.
    pub(crate) unit_bytes: usize,
    /// Bytes that are to be ready at once.
    pub(crate) first_bytes: usize,
    /// Longest lead, unless `first_bytes` is more.
    pub(crate) most_lead_bytes: usize,
    /// Whoever fills it does without until it is ready; then it is made ready at a moderate rate.
    pub(crate) can_wait: bool,
}

impl Mapping {
    /// Has the memory made ready ahead of a mark, if that is wanted in this process.
    pub(crate) fn make_ready_ahead(&self, mark: &mut FillMark, ahead: ReadyAhead) {
        if !is_wanted() {
            return;
        }
        let first_told = ahead.first_bytes / ahead.unit_bytes.max(1) / FIRST_TOLD_PART;
        mark.tell_at = mark.tell_at.min(mark.tell_every.min(first_told).max(1));
        let is_filled_by_and_by = ahead.unit_bytes.max(ahead.first_bytes) < HUGE_2M_BYTES;
        let is_whole = ahead.unit_bytes >= self.range.bytes;
        let ordinary_bytes = match self.kind {
            PageKind::Transparent if is_filled_by_and_by && ahead.can_wait => ORDINARY_BYTES_TO_WAIT_FOR,
            PageKind::Transparent if is_filled_by_and_by => ORDINARY_BYTES,
            _ => self.range.ordinary_bytes,
        };
        if self.kind == PageKind::Transparent && ordinary_bytes > 0 {
            self.range.keep_off_huge_pages(ordinary_bytes);
        }
        let ready_bytes = Arc::new(AtomicUsize::new(0));
        let has_thread = helper().add(Region {
            range: Arc::downgrade(&self.range),
            bytes: self.range.bytes,
            page_bytes: self.range.page_bytes,
            ordinary_bytes,
            ready: 0,
            ready_bytes: Arc::clone(&ready_bytes),
            fill: Arc::clone(&mark.told),
            ahead,
            gathers: is_whole && self.kind == PageKind::Transparent && starts_small(),
        });
        if has_thread && mark.ready_bytes.is_none() {
            (mark.ready_bytes, mark.ready_units) = (Some(ready_bytes), 0);
        }
    }
}

impl Mapping {
    /// Has the memory, which is used anywhere, made ready as a whole, as [`Readiness`] says, if that is wanted in this process. The mark counts
    /// uses, and its owner calls [`took_few_uses`](Self::took_few_uses) when it is told. Where readiness is wanted before use, `first_bytes` are
    /// ready at once.
    pub(crate) fn make_ready_as_a_whole(&self, mark: &mut FillMark, first_bytes: usize) {
        let bytes = self.range.bytes;
        if self.better.is_none() {
            if self.kind == PageKind::Transparent && starts_small() {
                self.range.keep_off_huge_pages(bytes);
            }
            let first_bytes = if starts_small() { 0 } else { first_bytes };
            let whole = ReadyAhead { unit_bytes: bytes, first_bytes, most_lead_bytes: 0, can_wait: false };
            self.make_ready_ahead(mark, whole);
        }
        if is_wanted() {
            mark.tell_at = if starts_small() { FEW_USES } else { 1 };
            // Once is enough.
            mark.tell_every = usize::MAX;
        }
    }

    /// Moves what is in the memory to the huge pages that wait for it, if any do. To be called when the mark was told.
    pub(crate) fn took_few_uses(&mut self) {
        let Some(better) = self.better.take() else { return };
        touch_soon(&better, 0, better.range.bytes);
        let bytes = self.range.bytes.min(better.range.bytes);
        // SAFETY: both are mapped for at least so many bytes, and are different memory. `&mut self` is the owner's, so nobody writes meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr(), better.base.as_ptr(), bytes) };
        *self = *better;
    }
}

/// Has a part of a mapping made ready soon, whatever its owner does.
pub(crate) fn touch_soon(mapping: &Mapping, start: usize, bytes: usize) {
    // With one processor, the thread could only do now what its owner does in time.
    if thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        return;
    }
    let end = start.saturating_add(bytes).min(mapping.range.bytes);
    helper().add(Region {
        range: Arc::downgrade(&mapping.range),
        bytes: end,
        page_bytes: mapping.range.page_bytes,
        ordinary_bytes: 0,
        ready: start,
        ready_bytes: Arc::new(AtomicUsize::new(0)),
        fill: Arc::new(AtomicUsize::new(1)),
        ahead: ReadyAhead { unit_bytes: end, first_bytes: end, most_lead_bytes: 0, can_wait: false },
        gathers: false,
    });
}

/// Some memory, and how far it is ready.
struct Region {
    range: Weak<Range>,
    bytes: usize,
    page_bytes: usize,
    /// Up to here, pages are ordinary ones.
    ordinary_bytes: usize,
    /// Bytes from the start on that are ready, or that the thread is at work on.
    ready: usize,
    /// Bytes from the start on that are ready, for whoever fills the memory.
    ready_bytes: Arc<AtomicUsize>,
    fill: Arc<AtomicUsize>,
    ahead: ReadyAhead,
    /// Ordinary pages that are in use by then are to become huge ones.
    gathers: bool,
}

/// A step of making memory ready.
struct Step {
    start: usize,
    end: usize,
    /// What is ready beyond what is in use; the shortest lead goes first.
    lead: usize,
}

impl Region {
    /// Is it used at no particular place, or wanted whole?
    fn is_whole(&self) -> bool {
        self.ahead.unit_bytes >= self.bytes || self.ahead.first_bytes >= self.bytes
    }

    /// The next step; `None` when enough is ready.
    fn missing(&self) -> Option<Step> {
        let ReadyAhead { unit_bytes, first_bytes, most_lead_bytes, .. } = self.ahead;
        let used = self.fill.load(Ordering::Relaxed).saturating_mul(unit_bytes);
        let lead = used.saturating_mul(LEAD_BY_USE).clamp(first_bytes, most_lead_bytes.max(first_bytes));
        let wanted = used.saturating_add(lead).min(self.bytes);
        if wanted <= self.ready {
            return None;
        }
        let wanted = self.end_of_page(wanted).min(self.bytes);
        if self.is_whole() {
            return Some(self.step_from(self.ready, wanted, WHOLE_COUNTS_AS_LEAD_BYTES));
        }
        // Where the thread was overtaken, it goes on ahead of whoever fills the memory, not beside.
        let start = self.ready.max(self.end_of_page(used));
        (start < wanted).then(|| self.step_from(start, wanted, self.ready.saturating_sub(used)))
    }

    fn step_from(&self, start: usize, wanted: usize, lead: usize) -> Step {
        let step_bytes = STEP_BYTES.max(self.page_bytes);
        Step { start, end: wanted.min((start / step_bytes + 1) * step_bytes), lead }
    }

    /// The next end of a page from `offset` on. Pages at the start may be smaller.
    fn end_of_page(&self, offset: usize) -> usize {
        match offset.checked_sub(self.ordinary_bytes) {
            None | Some(0) => offset.next_multiple_of(BASE_ALIGNMENT),
            Some(behind) => behind.next_multiple_of(self.page_bytes).saturating_add(self.ordinary_bytes),
        }
    }
}

/// The thread and what it works on.
struct Helper {
    regions: Mutex<Vec<Region>>,
    thread: OnceLock<Option<Thread>>,
    is_asleep: AtomicBool,
    is_busy: AtomicBool,
}

fn helper() -> &'static Helper {
    static HELPER: Helper = Helper {
        regions: Mutex::new(Vec::new()),
        thread: OnceLock::new(),
        is_asleep: AtomicBool::new(false),
        is_busy: AtomicBool::new(false),
    };
    &HELPER
}

impl Helper {
    fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        // The list is whole between any two statements that may panic.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up some memory. `false` if there is no thread: then whoever fills the memory touches it.
    fn add(&'static self, region: Region) -> bool {
        self.regions().push(region);
        let start = || {
            let handle = thread::Builder::new().name("memory".to_owned()).spawn(|| self.run()).ok()?;
            Some(handle.thread().clone())
        };
        let has_thread = self.thread.get_or_init(start).is_some();
        self.wake();
        has_thread
    }

    /// A call that comes just before the thread falls asleep may be lost. The next one is not.
    fn wake(&self) {
        if self.is_asleep.load(Ordering::Relaxed)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self) -> ! {
        let mut last_work = Instant::now();
        let mut rest_until = last_work;
        loop {
            if self.work(&mut rest_until) {
                last_work = Instant::now();
            } else if last_work.elapsed() < LOOK_FOR {
                thread::sleep(LOOK_EVERY);
            } else {
                self.is_asleep.store(true, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if !self.work(&mut rest_until) {
                    thread::park();
                }
                self.is_asleep.store(false, Ordering::Relaxed);
                last_work = Instant::now();
            }
        }
    }

    /// Makes one step, where the lead is shortest. `false` when all is ready but what can wait until `rest_until`.
    fn work(&self, rest_until: &mut Instant) -> bool {
        let is_resting = Instant::now() < *rest_until;
        let (range, step, ready_bytes, can_wait, gathers) = {
            let mut regions = self.regions();
            regions.retain(|region| region.range.strong_count() > 0 && region.ready < region.bytes);
            let steps = regions.iter().enumerate().filter(|(_, region)| !(is_resting && region.ahead.can_wait));
            let steps = steps.filter_map(|(number, region)| Some((number, region.missing()?)));
            let Some((number, step)) = steps.min_by_key(|(_, step)| step.lead) else { return false };
            let region = &mut regions[number];
            // Noted at once: what cannot be made ready now is touched by whoever needs it.
            region.ready = step.end;
            self.is_busy.store(true, Ordering::SeqCst);
            let (can_wait, gathers) = (region.ahead.can_wait, region.gathers);
            (region.range.upgrade(), step, Arc::clone(&region.ready_bytes), can_wait, gathers)
        };
        if let Some(range) = range {
            let bytes = step.end - step.start;
            if gathers {
                // A system that cannot be asked for it gathers the ordinary pages by itself after a while.
                let _ = range.make_huge(step.start, bytes);
            }
            range.touch(step.start, bytes);
        }
        ready_bytes.store(step.end, Ordering::Relaxed);
        if can_wait {
            *rest_until = Instant::now() + REST;
        }
        self.is_busy.store(false, Ordering::SeqCst);
        true
    }
}
