//! Which processors there are for threads, and binding a thread to one of them.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread, for the system calls here.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Numbers of the processors that the calling thread may run on, lowest first.
///
/// # Errors
/// When the system does not say.
pub fn usable_processors() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(THIS_THREAD)?;
    Ok((0..CpuSet::count()).filter(|&number| allowed.is_set(number).unwrap_or(false)).collect())
}

/// Lets the calling thread run on the processor with this number only.
///
/// # Errors
/// When there is no such processor, or this thread may not run on it.
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
            let last = usable_processors().expect("known").pop().expect("at least one");
            pin_to_processor(last).expect("allowed");
            (last, usable_processors().expect("known"))
        });
        let (last, left) = stays.join().expect("no panic");
        assert_eq!(left, [last]);
        assert!(pin_to_processor(usize::MAX).is_err());
    }
}
