//! The processor's time-stamp counter: the cheapest clock there is, in ticks of a constant rate.
//!
//! On x86-64 a tick is a cycle of the processor's nominal frequency, whatever frequency it runs at; papers call these
//! "CPU cycles". Where there is no such counter a tick is a nanosecond of the monotonic clock.

/// Ticks since some moment in the past. Not ordered with the instructions around it: measure spans of many of them.
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reads a register that every x86-64 processor has and that Linux lets programs read.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads the virtual counter, which Linux lets programs read; changes nothing else.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::sync::LazyLock;
        use std::time::Instant;
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_advances() {
        let start = cycles();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(cycles().wrapping_sub(start) > 1000);
    }
}
