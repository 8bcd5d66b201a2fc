//! The CPU's time-stamp counter, for measuring durations.
//!
//! It counts at a fixed rate, independent of the core's frequency: 100 counts are always the same time, but not always
//! 100 cycles of the core.

use std::sync::OnceLock;

/// Returns the counter. Reading it takes about ten nanoseconds at most and no system call. The CPU may read it before
/// preceding instructions are done, so it measures spans of hundreds of cycles and more.
///
/// On CPU architectures without support for the counter here, it counts nanoseconds of the system's clock.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register that every x86-64 CPU has.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register, which Linux and macOS permit every program to do.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        since_start_ns()
    }
}

/// Returns the counter, read after all preceding instructions are done, for spans that are too short for [`cycles`].
/// The wait costs some tens of cycles.
#[inline(always)]
pub fn cycles_in_order() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: waits for instructions, which every x86-64 CPU supports; touches no memory.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: waits for instructions; touches no memory.
    unsafe {
        std::arch::asm!("isb", options(nomem, nostack, preserves_flags));
    }
    cycles()
}

/// Returns the counter's rate in counts per second. The first call may take 20 ms to measure it.
pub fn cycles_per_second() -> u64 {
    static RATE: OnceLock<u64> = OnceLock::new();
    *RATE.get_or_init(rate)
}

/// Not every CPU reports its counter's rate, so the rate is measured against the system's clock.
#[cfg(target_arch = "x86_64")]
fn rate() -> u64 {
    use std::time::{Duration, Instant};
    // Takes a few readings of counter and clock, and keeps the pair that was read in the shortest time.
    let reading = || {
        let readings = (0..8).map(|_| {
            let before = cycles();
            let now = Instant::now();
            let after = cycles();
            (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), now)
        });
        let closest = readings.min_by_key(|&(apart, ..)| apart);
        closest.map_or_else(|| (cycles(), Instant::now()), |(_, count, now)| (count, now))
    };
    let (first, start) = reading();
    std::thread::sleep(Duration::from_millis(20));
    let (last, end) = reading();
    let elapsed_ns = end.duration_since(start).as_nanos().max(1);
    u64::try_from(u128::from(last.wrapping_sub(first)) * 1_000_000_000 / elapsed_ns).unwrap_or(u64::MAX).max(1)
}

#[cfg(target_arch = "aarch64")]
fn rate() -> u64 {
    let hertz: u64;
    // SAFETY: reads a register, which Linux and macOS permit every program to do.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
    hertz.max(1)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn rate() -> u64 {
    1_000_000_000
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn since_start_ns() -> u64 {
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_counter_agrees_with_the_clock() {
        // The machine may be busy, so one of several attempts has to succeed.
        let agrees = (0..20).any(|_| {
            let (start, clock) = (cycles(), Instant::now());
            std::thread::sleep(Duration::from_millis(10));
            let by_counter_ns = (cycles() - start) as f64 * 1e9 / cycles_per_second() as f64;
            let by_clock_ns = clock.elapsed().as_nanos() as f64;
            (by_counter_ns / by_clock_ns - 1.0).abs() < 0.02
        });
        assert!(agrees, "{} cycles per second", cycles_per_second());
    }
}
