//! The CPUs that threads may use, and pinning a thread to one of them.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, as an argument of the system calls here.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Returns the numbers of the CPUs that the calling thread may run on, in ascending order.
///
/// # Errors
/// The system call fails.
pub fn usable_processors() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(THIS_THREAD)?;
    Ok((0..CpuSet::count()).filter(|&number| allowed.is_set(number).unwrap_or(false)).collect())
}

/// Restricts the calling thread to the CPU with this number.
///
/// # Errors
/// There is no such CPU, or this thread may not run on it.
pub fn pin_to_processor(number: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(number)?;
    Ok(sched_setaffinity(THIS_THREAD, &only)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let stays = std::thread::spawn(|| {
            let last = usable_processors().expect("known").pop().expect("at least one CPU");
            pin_to_processor(last).expect("allowed");
            (last, usable_processors().expect("known"))
        });
        let (last, left) = stays.join().expect("no panic");
        assert_eq!(left, [last]);
        assert!(pin_to_processor(usize::MAX).is_err());
    }
}
