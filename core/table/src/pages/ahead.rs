//! Makes memory ready before it is needed.
//!
//! The system clears a page when it is first touched, and the thread that touches it waits. This takes about a
//! microsecond for 4 KiB, and up to tens of milliseconds for 2 MiB in a virtual machine. Workers must not wait, so a
//! separate thread touches memory ahead of them.
//!
//! The owner of memory that is filled from its start reports its fill level from time to time with one store (the
//! [`FillMark`]). The thread keeps a lead ahead of that: four times the memory in use, at least the size that was
//! ready at first, and at most [`most_lead_bytes`](ReadyAhead::most_lead_bytes). So a table that stays small takes
//! little memory, and the lead of one that fills fast grows faster than it is used up. The memory with the shortest
//! lead goes first, in steps of a huge page. An owner that reaches memory that is not ready either touches it and
//! waits for the system, or skips the allocation for now: [`FillMark::is_ready`] tells.
//!
//! Only the router needs this: until [`make_memory_ready_ahead`] is called, there is neither thread nor lead.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::{BASE_ALIGNMENT, HUGE_2M_BYTES, Mapping, PageKind, Range};

/// Bytes made ready in one step, and the most that is made ready beyond the target.
const STEP_BYTES: usize = HUGE_2M_BYTES;
/// Longest lead. A lead that is never used wastes memory.
pub(crate) const MOST_LEAD_BYTES: usize = 8 << 20;
/// Memory that is wanted as a whole goes before other memory with a longer lead than this.
const WHOLE_COUNTS_AS_LEAD_BYTES: usize = 1 << 20;
/// Ratio of the lead to the memory in use. With a smaller ratio, a cache that fills at gigabytes per second overtakes
/// the thread between two of its polls.
const LEAD_BY_USE: usize = 4;
/// Divisor: the owner first reports its fill level when this part of the initially ready memory is in use, because
/// waking the thread takes a while.
const FIRST_PUBLISHED_PART: usize = 8;
/// Memory that is filled from its start lies on ordinary pages up to here, so that a small fill level takes little
/// memory.
const ORDINARY_BYTES: usize = HUGE_2M_BYTES;
/// The same limit for memory that can wait. The system has ordinary pages at hand, but a virtual machine may have to
/// request each huge page from its host: 64 MiB of ordinary pages took 22 ms, of huge pages 90 to 210 ms. A cache
/// that fills for the first time shares the CPUs with that.
const ORDINARY_BYTES_TO_WAIT_FOR: usize = 256 << 20;
/// Number of uses after which memory that is used in any order is made ready as a whole: a router that gets a few
/// commands per hour never reaches it.
const FEW_USES: usize = 256;
/// Bytes filled between two reports of a fill level.
const PUBLISH_BYTES: usize = 16 << 10;
/// Pause between two steps for memory that can wait. Clearing memory takes shared resources from other CPUs, so a
/// filling cache must not slow them by more than a few per cent. This allows about 1 GB per second.
const REST: Duration = Duration::from_millis(2);
/// Interval and duration of the thread's polling after some work. Then it sleeps until it is woken.
const LOOK_EVERY: Duration = Duration::from_micros(100);
const LOOK_FOR: Duration = Duration::from_millis(100);

/// When memory that is used in any order is made ready, all of it at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Before its first use, so that nothing waits for memory. For a router that must carry full load from the start.
    BeforeUse,
    /// After a few hundred uses. Until then it is on ordinary pages, and each use takes at most one page, so that a
    /// router with little traffic stays small.
    AfterFewUses,
}

/// How memory of tables made from now on is made ready: not at all (0), or by the [`Readiness`] with this number
/// minus 1.
static WANTED: AtomicU8 = AtomicU8::new(0);

/// Has another thread make the memory of tables ready ahead of use, for tables made from now on.
pub fn make_memory_ready_ahead(readiness: Readiness) {
    WANTED.store(1 + readiness as u8, Ordering::Relaxed);
}

fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) > 0
}

/// Returns true if memory that is used in any order stays small until it has had a few uses.
pub(super) fn starts_small() -> bool {
    WANTED.load(Ordering::Relaxed) == 1 + Readiness::AfterFewUses as u8
}

/// Returns true if all memory that should be ready by now is ready. For tests and measurements.
pub fn is_memory_ready() -> bool {
    let helper = helper();
    helper.wake();
    helper.regions().iter().all(|region| region.missing().is_none()) && !helper.is_busy.load(Ordering::SeqCst)
}

/// Fill level of some memory, in units of its owner, which updates it.
#[derive(Debug)]
pub(crate) struct FillMark {
    published: Arc<AtomicUsize>,
    /// Fill level at which the next report is due; `usize::MAX` if no thread needs it.
    publish_at: usize,
    publish_every: usize,
    /// Ready bytes of the first memory with this mark, updated by the thread. `None` when no memory has to be waited
    /// for.
    ready_bytes: Option<Arc<AtomicUsize>>,
    unit_bytes: usize,
    /// Number of units that were ready when `ready_bytes` was last read.
    ready_units: usize,
}

impl FillMark {
    /// Makes a mark for units of `unit_bytes`.
    pub(crate) fn new(unit_bytes: usize) -> Self {
        let unit_bytes = unit_bytes.max(1);
        FillMark {
            published: Arc::new(AtomicUsize::new(0)),
            publish_at: usize::MAX,
            publish_every: (PUBLISH_BYTES / unit_bytes).max(1),
            ready_bytes: None,
            unit_bytes,
            ready_units: usize::MAX,
        }
    }

    /// Reports that `units` units are in use. The owner calls it whenever that number reaches a new maximum. Returns
    /// `true` if the thread was told.
    #[inline(always)]
    pub(crate) fn note(&mut self, units: usize) -> bool {
        let is_published = units >= self.publish_at;
        if is_published {
            self.publish(units);
        }
        is_published
    }

    /// Returns true if the first `units` units of the first memory with this mark can be used without waiting for the
    /// system.
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

    /// Returns the counter, for an owner that updates it directly and calls [`wake_helper`].
    pub(crate) fn into_published(self) -> Arc<AtomicUsize> {
        self.published
    }

    #[cold]
    fn publish(&mut self, units: usize) {
        self.published.store(units, Ordering::Relaxed);
        self.publish_at = units.saturating_add(self.publish_every);
        helper().wake();
    }
}

/// Wakes the thread, if it exists and sleeps, so that it reads all marks.
pub(crate) fn wake_helper() {
    helper().wake();
}

/// How much of some memory is to be ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyAhead {
    /// Bytes of each unit of the mark.
    pub(crate) unit_bytes: usize,
    /// Bytes to make ready at once.
    pub(crate) first_bytes: usize,
    /// Longest lead, unless `first_bytes` is more.
    pub(crate) most_lead_bytes: usize,
    /// The owner does not use the memory before it is ready, so it is made ready at a moderate rate.
    pub(crate) can_wait: bool,
}

impl Mapping {
    /// Has the memory made ready ahead of a mark, if that is enabled in this process.
    pub(crate) fn make_ready_ahead(&self, mark: &mut FillMark, ahead: ReadyAhead) {
        if !is_wanted() {
            return;
        }
        let first_published = ahead.first_bytes / ahead.unit_bytes.max(1) / FIRST_PUBLISHED_PART;
        mark.publish_at = mark.publish_at.min(mark.publish_every.min(first_published).max(1));
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
            fill: Arc::clone(&mark.published),
            ahead,
            gathers: is_whole && self.kind == PageKind::Transparent && starts_small(),
        });
        if has_thread && mark.ready_bytes.is_none() {
            (mark.ready_bytes, mark.ready_units) = (Some(ready_bytes), 0);
        }
    }
}

impl Mapping {
    /// Has memory that is used in any order made ready as a whole, as [`Readiness`] says, if that is enabled in this
    /// process. The mark counts uses. Its owner calls [`took_few_uses`](Self::took_few_uses) when
    /// [`note`](FillMark::note) returns true. With [`Readiness::BeforeUse`], `first_bytes` are made ready at once.
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
            mark.publish_at = if starts_small() { FEW_USES } else { 1 };
            // One report is enough.
            mark.publish_every = usize::MAX;
        }
    }

    /// Moves the contents to the huge pages reserved for them, if any. Called when the mark reports the few uses.
    pub(crate) fn took_few_uses(&mut self) {
        let Some(better) = self.better.take() else { return };
        touch_soon(&better, 0, better.range.bytes);
        let bytes = self.range.bytes.min(better.range.bytes);
        // SAFETY: both mappings have at least `bytes` bytes and do not overlap. `&mut self` is the owner's, so
        // nothing writes meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(self.base.as_ptr(), better.base.as_ptr(), bytes) };
        *self = *better;
    }
}

/// Has a part of a mapping made ready soon, independently of its owner.
pub(crate) fn touch_soon(mapping: &Mapping, start: usize, bytes: usize) {
    // With one CPU, the thread would only take time from the owner, which touches the memory itself in time.
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
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

/// Some memory, and how much of it is ready.
struct Region {
    range: Weak<Range>,
    bytes: usize,
    page_bytes: usize,
    /// Pages below this offset are ordinary ones.
    ordinary_bytes: usize,
    /// Bytes from the start that are ready, or that the thread is working on.
    ready: usize,
    /// Bytes from the start that are ready, for the owner of the memory.
    ready_bytes: Arc<AtomicUsize>,
    fill: Arc<AtomicUsize>,
    ahead: ReadyAhead,
    /// Ordinary pages that are in use when the region is made ready are to become huge pages.
    gathers: bool,
}

/// One step of making memory ready.
struct Step {
    start: usize,
    end: usize,
    /// Ready bytes beyond those in use; the shortest lead goes first.
    lead: usize,
}

impl Region {
    /// Returns true if the memory is used in any order, or wanted as a whole.
    fn is_whole(&self) -> bool {
        self.ahead.unit_bytes >= self.bytes || self.ahead.first_bytes >= self.bytes
    }

    /// Returns the next step; `None` when enough memory is ready.
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
        // If the owner overtook the thread, the thread continues ahead of the owner, not beside it.
        let start = self.ready.max(self.end_of_page(used));
        (start < wanted).then(|| self.step_from(start, wanted, self.ready.saturating_sub(used)))
    }

    fn step_from(&self, start: usize, wanted: usize, lead: usize) -> Step {
        let step_bytes = STEP_BYTES.max(self.page_bytes);
        Step { start, end: wanted.min((start / step_bytes + 1) * step_bytes), lead }
    }

    /// Returns the next end of a page at or after `offset`. Pages at the start may be smaller.
    fn end_of_page(&self, offset: usize) -> usize {
        match offset.checked_sub(self.ordinary_bytes) {
            None | Some(0) => offset.next_multiple_of(BASE_ALIGNMENT),
            Some(behind) => behind.next_multiple_of(self.page_bytes).saturating_add(self.ordinary_bytes),
        }
    }
}

/// The thread and its work list.
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
        // The list is consistent between any two statements that may panic.
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds some memory to the work list. Returns `false` if there is no thread: then its owner touches the memory.
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

    /// Wakes the thread. A call just before the thread falls asleep may be lost; the next call is not.
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

    /// Makes one step, for the shortest lead. Returns `false` when everything is ready except for memory that can
    /// wait until `rest_until`.
    fn work(&self, rest_until: &mut Instant) -> bool {
        let is_resting = Instant::now() < *rest_until;
        let (range, step, ready_bytes, can_wait, gathers) = {
            let mut regions = self.regions();
            regions.retain(|region| region.range.strong_count() > 0 && region.ready < region.bytes);
            let steps = regions.iter().enumerate().filter(|(_, region)| !(is_resting && region.ahead.can_wait));
            let steps = steps.filter_map(|(number, region)| Some((number, region.missing()?)));
            let Some((number, step)) = steps.min_by_key(|(_, step)| step.lead) else { return false };
            let region = &mut regions[number];
            // Recorded at once: memory that cannot be made ready now is touched by its user.
            region.ready = step.end;
            self.is_busy.store(true, Ordering::SeqCst);
            let (can_wait, gathers) = (region.ahead.can_wait, region.gathers);
            (region.range.upgrade(), step, Arc::clone(&region.ready_bytes), can_wait, gathers)
        };
        if let Some(range) = range {
            let bytes = step.end - step.start;
            if gathers {
                // A system without this request gathers the ordinary pages by itself after a while.
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
